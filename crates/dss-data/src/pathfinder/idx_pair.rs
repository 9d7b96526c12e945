//! Images and labels in two idx files, read image by image.

use std::fs;
use std::io::{BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::collect::ImageCollector;
use crate::idx::read_idx;
use crate::skip::Skips;
use crate::{Error, Result, io};

/// Dimensions of a file of images: count, rows, columns.
const DIMENSIONS: usize = 3;

/// The files of images of this size in a folder, or the file itself: `*images-idx3-ubyte` or `.gz`.
pub(super) fn find(path: &Path, size: usize) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(Error::io("read the folder", path))? {
            files.push(entry.map_err(Error::io("read the folder", path))?.path());
        }
        files.retain(|file| labels_name(&io::file_name(file)).is_some() && file.is_file());
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut found = Vec::new();
    for file in files {
        if is_idx(&file)? && header(&file, &mut *io::open(&file)?)?[1..] == [size, size] {
            found.push(file);
        }
    }
    Ok(found)
}

/// Whether a file starts as an idx file does.
pub(super) fn is_idx(path: &Path) -> Result<bool> {
    match io::open(path)?.fill_buf() {
        Ok(start) => Ok(start.starts_with(&[0, 0, 8])),
        Err(_) => Ok(false),
    }
}

/// Reads all images of a file with the labels of its twin.
pub(super) fn read(
    images: &Path,
    skips: &mut Skips,
    out: &mut ImageCollector<'_>,
    progress: &dyn Fn(&str),
) -> Result<()> {
    progress(&format!("Pathfinder: reading {}", images.display()));
    let labels_path = twin(images)?;
    let labels = read_idx(&labels_path, 1)?.data;
    let mut reader = io::open(images)?;
    let [count, rows, columns] = header(images, &mut *reader)?;
    if labels.len() != count {
        let what = format!("{} labels, but {} has {count} images", labels.len(), images.display());
        return Err(Error::content(
            &labels_path,
            format!("{what}; the files do not belong together"),
        ));
    }
    let mut levels = vec![0; rows * columns];
    for (i, label) in labels.into_iter().enumerate() {
        read_all(images, &mut *reader, &mut levels, &format!("image {i}"))?;
        let what = || format!("label {i} is {label}; it must be 0 or 1");
        let label = if label < 2 { Ok(label) } else { Err(Error::content(&labels_path, what())) };
        if let Some(label) = skips.check(label)? {
            out.push(label.into(), &levels)?;
        }
    }
    match reader.fill_buf().map_err(Error::io("read", images))? {
        [] => Ok(()),
        _ => Err(Error::content(images, format!("has more bytes after its {count} images"))),
    }
}

/// Number of images, rows and columns.
fn header(path: &Path, reader: &mut dyn BufRead) -> Result<[usize; DIMENSIONS]> {
    let mut bytes = [0; 4 + 4 * DIMENSIONS];
    read_all(path, reader, &mut bytes, "the header")?;
    if bytes[..4] != [0, 0, 8, DIMENSIONS as u8] {
        let what = format!(
            "starts with {:02x?}, not with 00 00 08 03 as an idx file of images",
            &bytes[..4]
        );
        return Err(Error::content(path, what));
    }
    Ok(std::array::from_fn(|i| {
        let four = [0, 1, 2, 3].map(|j| bytes[4 + 4 * i + j]);
        u32::from_be_bytes(four) as usize
    }))
}

fn read_all(path: &Path, reader: &mut dyn Read, bytes: &mut [u8], what: &str) -> Result<()> {
    reader.read_exact(bytes).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => Error::content(path, format!("ends within {what}")),
        _ => Error::io("read", path)(e),
    })
}

/// The name of the labels' file for that of the images, without `.gz`.
fn labels_name(images: &str) -> Option<String> {
    let name = images.strip_suffix(".gz").unwrap_or(images);
    let pairs =
        [("images-idx3-ubyte", "labels-idx1-ubyte"), ("images.idx3-ubyte", "labels.idx1-ubyte")];
    let twin = |(images, labels)| Some(format!("{}{labels}", name.strip_suffix(images)?));
    pairs.into_iter().find_map(twin)
}

fn twin(images: &Path) -> Result<PathBuf> {
    let folder = images.parent().unwrap_or(Path::new("."));
    let name = labels_name(&io::file_name(images)).ok_or_else(|| {
        Error::content(
            images,
            "the name must end in images-idx3-ubyte (or .gz), to find its labels",
        )
    })?;
    io::find(folder, &[&name]).ok_or_else(|| Error::Missing {
        what: format!("{name} (or {name}.gz), the labels of {}", io::file_name(images)),
        looked: vec![folder.to_owned()],
        hint: "Put it next to the images.".into(),
    })
}
