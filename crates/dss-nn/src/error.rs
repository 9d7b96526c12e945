//! Errors, each with what to do about it.

use std::path::PathBuf;

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings or a file that do not describe a model.
    #[error(transparent)]
    Format(#[from] dss_format::Error),
    /// An argument that the operation cannot take.
    #[error("{op}: {what}")]
    Invalid {
        /// The operation.
        op: &'static str,
        /// What was expected and what came.
        what: String,
    },
    /// What this model does not do: a length, a stream, another rate.
    #[error("{0}")]
    Refused(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not a checkpoint of this crate.
    #[error("{}: {what}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What was expected and what is there.
        what: String,
    },
    /// The numerics refused.
    #[error(transparent)]
    Kernels(#[from] dss_kernels::Error),
}

impl Error {
    pub(crate) fn config(keys: &'static [&'static str], what: impl Into<String>) -> Self {
        dss_format::Error::Setting { keys, what: what.into() }.into()
    }

    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused(what.into())
    }

    pub(crate) fn invalid(op: &'static str, what: impl Into<String>) -> Self {
        Self::Invalid { op, what: what.into() }
    }
}
