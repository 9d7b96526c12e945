//! The one error type of the crate.

/// What went wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a checkpoint, or a damaged one.
    #[error("{0}")]
    File(String),
    /// An intact checkpoint whose tensors are not those of a model that can be imported.
    #[error("{0}")]
    Model(String),
    /// A model with an option that ours do not have.
    #[error("{option}: {what}")]
    Unsupported {
        /// The option, as the other program names it.
        option: String,
        /// Why it is not supported.
        what: String,
    },
    /// A setting that neither the tensors nor a configuration give.
    #[error("{0}")]
    Unknown(String),
    /// A model that the other format cannot hold.
    #[error("this model cannot be written as {format}: {what}")]
    Export {
        /// The format.
        format: &'static str,
        /// Why not.
        what: String,
    },
    /// The imported model is not valid.
    #[error(transparent)]
    Format(#[from] dss_format::Error),
    /// Numbers that the kernels refuse.
    #[error(transparent)]
    Kernels(#[from] dss_kernels::Error),
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn file(what: impl Into<String>) -> Self {
        Self::File(what.into())
    }

    pub(crate) fn model(what: impl Into<String>) -> Self {
        Self::Model(what.into())
    }

    /// The same error, with a remark in brackets.
    pub(crate) fn with(self, remark: &str) -> Self {
        let more = |what: String| format!("{what} ({remark})");
        match self {
            Self::File(what) => Self::File(more(what)),
            Self::Model(what) => Self::Model(more(what)),
            Self::Unsupported { option, what } => Self::Unsupported { option, what: more(what) },
            Self::Unknown(what) => Self::Unknown(more(what)),
            other => other,
        }
    }

    pub(crate) fn unsupported(option: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Unsupported { option: option.into(), what: what.into() }
    }
}
