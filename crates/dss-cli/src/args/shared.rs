//! Options of several commands.

use std::path::PathBuf;

use clap::Args;

use super::values::threads;

/// Where data are.
#[derive(Debug, Args)]
pub struct DataArg {
    /// Directory with downloaded data sets
    #[arg(id = "data", long = "data", value_name = "DIR", env = "DSS_DATA")]
    pub dir: Option<PathBuf>,
}

/// How many threads compute.
#[derive(Debug, Args)]
pub struct ThreadsArg {
    /// Threads [default: one per core]
    #[arg(id = "threads", long = "threads", value_name = "N", value_parser = threads)]
    pub count: Option<usize>,
}

/// What computes.
#[derive(Debug, Args)]
pub struct ComputeArgs {
    /// Device to compute on
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub device: String,
    #[command(flatten)]
    pub threads: ThreadsArg,
}
