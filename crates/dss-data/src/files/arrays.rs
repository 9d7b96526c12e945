//! Sequences in `.npy` files.

use std::path::Path;

use dss_format::encoder::TableShape;

use super::record::{Content, Label, Layout, Record, Records};
use crate::npy::{Npy, read_npy};
use crate::{Error, Result, io, units};

/// `x.npy` of shape [n, L] or [n, L, C] with its labels `y.npy`, [n] or [n, outputs].
pub(super) fn read_pair(x_path: &Path, y_path: &Path) -> Result<Records> {
    let (x, y) = (read_npy(x_path)?, read_npy(y_path)?);
    let n = x.shape.first().copied().unwrap_or(0);
    if !matches!(x.shape.len(), 2 | 3) || n == 0 {
        let what = format!("has the shape {:?}; expected [n, L] or [n, L, C]", x.shape);
        return Err(Error::content(x_path, what));
    }
    if !matches!(y.shape.len(), 1 | 2) || y.shape[0] != n {
        let what = format!("has the shape {:?}; expected {n} labels as in x.npy: [{n}]", y.shape);
        return Err(Error::content(y_path, what));
    }
    let (channels, sequences) = sequences(x, true).map_err(|what| Error::content(x_path, what))?;
    let outputs = y.data.len() / n;
    let file = io::file_name(x_path);
    let record = |(i, numbers)| Record {
        name: format!("{file}[{i}]"),
        content: Content::Numbers(numbers),
        label: Label::Numbers(y.data[i * outputs..(i + 1) * outputs].to_vec()),
    };
    let records = sequences.into_iter().enumerate().map(record).collect();
    let layout = Layout::Steps { columns: Vec::new(), channels, stacked: true };
    Ok(Records { records, layout, decimal_comma: false, notes: Vec::new() })
}

/// The sequences of an array and their channels. Stacked: [n, L] or [n, L, C], else one sequence [L] or [L, C].
pub(super) fn sequences(
    npy: Npy,
    stacked: bool,
) -> std::result::Result<(usize, Vec<Vec<f32>>), String> {
    let first = usize::from(stacked);
    let channels = match npy.shape.len() - first.min(npy.shape.len()) {
        1 => 1,
        2 => npy.shape[first + 1],
        _ => {
            let expected = ["[L] or [L, C]", "[n, L] or [n, L, C]"][first];
            return Err(format!("has the shape {:?}; expected {expected}", npy.shape));
        }
    };
    if npy.data.is_empty() {
        return Err(format!("has the shape {:?}: no numbers", npy.shape));
    }
    let n = if stacked { npy.shape[0] } else { 1 };
    Ok((channels, npy.data.chunks(npy.data.len() / n).map(<[f32]>::to_vec).collect()))
}

/// The sequences of an array without labels, for a model of numbers: one `[L]` or `[L, C]`, or several `[n, L, C]`, or
/// `[n, L]` where the training had a sequence per row. `Err` says why it does not fit.
pub fn unlabelled(npy: Npy, shape: &TableShape) -> std::result::Result<Vec<Vec<f32>>, String> {
    let stacked = match npy.shape.len() {
        1 => false,
        2 => shape.by_row,
        _ => true,
    };
    let (channels, sequences) = sequences(npy, stacked)?;
    match channels == shape.channels {
        true => Ok(sequences),
        false => {
            let found = units::plural(channels as u64, "channel");
            Err(format!("has {found}, but the model takes {}", shape.channels))
        }
    }
}

/// [`unlabelled`] of a file, with names; that of the file itself if it holds one sequence without a number.
pub(super) fn read_unlabelled(path: &Path, shape: &TableShape) -> Result<Vec<(String, Vec<f32>)>> {
    let (file, npy) = (io::file_name(path), read_npy(path)?);
    let alone = npy.shape.len() == 1 || (npy.shape.len() == 2 && !shape.by_row);
    let sequences = unlabelled(npy, shape).map_err(|what| Error::content(path, what))?;
    let name = |i| if alone { file.clone() } else { format!("{file}[{i}]") };
    Ok(sequences.into_iter().enumerate().map(|(i, numbers)| (name(i), numbers)).collect())
}
