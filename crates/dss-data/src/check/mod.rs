//! Checks the data of a task: what is there, whether it is what was published, and what is wrong with it.

mod sample;
mod show;
mod split;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use self::sample::{Sample, text as token_text};
pub use self::split::{Lengths, SplitReport, ValueRange};
use crate::catalogue::{self, Verdict, compare_with_published, given};
use crate::note::{Note, skipped_entries};
use crate::task::Split;
use crate::units::bytes;
use crate::{InputKind, Result, TargetKind, Task, TaskConfig};
use dss_format::encoder::{SPECIALS, UNK};

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the task.
    pub task: String,
    /// The files that hold the data, as far as they are known by their names.
    pub files: Vec<FileReport>,
    /// What an example is.
    pub shape: Option<Shape>,
    /// Train, val and test.
    pub splits: Vec<SplitReport>,
    /// Equal hashes, equal splits.
    pub split_hash: Option<String>,
    /// One example.
    pub sample: Option<Sample>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Everything that is wrong, one sentence each.
    pub faults: Vec<String>,
}

/// One file of the data.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    /// Where it is.
    pub path: PathBuf,
    /// Its size; `None` for a folder.
    pub bytes: Option<u64>,
    /// Its SHA-256; `None` for a folder.
    pub sha256: Option<String>,
    /// The result of comparing it; `None` for a folder.
    pub verdict: Option<Verdict>,
}

/// The input and the target of an example.
#[derive(Clone, Debug, Serialize)]
pub struct Shape {
    /// Number of token ids, for token tasks.
    pub vocab: Option<usize>,
    /// Numbers per position, for tasks on numbers.
    pub channels: Option<usize>,
    /// The length L of the model.
    pub len: usize,
    /// Whether an example consists of two sequences.
    pub pair: bool,
    /// Names of the classes, if the target is one.
    pub labels: Vec<String>,
    /// Numbers to predict, if the target is not a class.
    pub outputs: Option<usize>,
    /// Whether every position has a target.
    pub positions: bool,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Loads a task, with faulty files left out and listed, and examines every example.
///
/// Data that cannot be loaded at all are a fault in the report, not an error.
pub fn check(config: &TaskConfig, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Report {
    let mut report = Report {
        task: config.name().to_owned(),
        files: Vec::new(),
        shape: None,
        splits: Vec::new(),
        split_hash: None,
        sample: None,
        notes: Vec::new(),
        faults: Vec::new(),
    };
    report.look_at_files(config, data_dir, progress);
    match config.skipping_bad().load(data_dir, progress) {
        Ok(task) => report.look_at_task(&task, progress),
        Err(error) => report.faults.push(error.message_and_hint()),
    }
    report
}

impl Report {
    fn look_at_files(
        &mut self,
        config: &TaskConfig,
        data_dir: Option<&Path>,
        progress: &dyn Fn(&str),
    ) {
        let entry = catalogue::entry(config.name());
        let given = given(config, data_dir);
        // What is generated reads only what is named.
        let data_dir = data_dir.filter(|_| entry.is_some_and(|entry| !entry.generated));
        let found = given.as_deref().or(data_dir).and_then(|top| entry?.find_in(top).found);
        let named = given.into_iter().filter(|path| path.exists()).collect();
        for path in found.map_or(named, |found| found.files) {
            match FileReport::examine(entry, &path, progress) {
                Ok(file) => {
                    match file.verdict {
                        Some(Verdict::Mismatch) => self.faults.push(format!(
                            "{}: not the published file of this name; fetch it again: dss data get {} --data DIR",
                            path.display(),
                            self.task
                        )),
                        Some(Verdict::Other) => self
                            .notes
                            .push(format!("{} is not the published file of this name", path.display())),
                        _ => {}
                    }
                    self.files.push(file);
                }
                Err(error) => self.faults.push(error.to_string()),
            }
        }
    }

    fn look_at_task(&mut self, task: &Task, progress: &dyn Fn(&str)) {
        self.shape = Some(Shape::new(task));
        self.split_hash = Some(task.split_hash.clone());
        for note in &task.notes {
            match note {
                Note::Skipped { skipped, faults } => {
                    self.faults.push(skipped_entries(*skipped));
                    self.faults.extend(faults.iter().cloned());
                }
                Note::Remark(text) => self.notes.push(text.clone()),
            }
        }
        let splits = [&task.train, &task.val, &task.test];
        let unknown = SPECIALS[UNK as usize];
        let unknown = task.vocabulary.iter().flatten().position(|symbol| symbol == unknown);
        for (split, data) in Split::ALL.into_iter().zip(splits) {
            let report = SplitReport::examine(split.name(), &task.spec, unknown, &**data, progress);
            self.faults
                .extend(report.faults.iter().map(|fault| format!("{}: {fault}", split.name())));
            self.splits.push(report);
        }
        let labels = self.splits.first().map(|train| &train.labels);
        for (label, _) in labels.into_iter().flatten().filter(|(_, count)| *count == 0) {
            self.faults.push(format!("train: no example of class {label}"));
        }
        let picture = catalogue::entry(&self.task).is_some_and(|entry| entry.picture);
        self.sample =
            task.train.example(0).ok().map(|example| Sample::new(task, &example, picture));
    }
}

impl FileReport {
    fn examine(
        entry: Option<&catalogue::CatalogueEntry>,
        path: &Path,
        progress: &dyn Fn(&str),
    ) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self { path: path.to_owned(), bytes: None, sha256: None, verdict: None });
        }
        let size = path.metadata().map(|m| m.len()).unwrap_or(0);
        let of = bytes(size);
        let mut told = 0;
        let (sha256, verdict) = compare_with_published(entry, path, &mut |n| {
            // Small files are quick: no progress for them.
            if n >= told + (64 << 20) {
                told = n;
                progress(&format!("SHA-256 of {}: {} of {of}", path.display(), bytes(n)));
            }
        })?;
        let (sha256, verdict) = (Some(sha256), Some(verdict));
        Ok(Self { path: path.to_owned(), bytes: Some(size), sha256, verdict })
    }
}

impl Shape {
    fn new(task: &Task) -> Self {
        let spec = &task.spec;
        let (vocab, channels) = match spec.input {
            InputKind::Tokens { vocab } => (Some(vocab), None),
            InputKind::Values { channels } => (None, Some(channels)),
        };
        let (labels, outputs, positions) = match &spec.target {
            TargetKind::Class { labels } => (labels.clone(), None, false),
            TargetKind::PositionClasses { labels } => (labels.clone(), None, true),
            TargetKind::NextToken { symbols } => (symbols.clone(), None, true),
            TargetKind::Values { outputs } => (Vec::new(), Some(*outputs), false),
            TargetKind::PositionValues { outputs } => (Vec::new(), Some(*outputs), true),
        };
        Self { vocab, channels, len: spec.len, pair: spec.pair, labels, outputs, positions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DelayConfig;

    #[test]
    fn settings_that_make_no_sense_are_faults() {
        let config = TaskConfig::Delay(DelayConfig { d: 10, length: 10, ..Default::default() });
        let report = check(&config, None, &|_| {});
        assert!(!report.is_good() && report.shape.is_none());
        assert!(report.faults[0].contains("task.length"), "{:?}", report.faults);
    }
}
