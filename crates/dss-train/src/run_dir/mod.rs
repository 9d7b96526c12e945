//! The directory of a run, and who may write into it.
//!
//! ```text
//! config.toml         the complete configuration
//! metrics.jsonl       one JSON object per line: training, validation, test
//! best.safetensors    the model with the best validation score
//! last/               everything needed to resume bit for bit:
//!   model.safetensors       weights and running statistics
//!   average.safetensors     their average, with train.average
//!   optimiser.safetensors   moments of AdamW
//!   carry.safetensors       states of the streams, with train.carry
//!   state.json              how far the run is
//!   config.toml             the configuration again
//!   SHA256SUMS              checksums of these files
//! last.old/           the save before, for when a file of last/ cannot be read
//! answers.json        what the best model says about some test examples
//! environment.json    machine and program of the last part
//! events.out.tfevents.dss   the metrics for TensorBoard, with train.tensorboard
//! report.html
//! ```
//!
//! Every file is either old or new, never half written; `last/` is exchanged as a whole.

pub(crate) mod atomic;
mod differences;
mod metrics;
mod ownership;
mod state;
pub(crate) mod sums;
mod tensorboard;

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Error, Result};

pub use atomic::write_file;
pub(crate) use differences::FREE;
pub use differences::between as differences;
pub(crate) use metrics::{Metrics, stored_test};
use ownership::Claim;
use tensorboard::FILE as EVENTS;

pub use metrics::{EvalRecord, Record, TrainRecord, read_metrics};
pub use state::{BestResult, TrainingState};

/// The files of a run directory that are written whole.
const FILES: [&str; 6] =
    ["config.toml", "best.safetensors", "answers.json", "environment.json", "report.html", EVENTS];

/// `last/`, and the names it has while it is exchanged.
const LAST: [&str; 4] = ["last", "last.tmp", "last.new", "last.old"];

/// A run directory.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    /// Directories that this process made for the run, innermost first.
    made: Vec<PathBuf>,
    /// Held while this process may write.
    claim: Option<Claim>,
    /// Whether a file of that name was there before the run.
    had_metrics: bool,
}

impl RunDir {
    /// The paths of a run directory, to read from.
    pub fn new(root: &Path) -> Self {
        Self { root: root.into(), made: Vec::new(), claim: None, had_metrics: true }
    }

    /// Claims a directory for a new run: made if need be, refused if it holds a run already, or a file that the run
    /// would overwrite.
    ///
    /// A directory that was made here and holds no run when the value is dropped is removed.
    pub fn create(root: &Path) -> Result<Self> {
        let (claim, made) = Claim::take(root)?;
        let mut run = Self::new(root);
        (run.claim, run.made) = (Some(claim), made);
        if run.holds_run() {
            return Err(Error::RunExists { dir: root.into() });
        }
        run.had_metrics = run.metrics().symlink_metadata().is_ok();
        run.sweep();
        if let Some(path) = run.first_foreign() {
            return Err(Error::InTheWay { path });
        }
        Ok(run)
    }

    /// Claims the directory of a run to resume, and finishes a save that was cut short.
    ///
    /// `config` must be what the run was started with; `epochs` and `max_steps` may have grown, and the data moved.
    pub fn resume(root: &Path, config: &Config) -> Result<Self> {
        let mut run = Self::new(root);
        if !run.config().exists() {
            return Err(Error::NothingToResume { dir: root.into() });
        }
        run.refuse_links()?;
        let keys = differences::between(&Config::from_run(root)?, config);
        if !keys.is_empty() {
            return Err(Error::ConfigDiffers { dir: root.into(), keys });
        }
        run.claim = Some(Claim::take(root)?.0);
        atomic::recover(&run.last())?;
        run.sweep();
        Ok(run)
    }

    /// The first file that a new run would overwrite. A file of metrics without a line is what a run leaves that was
    /// killed when it had hardly begun.
    fn first_foreign(&self) -> Option<PathBuf> {
        let empty = |path: &Path| {
            path.symlink_metadata().is_ok_and(|data| data.is_file() && data.len() == 0)
        };
        // Events are made of the metrics and may be left by the same run.
        let names = FILES.into_iter().filter(|name| *name != EVENTS);
        let names = names.chain(["metrics.jsonl"]).chain(LAST);
        let mut paths = names.map(|name| self.root.join(name));
        paths.find(|path| {
            path.symlink_metadata().is_ok() && !(path.ends_with("metrics.jsonl") && empty(path))
        })
    }

    /// What a run reads and writes is in its directory: a link, in a directory that someone else made, may lead to
    /// anything.
    fn refuse_links(&self) -> Result<()> {
        let names = FILES.into_iter().chain([".lock", "metrics.jsonl"]).chain(LAST);
        let paths = names.map(|name| self.root.join(name));
        let saves = LAST.iter().flat_map(|dir| fs::read_dir(self.root.join(dir))).flatten();
        let saved = saves.flatten().map(|entry| entry.path());
        match paths.chain(saved).find(|path| path.is_symlink()) {
            Some(path) => Err(Error::Link { path }),
            None => Ok(()),
        }
    }

    /// Removes temporary files that a killed process left; that it may fail changes nothing.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let ours = name.to_str().is_some_and(|name| atomic::is_temporary(name, &FILES));
            if ours && entry.path().is_file() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Whether a run was begun here.
    pub fn holds_run(&self) -> bool {
        self.config().exists() || self.last().exists()
    }

    /// Whether there is a save to resume from.
    pub(crate) fn has_save(&self) -> bool {
        self.last().exists() || atomic::previous(&self.last()).exists()
    }

    /// Whether a run has come further here than its first save.
    pub(crate) fn has_results(&self) -> bool {
        let has_lines = fs::metadata(self.metrics()).is_ok_and(|data| data.len() > 0);
        has_lines || self.best().exists()
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.toml`.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// `metrics.jsonl`.
    pub fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// `best.safetensors`.
    pub fn best(&self) -> PathBuf {
        self.root.join("best.safetensors")
    }

    /// The best checkpoint of a run directory; any other path is a checkpoint itself.
    pub fn checkpoint_at(path: &Path) -> PathBuf {
        if path.is_dir() { Self::new(path).best() } else { path.to_owned() }
    }

    /// `last/`.
    pub fn last(&self) -> PathBuf {
        self.root.join("last")
    }

    /// Writes `config.toml`.
    pub fn write_config(&self, config: &Config) -> Result<()> {
        atomic::write_file(&self.config(), config.to_annotated_toml().as_bytes())
    }
}

/// A run that failed before it had anything to save leaves nothing behind.
impl Drop for RunDir {
    fn drop(&mut self) {
        let Some(claim) = self.claim.take() else { return };
        if self.holds_run() {
            return;
        }
        if !self.had_metrics {
            let _ = fs::remove_file(self.metrics());
        }
        claim.end();
        ownership::remove_dirs(&self.made);
    }
}
