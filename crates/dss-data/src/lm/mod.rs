//! `lm`: predict at every position of a text which character (or byte) comes next.
//!
//! The text is split by position: first the training part, then the validation part, then the test part. An example is
//! a window of `len` positions. In training the windows of an epoch begin at random, one in each stretch of `len`
//! positions. In evaluation they are fixed, and every character of the part is scored exactly once: each window begins
//! with `context` of its length read but not scored, so that no character is judged with less context than that (the
//! first ones of a part have the end of the part before them as context).

mod find;
mod windows;

use std::path::Path;
use std::sync::Arc;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

pub use dss_format::encoder::{LmEncoder, Unit};

use self::windows::{FixedWindows, ShiftedWindows, Tokens};
use crate::config::TaskSource;
use crate::encoder::{self, ReadFile, SequencePlace};
use crate::hash::SplitHash;
use crate::{
    Dataset, Encoder, Error, Input, InputKind, Result, TargetKind, Task, TaskSpec, limits,
};

/// Settings of the task `lm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct LmConfig {
    /// The text, plain or .gz; empty = the file given with --data, or the only text in that folder.
    pub path: String,
    /// What is predicted: char (Unicode characters) or byte.
    pub unit: Unit,
    /// Positions per window.
    pub len: usize,
    /// Share of an evaluation window that is read but not scored, from 0 to 0.99.
    pub context: f64,
    /// Share of the text for validation, after the training part.
    pub val: f64,
    /// Share of the text for testing, at its end; 0 = test on the validation part.
    pub test: f64,
}

impl Default for LmConfig {
    fn default() -> Self {
        Self {
            path: String::new(),
            unit: Unit::Char,
            len: 512,
            context: 0.5,
            val: 0.05,
            test: 0.05,
        }
    }
}

impl TaskSource for LmConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        self.check()?;
        let path = find::text(&self.path, data_dir)?;
        progress(&format!("reading {}", path.display()));
        let text = find::read(&path)?;
        let encoder = LmEncoder::for_text(self.unit, &text, self.len)
            .map_err(|fault| encoder::fault_in(&path, fault))?;
        let ids = encoder.encode(&text).map_err(|fault| encoder::fault_in(&path, fault))?;
        let tokens = Arc::new(Tokens::new(ids, encoder.vocab()));

        let n = tokens.len();
        let part = |share: f64| (n as f64 * share).round() as usize;
        let (val, test) = (part(self.val), part(self.test));
        let train = n.saturating_sub(val).saturating_sub(test);
        let unit = self.unit.plural();
        if train <= self.len {
            let what = format!(
                "{} has {n} {unit}, {train} of them to train on, which must be more than the window",
                path.display()
            );
            return Err(Error::setting("len", self.len, what));
        }
        if val == 0 || (self.test > 0.0 && test == 0) {
            let key = if val == 0 { "val" } else { "test" };
            let value = if val == 0 { self.val } else { self.test };
            let what = format!("{} has only {n} {unit}: this part is empty", path.display());
            return Err(Error::setting(key, value, what));
        }

        let mut hash = SplitHash::new(name);
        hash.settings(&(self.unit, train, val, test));
        hash.bytes("text", &text);
        let context = self.context_positions();
        let fixed = |start, end| FixedWindows::new(tokens.clone(), start..end, self.len, context);
        let tail = if test == 0 { train..n } else { train + val..n };
        let mut notes = Vec::new();
        if test == 0 {
            notes.push("task.test = 0: the validation text is also the test text".into());
        }
        let splits: [Arc<dyn Dataset>; 3] = [
            Arc::new(ShiftedWindows::new(tokens.clone(), train, self.len)),
            Arc::new(fixed(train, train + val)),
            Arc::new(fixed(tail.start, tail.end)),
        ];
        let spec = spec(name, &encoder);
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::Lm(encoder)) })
    }
}

impl LmConfig {
    fn check(&self) -> Result<()> {
        if self.len < 2 {
            return Err(Error::setting("len", self.len, "must be at least 2"));
        }
        limits::length("len", self.len)?;
        if !(0.0..=0.99).contains(&self.context) {
            return Err(Error::setting("context", self.context, "must be from 0 to 0.99"));
        }
        for (key, value, least) in [("val", self.val, f64::MIN_POSITIVE), ("test", self.test, 0.0)]
        {
            if !(least..1.0).contains(&value) {
                let what = "must be a share of the text, such as 0.05";
                return Err(Error::setting(key, value, what));
            }
        }
        Ok(())
    }

    /// Positions of an evaluation window that are not scored.
    fn context_positions(&self) -> usize {
        ((self.len as f64 * self.context) as usize).min(self.len - 1)
    }
}

/// The shape of the task.
fn spec(name: &str, encoder: &LmEncoder) -> TaskSpec {
    TaskSpec {
        name: name.to_owned(),
        input: InputKind::Tokens { vocab: encoder.vocab() },
        target: TargetKind::NextToken { symbols: encoder.labels() },
        len: encoder.len,
        pair: false,
    }
}

/// The ids of a whole text file.
fn read_ids(encoder: &LmEncoder, path: &Path) -> Result<Vec<u32>> {
    encoder.encode(&find::read(path)?).map_err(|fault| encoder::fault_in(path, fault))
}

impl ReadFile for LmEncoder {
    /// A whole file as one sequence.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        Ok(vec![(SequencePlace::File, Input::Tokens(read_ids(self, path)?))])
    }
}

/// A whole text file, to be scored.
pub fn score(encoder: &LmEncoder, path: &Path) -> Result<ScoredText> {
    let ids = read_ids(encoder, path)?;
    if ids.len() < 2 {
        let what = format!("a text of at least two {} is needed", encoder.unit.plural());
        return Err(Error::content(path, what));
    }
    let tokens = Arc::new(Tokens::new(ids, encoder.vocab()));
    let all = 1..tokens.len();
    let count = all.len();
    let windows = Arc::new(FixedWindows::new(tokens, all, encoder.len, encoder.len / 2));
    Ok(ScoredText { windows, spec: spec("lm", encoder), tokens: count })
}

/// A text as windows: every token but the first, which has no context, is scored once; half of a window is context.
pub struct ScoredText {
    /// The windows.
    pub windows: Arc<dyn Dataset>,
    /// Their shape.
    pub spec: TaskSpec,
    /// Tokens that are scored.
    pub tokens: usize,
}
