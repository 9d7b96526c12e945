//! Errors, each with what to do about it.

use std::path::PathBuf;

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting out of its range, or two that do not go together.
    #[error("{what}")]
    Setting {
        /// Their keys, such as `model.h` or `model.mixer.n`; none for a size that is not a setting.
        keys: &'static [&'static str],
        /// Its value and the allowed ones.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The bytes are not a model file that this version can read, or the tensors not those of the model.
    #[error("{0}")]
    File(String),
}

impl Error {
    /// The settings that it is about, such as `model.h`.
    pub fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::Setting { keys, .. } => keys,
            _ => &[],
        }
    }

    pub(crate) fn setting(keys: &'static [&'static str], what: impl Into<String>) -> Self {
        Self::Setting { keys, what: what.into() }
    }

    pub(crate) fn file(what: impl Into<String>) -> Self {
        Self::File(what.into())
    }
}
