//! The one error type of the crate.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From training, its configuration, its run directories, the model or the data.
    #[error(transparent)]
    Train(#[from] dss_train::Error),
    /// A grid of runs that cannot be worked on as asked.
    #[error("{}: {what}", dir.display())]
    Grid {
        /// Its directory.
        dir: PathBuf,
        /// The obstacle.
        what: String,
    },
    /// The kernels of a model would need more memory than there is.
    #[error(
        "{}: the kernels at length {len} would take about {needed_mb} MB of memory, but {available_mb} MB are free",
        path.display()
    )]
    Kernels {
        /// The checkpoint.
        path: PathBuf,
        /// L.
        len: usize,
        /// Memory it needs, in MB.
        needed_mb: u64,
        /// What there is, in MB.
        available_mb: u64,
    },
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Says which file an I/O error belongs to.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let of_file = dss_train::Error::io(doing, path);
        move |source| of_file(source).into()
    }

    /// A file does not hold what it should.
    pub(crate) fn damaged(path: &Path, what: impl ToString) -> Self {
        dss_train::Error::Damaged { path: path.into(), what: what.to_string() }.into()
    }
}

impl From<dss_nn::Error> for Error {
    fn from(error: dss_nn::Error) -> Self {
        Self::Train(error.into())
    }
}

impl From<dss_data::Error> for Error {
    fn from(error: dss_data::Error) -> Self {
        Self::Train(error.into())
    }
}
