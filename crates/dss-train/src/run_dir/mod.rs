//! The directory of a run, and who may write into it.
//!
//! ```text
//! config.toml         the complete configuration
//! metrics.jsonl       one JSON object per line: training, validation, test
//! best.safetensors    the model with the best validation score
//! last/               everything needed to go on bit for bit:
//!   model.safetensors       weights and running statistics
//!   optimiser.safetensors   moments of AdamW
//!   state.json              where the run stands
//! environment.json    machine and program of the last part
//! report.html
//! ```
//!
//! Every file is either old or new, never half written; `last/` is exchanged as a whole.

pub(crate) mod atomic;
mod differences;
mod metrics;
mod state;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Error, Result};

pub use atomic::write_file;
pub(crate) use differences::FREE;
pub use differences::between as differences;
pub(crate) use metrics::Metrics;
pub use metrics::{EvalRecord, Record, TrainRecord, read_metrics};
pub use state::{Best, State};

/// The files of a run directory that are written whole.
const FILES: [&str; 4] = ["config.toml", "best.safetensors", "environment.json", "report.html"];

/// A run directory.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    /// Directories that this process made for the run, innermost first.
    made: Vec<PathBuf>,
    /// Held while this process may write; the system lets go of it however the process ends.
    _lock: Option<File>,
}

impl RunDir {
    /// The paths of a run directory, to read from.
    pub fn new(root: &Path) -> Self {
        Self { root: root.into(), made: Vec::new(), _lock: None }
    }

    /// Claims a directory for a new run: made if need be, refused if it holds a run already.
    ///
    /// A directory that was made here and holds no run when the value is dropped is removed.
    pub fn create(root: &Path) -> Result<Self> {
        let mut run = Self::new(root);
        let missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        run.made = root.ancestors().take_while(missing).map(Path::to_path_buf).collect();
        fs::create_dir_all(root).map_err(Error::io("cannot make the directory", root))?;
        if run.holds_run() {
            return Err(Error::RunExists { dir: root.into() });
        }
        run.lock()?;
        run.sweep();
        Ok(run)
    }

    /// Claims the directory of a run to go on with, and finishes a save that was cut short.
    ///
    /// `config` must be what the run was started with; `epochs` and `max_steps` may have grown, and the data moved.
    pub fn resume(root: &Path, config: &Config) -> Result<Self> {
        let mut run = Self::new(root);
        if !run.config().exists() {
            return Err(Error::NothingToResume { dir: root.into() });
        }
        let keys = differences::between(&Config::from_run(root)?, config);
        if !keys.is_empty() {
            return Err(Error::ConfigDiffers { dir: root.into(), keys });
        }
        run.lock()?;
        atomic::recover(&run.last())?;
        run.sweep();
        Ok(run)
    }

    fn lock(&mut self) -> Result<()> {
        let path = self.root.join(".lock");
        let file = File::create(&path).map_err(Error::io("cannot write", &path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::RunBusy { dir: self.root.clone() }),
            // Some file systems have no locks: then two runs in one directory go unnoticed.
            Ok(()) | Err(TryLockError::Error(_)) => {
                self._lock = Some(file);
                Ok(())
            }
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
        if self.made.is_empty() || self.holds_run() {
            return;
        }
        self._lock = None;
        for file in [".lock", "metrics.jsonl"] {
            let _ = fs::remove_file(self.root.join(file));
        }
        for dir in &self.made {
            // Fails, as it should, if there is anything else in it.
            let _ = fs::remove_dir(dir);
        }
    }
}
