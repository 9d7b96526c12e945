//! The losses and their gradients with respect to the outputs, on the host in f64.
//!
//! | target                 | loss of one scored item        | an item is       |
//! |------------------------|--------------------------------|------------------|
//! | class, position class  | −log softmax(o)\[class\]       | a row with class ≥ 0 |
//! | value, position value  | (o − target)²                  | a target that is not NaN |
//!
//! An optimiser step minimises the mean over all items of all its micro-batches, so gradients are divided by that
//! total. Rows are taken in blocks of fixed size and summed in their order: the number of threads changes nothing.

use dss_data::{BatchTarget, TargetScaling};
use rayon::prelude::*;

use crate::scores::Tally;

/// Rows per unit of parallel work.
const BLOCK: usize = 512;

/// The loss of a batch of outputs, and its gradient.
pub struct Assessment {
    /// Sums over the batch.
    pub tally: Tally,
    /// d(sum of losses / `total`)/d(outputs), shaped as the outputs.
    pub gradient: Vec<f64>,
    /// Predicted class of every row; empty for regression.
    pub predicted: Vec<u32>,
}

/// Number of scored items.
pub fn scored(target: &BatchTarget) -> u64 {
    let count = match target {
        BatchTarget::Class(classes) | BatchTarget::PositionClasses(classes) => {
            classes.iter().filter(|class| **class >= 0).count()
        }
        BatchTarget::Values(values) | BatchTarget::PositionValues(values) => {
            values.iter().filter(|value| !value.is_nan()).count()
        }
    };
    count as u64
}

/// Scores `outputs` `[rows, width]` against their targets; `total` is the number of scored items of the whole step.
///
/// # Panics
/// If the target does not have one entry per row (classes) or per output (values), or a class is not below `width`.
pub fn assess(outputs: &[f64], width: usize, target: &BatchTarget, total: u64) -> Assessment {
    assess_scaled(outputs, width, target, total, None)
}

/// As [`assess`], of outputs that mean (target - mean) / sd where a `scaling` is given: the gradient is of the loss in
/// these units, the sums are in those of the targets.
///
/// # Panics
/// As [`assess`], or if the scaling is not of `width` outputs.
pub fn assess_scaled(
    outputs: &[f64],
    width: usize,
    target: &BatchTarget,
    total: u64,
    scaling: Option<&TargetScaling>,
) -> Assessment {
    let mut gradient = vec![0.0; outputs.len()];
    let weight = 1.0 / total.max(1) as f64;
    let (mut tally, mut predicted) = (Tally::default(), Vec::new());
    match target {
        BatchTarget::Class(classes) | BatchTarget::PositionClasses(classes) => {
            assert_eq!(outputs.len(), classes.len() * width, "one class per row of outputs");
            predicted = vec![0; classes.len()];
            let blocks: Vec<Tally> = gradient
                .par_chunks_mut(BLOCK * width)
                .zip(outputs.par_chunks(BLOCK * width))
                .zip(classes.par_chunks(BLOCK).zip(predicted.par_chunks_mut(BLOCK)))
                .map(|((gradient, outputs), (classes, predicted))| {
                    let rows = outputs.chunks(width).zip(gradient.chunks_mut(width));
                    let mut tally = Tally::default();
                    for ((o, g), (&class, predicted)) in rows.zip(classes.iter().zip(predicted)) {
                        *predicted = largest(o);
                        if let Ok(class) = usize::try_from(class) {
                            tally.loss += cross_entropy(o, class, weight, g);
                            tally.scored += 1;
                            tally.correct += u64::from(*predicted as usize == class);
                        }
                    }
                    tally
                })
                .collect();
            blocks.iter().for_each(|block| tally.add(block));
        }
        BatchTarget::Values(values) | BatchTarget::PositionValues(values) => {
            assert_eq!(outputs.len(), values.len(), "one target per output");
            let block = BLOCK * width;
            // Mean and deviation of each output; taking 0 off and multiplying by 1 changes no bit.
            let units: Vec<(f64, f64)> = match scaling {
                Some(TargetScaling { mean, sd }) => {
                    assert!(mean.len() == width && sd.len() == width, "a scaling per output");
                    mean.iter().copied().zip(sd.iter().copied()).collect()
                }
                None => vec![(0.0, 1.0); width],
            };
            let blocks: Vec<Tally> = gradient
                .par_chunks_mut(block)
                .zip(outputs.par_chunks(block).zip(values.par_chunks(block)))
                .map(|(gradient, (outputs, values))| {
                    let mut tally = Tally::default();
                    let units = units.iter().cycle();
                    let targets = values.iter().zip(units);
                    for ((g, o), (value, (mean, sd))) in
                        gradient.iter_mut().zip(outputs).zip(targets)
                    {
                        if !value.is_nan() {
                            let error = o - (f64::from(*value) - mean) / sd;
                            tally.loss += (error * sd) * (error * sd);
                            tally.absolute += (error * sd).abs();
                            tally.scored += 1;
                            *g = 2.0 * error * weight;
                        }
                    }
                    tally
                })
                .collect();
            blocks.iter().for_each(|block| tally.add(block));
        }
    }
    Assessment { tally, gradient, predicted }
}

/// Softmax of a row.
pub fn softmax(o: &[f64]) -> Vec<f64> {
    let max = o.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = o.iter().map(|o| (o - max).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// −log softmax(o)\[class\]; g = weight · (softmax(o) − onehot(class)).
fn cross_entropy(o: &[f64], class: usize, weight: f64, g: &mut [f64]) -> f64 {
    let max = o.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (g, o) in g.iter_mut().zip(o) {
        *g = (o - max).exp();
        sum += *g;
    }
    for g in g.iter_mut() {
        *g *= weight / sum;
    }
    g[class] -= weight;
    sum.ln() - (o[class] - max)
}

/// Index of the first largest value.
fn largest(o: &[f64]) -> u32 {
    let mut best = 0;
    for (i, value) in o.iter().enumerate() {
        if *value > o[best] {
            best = i;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central differences of the summed loss over the step's total.
    fn check_gradient(outputs: &[f64], width: usize, target: &BatchTarget, total: u64) {
        let found = assess(outputs, width, target, total).gradient;
        let value = |o: &[f64]| assess(o, width, target, total).tally.loss / total as f64;
        for i in 0..outputs.len() {
            let (mut up, mut down) = (outputs.to_vec(), outputs.to_vec());
            up[i] += 1e-5;
            down[i] -= 1e-5;
            let slope = (value(&up) - value(&down)) / 2e-5;
            assert!((slope - found[i]).abs() < 1e-8, "{i}: {slope} {}", found[i]);
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let outputs = [0.3, -1.0, 2.0, 0.5, 0.4, -0.2, 3.0, 1.0, -2.0];
        check_gradient(&outputs, 3, &BatchTarget::Class(vec![0, 2, 1]), 3);
        check_gradient(&outputs, 3, &BatchTarget::PositionClasses(vec![-1, 2, 1]), 7);
        let values = vec![1.0, f32::NAN, 0.0, 0.5, 2.0, f32::NAN, 0.1, 0.2, 0.3];
        check_gradient(&outputs, 3, &BatchTarget::PositionValues(values), 7);
    }

    /// Outputs in units of the targets' deviation: sums are in the units of the targets, the gradient is that of targets
    /// which were standardised before.
    #[test]
    fn sums_are_in_the_units_of_the_targets() {
        let scaling = TargetScaling { mean: vec![1000.0, -1.0], sd: vec![10.0, 0.5] };
        let target = BatchTarget::Values(vec![1010.0, -1.5, 990.0, f32::NAN]);
        let found = assess_scaled(&[1.5, 0.0, -1.0, 3.0], 2, &target, 3, Some(&scaling));
        assert_eq!((found.tally.loss, found.tally.absolute, found.tally.scored), (25.25, 5.5, 3));
        let standardised = BatchTarget::Values(vec![1.0, -1.0, -1.0, f32::NAN]);
        let expected = assess(&[1.5, 0.0, -1.0, 3.0], 2, &standardised, 3);
        assert_eq!(found.gradient, expected.gradient);
    }

    #[test]
    fn unscored_items_count_nowhere() {
        let outputs = [5.0, 1.0, 9.0, 9.0];
        let target = BatchTarget::PositionClasses(vec![0, -1]);
        let found = assess(&outputs, 2, &target, scored(&target));
        assert_eq!((found.tally.scored, found.tally.correct), (1, 1));
        assert_eq!(found.gradient[2..], [0.0, 0.0]);
        assert!((found.tally.loss - (1.0 + (-4.0f64).exp()).ln()).abs() < 1e-15);
    }

    #[test]
    fn large_outputs_do_not_overflow() {
        let target = BatchTarget::Class(vec![1]);
        let found = assess(&[2000.0, 0.0], 2, &target, 1);
        assert_eq!(found.tally.loss, 2000.0);
        assert_eq!(found.gradient, [1.0, -1.0]);
    }
}
