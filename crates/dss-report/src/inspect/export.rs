//! Kernels and parameters as files for a notebook.
//!
//! | name | shape | what |
//! |------|-------|------|
//! | `layers.{i}.kernel` | `[C, H, L]` | K at the training length |
//! | `layers.{i}.eigenvalues` | `[N, 2]` | Λ itself, (Re, Im), whatever form it is stored in |
//! | `layers.{i}.delta` | `[H, 2]` | Δ for the real and the imaginary part of Λ |
//! | `layers.{i}.attention.NAME` | `[heads, M, L]` | weights for a made-up sequence |
//! | `layers.{i}.spectrum.NAME` | `[n, 2]` | eigenvalues of a recurrent matrix, (Re, Im) |
//! | `layers.{i}.kernels.NAME` | `[out, in, taps]` | kernels of a dense convolution |
//! | `layers.{i}.frequencies.NAME` | `[frequencies, H]` | outputs of a Fourier transform for a made-up sequence |
//! | all others | | the tensors of the checkpoint, see [`dss_nn::named`] |

use std::path::{Path, PathBuf};

use dss_data::npy;
use dss_train::run_dir::write_file;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::portraits::{Frequencies, LayerPortrait, View, Weights};
use super::{Inspection, SsmLayer};
use crate::error::{Error, Result};
use crate::text::csv_text;

/// The kind of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One `.npy` file per tensor, for `numpy.load`.
    Npy,
    /// One file with all of them.
    Safetensors,
    /// One table per tensor: the indices of all axes but the last one, then the values along it.
    Csv,
}

/// Numbers with a name and a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, last axis innermost.
    pub values: Vec<f64>,
}

/// What there is to export.
pub fn arrays(inspection: &Inspection) -> Vec<Array> {
    let mut arrays = Vec::new();
    for (i, SsmLayer { modes, kernels }) in inspection.layers.iter().enumerate() {
        let deltas = modes.delta_log_re.iter().zip(&modes.delta_log_im);
        arrays.extend([
            Array {
                name: format!("layers.{i}.kernel"),
                shape: vec![kernels.c, kernels.h, kernels.l],
                values: kernels.values.clone(),
            },
            Array {
                name: format!("layers.{i}.eigenvalues"),
                shape: vec![modes.lambda.len(), 2],
                values: modes.lambda.as_flattened().to_vec(),
            },
            Array {
                name: format!("layers.{i}.delta"),
                shape: vec![modes.delta_log_re.len(), 2],
                values: deltas.flat_map(|(re, im)| [re.exp(), im.exp()]).collect(),
            },
        ]);
    }
    arrays.extend(inspection.portraits.iter().map(|LayerPortrait { layer, name, view }| {
        let name = name.replace(", ", "-").replace(' ', "-");
        let (kind, shape, values) = match view {
            View::Attention(Weights { heads, rows, columns, values }) => {
                ("attention", vec![*heads, *rows, *columns], values.clone())
            }
            View::Spectrum { eigenvalues, .. } => {
                ("spectrum", vec![eigenvalues.len(), 2], eigenvalues.as_flattened().to_vec())
            }
            View::Kernels { bank, inputs } => {
                ("kernels", vec![bank.h / inputs, *inputs, bank.l], bank.values.clone())
            }
            View::Frequencies(Frequencies { channels, values, .. }) => {
                ("frequencies", vec![values.len() / channels, *channels], values.clone())
            }
        };
        Array { name: format!("layers.{layer}.{kind}.{name}"), shape, values }
    }));
    let stored = inspection.model.named_tensors().into_iter().map(|(name, data)| {
        let shape = data.shape().as_slice().to_vec();
        Array { name, shape, values: data.iter::<f64>().collect() }
    });
    arrays.extend(stored);
    arrays
}

/// Writes everything into a folder, which is made if need be, and returns the files.
///
/// # Errors
/// If a file cannot be written.
pub fn export(inspection: &Inspection, dir: &Path, format: Format) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir).map_err(Error::io("cannot make the directory", dir))?;
    let arrays = arrays(inspection);
    let mut written = Vec::new();
    let mut write = |name: String, bytes: Vec<u8>| -> Result<()> {
        let path = dir.join(name);
        write_file(&path, &bytes)?;
        written.push(path);
        Ok(())
    };
    match format {
        Format::Npy => {
            for array in &arrays {
                let bytes = npy::to_bytes(&array.shape, &array.values);
                write(format!("{}.npy", array.name), bytes)?;
            }
        }
        Format::Csv => {
            for array in &arrays {
                write(format!("{}.csv", array.name), csv(array).into_bytes())?;
            }
        }
        Format::Safetensors => write("inspect.safetensors".into(), safetensors_of(&arrays)?)?,
    }
    Ok(written)
}

fn little_endian(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn safetensors_of(arrays: &[Array]) -> Result<Vec<u8>> {
    let fault = |e: safetensors::SafeTensorError| dss_train::Error::Mismatch(e.to_string());
    let data: Vec<Vec<u8>> = arrays.iter().map(|a| little_endian(&a.values)).collect();
    let mut views = Vec::new();
    for (array, data) in arrays.iter().zip(&data) {
        let view = TensorView::new(Dtype::F64, array.shape.clone(), data).map_err(fault)?;
        views.push((array.name.as_str(), view));
    }
    Ok(safetensors::serialize(views, None).map_err(fault)?)
}

/// A header, then one line per combination of the outer indices.
fn csv(array: &Array) -> String {
    let (outer, last) = match array.shape.split_last() {
        Some((last, outer)) => (outer, *last),
        None => (&[][..], 1),
    };
    let names = (0..outer.len()).map(|i| format!("i{i}")).chain((0..last).map(|i| i.to_string()));
    let rows = array.values.chunks(last.max(1)).enumerate().map(|(row, values)| {
        let mut rest = row;
        let mut index = vec![0; outer.len()];
        for (place, size) in index.iter_mut().zip(outer).rev() {
            *place = rest % size;
            rest /= size;
        }
        index.iter().map(usize::to_string).chain(values.iter().map(f64::to_string)).collect()
    });
    csv_text(std::iter::once(names.collect::<Vec<String>>()).chain(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array() -> Array {
        let (name, shape) = ("a".into(), vec![2, 1, 3]);
        Array { name, shape, values: vec![0.0, 0.5, -1.0, 1e-9, 2.0, 3.0] }
    }

    #[test]
    fn tables_have_indices_and_values() {
        assert_eq!(csv(&array()), "i0,i1,0,1,2\n0,0,0,0.5,-1\n1,0,0.000000001,2,3\n");
        let plain = Array { name: "b".into(), shape: vec![2], values: vec![1.0, 2.0] };
        assert_eq!(csv(&plain), "0,1\n1,2\n");
    }

    #[test]
    fn numpy_reads_the_header() {
        let array = array();
        let bytes = npy::to_bytes(&array.shape, &array.values);
        let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!((&bytes[..8], (10 + length) % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
        let header = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
        assert!(header.contains("'shape': (2, 1, 3,)") && header.ends_with('\n'), "{header}");
        assert_eq!(bytes.len(), 10 + length + 6 * 8);
        assert_eq!(bytes[bytes.len() - 8..], 3f64.to_le_bytes());
        // Our own reader of NumPy files agrees.
        let path = std::env::temp_dir().join(format!("dss-npy-{}.npy", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let read = dss_data::npy::read_npy(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap().shape, [2, 1, 3]);
    }
}
