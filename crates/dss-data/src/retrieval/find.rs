//! Finding the pairs: AAN as the Long Range Arena has it, or pairs of film reviews.

use std::path::{Path, PathBuf};

use crate::store::StoreKey;
use crate::text::Reviews;
use crate::{Error, Result, io};

/// The pairs of a folder.
pub(super) enum Pairs {
    /// Papers, and whether one cites the other; the texts are in the files.
    Papers([PathBuf; 3]),
    /// Film reviews, and whether they are of one film; the files name reviews.
    Films { pairs: [PathBuf; 3], reviews: Reviews },
}

/// Folders of the Long Range Arena's release, from its top.
const RELEASE: [&str; 3] = ["tsv_data", "lra_release/tsv_data", "lra_release/lra_release/tsv_data"];

impl Pairs {
    /// The pairs in `dir`, or in the data folder: papers if there are any, else films. `reviews` is the place of the
    /// film reviews.
    pub(super) fn find(dir: &str, reviews: &str, data_dir: Option<&Path>) -> Result<Self> {
        let given = (!dir.is_empty()).then(|| io::resolve(dir, data_dir));
        let mut looked = Vec::new();
        if let Some(top) = given.as_deref().or(data_dir) {
            looked.push(top.to_owned());
            let usual = ["aan", "retrieval", "retrieval_imdb_pairs"];
            looked.extend(usual.iter().chain(&RELEASE).map(|name| top.join(name)));
        }
        let papers = ["train", "eval", "test"].map(|part| format!("new_aan_pairs.{part}.tsv"));
        let films = ["train", "val", "test"].map(|part| format!("imdb_pairs_{part}.tsv"));
        if let Some(files) = looked.iter().find_map(|folder| all(folder, &papers)) {
            return Ok(Self::Papers(files));
        }
        if let Some(pairs) = looked.iter().find_map(|folder| all(folder, &films)) {
            let reviews = find_reviews(reviews, &pairs, data_dir)?;
            return Ok(Self::Films { pairs, reviews });
        }
        Err(Error::Missing {
            what: format!(
                "the AAN pairs {}, or the stand-in {} (each plain or .gz)",
                papers.join(", "),
                films.join(", ")
            ),
            looked,
            hint: "Run `dss data get retrieval --data DIR`, or put all three of either in a folder DIR and give --data \
                   DIR or --set task.dir=DIR."
                .into(),
        })
    }

    /// Names of the classes.
    pub(super) fn labels(&self) -> [&'static str; 2] {
        match self {
            Self::Papers(_) => ["unrelated", "related"],
            Self::Films { .. } => ["different", "same"],
        }
    }

    /// Train, val and test.
    pub(super) fn files(&self) -> &[PathBuf; 3] {
        match self {
            Self::Papers(files) | Self::Films { pairs: files, .. } => files,
        }
    }

    /// Adds all files to what a store depends on.
    pub(super) fn key(&self, key: StoreKey) -> Result<StoreKey> {
        let key = self.files().iter().try_fold(key, |key, file| key.source(file))?;
        match self {
            Self::Papers(_) => Ok(key),
            Self::Films { reviews, .. } => reviews.key(key),
        }
    }
}

/// All three files, each plain or gzipped.
fn all(folder: &Path, names: &[String; 3]) -> Option<[PathBuf; 3]> {
    let [train, val, test] = names;
    Some([io::find(folder, &[train])?, io::find(folder, &[val])?, io::find(folder, &[test])?])
}

/// The reviews where the setting says; else in the folder of the pairs, or beside it, or in the data folder.
fn find_reviews(setting: &str, pairs: &[PathBuf; 3], data_dir: Option<&Path>) -> Result<Reviews> {
    if !setting.is_empty() {
        return Reviews::find(setting, data_dir);
    }
    let file = std::path::absolute(&pairs[0]).map_err(Error::io("find", &pairs[0]))?;
    let mut all = Vec::new();
    for place in file.ancestors().skip(1).take(2).chain(data_dir) {
        match Reviews::find("", Some(place)) {
            Err(Error::Missing { looked, .. }) => all.extend(looked),
            found => return found,
        }
    }
    Err(Error::Missing {
        what: format!("the IMDB reviews that {} names", file.display()),
        looked: all,
        hint: "Give their place with --set task.reviews=DIR, a folder or archive of the same form as for the task text."
            .into(),
    })
}
