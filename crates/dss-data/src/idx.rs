//! The idx format of MNIST and its relatives: big-endian magic and sizes, then unsigned bytes.

use std::path::Path;

use crate::{Error, Result, io};

/// An array of unsigned bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// Size of every dimension; the first one counts the items.
    pub dims: Vec<usize>,
    /// The bytes, last dimension innermost.
    pub data: Vec<u8>,
}

impl Idx {
    /// Items: the first dimension.
    pub fn len(&self) -> usize {
        self.dims.first().copied().unwrap_or(0)
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes per item.
    pub fn item_len(&self) -> usize {
        self.dims.iter().skip(1).product()
    }

    /// The bytes of item `i`.
    pub fn item(&self, i: usize) -> &[u8] {
        let n = self.item_len();
        &self.data[i * n..(i + 1) * n]
    }
}

/// Reads an idx file of unsigned bytes, gzipped or not, with the given number of dimensions.
pub fn read_idx(path: &Path, dims: usize) -> Result<Idx> {
    parse(&io::read(path)?, dims).map_err(|what| Error::content(path, what))
}

/// Reads images `[n, rows, columns]` and their labels `[n]`.
pub(crate) fn read_images(images: &Path, labels: &Path) -> Result<(Idx, Vec<u8>)> {
    let pixels = read_idx(images, 3)?;
    let names = read_idx(labels, 1)?.data;
    if names.len() == pixels.len() {
        return Ok((pixels, names));
    }
    let (found, expected, images) = (names.len(), pixels.len(), images.display());
    let what = format!("{found} labels, but {images} has {expected} images");
    Err(Error::content(labels, format!("{what}; the files do not belong together")))
}

fn parse(bytes: &[u8], expected: usize) -> std::result::Result<Idx, String> {
    let (&magic, rest) =
        bytes.split_first_chunk::<4>().ok_or("too short for an idx file; get the file again")?;
    let [0, 0, kind, dims] = magic else {
        return Err(format!(
            "not an idx file: it starts with {magic:02x?}, not with two zero bytes"
        ));
    };
    if kind != 8 {
        return Err(format!(
            "holds elements of type 0x{kind:02x}; only unsigned bytes (0x08) are read"
        ));
    }
    if usize::from(dims) != expected {
        return Err(format!(
            "has {dims} dimensions, but {expected} are expected; is it the right file?"
        ));
    }
    let (sizes, data) =
        rest.split_at_checked(4 * expected).ok_or("ends within its header; get the file again")?;
    let size = |four: &[u8]| u32::from_be_bytes(four.try_into().expect("four bytes")) as usize;
    let dims: Vec<usize> = sizes.chunks_exact(4).map(size).collect();
    let wanted = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if wanted != Some(data.len()) {
        return Err(format!(
            "its header says {dims:?} bytes, but {} follow; get the file again",
            data.len()
        ));
    }
    Ok(Idx { dims, data: data.to_vec() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bytes of an idx file.
    pub(crate) fn idx_bytes(dims: &[usize], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, dims.len() as u8];
        dims.iter().for_each(|&d| bytes.extend((d as u32).to_be_bytes()));
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn reads_what_was_written() {
        let idx = parse(&idx_bytes(&[2, 1, 3], &[1, 2, 3, 4, 5, 6]), 3).unwrap();
        assert_eq!((idx.len(), idx.item_len(), idx.item(1)), (2, 3, &[4, 5, 6][..]));
    }

    #[test]
    fn faults_are_named() {
        let good = idx_bytes(&[2, 2], &[1, 2, 3, 4]);
        let with = |i: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[i] = byte;
            bytes
        };
        let cases = [
            (good[..3].to_vec(), "too short"),
            (with(0, 0x1f), "not an idx file"),
            (with(2, 0x0d), "0x0d"),
            (with(3, 3), "has 3 dimensions, but 2"),
            (good[..9].to_vec(), "ends within its header"),
            (good[..15].to_vec(), "[2, 2] bytes, but 3 follow"),
        ];
        for (bytes, part) in cases {
            let error = parse(&bytes, 2).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
