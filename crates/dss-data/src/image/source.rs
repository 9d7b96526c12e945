//! Finding the images: six binary files in a folder or an archive, or four grey idx files.

use std::path::{Path, PathBuf};

use super::grey::Images;
use crate::catalogue::entry;
use crate::skip::Skips;
use crate::source::for_each_file;
use crate::{Error, Result, io};

/// The official binary files; the last one is the test split.
const BATCHES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];
pub(super) enum ImageSource {
    /// [`BATCHES`].
    Batches(Vec<PathBuf>),
    Archive(PathBuf),
    /// Training images and labels, test images and labels.
    Grey(Vec<PathBuf>),
}

impl ImageSource {
    /// `dir` is a setting: a folder or an archive; empty = look in the data folder.
    pub fn find(dir: &str, data_dir: Option<&Path>) -> Result<Self> {
        let given = io::resolve(dir, data_dir);
        if given.is_file() {
            return Ok(Self::Archive(given));
        }
        let mut files = entry("image").expect("a published data set").find(dir, data_dir)?.files;
        Ok(match files.len() {
            1 => Self::Archive(files.remove(0)),
            4 => Self::Grey(files),
            _ => Self::Batches(files),
        })
    }

    /// Every file that is read.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Batches(paths) | Self::Grey(paths) => paths,
            Self::Archive(path) => std::slice::from_ref(path),
        }
    }

    /// The archive, or the folder of the files.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Archive(path) => path,
            Self::Batches(paths) | Self::Grey(paths) => paths[0].parent().unwrap_or(&paths[0]),
        }
    }

    /// The images for training and for testing, in the official order.
    pub fn read(&self, skips: &mut Skips) -> Result<[Images; 2]> {
        match self {
            Self::Grey(paths) => Ok([
                Images::read_idx(&paths[0], &paths[1], skips)?,
                Images::read_idx(&paths[2], &paths[3], skips)?,
            ]),
            Self::Batches(paths) => {
                let [mut train, mut test] = [Images::default(), Images::default()];
                for (i, path) in paths.iter().enumerate() {
                    let images = if i < 5 { &mut train } else { &mut test };
                    images.add_records(path, &io::read(path)?, skips)?;
                }
                Ok([train, test])
            }
            Self::Archive(path) => read_archive(path, skips),
        }
    }
}

/// An archive has its files in any order, and in a folder or not.
fn read_archive(path: &Path, skips: &mut Skips) -> Result<[Images; 2]> {
    let number = |name: &str| {
        let file = name.rsplit('/').next();
        BATCHES.iter().position(|batch| Some(*batch) == file)
    };
    let mut batches: [Option<Images>; 6] = Default::default();
    for_each_file(path, &|name| number(name).is_some(), &mut |name, bytes| {
        let Some(slot) = number(name).map(|i| &mut batches[i]) else { return Ok(()) };
        let inside = path.join(name);
        if slot.is_some() {
            return Err(Error::content(&inside, "appears twice in the archive"));
        }
        slot.insert(Images::default()).add_records(&inside, bytes, skips)
    })?;
    let [mut train, mut test] = [Images::default(), Images::default()];
    for (i, (batch, name)) in batches.into_iter().zip(BATCHES).enumerate() {
        let what = || format!("{name} is not in this archive; is it the binary version?");
        let images = if i < 5 { &mut train } else { &mut test };
        images.append(batch.ok_or_else(|| Error::content(path, what()))?);
    }
    Ok([train, test])
}
