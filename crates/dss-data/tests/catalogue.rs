//! What the catalogue says is what the readers do.

use std::fs;
use std::path::Path;

use dss_data::catalogue::{Entry, Form, entry};
use dss_data::{Error, TaskConfig};

/// Files of this form without any content.
fn put(form: &Form, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for name in form.names() {
        match name.strip_suffix('/') {
            Some(name) => fs::create_dir_all(folder.join(name)).unwrap(),
            None => fs::write(folder.join(name), "").unwrap(),
        }
    }
}

fn entry_of(task: &str) -> &'static Entry {
    entry(task).unwrap()
}

fn known() -> impl Iterator<Item = (&'static str, &'static Entry)> {
    TaskConfig::NAMES.iter().filter_map(|&task| Some((task, entry(task)?)))
}

/// Files that are found but empty make another complaint than files that are not there.
#[test]
fn every_form_is_found_by_its_reader() {
    for (task, entry) in known().filter(|(_, entry)| !entry.generated) {
        for form in entry.forms {
            for place in form.folders {
                let dir = tempfile::tempdir().unwrap();
                if task == "retrieval" {
                    // The reviews that its pairs may name.
                    put(&entry_of("text").forms[0], &dir.path().join("imdb"));
                }
                put(form, &dir.path().join(place));
                let config = TaskConfig::default_for(task).unwrap();
                let error = config.load(Some(dir.path()), &|_| {}).err();
                let error = error.unwrap_or_else(|| panic!("{task}, {}: no error", form.about));
                let found = !matches!(error, Error::Missing { .. });
                assert!(found, "{task}, {} in {place:?}: {error}", form.about);
            }
        }
    }
}

#[test]
fn files_that_are_not_there_are_named() {
    for (task, _) in known().filter(|(_, entry)| !entry.generated) {
        let dir = tempfile::tempdir().unwrap();
        let config = TaskConfig::default_for(task).unwrap();
        for data_dir in [None, Some(dir.path())] {
            let error = config.load(data_dir, &|_| {}).err().unwrap();
            assert!(matches!(error, Error::Missing { .. }), "{task}: {error}");
        }
    }
}

#[test]
fn generated_tasks_need_no_files() {
    for (task, _) in known().filter(|(_, entry)| entry.generated) {
        // Small ones: only that they can be had.
        let mut settings = serde_json::to_value(TaskConfig::default_for(task).unwrap()).unwrap();
        for key in ["train", "val", "test"] {
            settings[key] = 2.into();
        }
        let config: TaskConfig = serde_json::from_value(settings).unwrap();
        assert_eq!(config.load(None, &|_| {}).unwrap().train.len(), 2, "{task}");
    }
}
