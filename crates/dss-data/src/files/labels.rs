//! What the labels of the data mean: classes or numbers.

use std::collections::BTreeMap;
use std::path::Path;

use super::record::{Label, Record};
use super::{FilesConfig, TargetChoice};
use crate::{Error, Note, Result, Target, TargetKind};

/// The classes by name, or the length of the vectors to predict.
pub(super) enum Labels {
    Classes(BTreeMap<String, u32>),
    Values { outputs: usize },
}

impl Labels {
    pub(super) fn read<'a>(
        config: &FilesConfig,
        path: &Path,
        records: impl Iterator<Item = &'a Record>,
    ) -> Result<Self> {
        match config.target {
            TargetChoice::Class => Self::classes(path, records),
            TargetChoice::Value => Self::values(path, records),
        }
    }

    fn values<'a>(path: &Path, records: impl Iterator<Item = &'a Record>) -> Result<Self> {
        let mut outputs = None;
        for record in records {
            let found = values(&record.label).ok_or_else(|| {
                let what =
                    "is not a finite number; if labels are class names, set task.target=class";
                fault(path, record, what)
            })?;
            if *outputs.get_or_insert(found.len()) != found.len() {
                return Err(fault(
                    path,
                    record,
                    "has a different number of outputs than the others",
                ));
            }
        }
        Ok(Self::Values { outputs: outputs.unwrap_or(1) })
    }

    fn classes<'a>(path: &Path, records: impl Iterator<Item = &'a Record>) -> Result<Self> {
        let mut count = 0;
        let mut classes = BTreeMap::new();
        for record in records {
            count += 1;
            let name = class_name(&record.label).ok_or_else(|| {
                fault(path, record, "has several numbers; to predict them, set task.target=value")
            })?;
            classes.insert(name, 0);
        }
        let fractions = |name: &String| name.parse::<f64>().is_ok_and(|x| x.fract() != 0.0);
        if 2 * classes.len() > count && classes.keys().any(fractions) {
            let what = "the labels look like measurements; to predict them, set task.target=value";
            return Err(Error::content(path, what));
        }
        if classes.len() < 2 {
            let only = classes.into_keys().next().unwrap_or_default();
            let what = format!(
                "only one class ({only:?}), but at least two are needed; is task.label right?"
            );
            return Err(Error::content(path, what));
        }
        // Whole numbers in their own order, then names.
        let mut names: Vec<String> = classes.into_keys().collect();
        names.sort_by_cached_key(|name| (name.parse::<i64>().unwrap_or(i64::MAX), name.clone()));
        Ok(Self::Classes(names.into_iter().zip(0..).collect()))
    }

    /// Whether the class names of this many sequences may be numbers to predict: most of them occur once.
    pub(super) fn look_like_values(&self, sequences: usize) -> bool {
        match self {
            Self::Classes(classes) => {
                2 * classes.len() > sequences
                    && classes.keys().all(|name| name.parse::<f64>().is_ok_and(f64::is_finite))
            }
            Self::Values { .. } => false,
        }
    }

    /// A remark on classes with a single example: it is used for training, so they are never tested.
    pub(super) fn rare<'a>(&self, records: impl Iterator<Item = &'a Record>) -> Option<Note> {
        let Self::Classes(classes) = self else { return None };
        let mut counts = vec![0; classes.len()];
        records.for_each(|record| counts[self.class(&record.label) as usize] += 1);
        let rare = |class: &u32| counts[*class as usize] == 1;
        let mut names: Vec<(&u32, &String)> =
            classes.iter().map(|(name, class)| (class, name)).filter(|(c, _)| rare(c)).collect();
        names.sort();
        let first = names.first()?.1;
        let beginning = match names.len() {
            1 => format!("the class {first:?} has one sequence"),
            n => format!("{n} of {} classes have one sequence, such as {first:?}", classes.len()),
        };
        let numbers = match self.look_like_values(counts.iter().sum()) {
            true => "; if the labels are numbers to predict, set task.target=value",
            false => "",
        };
        Some(format!("{beginning}: neither validation nor test has it{numbers}").into())
    }

    pub(super) fn kind(&self) -> TargetKind {
        match self {
            Self::Values { outputs } => TargetKind::Values { outputs: *outputs },
            Self::Classes(classes) => {
                let mut labels: Vec<&String> = classes.keys().collect();
                labels.sort_by_key(|name| classes[*name]);
                TargetKind::Class { labels: labels.into_iter().cloned().collect() }
            }
        }
    }

    /// The name of a class.
    pub(super) fn name(&self, class: u32) -> &str {
        match self {
            Self::Classes(classes) => {
                classes.iter().find(|(_, number)| **number == class).map_or("", |(name, _)| name)
            }
            Self::Values { .. } => "",
        }
    }

    /// Number of the class; 0 when values are to be predicted.
    pub(super) fn class(&self, label: &Label) -> u32 {
        match self {
            Self::Classes(classes) => class_name(label).map_or(0, |name| classes[&name]),
            Self::Values { .. } => 0,
        }
    }

    pub(super) fn target(&self, label: &Label) -> Target {
        match self {
            Self::Classes(_) => Target::Class(self.class(label)),
            Self::Values { .. } => Target::Values(values(label).unwrap_or_default()),
        }
    }
}

fn fault(path: &Path, record: &Record, what: &str) -> Error {
    let place = format!(" ({})", record.name);
    Error::Content {
        path: path.to_owned(),
        place,
        what: format!("the label {} {what}", record.label),
    }
}

/// The class that a label names; whole numbers are written one way (`1.0` is `1`), but `01` is a name.
fn class_name(label: &Label) -> Option<String> {
    let whole = |x: &f64| x.fract() == 0.0 && x.abs() < 1e15;
    let is_code = |name: &str| {
        let digits = name.trim_start_matches(['+', '-']);
        digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit())
    };
    match label {
        Label::Name(name) if is_code(name) => Some(name.clone()),
        Label::Name(name) => Some(match name.parse::<f64>().ok().filter(whole) {
            Some(number) => (number as i64).to_string(),
            None => name.clone(),
        }),
        Label::Numbers(numbers) => match numbers[..] {
            [number] => Some(number.to_string()),
            _ => None,
        },
    }
}

/// The numbers that a label holds.
fn values(label: &Label) -> Option<Vec<f32>> {
    match label {
        Label::Numbers(numbers) => Some(numbers.clone()),
        Label::Name(name) => name.parse().ok().filter(|v: &f32| v.is_finite()).map(|v| vec![v]),
    }
}
