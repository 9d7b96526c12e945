//! Whether the data of a task are there.

use std::path::{Path, PathBuf};

use super::{Entry, Form};
use crate::{TaskConfig, io};

/// What was found of the data of a task.
#[derive(Debug)]
pub struct Presence {
    /// Every folder that was searched.
    pub looked: Vec<PathBuf>,
    /// The data, if they are complete.
    pub found: Option<Found>,
    /// What is missing of the form that is nearest to complete.
    pub missing: Vec<&'static str>,
    /// Whether some of its files are there.
    pub partly: bool,
}

/// Complete data.
#[derive(Debug)]
pub struct Found {
    /// What they are.
    pub about: &'static str,
    /// The files or folders.
    pub files: Vec<PathBuf>,
}

/// The place that the settings of a task name: `task.dir` or `task.path`.
pub(crate) fn given(config: &TaskConfig, data_dir: Option<&Path>) -> Option<PathBuf> {
    config.place().map(|place| io::resolve(place, data_dir))
}

impl Entry {
    /// Looks for the data in a folder, which is the data folder or one that the settings name.
    pub fn look(&self, top: &Path) -> Presence {
        let mut looked: Vec<PathBuf> = Vec::new();
        for folder in self.forms.iter().flat_map(|form| form.folders) {
            let place = if folder.is_empty() { top.to_owned() } else { top.join(folder) };
            if !looked.contains(&place) {
                looked.push(place);
            }
        }
        let mut best: Option<(usize, Vec<&'static str>)> = None;
        for place in &looked {
            let here = |form: &&Form| form.folders.iter().any(|folder| *place == top.join(folder));
            for form in self.forms.iter().filter(here) {
                let (files, missing) = form.look(place);
                if missing.is_empty() {
                    let found = Some(Found { about: form.about, files });
                    return Presence { looked, found, missing, partly: false };
                }
                if best.as_ref().is_none_or(|(n, _)| files.len() > *n) {
                    best = Some((files.len(), missing));
                }
            }
        }
        let (some, missing) = best.unwrap_or_default();
        Presence { looked, found: None, missing, partly: some > 0 }
    }
}

impl Form {
    /// The files that are there, and the names of those that are not.
    fn look(&self, place: &Path) -> (Vec<PathBuf>, Vec<&'static str>) {
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        for names in self.files {
            let folder = |name: &&str| {
                let path = place.join(name.strip_suffix('/')?);
                path.is_dir().then_some(path)
            };
            match names.iter().find_map(folder).or_else(|| io::find(place, names)) {
                Some(path) => files.push(path),
                None => missing.extend(names.first()),
            }
        }
        (files, missing)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::entry;
    use super::*;
    use crate::{FilesConfig, ListopsConfig};

    #[test]
    fn complete_partial_and_absent() {
        let dir = tempfile::tempdir().unwrap();
        let look = || entry("smnist").unwrap().look(dir.path());
        let absent = look();
        assert!(absent.found.is_none() && absent.missing.len() == 4 && !absent.partly);
        assert_eq!(absent.looked, [dir.path().to_owned(), dir.path().join("mnist")]);

        fs::create_dir(dir.path().join("mnist")).unwrap();
        let names = entry("smnist").unwrap().forms[0].names();
        for (i, name) in names.enumerate() {
            let name = if i == 1 { "train-labels.idx1-ubyte.gz" } else { name };
            fs::write(dir.path().join("mnist").join(name), "").unwrap();
            if i == 2 {
                assert_eq!((look().missing, look().partly), (vec!["t10k-labels-idx1-ubyte"], true));
            }
        }
        let found = look().found.unwrap();
        assert_eq!((found.about, found.files.len()), ("the four idx files", 4));
        assert!(found.files[1].ends_with("mnist/train-labels.idx1-ubyte.gz"));
    }

    #[test]
    fn folders_are_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let speech = entry("speech").unwrap();
        fs::write(dir.path().join("yes"), "").unwrap();
        assert!(speech.look(dir.path()).found.is_none());
        fs::create_dir_all(dir.path().join("speech_commands/train/yes")).unwrap();
        let found = speech.look(dir.path()).found.unwrap();
        assert_eq!(found.files, [dir.path().join("speech_commands/train/yes")]);
        fs::create_dir(dir.path().join("speech_commands_v0.02.tar.gz")).unwrap();
        assert_eq!(speech.look(dir.path()).found.unwrap().about, "a folder for each word");
    }

    #[test]
    fn places_that_the_settings_name() {
        let listops = ListopsConfig { dir: "there".into(), ..Default::default() };
        assert_eq!(given(&TaskConfig::Listops(listops), None), Some("there".into()));
        let files = FilesConfig { path: "a.csv".into(), ..Default::default() };
        assert_eq!(given(&TaskConfig::Files(files), None), Some("a.csv".into()));
        assert_eq!(given(&TaskConfig::default_for("smnist").unwrap(), None), None);
        assert_eq!(given(&TaskConfig::default_for("delay").unwrap(), None), None);
    }
}
