//! What a grid must know of the settings of a task.

use dss_data::TaskConfig;

/// Examples that are asked for of the training, validation and test sets, 0 for all there are; `None` if a task does not
/// count its examples.
pub(super) fn counts(task: &TaskConfig) -> Option<[usize; 3]> {
    use TaskConfig::*;
    match task {
        Listops(c) => Some([c.train, c.val, c.test]),
        Text(c) => Some([c.train, c.val, c.test]),
        Retrieval(c) => Some([c.train, c.val, c.test]),
        Smnist(c) | Pmnist(c) => Some([c.train, c.val, c.test]),
        Pathfinder(c) | PathX(c) => Some([c.train, c.val, c.test]),
        Image(c) => Some([c.train, c.val, c.test]),
        Speech(c) | SpeechMfcc(c) => Some([c.train, c.val, c.test]),
        Forecast(c) => Some([c.train, c.val, c.test]),
        Delay(c) => Some([c.train, c.val, c.test]),
        Adding(c) => Some([c.train, c.val, c.test]),
        Lm(_) | Files(_) => None,
    }
}

/// Whether the settings say where the data are.
pub(super) fn names_its_data(task: &TaskConfig) -> bool {
    use TaskConfig::*;
    let place = match task {
        Listops(c) => &c.dir,
        Text(c) => &c.dir,
        Retrieval(c) => &c.dir,
        Smnist(c) | Pmnist(c) => &c.dir,
        Pathfinder(c) | PathX(c) => &c.dir,
        Image(c) => &c.dir,
        Speech(c) | SpeechMfcc(c) => &c.dir,
        Lm(c) => &c.path,
        Forecast(c) => &c.path,
        Files(c) => &c.path,
        Delay(_) | Adding(_) => return false,
    };
    !place.is_empty()
}

/// L, where it is a setting.
pub(super) fn length(task: &TaskConfig) -> Option<usize> {
    let len = match task {
        TaskConfig::Listops(c) => c.len,
        TaskConfig::Text(c) => c.len,
        TaskConfig::Retrieval(c) => c.len,
        TaskConfig::Lm(c) => c.len,
        _ => 0,
    };
    (len > 0).then_some(len)
}

/// Sequences that the model reads for one example.
pub(super) fn sequences_per_example(task: &TaskConfig) -> usize {
    if matches!(task, TaskConfig::Retrieval(_)) { 2 } else { 1 }
}

/// The key of the folder that keeps generated data, for tasks that have one.
pub(super) fn cache_key(task: &str) -> Option<&'static str> {
    (task == "listops").then_some("task.cache")
}
