//! What the catalogue says is what the readers do.

use crate::common;
use std::fs;
use std::path::Path;

use dss_data::catalogue::{Availability, CatalogueEntry, FileSet, entry, list};
use dss_data::make::{Make, is_made, make};
use dss_data::{Error, TaskConfig};

/// The default settings of a task, some of them changed.
fn with(task: &str, changes: serde_json::Value) -> TaskConfig {
    let mut settings = serde_json::to_value(TaskConfig::default_for(task).unwrap()).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        settings[key] = value.clone();
    }
    serde_json::from_value(settings).unwrap()
}

/// Files of this form without any content.
fn put(form: &FileSet, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for name in form.names() {
        match name.strip_suffix('/') {
            Some(name) => fs::create_dir_all(folder.join(name)).unwrap(),
            None => fs::write(folder.join(name), "").unwrap(),
        }
    }
}

fn entry_of(task: &str) -> &'static CatalogueEntry {
    entry(task).unwrap()
}

fn known() -> impl Iterator<Item = (&'static str, &'static CatalogueEntry)> {
    TaskConfig::NAMES.iter().filter_map(|&task| Some((task, entry(task)?)))
}

/// Files that are found but empty make another complaint than files that are not there.
#[test]
fn every_form_is_found_by_its_reader() {
    common::own_cache();
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
    common::own_cache();
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
    common::own_cache();
    for (task, _) in known().filter(|(_, entry)| entry.generated) {
        let config = with(task, serde_json::json!({"train": 2, "val": 2, "test": 2}));
        assert_eq!(config.load(None, &|_| {}).unwrap().train.len(), 2, "{task}");
    }
}

#[test]
fn the_real_data_are_found() {
    let folders = ["mnist", "imdb", "retrieval_imdb_pairs", "cifar10", "speech_commands10"];
    let Some(dirs) = folders.map(common::data).into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    let list = list(dirs[0].parent());
    assert!(list.iter().all(|status| status.state != Availability::Missing), "{list:?}");
    let files: Vec<_> = list.iter().flat_map(|status| &status.files).collect();
    assert!(dirs.iter().all(|dir| files.iter().any(|file| file.starts_with(dir))), "{files:?}");
}

/// What is made as files is what is generated without any.
#[test]
fn made_files_are_read() {
    common::own_cache();
    for task in TaskConfig::NAMES.iter().filter(|task| is_made(task)) {
        let dir = tempfile::tempdir().unwrap();
        let few = Make { count: Some(30), seed: 5, size: None };
        let made = make(task, dir.path(), &few, &|_| {}).unwrap();
        assert!(made.examples == 30 && made.files.iter().all(|file| file.exists()), "{task}");
        let read = with(task, serde_json::json!({"dir": made.dir})).load(None, &|_| {}).unwrap();
        let splits = [&read.train, &read.val, &read.test];
        assert_eq!(splits.map(|split| split.len()).iter().sum::<usize>(), 30, "{task}");
        let again = make(task, dir.path(), &few, &|_| {}).unwrap_err().to_string();
        assert!(again.contains("already exists"), "{task}: {again}");
    }
}
