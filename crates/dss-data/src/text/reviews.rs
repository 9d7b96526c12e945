//! Finding the reviews: the official folder or archive, or tables.

use std::path::{Path, PathBuf};

use super::{official, tables};
use crate::store::StoreKey;
use crate::task::Split;
use crate::{Error, Result, io};

/// Names of the classes.
pub(crate) const CLASSES: [&str; 2] = ["negative", "positive"];

/// One labelled text.
pub(crate) struct Review<'a> {
    /// Train or test.
    pub split: Split,
    pub class: u32,
    /// Number by which, with split and class, the review is known; not in all sources.
    pub index: Option<u64>,
    pub text: &'a [u8],
    /// The file, and the line in a table.
    pub place: (&'a Path, Option<u64>),
}

impl Review<'_> {
    /// A fault of this review.
    pub(crate) fn fault(&self, what: impl Into<String>) -> Error {
        match self.place {
            (path, Some(line)) => Error::line(path, line, what),
            (path, None) => Error::content(path, what),
        }
    }
}

/// Receives every review, or what is wrong with it.
pub(crate) type Visit<'a> = dyn FnMut(Result<Review<'_>>) -> Result<()> + 'a;

/// The reviews of a folder or archive.
#[derive(Debug)]
pub(crate) enum Reviews {
    /// The official folder `aclImdb`, or an archive of it.
    Official(PathBuf),
    /// Tables of training and test reviews with index and rating: label, rating, index, title, text.
    Numbered([PathBuf; 2]),
    /// Tables of training and test reviews: label, text.
    Plain([PathBuf; 2]),
}

impl Reviews {
    /// What there is in `dir`, or in the data folder.
    pub(crate) fn find(dir: &str, data_dir: Option<&Path>) -> Result<Self> {
        let mut looked = Vec::new();
        if dir.is_empty() {
            if let Some(top) = data_dir {
                looked.push(top.to_owned());
                looked.extend(["imdb", "text", "aclImdb"].map(|name| top.join(name)));
            }
        } else {
            let given = io::resolve(dir, data_dir);
            if given.is_file() {
                return Ok(Self::Official(given));
            }
            looked.push(given);
        }
        let found = looked.iter().enumerate().find_map(|(i, folder)| {
            // Tables of such common names in the data folder itself may be anything.
            let plain = (i > 0 || !dir.is_empty()).then(|| Self::plain(folder)).flatten();
            Self::official(folder).or(plain)
        });
        found.ok_or_else(|| Error::Missing {
            what: "the IMDB reviews (aclImdb_v1.tar.gz, or the folder aclImdb, or imdb_train.tsv and imdb_test.tsv, or \
                   train and test as .tsv or .csv; each table plain or .gz)"
                .into(),
            looked,
            hint: "Run `dss data get text --data DIR`, or put one of these in a folder DIR and give --data DIR or --set \
                   task.dir=DIR."
                .into(),
        })
    }

    /// The reviews of the official data set, in whatever form.
    fn official(folder: &Path) -> Option<Self> {
        if let Some(tables) = pair(folder, ["imdb_train.tsv", "imdb_test.tsv"]) {
            return Some(Self::Numbered(tables));
        }
        let archives = ["aclImdb_v1.tar.gz", "aclImdb_v1.tar", "aclImdb.tar.gz", "aclImdb.tar"];
        let archives = archives.map(|name| folder.join(name)).into_iter().filter(|p| p.is_file());
        let is_official = |folder: &PathBuf| {
            ["train/neg", "train/pos", "test/neg", "test/pos"]
                .iter()
                .all(|d| folder.join(d).is_dir())
        };
        let folders = [folder.to_owned(), folder.join("aclImdb")].into_iter().filter(is_official);
        archives.chain(folders).next().map(Self::Official)
    }

    fn plain(folder: &Path) -> Option<Self> {
        let kinds = [["train.tsv", "test.tsv"], ["train.csv", "test.csv"]];
        kinds.into_iter().find_map(|names| pair(folder, names)).map(Self::Plain)
    }

    /// The official data have 25,000 reviews in either split.
    pub(crate) fn expected(&self) -> Option<usize> {
        match self {
            Self::Official(_) | Self::Numbered(_) => Some(25_000),
            Self::Plain(_) => None,
        }
    }

    /// Where they are, for messages.
    pub(crate) fn place(&self) -> &Path {
        match self {
            Self::Official(path) => path,
            Self::Numbered([train, _]) | Self::Plain([train, _]) => train.parent().unwrap_or(train),
        }
    }

    /// Adds all files to what a store depends on.
    pub(crate) fn key(&self, key: StoreKey) -> Result<StoreKey> {
        match self {
            Self::Official(path) => key.source(path),
            Self::Numbered([train, test]) | Self::Plain([train, test]) => {
                key.source(train)?.source(test)
            }
        }
    }

    /// Visits every review.
    pub(crate) fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        match self {
            Self::Official(path) => official::for_each(path, visit),
            Self::Numbered([train, test]) => {
                tables::for_each(train, Split::Train, &tables::NUMBERED, visit)?;
                tables::for_each(test, Split::Test, &tables::NUMBERED, visit)
            }
            Self::Plain([train, test]) => {
                tables::for_each(train, Split::Train, &tables::TableForm::detect(train)?, visit)?;
                tables::for_each(test, Split::Test, &tables::TableForm::detect(test)?, visit)
            }
        }
    }
}

/// Both files, each plain or gzipped.
fn pair(folder: &Path, [train, test]: [&str; 2]) -> Option<[PathBuf; 2]> {
    Some([io::find(folder, &[train])?, io::find(folder, &[test])?])
}
