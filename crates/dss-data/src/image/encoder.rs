//! From grey pixels to model input, in training and in prediction alike.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::grey::{PIXELS, read_grey, record_grey, records};
use crate::{Input, Result, io};

/// How 32 × 32 images become sequences: x' = (x - mean) / sd, row by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GreyEncoder {
    /// Taken off; grey is 0 to 255.
    pub mean: f64,
    /// Divided by.
    pub sd: f64,
}

impl Default for GreyEncoder {
    /// The statistics of CIFAR-10's training images, rounded as is usual.
    fn default() -> Self {
        Self { mean: 122.6, sd: 61.0 }
    }
}

impl GreyEncoder {
    /// The value of every grey.
    pub(super) fn values(&self) -> [f32; 256] {
        let Self { mean, sd } = self;
        std::array::from_fn(|x| ((x as f64 / 255.0 - mean / 255.0) / (sd / 255.0)) as f32)
    }

    /// All images of an idx file (grey) or of a binary file of CIFAR-10 (`.bin`).
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        let values = self.values();
        let file = io::file_name(path);
        let name = |i| format!("{file}[{i}]");
        if io::extension(path) == "bin" {
            let bytes = io::read(path)?;
            let (records, fault) = records(path, &bytes);
            if let Some(fault) = fault {
                return Err(fault);
            }
            let encode = |record| sequence(&record_grey(record).collect::<Vec<_>>(), &values);
            return Ok(records.enumerate().map(|(i, record)| (name(i), encode(record))).collect());
        }
        let pixels = read_grey(path)?;
        let images = pixels.chunks_exact(PIXELS).enumerate();
        Ok(images.map(|(i, image)| (name(i), sequence(image, &values))).collect())
    }
}

pub(super) fn sequence(pixels: &[u8], values: &[f32; 256]) -> Input {
    Input::Values(pixels.iter().map(|&x| values[usize::from(x)]).collect())
}
