//! From grey pixels to model input, in training and in prediction alike.

use std::path::Path;

use dss_format::encoder::GreyEncoder;

use super::grey::{PIXELS, SIDE, read_grey, record_grey, records};
use crate::encoder::{ReadFile, SequencePlace};
use crate::pathfinder::grey as png;
use crate::{Input, Result, io};

impl ReadFile for GreyEncoder {
    /// The picture of a PNG file, or all images of an idx file (grey) or of a binary file of CIFAR-10 (`.bin`).
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        let values = self.values();
        if io::extension(path) == "bin" {
            let bytes = io::read(path)?;
            let (records, fault) = records(path, &bytes);
            if let Some(fault) = fault {
                return Err(fault);
            }
            let encode = |record| sequence(&record_grey(record).collect::<Vec<_>>(), &values);
            let places = (0..).map(SequencePlace::Item);
            return Ok(places.zip(records.map(encode)).collect());
        }
        if let Some(pixels) = png::read(path, SIDE)? {
            return Ok(vec![(SequencePlace::File, sequence(&pixels, &values))]);
        }
        let pixels = read_grey(path)?;
        let images = pixels.chunks_exact(PIXELS).enumerate();
        Ok(images.map(|(i, image)| (SequencePlace::Item(i), sequence(image, &values))).collect())
    }
}

pub(super) fn sequence(pixels: &[u8], values: &[f32; 256]) -> Input {
    Input::Values(pixels.iter().map(|&x| values[usize::from(x)]).collect())
}
