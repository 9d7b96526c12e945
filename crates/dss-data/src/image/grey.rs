//! Grey images with labels, and the records of CIFAR-10: a label, then 1024 bytes each of red, green and blue.

use std::path::Path;

use super::LABELS;
use crate::idx::{Idx, read_idx, read_images};
use crate::skip::Skips;
use crate::{Error, Result};

/// Rows, and pixels of a row.
pub const SIDE: usize = 32;
/// Pixels of an image.
pub(super) const PIXELS: usize = SIDE * SIDE;
/// Bytes of a record.
pub(super) const RECORD: usize = 1 + 3 * PIXELS;

/// Grey of a colour, as the Python imaging library has it (ITU-R 601): (19595 R + 38470 G + 7471 B + 2¹⁵) / 2¹⁶.
pub fn grey([r, g, b]: [u8; 3]) -> u8 {
    let [r, g, b] = [r, g, b].map(u32::from);
    ((19595 * r + 38470 * g + 7471 * b + 32768) >> 16) as u8
}

/// Images of 1024 grey pixels with their labels.
#[derive(Default)]
pub(super) struct Images {
    labels: Vec<u8>,
    pixels: Vec<u8>,
}

impl Images {
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.labels.iter().copied().zip(self.pixels.chunks_exact(PIXELS))
    }

    pub fn append(&mut self, mut more: Self) {
        self.labels.append(&mut more.labels);
        self.pixels.append(&mut more.pixels);
    }

    /// Adds the colour images of a binary file; `path` is its name.
    pub fn add_records(&mut self, path: &Path, bytes: &[u8], skips: &mut Skips) -> Result<()> {
        let (records, faults) = records(path, bytes);
        for (i, record) in records.enumerate() {
            if let Some(label) = skips.check(label(path, i, record[0]))? {
                self.labels.push(label);
                self.pixels.extend(record_grey(record));
            }
        }
        faults.map_or(Ok(()), |fault| skips.check::<()>(Err(fault)).map(drop))
    }

    /// Reads grey images and their labels from two idx files.
    pub fn read_idx(images: &Path, labels: &Path, skips: &mut Skips) -> Result<Self> {
        let (pixels, names) = read_images(images, labels)?;
        let pixels = check_side(images, pixels)?;
        let mut found = Self::default();
        for (i, (&name, image)) in names.iter().zip(pixels.chunks_exact(PIXELS)).enumerate() {
            if let Some(label) = skips.check(label(labels, i, name))? {
                found.labels.push(label);
                found.pixels.extend_from_slice(image);
            }
        }
        Ok(found)
    }
}

/// The pixels of all images of an idx file.
pub(super) fn read_grey(path: &Path) -> Result<Vec<u8>> {
    check_side(path, read_idx(path, 3)?)
}

/// The pixels of images, which must be 32 × 32.
fn check_side(path: &Path, images: Idx) -> Result<Vec<u8>> {
    if images.dims[1..] == [SIDE, SIDE] {
        return Ok(images.data);
    }
    let (rows, columns) = (images.dims[1], images.dims[2]);
    let what = format!("images of {rows} x {columns} pixels; {SIDE} x {SIDE} are expected");
    Err(Error::content(path, what))
}

/// The whole records of a binary file, and what is wrong with its end.
pub(super) fn records<'a>(
    path: &Path,
    bytes: &'a [u8],
) -> (std::slice::ChunksExact<'a, u8>, Option<Error>) {
    let records = bytes.chunks_exact(RECORD);
    let rest = records.remainder().len();
    let what =
        format!("cut short: after {} images of {RECORD} bytes, {rest} follow", records.len());
    (records, (rest > 0).then(|| Error::content(path, format!("{what}; get the file again"))))
}

/// The grey pixels of a record.
pub(super) fn record_grey(record: &[u8]) -> impl Iterator<Item = u8> {
    let (r, rest) = record[1..].split_at(PIXELS);
    let (g, b) = rest.split_at(PIXELS);
    r.iter().zip(g).zip(b).map(|((&r, &g), &b)| grey([r, g, b]))
}

fn label(path: &Path, i: usize, label: u8) -> Result<u8> {
    match usize::from(label) < LABELS.len() {
        true => Ok(label),
        false => {
            let what = format!("label {label}; labels are 0 to {}", LABELS.len() - 1);
            let place = format!(", image {i}");
            Err(Error::Content { path: path.to_owned(), place, what })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grey_by_hand() {
        assert_eq!(grey([0, 0, 0]), 0);
        assert_eq!(grey([255, 255, 255]), 255);
        // 19595 · 200 + 38470 · 100 + 7471 · 50 + 32768 = 8172318 = 124.7 · 65536
        assert_eq!(grey([200, 100, 50]), 124);
        assert_eq!([grey([255, 0, 0]), grey([0, 255, 0]), grey([0, 0, 255])], [76, 150, 29]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..3 * RECORD),
            skip in any::<bool>(),
        ) {
            let path = Path::new("data_batch_1.bin");
            let mut images = Images::default();
            let mut skips = Skips::new(skip);
            let result = images.add_records(path, &bytes, &mut skips);
            let whole = bytes.chunks_exact(RECORD);
            let good = whole.clone().filter(|record| record[0] < 10).count();
            if skip {
                prop_assert!(result.is_ok());
                prop_assert_eq!(images.len(), good);
            } else {
                prop_assert_eq!(result.is_ok(), good * RECORD == bytes.len());
            }
        }
    }
}
