//! Order statistics.

use serde::Serialize;

/// The value below which a share `p` of the values lies, linear between neighbours (as NumPy's default); `None` without
/// values.
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    at_share(&sorted, p)
}

fn at_share(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = p.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    let share = at - at.floor();
    // Infinite neighbours have no line between them.
    Some(if share == 0.0 || low == high { low } else { low + share * (high - low) })
}

/// Five numbers that say how values are spread. Infinite ones are null in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// 5 % are below.
    pub low: f64,
    /// Half are below.
    pub median: f64,
    /// 95 % are below.
    pub high: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Of these values; `None` without any.
    pub fn new(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |p| at_share(&sorted, p);
        Some(Self {
            least: at(0.0)?,
            low: at(0.05)?,
            median: at(0.5)?,
            high: at(0.95)?,
            greatest: at(1.0)?,
        })
    }

    /// All five divided by a number.
    pub fn divided_by(self, by: f64) -> Self {
        let Self { least, low, median, high, greatest } = self;
        let [least, low, median, high, greatest] =
            [least, low, median, high, greatest].map(|x| x / by);
        Self { least, low, median, high, greatest }
    }
}

/// Indices of the values that lie more than three times the distance of the quartiles beyond them (Tukey's "far out").
pub fn far_out(values: &[f64]) -> Vec<usize> {
    let (Some(first), Some(third)) = (percentile(values, 0.25), percentile(values, 0.75)) else {
        return Vec::new();
    };
    let reach = 3.0 * (third - first);
    let inside = first - reach..=third + reach;
    (0..values.len()).filter(|&i| !inside.contains(&values[i])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        // numpy.percentile([7, 1, 3, 100], [0, 25, 50, 95, 100])
        let x = [7.0, 1.0, 3.0, 100.0];
        let found = [0.0, 0.25, 0.5, 0.95, 1.0].map(|p| percentile(&x, p).unwrap());
        for (a, b) in found.into_iter().zip([1.0, 2.5, 5.0, 86.05, 100.0]) {
            assert!((a - b).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(percentile(&[], 0.5), None);
        let endless = [1.0, f64::INFINITY, f64::INFINITY];
        assert_eq!(percentile(&endless, 0.75), Some(f64::INFINITY));
    }

    #[test]
    fn outliers_lie_far_out() {
        let mut x: Vec<f64> = (0..9).map(f64::from).collect(); // quartiles 2 and 6
        assert!(far_out(&x).is_empty());
        x[4] = 22.1; // quartiles 2 and 7: the fence is at 22
        assert_eq!(far_out(&x), [4]);
        x[4] = -14.1; // quartiles 1 and 6: the fence is at -14
        assert_eq!(far_out(&x), [4]);
        assert!(far_out(&[]).is_empty() && far_out(&[3.0; 5]).is_empty());
    }
}
