//! The one error type of the crate.

use std::path::PathBuf;

/// What went wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The bytes are not a model that this version can run.
    #[error("this is not a model that can be run: {0}")]
    File(String),
    /// The model takes whole sequences only.
    #[error("this model cannot run as a stream: {0}; give it whole sequences")]
    CannotStream(String),
    /// An input or a buffer does not fit the model. Nothing was changed.
    #[error("{0}")]
    Input(String),
    /// The stream, or the sequence, is longer than the model can take. Nothing was changed.
    #[error(
        "the model ends after {length} positions: {why}. Reset the state to begin a new sequence, or take a model \
         without this limit"
    )]
    PastEnd {
        /// Positions that can be computed.
        length: usize,
        /// Why it ends there.
        why: String,
    },
    /// The numbers left the range of f32.
    #[error(
        "the numbers overflowed: the input is far beyond what the model was trained on. Scale it, and reset the state"
    )]
    Overflow,
    /// Bytes that should be a saved state are not, or are one of another model.
    #[error("this is not a saved state of this model: {0}")]
    State(String),
    /// Numbers that the kernels refuse.
    #[error(transparent)]
    Kernels(#[from] dss_kernels::Error),
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn input(what: impl Into<String>) -> Self {
        Self::Input(what.into())
    }

    pub(crate) fn cannot_stream(why: impl ToString) -> Self {
        Self::CannotStream(why.to_string())
    }
}

impl From<dss_format::Error> for Error {
    fn from(error: dss_format::Error) -> Self {
        match error {
            dss_format::Error::Io { path, source } => Self::Io { path, source },
            error => Self::File(error.to_string()),
        }
    }
}
