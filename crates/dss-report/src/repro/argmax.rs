//! Where kernels peak: the last row of the paper's Table 3.

use std::path::Path;

use burn::tensor::Device;
use dss_nn::checkpoint;
use dss_train::bridge;

use crate::error::Result;

/// The 95th percentile of argmax |K| over all kernels of a checkpoint at its training length.
pub(super) fn percentile_95(path: &Path) -> Result<Option<f64>> {
    let (model, meta) = checkpoint::load(path, &Device::flex())?;
    let mut peaks = Vec::new();
    for k in model.kernels(meta.io.len).layers() {
        let length = k.dims()[2].max(1);
        peaks.extend(bridge::host(k).chunks(length).map(argmax));
    }
    Ok(at_share(peaks, 0.95))
}

/// The first position of the largest absolute value.
fn argmax(kernel: &[f64]) -> usize {
    let mut best = 0;
    for (i, x) in kernel.iter().enumerate() {
        if x.abs() > kernel[best].abs() {
            best = i;
        }
    }
    best
}

/// The value below which a share `p` lies, linear between neighbours, as NumPy has it.
fn at_share(mut values: Vec<usize>, p: f64) -> Option<f64> {
    values.sort_unstable();
    let at = p * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[at.floor() as usize] as f64, values[at.ceil() as usize] as f64);
    Some(low + at.fract() * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_percentiles() {
        assert_eq!(argmax(&[0.5, -2.0, 2.0, 1.0]), 1);
        // numpy.percentile([7, 1, 3, 100], 95)
        assert!((at_share(vec![7, 1, 3, 100], 0.95).unwrap() - 86.05).abs() < 1e-12);
        assert_eq!(at_share(Vec::new(), 0.95), None);
    }
}
