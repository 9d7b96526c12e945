//! Least squares with a penalty: y\[k\] = b\[k\] + Σᵢ a\[k, i\] x\[i\], over rows of x and y or over all windows of a
//! series.
//!
//! The sums over windows follow from each other: with M\[i, j\] = Σₛ x\[s+i\] x\[s+j\] over S windows,
//! M\[i+1, j+1\] = M\[i, j\] − x\[i\] x\[j\] + x\[S+i\] x\[S+j\].

/// Sums over all rows: inputs and targets are a row's first `input` and its other values.
pub(crate) struct RidgeMoments {
    input: usize,
    horizon: usize,
    rows: f64,
    /// Centred second moments, `[input, input + horizon]`.
    second: Vec<f64>,
    /// Means of the values of a row, `[input + horizon]`.
    mean: Vec<f64>,
}

impl RidgeMoments {
    /// The windows of a series, of which there is at least one, are the rows.
    pub(crate) fn of_windows(series: &[f32], input: usize, horizon: usize) -> Self {
        let x = |i: usize| f64::from(series[i]);
        let width = input + horizon;
        let count = series.len() + 1 - width;
        let mut mean = vec![0.0; width];
        mean[0] = (0..count).map(x).sum();
        for i in 1..width {
            mean[i] = mean[i - 1] - x(i - 1) + x(i - 1 + count);
        }
        let rows = count as f64;
        mean.iter_mut().for_each(|m| *m /= rows);
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
                second[i * width + j] -= rows * mean[i] * mean[j];
            }
        }
        Self { input, horizon, rows, second, mean }
    }

    /// Rows `[input + horizon]`, of which there is at least one.
    pub(crate) fn of_rows(rows: &[Vec<f64>], input: usize) -> Self {
        let (width, count) = (rows[0].len(), rows.len() as f64);
        let mean: Vec<f64> =
            (0..width).map(|j| rows.iter().map(|row| row[j]).sum::<f64>() / count).collect();
        let mut second = vec![0.0; input * width];
        for row in rows {
            let centred: Vec<f64> = row.iter().zip(&mean).map(|(x, m)| x - m).collect();
            for (sums, x) in second.chunks_mut(width).zip(&centred) {
                sums.iter_mut().zip(&centred).for_each(|(sum, y)| *sum += x * y);
            }
        }
        Self { input, horizon: width - input, rows: count, second, mean }
    }

    /// The map with the least sum of squares plus `penalty · rows · Σ a²`; `None` if there is none.
    pub(crate) fn solve(&self, penalty: f64) -> Option<Ridge> {
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

    /// L with L Lᵀ = M + penalty · rows · I, lower triangle by rows.
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
                        let pivot = rest + penalty * self.rows;
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

/// A linear map of `input` values.
pub(crate) struct Ridge {
    input: usize,
    /// `[horizon, input]`.
    slope: Vec<f64>,
    /// `[horizon]`.
    offset: Vec<f64>,
}

impl Ridge {
    /// y of x, `[input]`.
    pub(crate) fn apply(&self, x: &[f64]) -> Vec<f64> {
        let rows = self.slope.chunks(self.input).zip(&self.offset);
        rows.map(|(a, b)| b + a.iter().zip(x).map(|(a, x)| a * x).sum::<f64>()).collect()
    }

    /// The forecast after `known`, which has at least `input` values: y of the last of them.
    pub(crate) fn forecast(&self, known: &[f32]) -> Vec<f64> {
        let last = &known[known.len() - self.input..];
        self.apply(&last.iter().map(|&x| x.into()).collect::<Vec<_>>())
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
            for (k, y) in ridge.forecast(known).iter().enumerate() {
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
            let moments = RidgeMoments::of_windows(&series, input, horizon);
            let rows: Vec<Vec<f64>> = (series.windows(input + horizon))
                .map(|window| window.iter().map(|&x| x.into()).collect())
                .collect();
            for moments in [moments, RidgeMoments::of_rows(&rows, input)] {
                let ridge = moments.solve(penalty).unwrap();
                let left = gradient(&series, &ridge, horizon, penalty);
                prop_assert!(left < 1e-8, "{left}");
            }
        }
    }
}
