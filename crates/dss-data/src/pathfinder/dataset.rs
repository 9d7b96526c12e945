//! Images as sequences of numbers, and the encoder of new images.

use std::io::BufRead;
use std::path::Path;

use dss_format::encoder::PathfinderEncoder;

use super::grey;
use crate::encoder::{ReadFile, SequencePlace};
use crate::idx::read_idx;
use crate::{Error, Input, Result, io};

/// Grey levels 0..=255 become -1..=1.
pub(super) fn sequence(levels: &[u8]) -> Input {
    Input::Values(levels.iter().map(|&v| (f32::from(v) / 255.0 - 0.5) / 0.5).collect())
}

impl ReadFile for PathfinderEncoder {
    /// The image of a PNG file, or all images of an idx file.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        if let Some(levels) = grey::read(path, self.size)? {
            return Ok(vec![(SequencePlace::File, sequence(&levels))]);
        }
        if !io::open(path)?.fill_buf().map_err(Error::io("read", path))?.starts_with(&[0, 0]) {
            return Err(Error::content(path, "neither a PNG picture nor an idx file of images"));
        }
        let images = read_idx(path, 3)?;
        if images.dims[1..] != [self.size, self.size] {
            let what = format!(
                "images of {} × {} pixels, but the model takes {size} × {size}",
                images.dims[1],
                images.dims[2],
                size = self.size
            );
            return Err(Error::content(path, what));
        }
        let one = |i| (SequencePlace::Item(i), sequence(images.item(i)));
        Ok((0..images.len()).map(one).collect())
    }
}
