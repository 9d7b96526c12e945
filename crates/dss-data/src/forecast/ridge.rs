//! Least squares with a penalty: y\[k\] = b\[k\] + Σᵢ a\[k, i\] x\[i\] over all windows of a series.
//!
//! The sums over windows follow from each other: with M\[i, j\] = Σₛ x\[s+i\] x\[s+j\] over S windows,
//! M\[i+1, j+1\] = M\[i, j\] − x\[i\] x\[j\] + x\[S+i\] x\[S+j\].

/// Sums over all windows: inputs and targets are a window's first `input` and its other values.
pub(super) struct Moments {
    input: usize,
    horizon: usize,
    windows: f64,
    /// Centred second moments, `[input, input + horizon]`.
    second: Vec<f64>,
    /// Means of the values of a window, `[input + horizon]`.
    mean: Vec<f64>,
}

impl Moments {
    /// Of all windows of a series, which has at least one.
    pub(super) fn of(series: &[f32], input: usize, horizon: usize) -> Self {
        let x = |i: usize| f64::from(series[i]);
        let width = input + horizon;
        let count = series.len() + 1 - width;
        let mut mean = vec![0.0; width];
        mean[0] = (0..count).map(x).sum();
        for i in 1..width {
            mean[i] = mean[i - 1] - x(i - 1) + x(i - 1 + count);
        }
        let windows = count as f64;
        mean.iter_mut().for_each(|m| *m /= windows);
        let mut second = vec![0.0; input * width];
        for (j, first_row) in second[..width].iter_mut().enumerate() {
            *first_row = (0..count).map(|s| x(s) * x(s + j)).sum();
        }
        for i in 1..input {
            for j in i..width {
                let before = second[(i - 1) * width + j - 1];
                let (first, last) = (x(i - 1) * x(j - 1), x(i - 1 + count) * x(j - 1 + count));
                second[i * width + j] = before - first + last;
            }
        }
        for i in 0..input {
            for j in i..width {
                second[i * width + j] -= windows * mean[i] * mean[j];
            }
        }
        Self { input, horizon, windows, second, mean }
    }

    /// The map with the least sum of squares plus `penalty · windows · Σ a²`; `None` if there is none.
    pub(super) fn solve(&self, penalty: f64) -> Option<Ridge> {
        let (n, width) = (self.input, self.input + self.horizon);
        let factor = self.cholesky(penalty)?;
        let mut slope = Vec::with_capacity(self.horizon * n);
        let mut offset = Vec::with_capacity(self.horizon);
        for k in n..width {
            // L z = m, then Lᵀ a = z.
            let mut a: Vec<f64> = (0..n).map(|i| self.second[i * width + k]).collect();
            for i in 0..n {
                let known: f64 = factor[i * n..i * n + i].iter().zip(&a).map(|(l, z)| l * z).sum();
                a[i] = (a[i] - known) / factor[i * n + i];
            }
            for i in (0..n).rev() {
                a[i] /= factor[i * n + i];
                let value = a[i];
                let row = &factor[i * n..i * n + i];
                a[..i].iter_mut().zip(row).for_each(|(z, l)| *z -= l * value);
            }
            let at_mean: f64 = a.iter().zip(&self.mean).map(|(a, m)| a * m).sum();
            offset.push(self.mean[k] - at_mean);
            slope.extend(a);
        }
        let finite = slope.iter().chain(&offset).all(|x| x.is_finite());
        finite.then_some(Ridge { input: n, slope, offset })
    }

    /// L with L Lᵀ = M + penalty · windows · I, lower triangle by rows.
    fn cholesky(&self, penalty: f64) -> Option<Vec<f64>> {
        let (n, width) = (self.input, self.input + self.horizon);
        let mut l = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let (row_i, row_j) = (&l[i * n..i * n + j], &l[j * n..j * n + j]);
                let known: f64 = row_i.iter().zip(row_j).map(|(a, b)| a * b).sum();
                let rest = self.second[j * width + i] - known;
                l[i * n + j] = match i == j {
                    false => rest / l[j * n + j],
                    true => {
                        let pivot = rest + penalty * self.windows;
                        if !pivot.is_finite() || pivot <= 0.0 {
                            return None;
                        }
                        pivot.sqrt()
                    }
                };
            }
        }
        Some(l)
    }
}

/// A linear map of the last `input` known values.
pub(super) struct Ridge {
    input: usize,
    /// `[horizon, input]`.
    slope: Vec<f64>,
    /// `[horizon]`.
    offset: Vec<f64>,
}

impl Ridge {
    /// The forecast after `known`, which has at least `input` values.
    pub(super) fn predict(&self, known: &[f32]) -> Vec<f64> {
        let x: Vec<f64> = known[known.len() - self.input..].iter().map(|&x| x.into()).collect();
        let rows = self.slope.chunks(self.input).zip(&self.offset);
        rows.map(|(a, b)| b + a.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The gradient of the penalised squares, by sums over the windows themselves.
    fn gradient(series: &[f32], ridge: &Ridge, horizon: usize, penalty: f64) -> f64 {
        let (n, width) = (ridge.input, ridge.input + horizon);
        let count = series.len() + 1 - width;
        let mut slope: Vec<f64> = ridge.slope.iter().map(|a| penalty * count as f64 * a).collect();
        let mut offset = vec![0.0; horizon];
        for window in series.windows(width) {
            let (known, targets) = window.split_at(n);
            for (k, y) in ridge.predict(known).iter().enumerate() {
                let error = y - f64::from(targets[k]);
                offset[k] += error;
                for i in 0..n {
                    slope[k * n + i] += error * f64::from(known[i]);
                }
            }
        }
        slope.iter().chain(&offset).fold(0.0, |max, g| max.max(g.abs()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_solution_has_no_slope_left(
            series in prop::collection::vec(-2.0f32..2.0, 12..60),
            input in 1usize..6, horizon in 1usize..6, power in -3i32..1,
        ) {
            let penalty = 10f64.powi(power);
            let ridge = Moments::of(&series, input, horizon).solve(penalty).unwrap();
            let left = gradient(&series, &ridge, horizon, penalty);
            prop_assert!(left < 1e-8, "{left}");
        }
    }
}
