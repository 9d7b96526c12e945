//! Faulty files: errors, or counted and left out if the user asks for it (`task.skip_bad`).

use crate::note::{Note, TOLD};
use crate::{Error, Result};

/// Faulty files and their faults.
pub(crate) struct Skips {
    skip_bad: bool,
    count: usize,
    faults: Vec<String>,
}

impl Skips {
    pub(crate) fn new(skip_bad: bool) -> Self {
        Self { skip_bad, count: 0, faults: Vec::new() }
    }

    /// `None` for a faulty file that is skipped. Refusals of the operating system are never skipped.
    pub(crate) fn check<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error @ Error::Content { .. }) if self.skip_bad => {
                self.count += 1;
                if self.faults.len() < TOLD {
                    self.faults.push(error.to_string());
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A note about the skipped files.
    pub(crate) fn note(&self) -> Option<Note> {
        let (skipped, faults) = (self.count, self.faults.clone());
        (skipped > 0).then_some(Note::Skipped { skipped, faults })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn fault() -> Result<u8> {
        Err(Error::content(Path::new("a.png"), "no picture"))
    }

    #[test]
    fn faults_stop_or_are_counted() {
        let mut strict = Skips::new(false);
        assert_eq!(strict.check(Ok(3)).unwrap(), Some(3));
        assert!(strict.check(fault()).is_err());
        assert_eq!(strict.note(), None);

        let mut lenient = Skips::new(true);
        assert_eq!(lenient.check(fault()).unwrap(), None);
        assert_eq!(
            lenient.note().unwrap().to_string(),
            "1 faulty entry skipped: a.png: no picture"
        );
        let refused = std::io::Error::other("disk");
        assert!(lenient.check::<u8>(Err(Error::io("read", Path::new("a"))(refused))).is_err());
        (0..TOLD).for_each(|_| drop(lenient.check(fault())));
        assert!(
            lenient
                .note()
                .unwrap()
                .to_string()
                .starts_with("21 faulty entries skipped, the first 20: ")
        );
    }
}
