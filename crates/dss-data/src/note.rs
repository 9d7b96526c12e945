//! Remarks about the data of a task.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many faults are listed in full.
pub(crate) const TOLD: usize = 20;

/// A remark for the user. Stores of decoded data keep it too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Note {
    /// Faulty entries that were left out.
    Skipped {
        /// How many.
        skipped: usize,
        /// The faults of the first of them.
        faults: Vec<String>,
    },
    /// Anything else, in one sentence.
    Remark(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remark(text) => f.write_str(text),
            Self::Skipped { skipped, faults } => {
                write!(f, "{}: {}", skipped_entries(*skipped), faults.join("; "))
            }
        }
    }
}

/// How many faulty entries were left out, and whether all of them are listed.
pub(crate) fn skipped_entries(count: usize) -> String {
    match count {
        1 => "1 faulty entry skipped".to_owned(),
        n if n <= TOLD => format!("{n} faulty entries skipped"),
        n => format!("{n} faulty entries skipped, the first {TOLD}"),
    }
}

/// A remark on numbers, `what`, that are so large for how little they differ that single precision does not tell them
/// apart. A constant has the deviation 1.
pub(crate) fn coarse(what: &str, mean: f64, deviation: f64) -> Option<Note> {
    const STEPS: f64 = 32.0;
    let step = mean.abs() * f64::from(f32::EPSILON);
    let too_coarse = if deviation == 1.0 { step >= 2.0 } else { deviation < STEPS * step };
    too_coarse.then(|| {
        let text = format!(
            "{what} are about {mean:.4e}, where numbers of single precision are {step:.1e} apart: their differences are \
             lost; subtract a constant from them first"
        );
        text.into()
    })
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Remark(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::Remark(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_from_a_store() {
        let faults = vec!["a.png: not a picture".to_owned()];
        for note in [Note::Skipped { skipped: 1, faults }, Note::from("5 clips left out")] {
            let json = serde_json::to_string(&note).unwrap();
            assert_eq!(serde_json::from_str::<Note>(&json).unwrap(), note);
        }
    }
}
