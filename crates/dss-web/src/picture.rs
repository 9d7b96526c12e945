//! The kernels of a layer as a picture.

use dss_infer::Model;

use crate::engine::{Result, text};

/// How time runs along a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Evenly.
    Linear,
    /// By its logarithm, from the first tap on.
    Log,
}

/// More taps than this are left out.
const MAX_TAPS: usize = 1 << 16;
/// More numbers than this would not fit into the memory of a browser.
const MAX_SIZE: usize = 1 << 27;

/// `[C·H, columns]`: one row per kernel, over its maximum, so from −1 to 1; a column is the largest tap of its time, by
/// size. Rows are in the order of their largest tap, those of a second, backward kernel per channel after the others.
pub(crate) fn picture(model: &Model, layer: usize, columns: usize, axis: Axis) -> Result<Vec<f32>> {
    let config = &model.meta().model;
    let ssm = config.mixer.settings().ssm().ok_or("this model has no kernels")?;
    let rows = model.kernels();
    let taps = ssm.taps(model.meta().io.len).min(MAX_TAPS).min((MAX_SIZE / rows).max(1));
    let columns = columns.clamp(1, taps);
    let kernels = model.kernel(layer, taps).map_err(text)?;
    let edges: Vec<usize> = (0..=columns).map(|i| edge(i, columns, taps, axis)).collect();
    let mut order: Vec<(usize, usize)> = Vec::with_capacity(rows);
    for (row, k) in kernels.chunks_exact(taps).enumerate() {
        let largest =
            (0..taps).fold(0, |best, t| if k[t].abs() > k[best].abs() { t } else { best });
        order.push((row, largest));
    }
    order.sort_by_key(|&(row, largest)| (row / config.h, largest, row));
    let mut picture = Vec::with_capacity(rows * columns);
    for (row, largest) in order {
        let k = &kernels[row * taps..][..taps];
        let scale = k[largest].abs().max(f32::MIN_POSITIVE);
        for column in edges.windows(2) {
            let taps = &k[column[0]..column[1].max(column[0] + 1)];
            let most =
                taps.iter().fold(0.0f32, |most, &x| if x.abs() > most.abs() { x } else { most });
            picture.push(most / scale);
        }
    }
    Ok(picture)
}

/// Where column i begins; every column has a tap.
fn edge(i: usize, columns: usize, taps: usize, axis: Axis) -> usize {
    let share = i as f64 / columns as f64;
    let at = match axis {
        Axis::Linear => share * taps as f64,
        Axis::Log => libm::exp(share * libm::log(taps as f64 + 1.0)) - 1.0,
    };
    (libm::round(at) as usize).min(if i == columns { taps } else { taps - 1 })
}
