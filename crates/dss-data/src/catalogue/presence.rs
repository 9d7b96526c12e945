//! Whether the data of a task are present.

use std::path::{Path, PathBuf};

use super::{CatalogueEntry, FileSet};
use crate::{Error, Result, TaskConfig, io};

/// Which data of a task are present.
#[derive(Debug, Default)]
pub struct Presence {
    /// Every folder that was searched.
    pub looked: Vec<PathBuf>,
    /// The data, if they are complete.
    pub found: Option<CompleteForm>,
    /// The missing files of the form that is nearest to complete.
    pub missing: Vec<&'static str>,
    /// Whether some of its files are present.
    pub partly: bool,
}

/// Complete data.
#[derive(Debug)]
pub struct CompleteForm {
    /// Which of the forms of the data it is.
    pub form: &'static FileSet,
    /// The files or folders, in the order of the form's names.
    pub files: Vec<PathBuf>,
}

/// The place that the settings of a task give: `task.dir` or `task.path`.
pub(crate) fn given(config: &TaskConfig, data_dir: Option<&Path>) -> Option<PathBuf> {
    config.place().map(|place| io::resolve(place, data_dir))
}

impl CatalogueEntry {
    /// The data in the folder `dir`, a setting, or in the data folder if that is empty.
    pub(crate) fn find(&'static self, dir: &str, data_dir: Option<&Path>) -> Result<CompleteForm> {
        let top = match dir.is_empty() {
            true => data_dir.map(Path::to_owned),
            false => Some(io::resolve(dir, data_dir)),
        };
        let presence = top.map(|top| self.find_in(&top)).unwrap_or_default();
        presence.found.ok_or_else(|| Error::Missing {
            what: format!("{} (each file plain or .gz)", self.wanted().join("; or ")),
            looked: presence.looked,
            hint: format!(
                "Fetch them with `dss data get {} --data DIR`, or put them in one folder DIR; then give --data DIR or \
                 --set task.dir=DIR.",
                self.tasks[0]
            ),
        })
    }

    /// The sets of files of which one is needed.
    pub(crate) fn wanted(&self) -> Vec<String> {
        let names = |form: &FileSet| form.names().collect::<Vec<_>>().join(", ");
        self.forms.iter().map(|form| format!("{} ({})", names(form), form.about)).collect()
    }

    /// Looks for the data in a folder, which is the data folder or one that the settings name.
    pub fn find_in(&'static self, top: &Path) -> Presence {
        let mut looked: Vec<PathBuf> = Vec::new();
        for folder in self.forms.iter().flat_map(|form| form.folders) {
            let place = if folder.is_empty() { top.to_owned() } else { top.join(folder) };
            if !looked.contains(&place) {
                looked.push(place);
            }
        }
        let mut best: Option<(usize, Vec<&'static str>)> = None;
        for place in &looked {
            let here =
                |form: &&FileSet| form.folders.iter().any(|folder| *place == top.join(folder));
            for form in self.forms.iter().filter(here) {
                let (files, missing) = form.find_in(place);
                if missing.is_empty() {
                    let found = Some(CompleteForm { form, files });
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

impl FileSet {
    /// The files that are there, and the names of those that are not.
    fn find_in(&self, place: &Path) -> (Vec<PathBuf>, Vec<&'static str>) {
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
        let find = || entry("smnist").unwrap().find_in(dir.path());
        let absent = find();
        assert!(absent.found.is_none() && absent.missing.len() == 4 && !absent.partly);
        assert_eq!(absent.looked, [dir.path().to_owned(), dir.path().join("mnist")]);

        fs::create_dir(dir.path().join("mnist")).unwrap();
        let names = entry("smnist").unwrap().forms[0].names();
        for (i, name) in names.enumerate() {
            let name = if i == 1 { "train-labels.idx1-ubyte.gz" } else { name };
            fs::write(dir.path().join("mnist").join(name), "").unwrap();
            if i == 2 {
                assert_eq!((find().missing, find().partly), (vec!["t10k-labels-idx1-ubyte"], true));
            }
        }
        let found = find().found.unwrap();
        assert_eq!((found.form.about, found.files.len()), ("the four idx files of MNIST", 4));
        assert!(found.files[1].ends_with("mnist/train-labels.idx1-ubyte.gz"));
    }

    #[test]
    fn a_folder_is_not_taken_for_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let speech = entry("speech").unwrap();
        fs::write(dir.path().join("yes"), "").unwrap();
        assert!(speech.find_in(dir.path()).found.is_none());
        fs::create_dir_all(dir.path().join("speech_commands/train/yes")).unwrap();
        let found = speech.find_in(dir.path()).found.unwrap();
        assert_eq!(found.files, [dir.path().join("speech_commands/train/yes")]);
        fs::create_dir(dir.path().join("speech_commands_v0.02.tar.gz")).unwrap();
        assert_eq!(speech.find_in(dir.path()).found.unwrap().form.about, "a folder for each word");
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
