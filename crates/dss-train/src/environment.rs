//! The machine that a run is trained on: `environment.json` of the run directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::run_dir::atomic;

/// The machine and the program, as far as they affect speed and the last bits of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this program.
    pub version: String,
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Name of the processor.
    pub cpu: String,
    /// Logical cores that this process may use.
    pub cores: usize,
    /// Threads that were used.
    pub threads: usize,
    /// Processes that trained together; absent if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
    /// Vector instructions that were used.
    pub simd: String,
    /// When the run (or its last part) began: seconds since 1970.
    pub started: u64,
    /// The folder that `--data` named, as an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
}

impl Environment {
    const FILE: &str = "environment.json";

    /// This process, now, with the data folder `data`.
    pub fn current(threads: usize, data: Option<&Path>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            os: os(),
            arch: std::env::consts::ARCH.to_owned(),
            cpu: cpu(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            threads,
            processes: None,
            simd: dss_kernels::simd_name().to_owned(),
            started: now.as_secs(),
            data: data.and_then(|data| std::path::absolute(data).ok()),
        }
    }

    /// Writes `environment.json`.
    pub fn write(&self, run_dir: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self).expect("plain data");
        text.push(b'\n');
        atomic::write_file(&run_dir.join(Self::FILE), &text)
    }

    /// Reads `environment.json`; `None` if the run has none.
    pub fn read(run_dir: &Path) -> Result<Option<Self>> {
        let path = run_dir.join(Self::FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Error::Damaged { path, what: error.to_string() })
    }

    /// The data folder of a run, if it was given one.
    pub fn data_dir(run_dir: &Path) -> Option<PathBuf> {
        Self::read(run_dir).ok().flatten()?.data
    }
}

/// The name that the system gives itself.
fn os() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| std::env::consts::OS.to_owned(), |name| name.trim_matches('"').to_owned())
}

/// The name of the processor, where the system tells it in a file or a variable.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    field("model name")
        .or_else(|| field("Model"))
        .or_else(|| std::env::var("PROCESSOR_IDENTIFIER").ok())
        .unwrap_or_else(|| "unknown".to_owned())
}
