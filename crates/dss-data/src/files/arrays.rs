//! Sequences in `.npy` files.

use std::path::Path;

use dss_format::encoder::TableShape;

use super::record::{Content, Label, Layout, Record, Records};
use crate::encoder::SequencePlace;
use crate::npy::{Npy, read_npy};
use crate::{Error, Result, io, units};

/// `x.npy` of shape [n, L] or [n, L, C] with its labels `y.npy`, [n] or [n, outputs].
///
/// Two files may lie beside them: `lengths.npy` [n] says where the padding at the end of each sequence begins, and line
/// y + 1 of `classes.txt` is the name of class y.
pub(super) fn read_pair(x_path: &Path, y_path: &Path) -> Result<Records> {
    let (x, y) = (read_npy(x_path)?, read_npy(y_path)?);
    let folder = x_path.parent().unwrap_or(Path::new(""));
    let n = x.shape.first().copied().unwrap_or(0);
    if !matches!(x.shape.len(), 2 | 3) || n == 0 {
        let what = format!("has the shape {:?}; expected [n, L] or [n, L, C]", x.shape);
        return Err(Error::content(x_path, what));
    }
    if !matches!(y.shape.len(), 1 | 2) || y.shape[0] != n || y.data.is_empty() {
        let what = format!("has the shape {:?}; expected {n} labels as in x.npy: [{n}]", y.shape);
        return Err(Error::content(y_path, what));
    }
    let (channels, mut sequences) =
        sequences(x, true).map_err(|what| Error::content(x_path, what))?;
    if let Some(path) = io::find(folder, &["lengths.npy"]) {
        cut(&mut sequences, channels, &read_npy(&path)?)
            .map_err(|what| Error::content(&path, what))?;
    }
    let outputs = y.data.len() / n;
    let labels = y.data.chunks(outputs).map(<[f32]>::to_vec);
    let labels: Vec<Label> = match io::find(folder, &["classes.txt"]) {
        None => labels.map(Label::Numbers).collect(),
        Some(path) => {
            let names = io::read_text(&path)?;
            let names: Vec<&str> = names.lines().collect();
            let name = |label: Vec<f32>| class_name(&names, &label);
            labels
                .map(name)
                .collect::<std::result::Result<_, _>>()
                .map_err(|what| Error::content(y_path, what))?
        }
    };
    let file = io::file_name(x_path);
    let record = |(i, (numbers, label))| Record {
        name: format!("{file}[{i}]"),
        content: Content::Numbers(numbers),
        label,
    };
    let records = sequences.into_iter().zip(labels).enumerate().map(record).collect();
    let layout = Layout::Steps { columns: Vec::new(), channels, stacked: true };
    Ok(Records { records, layout, decimal_comma: false, notes: Vec::new() })
}

/// Cuts the padding off the end of each sequence.
fn cut(
    sequences: &mut [Vec<f32>],
    channels: usize,
    lengths: &Npy,
) -> std::result::Result<(), String> {
    let n = sequences.len();
    if lengths.shape != [n] {
        return Err(format!(
            "has the shape {:?}; expected a length per sequence: [{n}]",
            lengths.shape
        ));
    }
    for (i, (sequence, &length)) in sequences.iter_mut().zip(&lengths.data).enumerate() {
        let longest = sequence.len() / channels;
        if length.fract() != 0.0 || !(1.0..=longest as f32).contains(&length) {
            return Err(format!("the length of sequence {i} is {length}; expected 1 to {longest}"));
        }
        sequence.truncate(length as usize * channels);
    }
    Ok(())
}

/// The class that a number of `y.npy` means.
fn class_name(names: &[&str], label: &[f32]) -> std::result::Result<Label, String> {
    let name = match *label {
        [class] if class.fract() == 0.0 && class >= 0.0 => names.get(class as usize),
        _ => None,
    };
    let known = names.len();
    name.map(|name| Label::Name((*name).to_owned())).ok_or_else(|| {
        format!("the label {label:?} is not the number of a class; classes.txt has {known} lines, for 0 to {known} - 1")
    })
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

/// [`unlabelled`] of a file, with the places of the sequences.
pub(super) fn read_unlabelled(
    path: &Path,
    shape: &TableShape,
) -> Result<Vec<(SequencePlace, Vec<f32>)>> {
    let npy = read_npy(path)?;
    let alone = npy.shape.len() == 1 || (npy.shape.len() == 2 && !shape.by_row);
    let sequences = unlabelled(npy, shape).map_err(|what| Error::content(path, what))?;
    let place = |i| if alone { SequencePlace::File } else { SequencePlace::Item(i) };
    Ok(sequences.into_iter().enumerate().map(|(i, numbers)| (place(i), numbers)).collect())
}
