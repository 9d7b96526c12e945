//! From numbers to places on a chart: ranges with round ticks.

/// A range of values with the ticks in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// Places of the ticks, rising.
    pub ticks: Vec<f64>,
    /// Digits after the point that tell the ticks apart.
    decimals: usize,
    /// Whether ticks are shares, shown in per cent.
    percent: bool,
}

impl Axis {
    /// About `count` steps of 1, 2 or 5 times a power of ten; `fit` widens the range to the outer ticks.
    pub fn linear(low: f64, high: f64, count: usize, fit: bool) -> Self {
        let (low, high) = widen(low, high);
        let rough = (high - low) / count.max(1) as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade);
        let step = step.into_iter().find(|s| *s >= rough * 0.999).unwrap_or(10.0 * decade);
        let (first, last) = if fit {
            ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil())
        } else {
            ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor())
        };
        let ticks = (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
        let decimals = (-step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
        let (low, high) = if fit { (first * step, last * step) } else { (low, high) };
        Self { low, high, log: false, ticks, decimals, percent: false }
    }

    /// Powers of ten, with 2 and 5 times them where there are few; for 0 < `low` ≤ `high`.
    pub fn log(low: f64, high: f64) -> Self {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let last = last.max(first + 1);
        let between: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all = (first..last).flat_map(|d| between.iter().map(move |m| m * 10f64.powi(d)));
        let all: Vec<f64> = all.chain([10f64.powi(last)]).collect();
        let start = all.iter().rposition(|t| *t <= low * 1.001).unwrap_or(0);
        let end = all.iter().position(|t| *t >= high * 0.999).unwrap_or(all.len() - 1);
        let end = end.max(start + 1).min(all.len() - 1);
        let ticks = all[start.min(end - 1)..=end].to_vec();
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        Self { low, high, log: true, ticks, decimals: 0, percent: false }
    }

    /// Powers of two in a logarithmic range, for 0 < `low` ≤ `high`; a single value has a range around it.
    pub fn powers_of_two(low: f64, high: f64) -> Self {
        let (low, high) = if high > low { (low, high) } else { (0.5 * low, 2.0 * low) };
        let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
        let ticks = (first..=last).map(|exponent| 2f64.powi(exponent)).collect();
        Self { low, high, log: true, ticks, decimals: 0, percent: false }
    }

    /// The place of a value: 0 at the low end, 1 at the high end, never outside.
    pub fn place(&self, value: f64) -> f64 {
        let f = |x: f64| if self.log { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let place = (f(value) - f(self.low)) / (f(self.high) - f(self.low));
        place.clamp(0.0, 1.0)
    }

    /// A tick as text.
    pub fn label(&self, tick: f64) -> String {
        if self.percent {
            format!("{:.*} %", self.decimals.saturating_sub(2), tick * 100.0)
        } else if tick == 0.0 {
            "0".to_owned()
        } else if self.log || !(1e-5..1e15).contains(&tick.abs()) {
            short(tick)
        } else if tick.abs() >= 1e5 && self.decimals == 0 {
            format!("{}k", crate::text::count((tick / 1000.0).round() as u64))
        } else {
            format!("{tick:.*}", self.decimals)
        }
    }

    /// The same axis with its ticks in per cent.
    pub fn in_percent(self) -> Self {
        Self { percent: true, ..self }
    }
}

fn widen(low: f64, high: f64) -> (f64, f64) {
    if high > low {
        (low, high)
    } else if low == 0.0 {
        (0.0, 1.0)
    } else {
        (low.min(0.0), high.max(0.0))
    }
}

/// Few digits: 0.0005, 20, 1e-6.
fn short(x: f64) -> String {
    if (1e-4..1e6).contains(&x.abs()) { format!("{x}") } else { format!("{x:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|t| axis.label(*t)).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(
            labels(&Axis::linear(0.03, 2.3, 5, true)),
            ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"].map(|s| if s == "0.0" { "0" } else { s })
        );
        assert_eq!(labels(&Axis::linear(0.0, 1930.0, 5, false)), ["0", "500", "1000", "1500"]);
        assert_eq!(labels(&Axis::linear(0.0, 600_000.0, 3, false)), ["0", "200k", "400k", "600k"]);
        assert_eq!(
            labels(&Axis::log(4e-4, 1e-2)),
            ["0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01"]
        );
        assert_eq!(labels(&Axis::log(3e-7, 2.0)).first().unwrap(), "1e-7");
        assert_eq!(labels(&Axis::powers_of_two(500.0, 2048.0)), ["512", "1024", "2048"]);
    }

    #[test]
    fn any_range_has_an_axis() {
        let extremes = [0.0f64, -1.0, 1e-12, 3.0, 1e12, 1e300];
        for low in extremes {
            for high in extremes {
                let axis = Axis::linear(low.min(high), low.max(high), 5, true);
                assert!((2..=12).contains(&axis.ticks.len()), "{low} {high}: {axis:?}");
                assert!(axis.place(low).is_finite());
                if low > 0.0 && high >= low {
                    let axis = Axis::log(low, high);
                    assert!(axis.ticks.len() >= 2, "{low} {high}: {axis:?}");
                    assert!(axis.place(low) <= axis.place(high) && axis.place(low).is_finite());
                }
            }
        }
    }
}
