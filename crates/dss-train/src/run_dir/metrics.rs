//! `metrics.jsonl`: one JSON object per line, in the order of the steps.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tensorboard::{EventFile, FILE};
use crate::error::{Error, Result};
use crate::scores::Scores;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// Some optimiser steps.
    Train(TrainRecord),
    /// An evaluation on the validation set.
    Val(EvalRecord),
    /// The evaluation of the best checkpoint on the test set, at the end.
    Test(EvalRecord),
}

/// Means over the optimiser steps since the line before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainRecord {
    /// Optimiser steps done.
    pub step: u64,
    /// Which pass over the training set this is, from 1.
    pub epoch: u64,
    /// Mean loss.
    pub loss: f64,
    /// Share of right classes; absent for regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Learning rate of the last step (of everything but Λ, Δ and W).
    pub lr: f64,
    /// Sequences per second.
    pub samples_per_s: f64,
    /// Seconds since the run began, without pauses between resumed parts.
    pub seconds: f64,
    /// Peak memory of the process in MB, where it is known.
    pub peak_mb: Option<f64>,
}

/// One evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalRecord {
    /// The optimiser step of the model that was evaluated.
    pub step: u64,
    /// Its pass over the training set, from 1.
    pub epoch: u64,
    /// What came out.
    #[serde(flatten)]
    pub scores: Scores,
    /// Whether it is the best one so far.
    pub best: bool,
    /// Seconds since the run began, without pauses between resumed parts.
    pub seconds: f64,
    /// Peak memory of the process in MB, where it is known.
    pub peak_mb: Option<f64>,
}

impl Record {
    /// Seconds since the run began.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Train(record) => record.seconds,
            Self::Val(record) | Self::Test(record) => record.seconds,
        }
    }
}

/// All complete lines of a metrics file; a last line that was cut short by a kill is left out.
pub fn read_metrics(path: &Path) -> Result<Vec<Record>> {
    let text = std::fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
    complete_lines(&text)
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str(line).map_err(|error| Error::Damaged {
                path: path.into(),
                what: format!("line {}: {error}", i + 1),
            })
        })
        .collect()
}

/// The result of a run that is complete: its last line.
pub(crate) fn stored_test(path: &Path) -> Option<EvalRecord> {
    match read_metrics(path).ok()?.pop()? {
        Record::Test(record) => Some(record),
        _ => None,
    }
}

fn complete_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}

/// The file of a running training.
pub(crate) struct Metrics {
    path: PathBuf,
    /// None on a rank that only counts the lines of rank 0.
    file: Option<File>,
    /// Bytes of complete lines.
    bytes: u64,
    lines: u64,
    /// Time stamp of the last line.
    seconds: f64,
    /// The same numbers for TensorBoard, with `train.tensorboard`.
    events: Option<EventFile>,
}

impl Metrics {
    /// Opens the file, keeping its first `lines` lines: what came after the restored state is written again.
    pub(crate) fn open(path: &Path, lines: u64) -> Result<Self> {
        let fail = |error| Error::io("cannot write", path)(error);
        if lines == 0 {
            let file = File::create(path).map_err(fail)?;
            return Ok(Self { file: Some(file), ..Self::unwritten(0) }.at(path));
        }
        let text = std::fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
        let kept: Vec<&str> = complete_lines(&text).take(lines as usize).collect();
        let damaged = |what| Error::Damaged { path: path.into(), what };
        if (kept.len() as u64) < lines {
            let found = kept.len();
            return Err(damaged(format!(
                "the saved state needs {lines} lines, but it has {found}"
            )));
        }
        let last = kept[kept.len() - 1];
        let last: Record = serde_json::from_str(last)
            .map_err(|error| damaged(format!("line {lines}: {error}")))?;
        let bytes = kept.iter().map(|line| line.len() as u64 + 1).sum();
        let mut file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).map_err(fail)?;
        let seconds = last.seconds();
        Ok(Self { file: Some(file), bytes, seconds, ..Self::unwritten(lines) }.at(path))
    }

    /// A count of `lines` lines that another rank writes.
    pub(crate) fn unwritten(lines: u64) -> Self {
        Self { path: PathBuf::new(), file: None, bytes: 0, lines, seconds: 0.0, events: None }
    }

    fn at(self, path: &Path) -> Self {
        Self { path: path.into(), ..self }
    }

    /// The same with a file of events for TensorBoard beside it, if it is wanted.
    pub(crate) fn with_events(mut self, wanted: bool) -> Result<Self> {
        if wanted {
            let records = read_metrics(&self.path)?;
            self.events = Some(EventFile::create(&self.path.with_file_name(FILE), &records)?);
        }
        Ok(self)
    }

    /// Lines written.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Time stamp of the last line, 0 without one.
    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Adds a line, or leaves the file as it was.
    pub(crate) fn append(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record).expect("a record is plain data");
        line.push(b'\n');
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&line)
        {
            let _ = file.set_len(self.bytes);
            return Err(Error::io("cannot write", &self.path)(error));
        }
        self.bytes += line.len() as u64;
        self.lines += 1;
        self.seconds = record.seconds();
        match &mut self.events {
            Some(events) => events.append(record),
            None => Ok(()),
        }
    }

    /// Makes sure that all lines are on the disk: a saved state refers to them.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_all);
        synced.map_err(Error::io("cannot write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(step: u64) -> Record {
        Record::Train(TrainRecord {
            step,
            epoch: 1,
            loss: 0.1 + step as f64,
            accuracy: None,
            lr: 0.01,
            samples_per_s: 10.0,
            seconds: step as f64,
            peak_mb: None,
        })
    }

    #[test]
    fn reopening_cuts_what_came_after_the_state() {
        let path = std::env::temp_dir().join(format!("dss-metrics-{}", std::process::id()));
        let mut metrics = Metrics::open(&path, 0).unwrap();
        for step in 1..=4 {
            metrics.append(&train(step)).unwrap();
        }
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"kind\":\"tra")
            .unwrap();
        assert_eq!(read_metrics(&path).unwrap().len(), 4, "a cut line is left out");

        let mut metrics = Metrics::open(&path, 2).unwrap();
        assert_eq!((metrics.lines(), metrics.seconds()), (2, 2.0));
        metrics.append(&train(3)).unwrap();
        assert_eq!(read_metrics(&path).unwrap(), [train(1), train(2), train(3)]);
        assert!(Metrics::open(&path, 9).is_err());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn lines_have_the_documented_keys() {
        let line = serde_json::to_value(Record::Val(EvalRecord {
            step: 3,
            epoch: 1,
            scores: Scores { loss: 0.5, accuracy: Some(0.75), examples: 4, ..Scores::default() },
            best: true,
            seconds: 1.5,
            peak_mb: Some(12.0),
        }))
        .unwrap();
        assert_eq!(
            line,
            serde_json::json!({"kind": "val", "step": 3, "epoch": 1, "loss": 0.5, "accuracy": 0.75,
                "examples": 4, "best": true, "seconds": 1.5, "peak_mb": 12.0})
        );
    }
}
