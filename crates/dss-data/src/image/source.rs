//! Where the images are: six binary files in a folder or an archive, or four grey idx files.

use std::path::{Path, PathBuf};

use super::grey::Images;
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
const ARCHIVE: &str = "cifar-10-binary.tar.gz";
/// Training images and labels, test images and labels.
const GREY: [&str; 4] = [
    "cifar10-gray-train-images-idx3-ubyte",
    "cifar10-train-labels-idx1-ubyte",
    "cifar10-gray-test-images-idx3-ubyte",
    "cifar10-test-labels-idx1-ubyte",
];
/// Subfolders of the data folder, or of an unpacked archive, that are searched.
const FOLDERS: [&str; 4] = ["", "cifar10", "cifar-10", "cifar-10-batches-bin"];

pub(super) enum Source {
    Batches([PathBuf; 6]),
    Archive(PathBuf),
    Grey([PathBuf; 4]),
}

impl Source {
    /// `dir` is a setting: a folder or an archive; empty = look in the data folder.
    pub fn find(dir: &str, data_dir: Option<&Path>) -> Result<Self> {
        let top = if dir.is_empty() {
            data_dir.map(Path::to_owned)
        } else {
            let path = io::resolve(dir, data_dir);
            if path.is_file() {
                return Ok(Self::Archive(path));
            }
            Some(path)
        };
        let looked: Vec<PathBuf> =
            top.iter().flat_map(|top| FOLDERS.map(|folder| top.join(folder))).collect();
        let found = looked.iter().find_map(|folder| Self::inside(folder));
        found.ok_or_else(|| Error::Missing {
            what: format!(
                "CIFAR-10 ({ARCHIVE}, or {} to {}, or {}, each plain or .gz)",
                BATCHES[0],
                BATCHES[5],
                GREY.join(", ")
            ),
            looked,
            hint: "`dss data get image --data DIR` fetches the official archive (the binary version); or put the files \
                   in one folder DIR and give --data DIR or --set task.dir=DIR."
                .into(),
        })
    }

    fn inside(folder: &Path) -> Option<Self> {
        let all = |names: &[&str]| -> Option<Vec<PathBuf>> {
            names.iter().map(|name| io::find(folder, &[name])).collect()
        };
        if let Some(paths) = all(&BATCHES) {
            return paths.try_into().ok().map(Self::Batches);
        }
        let archive = folder.join(ARCHIVE);
        if archive.is_file() {
            return Some(Self::Archive(archive));
        }
        all(&GREY)?.try_into().ok().map(Self::Grey)
    }

    /// Every file that is read.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Batches(paths) => paths,
            Self::Archive(path) => std::slice::from_ref(path),
            Self::Grey(paths) => paths,
        }
    }

    /// The archive, or the folder of the files.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Archive(path) => path,
            Self::Batches([path, ..]) | Self::Grey([path, ..]) => path.parent().unwrap_or(path),
        }
    }

    /// The images for training and for testing, in the official order.
    pub fn read(&self, skips: &mut Skips) -> Result<[Images; 2]> {
        match self {
            Self::Grey([train, train_labels, test, test_labels]) => Ok([
                Images::read_idx(train, train_labels, skips)?,
                Images::read_idx(test, test_labels, skips)?,
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
            return Err(Error::content(&inside, "is twice in the archive"));
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
