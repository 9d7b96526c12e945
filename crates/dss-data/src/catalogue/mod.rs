//! The data of every task: their files, where they are published, and their checksums.

mod entries;
mod presence;
mod status;
mod sums;

use std::path::Path;

pub(crate) use self::entries::CLIPS;
pub(crate) use self::presence::given;
pub use self::presence::{CompleteForm, Presence};
pub use self::status::{Availability, Publication, Status, list};
#[cfg(feature = "download")]
pub(crate) use self::sums::sha256;
pub use self::sums::{Verdict, compare_with_published};

/// The data of a task, or of several tasks that read the same data.
#[derive(Debug)]
pub struct CatalogueEntry {
    /// Names of the tasks.
    pub tasks: &'static [&'static str],
    /// Whether the examples are generated, unless `task.dir` names files.
    pub generated: bool,
    /// Any one of these is enough.
    pub forms: &'static [FileSet],
    /// Where the data are published.
    pub official: Option<Official>,
    /// Checksums of loose files.
    pub sums: &'static [FileChecksum],
    /// Whether an example is a square picture, row by row.
    pub picture: bool,
}

/// One set of files that holds the data.
#[derive(Debug)]
pub struct FileSet {
    /// A short description.
    pub about: &'static str,
    /// Folders where it is looked for, from the data folder.
    pub folders: &'static [&'static str],
    /// Every file that is needed, each under one of several names; plain or `.gz`. A name with `/` at its end is a
    /// folder.
    pub files: &'static [&'static [&'static str]],
}

/// The publication of a data set.
#[derive(Debug)]
pub struct Official {
    /// Name of the data set, and its authors.
    pub about: &'static str,
    /// Its licence.
    pub licence: &'static str,
    /// The files to fetch: all of them.
    pub archives: &'static [Archive],
    /// Other versions of the data set.
    pub others: &'static [Archive],
    /// The next command after fetching; `DIR` stands for the data folder.
    pub then: Option<&'static str>,
}

/// A published file.
#[derive(Debug)]
pub struct Archive {
    /// Its name, which is also its name in the data folder.
    pub name: &'static str,
    /// Where it is.
    pub url: &'static str,
    /// Its size, at least approximately.
    pub bytes: u64,
    /// Its SHA-256, where one is known.
    pub sha256: Option<&'static str>,
}

/// The checksum of a loose file.
#[derive(Debug)]
pub struct FileChecksum {
    /// Its name, without `.gz`.
    pub name: &'static str,
    /// SHA-256 of the unpacked file.
    pub sha256: &'static str,
}

/// The entry of a task; `None` for a task that reads the user's own files.
pub fn entry(task: &str) -> Option<&'static CatalogueEntry> {
    entries::ENTRIES.iter().find(|entry| entry.tasks.contains(&task))
}

impl Official {
    /// The published file of this name, of any version.
    pub fn archive(&self, name: &str) -> Option<&'static Archive> {
        self.archives.iter().chain(self.others).find(|archive| archive.name == name)
    }

    /// The next command after fetching into this folder.
    pub fn then_in(&self, dir: &Path) -> Option<String> {
        self.then.map(|then| then.replace("DIR", &dir.display().to_string()))
    }

    /// Size of all files to fetch.
    pub fn bytes(&self) -> u64 {
        self.archives.iter().map(|archive| archive.bytes).sum()
    }
}

impl FileSet {
    /// The names of its files, the first one where there are several.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.files.iter().filter_map(|names| names.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::TaskConfig;

    #[test]
    fn every_task_is_known_once() {
        for &name in TaskConfig::NAMES {
            let of = entries::ENTRIES.iter().filter(|entry| entry.tasks.contains(&name)).count();
            assert_eq!(of, usize::from(name != "files"), "{name}");
        }
        assert!(entry("files").is_none());
    }

    #[test]
    fn entries_are_well_formed() {
        for entry in entries::ENTRIES {
            let task = entry.tasks[0];
            let forms = entry.forms.iter();
            assert!(forms.clone().all(|form| !form.folders.is_empty() && !form.files.is_empty()));
            assert!(forms.flat_map(|form| form.files).all(|names| !names.is_empty()), "{task}");
            assert!(entry.generated || !entry.forms.is_empty(), "{task}");
            let hex = |sum: &str| {
                sum.len() == 64 && sum.bytes().all(|b| b"0123456789abcdef".contains(&b))
            };
            assert!(entry.sums.iter().all(|sum| hex(sum.sha256)), "{task}");
            let Some(official) = &entry.official else { continue };
            let all: Vec<_> = official.archives.iter().chain(official.others).collect();
            let names: BTreeSet<_> = all.iter().map(|archive| archive.name).collect();
            assert_eq!(names.len(), all.len(), "{task}");
            for archive in all {
                assert!(archive.sha256.is_none_or(hex), "{}", archive.name);
                assert!(archive.url.starts_with("https://"), "{}", archive.url);
                assert!(archive.url.ends_with(archive.name), "{}", archive.url);
                assert!(official.archive(archive.name).is_some());
                assert!(archive.bytes > 0);
            }
            // A fetched file can be read as it is, or there is a next command.
            let fetched = |form: &FileSet| {
                form.files.iter().all(|names| {
                    let named = |a: &Archive| {
                        names.iter().any(|n| a.name == *n || a.name.strip_suffix(".gz") == Some(n))
                    };
                    official.archives.iter().any(named)
                })
            };
            assert_eq!(entry.forms.iter().any(fetched), official.then.is_none(), "{task}");
        }
    }
}
