//! Charts of lines and dots: curves of a training, answers of a model.

use super::axis::Axis;
use super::font;
use super::panel::{Frame, Panel};
use super::scene::{Anchor, Ink, Line, MARGIN, Scene, TOP, polyline};

const WIDTH: f64 = 480.0;
const LEFT: f64 = 44.0;
const LEGEND: f64 = 24.0;
const BOTTOM: f64 = 42.0;
const RADIUS: f64 = 2.6;
/// Length of a line in the legend.
const KEY: f64 = 22.0;

/// More points than this are thinned out: the eye cannot tell, and the file stays small.
const MAX_POINTS: usize = 600;
/// More dots than this would hide their line.
const MAX_DOTS: usize = 60;

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// A line.
    Line,
    /// A thin pale line behind the others.
    Faint,
    /// A line with a dot at each point.
    Dots,
    /// Dots without a line.
    Scatter,
    /// A dashed line.
    Dashes,
}

/// Points with a name and a colour.
pub(crate) struct Series {
    /// For the legend; empty: not in the legend.
    pub name: &'static str,
    pub ink: Ink,
    pub shape: Shape,
    /// Rising in x, all finite.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    fn line(&self) -> Line {
        match self.shape {
            Shape::Faint => Line { opacity: 0.35, ..Line::new(self.ink, 1.0) },
            Shape::Dashes => Line { dashed: true, ..Line::new(self.ink, 1.2) },
            Shape::Line | Shape::Dots | Shape::Scatter => Line::new(self.ink, 1.8),
        }
    }
}

/// The vertical axis.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// From zero, or from below if there are such values.
    Linear,
    /// As `Linear`, but logarithmic when the values span more than a factor of 30.
    Auto,
    /// Shares, shown as percentages.
    Percent,
    /// From the least to the largest value.
    Fit,
}

/// One chart.
pub(crate) struct Chart {
    /// As that of a [`Scene`].
    pub name: String,
    pub title: String,
    /// What the chart says, for those who cannot see it.
    pub summary: String,
    pub scale: Scale,
    pub series: Vec<Series>,
    /// A vertical line with a name.
    pub mark: Option<(f64, &'static str)>,
    /// Ends of the horizontal axis, and its name.
    pub x: (f64, f64),
    pub x_name: &'static str,
    /// Height of the frame.
    pub height: f64,
}

impl Chart {
    /// The ordinary height of a frame.
    pub const HEIGHT: f64 = 210.0;

    /// The picture; nothing without points.
    pub fn scene(&self) -> Option<Scene> {
        let series: Vec<&Series> = self.series.iter().filter(|s| !s.points.is_empty()).collect();
        let y = self.y_axis(series.iter().flat_map(|s| s.points.iter().map(|p| p.1)))?;
        let named = self.mark.is_some() || series.iter().any(|s| !s.name.is_empty());
        let top = TOP + if named { LEGEND } else { 0.0 };
        let height = top + self.height + BOTTOM;
        let mut scene = Scene::new(self.name.clone(), &self.title, WIDTH, height);
        scene.summary = self.summary.clone();
        let (left, width) = (MARGIN + LEFT, WIDTH - 2.0 * MARGIN - LEFT);
        let frame = Frame { x: left, y: top, width, height: self.height };
        let panel = Panel { x: Axis::linear(self.x.0, self.x.1, 5, false), y, frame };
        panel.draw_y(&mut scene, true);
        panel.draw_x(&mut scene, true);
        panel.draw_names(&mut scene, self.x_name, "", 0.0);
        let (right, bottom) = (frame.right(), frame.bottom());
        scene.stroke(format!("M{left:.1} {top:.1}V{bottom:.1}H{right:.1}"), Ink::Quiet, 1.0);
        if let Some((at, _)) = self.mark {
            let x = panel.px(at);
            scene.dashes(format!("M{x:.1} {top:.1}V{bottom:.1}"), Ink::Quiet, 1.2);
        }
        for s in &series {
            let place = |points: &[(f64, f64)]| -> Vec<[f64; 2]> {
                points.iter().map(|(x, y)| panel.at(*x, *y)).collect()
            };
            if s.shape == Shape::Scatter {
                scene.dots(place(&s.points), RADIUS, s.ink, 0.6);
                continue;
            }
            let points = place(&thin(&s.points, MAX_POINTS));
            scene.line(polyline(points.iter().copied()), s.line());
            // A line of one point would not be seen.
            if s.shape == Shape::Dots && points.len() <= MAX_DOTS || points.len() == 1 {
                scene.dots(points, RADIUS, s.ink, 1.0);
            }
        }
        self.draw_legend(&mut scene, &series);
        Some(scene)
    }

    fn draw_legend(&self, scene: &mut Scene, series: &[&Series]) {
        let (mut x, y) = (MARGIN, TOP + 4.0);
        for s in series.iter().filter(|s| !s.name.is_empty()) {
            if s.shape != Shape::Scatter {
                scene.line(format!("M{x:.1} {y:.1}h{KEY}"), Line { width: 2.2, ..s.line() });
            }
            if matches!(s.shape, Shape::Dots | Shape::Scatter) {
                scene.dots(vec![[x + 0.5 * KEY, y]], RADIUS, s.ink, 1.0);
            }
            x = draw_name(scene, x, y, s.name);
        }
        if let Some((_, name)) = self.mark {
            scene.dashes(format!("M{:.1} {:.1}v12", x + 0.5 * KEY, y - 6.0), Ink::Quiet, 1.2);
            draw_name(scene, x, y, name);
        }
    }

    fn y_axis(&self, values: impl Iterator<Item = f64> + Clone) -> Option<Axis> {
        let low = values.clone().reduce(f64::min)?;
        let high = values.reduce(f64::max)?;
        let from_zero = Axis::linear(low.min(0.0), high, 5, true);
        Some(match self.scale {
            Scale::Auto if low > 0.0 && high > 30.0 * low => Axis::log(low, high),
            Scale::Auto | Scale::Linear => from_zero,
            Scale::Percent if low > 0.5 => {
                Axis::linear(low, high.max(low + 0.01), 5, true).in_percent()
            }
            Scale::Percent => from_zero.in_percent(),
            Scale::Fit => Axis::linear(low, high, 5, true),
        })
    }
}

/// The name of a legend's entry at `x`; returns where the next entry begins.
fn draw_name(scene: &mut Scene, x: f64, y: f64, name: &str) -> f64 {
    let x = x + KEY + 6.0;
    scene.label([x, y + 4.0], name, Anchor::Start);
    x + font::width(name, Scene::LABEL_SIZE) + 16.0
}

/// Mean over a window of about a thirtieth of the points, centred: no lag.
pub(crate) fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
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

/// At most about `max` points that keep the outline: the lowest and the highest of each stretch.
pub(crate) fn thin(points: &[(f64, f64)], max: usize) -> Vec<(f64, f64)> {
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
        let series = Series { name: "a", ink: Ink::First, shape: Shape::Line, points: vec![] };
        let mut chart = Chart {
            name: "x".into(),
            title: "t".into(),
            summary: String::new(),
            scale: Scale::Linear,
            series: vec![series],
            mark: None,
            x: (0.0, 1.0),
            x_name: "step",
            height: Chart::HEIGHT,
        };
        assert!(chart.scene().is_none());
        chart.series[0].points.push((1.0, 5.0));
        assert!(chart.scene().unwrap().svg().contains("<circle"), "a single point is seen");
    }
}
