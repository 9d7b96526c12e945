//! Line charts as inline SVG. Colours come from the page's style sheet, so that they follow light and dark.

use std::fmt::Write;

use super::axis::Axis;
use crate::text::escape;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;

/// More points than this are thinned out: the eye cannot tell, and the file stays small.
const MAX_POINTS: usize = 600;

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// A line.
    Line,
    /// A thin pale line behind the others.
    Faint,
    /// A line with a dot at each point.
    Dots,
}

/// Points with a name and a colour.
pub(super) struct Series {
    pub name: &'static str,
    /// One of the classes `c1`, `c2`, ... of the style sheet.
    pub class: &'static str,
    pub shape: Shape,
    /// Rising in x, all finite.
    pub points: Vec<(f64, f64)>,
}

/// What stands on the vertical axis.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From zero, or from below if there are such values.
    Linear,
    /// As `Linear`, but logarithmic when the values span more than a factor of 30.
    Auto,
    /// Shares, shown as percentages.
    Percent,
}

/// One chart.
pub(super) struct Chart {
    /// Unique in the page.
    pub id: &'static str,
    pub title: &'static str,
    /// What the chart says, for those who cannot see it.
    pub summary: String,
    pub scale: Scale,
    pub series: Vec<Series>,
    /// A vertical line with a name.
    pub mark: Option<(f64, &'static str)>,
    /// Right end of the horizontal axis.
    pub end: f64,
}

impl Chart {
    /// A `<figure>`, or nothing without points.
    pub fn html(&self) -> String {
        let series: Vec<&Series> = self.series.iter().filter(|s| !s.points.is_empty()).collect();
        if series.is_empty() {
            return String::new();
        }
        let mut out = String::new();
        let _ = write!(out, "<figure>\n<figcaption><b>{}</b>", escape(self.title));
        for s in &series {
            let _ = write!(out, " {}", legend(s));
        }
        if let Some((_, name)) = self.mark {
            let key = r#"<svg class="key" viewBox="0 0 24 10" aria-hidden="true"><path class="mark" d="M12 0V10"/></svg>"#;
            let _ = write!(out, r#" <span class="entry">{key}{}</span>"#, escape(name));
        }
        out.push_str("</figcaption>\n");
        self.svg(&series, &mut out);
        out.push_str("</figure>\n");
        out
    }

    fn svg(&self, series: &[&Series], out: &mut String) {
        let (id, title, summary) = (self.id, escape(self.title), escape(&self.summary));
        let _ = write!(
            out,
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{summary}</desc>\n"
        );
        let x = Axis::linear(0.0, self.end, 5, false);
        let y = self.y_axis(series);
        let px = |v: f64| LEFT + x.place(v) * (WIDTH - LEFT - RIGHT);
        let py = |v: f64| HEIGHT - BOTTOM - y.place(v) * (HEIGHT - TOP - BOTTOM);
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in &y.ticks {
            let (at, label) = (py(*tick), self.y_label(&y, *tick));
            let _ = writeln!(
                out,
                r#"<path class="grid" d="M{LEFT} {at:.1}H{right}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"#,
                LEFT - 6.0,
                at + 4.0
            );
        }
        for tick in &x.ticks {
            let (at, label) = (px(*tick), x.label(*tick));
            let _ = writeln!(
                out,
                r#"<path class="axis" d="M{at:.1} {bottom}v4"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
                bottom + 17.0
            );
        }
        let _ = writeln!(
            out,
            r#"<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/><text x="{:.1}" y="{:.1}" text-anchor="middle">step</text>"#,
            (LEFT + right) / 2.0,
            HEIGHT - 5.0
        );
        if let Some((at, _)) = self.mark {
            let _ = writeln!(out, r#"<path class="mark" d="M{:.1} {TOP}V{bottom}"/>"#, px(at));
        }
        for s in series {
            let points = thin(&s.points, MAX_POINTS);
            let mut d = String::new();
            for (i, (vx, vy)) in points.iter().enumerate() {
                let _ =
                    write!(d, "{}{:.1} {:.1}", if i == 0 { "M" } else { "L" }, px(*vx), py(*vy));
            }
            let faint = if s.shape == Shape::Faint { " faint" } else { "" };
            let _ = writeln!(out, r#"<path class="line {}{faint}" d="{d}"/>"#, s.class);
            // A line of one point would not be seen.
            let dots = s.shape == Shape::Dots && points.len() <= 60 || points.len() == 1;
            for (vx, vy) in points.iter().filter(|_| dots) {
                let _ = write!(
                    out,
                    r#"<circle class="{}" cx="{:.1}" cy="{:.1}" r="2.6"/>"#,
                    s.class,
                    px(*vx),
                    py(*vy)
                );
            }
        }
        out.push_str("</svg>\n");
    }

    fn y_axis(&self, series: &[&Series]) -> Axis {
        let values = || series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        match self.scale {
            Scale::Auto if low > 0.0 && high > 30.0 * low => Axis::log(low, high),
            Scale::Percent if low > 0.5 => Axis::linear(low, high.max(low + 0.01), 5, true),
            _ => Axis::linear(low.min(0.0), high, 5, true),
        }
    }

    fn y_label(&self, axis: &Axis, tick: f64) -> String {
        if self.scale == Scale::Percent { axis.percent(tick) } else { axis.label(tick) }
    }
}

fn legend(s: &Series) -> String {
    let faint = if s.shape == Shape::Faint { " faint" } else { "" };
    let dot = if s.shape == Shape::Dots {
        format!(r#"<circle class="{}" cx="12" cy="5" r="3"/>"#, s.class)
    } else {
        String::new()
    };
    format!(
        r#"<span class="entry"><svg class="key" viewBox="0 0 24 10" aria-hidden="true"><path class="line {}{faint}" d="M0 5H24"/>{dot}</svg>{}</span>"#,
        s.class,
        escape(s.name)
    )
}

/// Mean over a window of about a thirtieth of the points, centred: no lag.
pub(super) fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let half = points.len() / 60;
    let mut sums = Vec::with_capacity(points.len() + 1);
    sums.push(0.0);
    for (i, p) in points.iter().enumerate() {
        sums.push(sums[i] + p.1);
    }
    let mean = |i: usize| {
        // Narrower at the ends, so that the window stays centred.
        let reach = half.min(i).min(points.len() - 1 - i);
        let (from, to) = (i - reach, i + reach + 1);
        (sums[to] - sums[from]) / (to - from) as f64
    };
    points.iter().enumerate().map(|(i, p)| (p.0, mean(i))).collect()
}

/// At most `max` points that keep the outline: the lowest and the highest of each stretch.
fn thin(points: &[(f64, f64)], max: usize) -> Vec<(f64, f64)> {
    if points.len() <= max {
        return points.to_vec();
    }
    let size = (2 * points.len()).div_ceil(max);
    let mut out = Vec::with_capacity(max + 2);
    for stretch in points.chunks(size) {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (stretch.iter().min_by(by), stretch.iter().max_by(by)) else {
            continue;
        };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        out.push(*first);
        if first.0 != second.0 {
            out.push(*second);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_keeps_lines_straight_and_thinning_keeps_peaks() {
        let line: Vec<_> = (0..6000).map(|i| (i as f64, 3.0 * i as f64)).collect();
        for (a, b) in smooth(&line).iter().zip(&line) {
            assert!((a.1 - b.1).abs() < 1e-6 * b.1.max(1.0));
        }
        let mut peak = line.clone();
        peak[1234].1 = 1e9;
        let thinned = thin(&peak, 600);
        assert!(thinned.len() <= 602 && thinned.contains(&(1234.0, 1e9)));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
        assert!(smooth(&[]).is_empty());
    }

    #[test]
    fn a_chart_without_points_is_left_out() {
        let series = Series { name: "a", class: "c1", shape: Shape::Line, points: vec![] };
        let mut chart = Chart {
            id: "x",
            title: "t",
            summary: String::new(),
            scale: Scale::Linear,
            series: vec![series],
            mark: None,
            end: 1.0,
        };
        assert_eq!(chart.html(), "");
        chart.series[0].points.push((1.0, 5.0));
        assert!(chart.html().contains("<circle"), "a single point is seen");
    }
}
