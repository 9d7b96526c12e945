//! From grey pixels to model input, in training and in prediction alike.

use std::path::Path;

use dss_format::encoder::GreyEncoder;

use super::grey::{PIXELS, SIDE, read_grey, record_grey, records};
use crate::encoder::ReadFile;
use crate::pathfinder::grey as png;
use crate::{Input, Result, io};

impl ReadFile for GreyEncoder {
    /// The picture of a PNG file, or all images of an idx file (grey) or of a binary file of CIFAR-10 (`.bin`).
    fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
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
        if let Some(pixels) = png::read(path, SIDE)? {
            return Ok(vec![(file, sequence(&pixels, &values))]);
        }
        let pixels = read_grey(path)?;
        let images = pixels.chunks_exact(PIXELS).enumerate();
        Ok(images.map(|(i, image)| (name(i), sequence(image, &values))).collect())
    }
}

pub(super) fn sequence(pixels: &[u8], values: &[f32; 256]) -> Input {
    Input::Values(pixels.iter().map(|&x| values[usize::from(x)]).collect())
}
