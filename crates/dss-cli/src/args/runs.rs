//! Runs: train, eval, predict, inspect.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dss_train::config::{Request, Setting};

use super::values::{positive, threads};

/// `dss train`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss train listops
  dss train listops --preset paper --out runs/big --threads 8
  dss train listops --model s4
  dss train listops --ablation random-init
  dss train smnist --data ~/data --set variant=exp --set train.epochs=20
  dss train files --set path=mine.csv --set label=kind
  dss train lm --data book.txt
  dss train forecast --data table.csv --set column=price
  dss train listops --resume                       resume the newest run of the task
  dss train listops --resume --out runs/big --set epochs=80
  dss train files --resume --set path=moved/mine.csv
  dss train delay --json | jq -c 'select(.event == \"eval\")'

Ctrl-C or SIGTERM finishes the current step, saves the state and exits with code 130; a second one quits at once.
A run that was killed in any other way goes on with --resume too, to the same bits.
With --json every line of standard output is one object: event is loading, start, step, eval,
checkpoint, note or end.")]
pub struct TrainArgs {
    #[command(flatten)]
    pub settings: Request,
    /// Directory with downloaded data sets; for lm and forecast also a file to train on
    #[arg(long, value_name = "PATH", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// The run directory [default: runs/TASK-PRESET[-MODEL][-ABLATION]-SEED, with a number if that exists]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in --out, or with the newest run of the task
    #[arg(long)]
    pub resume: bool,
    /// Where to compute
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub device: String,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Events as JSON on standard output
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// No progress, only the result
    #[arg(long)]
    pub quiet: bool,
}

/// A part of the data.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Split {
    /// Test set
    Test,
    /// Validation set
    Val,
    /// Training set
    Train,
}

/// `dss eval`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss eval runs/listops-laptop-0
  dss eval runs/smnist-laptop-0 --split val --data ~/data
  dss eval runs/files-laptop-0 --set path=moved/mine.csv
  dss eval runs/listops-laptop-0 --json | jq .accuracy")]
pub struct EvalArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Which part of the data
    #[arg(long, value_enum, default_value = "test")]
    pub split: Split,
    /// Directory with downloaded data sets
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// A setting of [task] over the run's own, such as path=FILE for data that was moved; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    /// Sequences per batch [default: as in the run]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub batch: Option<usize>,
    /// Where to compute
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub device: String,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// The scores as a JSON object, the confusion matrix included
    #[arg(long)]
    pub json: bool,
}

/// `dss predict`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss predict runs/listops-laptop-0 expressions.txt
  dss predict runs/files-laptop-0 new.csv --csv > answers.csv
  dss predict runs/files-laptop-0 a.txt b.txt --json
  dss predict runs/lm-laptop-0 a.txt             nats and bits per token of a text
  dss predict runs/forecast-laptop-0 a.csv       the values after the end of a table, as CSV

Each sequence gets one line: its place (such as new.csv:3), the answer and, for classes, its probability; a task that
asks at every position gets one line per position. The files have the layout of the task's own data, without answers.")]
pub struct PredictArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Files with sequences
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Sequences per batch
    #[arg(long, default_value = "32", value_name = "N", value_parser = positive)]
    pub batch: usize,
    /// Where to compute
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub device: String,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// One JSON object per sequence, with all probabilities
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// A CSV table with a head line
    #[arg(long)]
    pub csv: bool,
}

/// `dss inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss inspect runs/listops-laptop-0
  dss inspect runs/listops-laptop-0/last/model.safetensors --out pictures
  dss inspect runs/listops-laptop-0 --export npy --out arrays
  dss inspect runs/listops-laptop-0 --json | jq .peaks.argmax_95

The pictures (SVG and PNG) of a run go to RUN/inspect and into its report.html; those of a single checkpoint need --out.
docs/inspect.md says how to read tables and pictures.")]
pub struct InspectArgs {
    /// A run directory, or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    pub model: PathBuf,
    /// Where pictures and exported files go [default: RUN/inspect]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write kernels and parameters as files
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub export: Option<Export>,
    /// Tables only
    #[arg(long)]
    pub no_pictures: bool,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// The numbers as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// The formats of `dss inspect --export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// One NumPy file per tensor
    Npy,
    /// One file with all tensors
    Safetensors,
    /// One table per tensor
    Csv,
}
