//! The one error type of the crate.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a training: what went wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// A file or directory could not be read or written.
    #[error("{doing} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// The operation that failed: "cannot write", "cannot read".
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of a run directory does not hold what it should.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Expected and found content.
        what: String,
    },
    /// The best model of a run is missing or not the one expected.
    #[error(
        "the run's best model cannot be used: {what}; put {} back as it was, or start a new run in another \
         directory with --out",
        path.display()
    )]
    NoBest {
        /// Where it should be.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The directory already contains a run.
    #[error(
        "{} already contains a run: continue it with --resume, or choose another directory with --out",
        dir.display()
    )]
    RunExists {
        /// The run directory.
        dir: PathBuf,
    },
    /// Another process is writing to the directory.
    #[error("{} is in use by another process: wait for it to end, or choose another directory with --out", dir.display())]
    RunBusy {
        /// The run directory.
        dir: PathBuf,
    },
    /// A file that is not a run's would be overwritten.
    #[error(
        "{} would be overwritten, but is not part of a run: move it away, or choose another directory with --out",
        path.display()
    )]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// A file of a run directory is a link.
    #[error(
        "{} is a link, and a run writes only inside its own directory: put the file itself there before you resume",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// There is nothing to resume.
    #[error(
        "{} has no saved state to resume: start a new run, without --resume and in another directory",
        dir.display()
    )]
    NothingToResume {
        /// The run directory.
        dir: PathBuf,
    },
    /// A run can only be resumed with the settings it was started with.
    #[error(
        "the run in {} was started with other settings ({}): resume it with the same ones (train.epochs, \
         train.min_steps and train.max_steps may grow, {} may change), or choose another directory with --out",
        dir.display(), keys.join(", "), crate::run_dir::FREE.join(", ")
    )]
    ConfigDiffers {
        /// The run directory.
        dir: PathBuf,
        /// `key: old -> new` of each difference.
        keys: Vec<String>,
    },
    /// The data are not those the run began with.
    #[error(
        "the data have changed since the run began (split {now}, was {then}): \
         name the same data with --data, --set task.path=PATH or --set task.dir=DIR, or start a new run"
    )]
    DataDiffers {
        /// Split hash of the run.
        then: String,
        /// Split hash of the data now.
        now: String,
    },
    /// The loss, a gradient or a parameter is not finite.
    #[error("step {step}: {what}; {}{}", place, hint(*group, saved))]
    NonFinite {
        /// The optimiser step, counted from 1.
        step: u64,
        /// The first symptom, such as `the loss is NaN`.
        what: String,
        /// Where the first bad value is.
        place: String,
        /// The parameter group it belongs to; `None` if only activations overflowed.
        group: Option<dss_nn::ParamGroup>,
        /// The checkpoint that is kept, and its step.
        saved: Option<(PathBuf, u64)>,
    },
    /// A model and the data it was given do not belong together.
    #[error("the model and the data do not fit: {0}")]
    Mismatch(String),
    /// A checkpoint that a training cannot start from.
    #[error("cannot start from {}: {what}", path.display())]
    Transfer {
        /// The checkpoint.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// The run would not fit into memory.
    #[error(
        "the run needs about {needed_mb} MB of memory, but {available_mb} MB are available: lower train.batch{}, \
         model.h, model.layers or the length of the sequences ({length} here)",
        if *evaluation { " and train.eval_batch" } else { "" }
    )]
    Memory {
        /// Memory it needs, in MB.
        needed_mb: u64,
        /// What there is, in MB.
        available_mb: u64,
        /// L of the task.
        length: usize,
        /// Whether evaluations have larger batches than training.
        evaluation: bool,
    },
    /// The batch of an evaluation would need more memory than there is.
    #[error(
        "{batch} sequences at once would take about {needed_mb} MB of memory, but {available_mb} MB are free: \
         ask for fewer with --batch"
    )]
    Batch {
        /// Memory it needs, in MB.
        needed_mb: u64,
        /// What there is, in MB.
        available_mb: u64,
        /// Sequences at once.
        batch: usize,
    },
    /// The thread pool could not be started.
    #[error("cannot start {threads} threads: {what}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        what: String,
    },
    /// Another rank of the group failed.
    #[error("rank {rank} on {host}: {what}")]
    Peer {
        /// Its number.
        rank: usize,
        /// Its machine.
        host: String,
        /// What it said.
        what: String,
    },
    /// The ranks of the group cannot work together.
    #[error("{0}")]
    Group(String),
    /// Other ranks of the group no longer answer.
    #[error("lost contact with other ranks: {what}")]
    Lost {
        /// What was seen.
        what: String,
    },
    /// From the model crate.
    #[error(transparent)]
    Model(#[from] dss_nn::Error),
    /// From the data crate.
    #[error(transparent)]
    Data(#[from] dss_data::Error),
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Says which file an I/O error belongs to.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }

    /// What the model crate says of a file that it could not write.
    pub(crate) fn writing(error: dss_nn::Error) -> Self {
        match error {
            dss_nn::Error::Io { path, source } => Self::Io { doing: "cannot write", path, source },
            other => other.into(),
        }
    }
}

/// What to do about an I/O error.
fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (free some space; what was saved before is intact)"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " (choose a directory you may write to with --out)"
        }
        _ => "",
    }
}

/// What to try after a NaN, and what is left.
fn hint(group: Option<dss_nn::ParamGroup>, saved: &Option<(PathBuf, u64)>) -> String {
    use dss_nn::ParamGroup::*;
    let rate = match group {
        Some(Lambda) => "train.lr_lambda",
        Some(Delta) => "train.lr_delta (or train.delta_log_bound)",
        Some(W) => "train.lr_w",
        Some(Other) | None => "train.lr",
    };
    let kept = match saved {
        Some((path, step)) => format!("; {} keeps the state of step {step}", path.display()),
        None => String::new(),
    };
    format!("\n  try a lower {rate}, train.clip = 1, or train.warmup_steps{kept}")
}
