//! `dss data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dss_train::config::Setting;
use dss_train::config::clap_values::tasks;

use super::values::positive;
use super::{DataArg, ThreadsArg};

/// `dss data`
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Show which data sets are present, and how to get the others
    #[command(after_help = "\
Examples:
  dss data list --data ~/data
  dss data list --json | jq -r 'select(.state == \"missing\") | .get.command'")]
    List(DataListArgs),
    /// Download the published data of a task
    #[command(after_help = "\
Examples:
  dss data get text --to ~/data
  dss data get smnist --data ~/data --url http://mirror.example/mnist
  dss data get speech --data ~/data --url http://mirror.example/speech_commands_v0.01.tar.gz

The archive appears in the folder once it is complete and its SHA-256 is right; there is no need to unpack it. Until \
then it is called NAME.part. After Ctrl-C or a lost connection, the same command continues. A file with a wrong \
SHA-256 is kept as NAME.bad. Exit code 130: interrupted.")]
    Get(DataGetArgs),
    /// Generate data and write them to files, in the layout of the published ones
    #[command(after_help = "\
Examples:
  dss data make listops --out listops
  dss data make pathfinder --data ~/data --count 20000 --seed 7
  dss data make path-x --out ~/data --count 1000")]
    Make(DataMakeArgs),
    /// Check the data of a task: counts, checksums, class balance, a sample, faulty files
    #[command(after_help = "\
Examples:
  dss data check text --data ~/data
  dss data check files mine.csv
  dss data check listops --preset laptop --json | jq .split_hash

Exit code 1: something is wrong with the data.")]
    Check(DataCheckArgs),
}

/// `dss data list`
#[derive(Debug, Args)]
pub struct DataListArgs {
    #[command(flatten)]
    pub data: DataArg,
    /// One JSON object per task
    #[arg(long)]
    pub json: bool,
}

/// `dss data get`
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "download"), allow(dead_code))]
pub struct DataGetArgs {
    /// The task
    #[arg(value_parser = tasks())]
    pub task: String,
    #[command(flatten)]
    pub data: DataArg,
    /// Destination folder [default: that of --data]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Another URL for the archive, or for the folder of a task with several files
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The expected SHA-256 [default: that of the published file, if known]
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
}

/// `dss data make`
#[derive(Debug, Args)]
pub struct DataMakeArgs {
    /// The task
    #[arg(value_parser = tasks())]
    pub task: String,
    #[command(flatten)]
    pub data: DataArg,
    /// The folder to write to [default: that of --data, or the current one; for listops, a folder inside it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Number of examples, over all splits [default: as many as are published]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub count: Option<usize>,
    /// Seed of the generator
    #[arg(long, default_value = "1112", value_name = "S")]
    pub seed: u64,
    /// Width and height of the pictures [default: those of the task]
    #[arg(long, value_name = "PIXELS", value_parser = positive)]
    pub size: Option<usize>,
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// `dss data check`
#[derive(Debug, Args)]
pub struct DataCheckArgs {
    /// The task
    #[arg(value_parser = tasks())]
    pub task: String,
    #[command(flatten)]
    pub data: DataArg,
    /// The data, for tasks with the setting path (files, lm, forecast): short for --set path=PATH
    pub path: Option<PathBuf>,
    /// Use the settings of a preset [default: those of the task, with all of its data]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// A setting of [task], such as dir=DIR; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// The report as a JSON object
    #[arg(long)]
    pub json: bool,
}
