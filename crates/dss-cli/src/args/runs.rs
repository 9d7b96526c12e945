//! Runs: train, eval, predict, inspect.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use dss_data::TaskConfig;
use dss_train::config::{Request, Setting};
use dss_train::group::{WAIT, WAIT_DATA};

use super::values::{positive, threads};
use super::{ComputeArgs, ThreadsArg};
use crate::failure::Failure;

/// `dss train`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss train listops
  dss train listops --preset paper --out runs/big --threads 8
  dss train listops --model s4
  dss train listops --ablation random-init
  dss train smnist --data ~/data --set variant=exp --set train.epochs=20
  dss train files mine.csv --set label=kind
  dss train lm --data book.txt
  dss train forecast --data table.csv --set column=price
  dss pretrain text --data ~/data && dss train text --data ~/data --from runs/text-laptop-pretrain-0
  dss train files --set path=mine.csv --from RUN --set freeze=2 --set depth_factor=0.7
  dss train listops --resume                       resume the newest run of the task
  dss train listops --resume --out runs/big --set epochs=80
  dss train files --resume --set path=moved/mine.csv
  dss train delay --json | jq -c 'select(.event == \"eval\")'
  mpirun -np 8 dss train listops --mpi --set shards=8      several processes: docs/cluster.md

Ctrl-C or SIGTERM finishes the current step, saves the state and exits with code 130; a second one quits at once.
--resume also continues a run that was killed in any other way, to the same bits.
With --json every line of standard output is one object: event is loading, start, step, eval, \
checkpoint, note or end.")]
pub struct TrainArgs {
    #[command(flatten)]
    pub settings: Request,
    /// The data, for tasks with the setting path (files, lm, forecast): short for --set task.path=PATH
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// Directory with downloaded data sets; for files, lm and forecast also a file to train on
    #[arg(long, value_name = "PATH", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// The run directory [default: runs/TASK-PRESET[-MODEL][-ABLATION]-SEED, with a number appended if that exists]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue the run in --out, or the newest run of the task
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub compute: ComputeArgs,
    #[command(flatten)]
    pub group: GroupArgs,
    /// Also write an event file for TensorBoard: short for --set train.tensorboard=true
    #[arg(long)]
    pub tensorboard: bool,
    /// Events as JSON on standard output
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// No progress, only the result
    #[arg(long)]
    pub quiet: bool,
}

/// Several processes.
#[derive(Clone, Debug, Args)]
pub struct GroupArgs {
    /// Train together with the other processes of this MPI job
    #[arg(long)]
    pub mpi: bool,
    /// Seconds to wait for the other processes before the job ends
    #[arg(long, default_value_t = WAIT, value_name = "SECONDS", requires = "mpi", value_parser = clap::value_parser!(u64).range(1..))]
    pub mpi_wait: u64,
    /// Seconds to wait for them while data are loaded or generated
    #[arg(long, default_value_t = WAIT_DATA, value_name = "SECONDS", requires = "mpi", value_parser = clap::value_parser!(u64).range(1..))]
    pub mpi_wait_data: u64,
}

impl TrainArgs {
    /// The request, including the data named by the second argument.
    pub fn request(&self) -> Result<Request, Failure> {
        let mut request = self.settings.clone();
        if self.tensorboard {
            request.sets.push(Setting::new("train.tensorboard", true));
        }
        let Some(path) = &self.path else { return Ok(request) };
        request.sets.insert(0, path_setting(&request.task, path, self.data.as_deref())?);
        Ok(request)
    }
}

/// The path given after the task, as a setting.
pub fn path_setting(task: &str, path: &Path, data: Option<&Path>) -> Result<Setting, Failure> {
    let keys = TaskConfig::key_docs(task).unwrap_or_default();
    if !keys.iter().any(|(key, _)| *key == "path") {
        let message = format!("the task {task} does not take a file, but found {}", path.display());
        return Err(Failure::usage(message).hint("name the folder of its data with --data DIR"));
    }
    if let Some(data) = data.filter(|data| data.is_file()) {
        let message = format!("two files: {} and --data {}", path.display(), data.display());
        return Err(Failure::usage(message).hint("leave one of them out"));
    }
    Ok(Setting::new("task.path", path.to_string_lossy().into_owned()))
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
  dss eval runs/smnist-laptop-0 --split val
  dss eval speech.safetensors --data ~/data
  dss eval runs/files-laptop-0 --set path=moved/mine.csv
  dss eval runs/listops-laptop-0 --json | jq .accuracy")]
pub struct EvalArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// Which part of the data
    #[arg(long, value_enum, default_value = "test")]
    pub split: Split,
    /// Directory with downloaded data sets; for files, lm and forecast also a file [default: where the run found them]
    #[arg(long, value_name = "PATH", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// A setting of [task] that overrides the run's own, such as path=FILE for moved data; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    /// Sequences per batch [default: as in the run]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub batch: Option<usize>,
    #[command(flatten)]
    pub compute: ComputeArgs,
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
  dss predict runs/files-laptop-0 texts/ --json
  dss predict runs/speech-laptop-0 - < word.wav
  dss predict speech.safetensors clips/*.wav
  dss predict runs/lm-laptop-0 a.txt             nats and bits per token of a text
  dss predict runs/forecast-laptop-0 a.csv       the values after the end of a table, as CSV

Each sequence gets one line: where it comes from (such as new.csv:3), the answer and, for classes, its probability.
Tasks with an answer at every position get one line per position. The files have the layout of the task's own data, \
without labels; pictures may also be PNG. How a table was read is printed to standard error.")]
pub struct PredictArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// Files with sequences, or folders of them; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Sequences per batch
    #[arg(long, default_value = "32", value_name = "N", value_parser = positive)]
    pub batch: usize,
    /// Device to compute on
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub device: String,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// What standard input is [default: an array or a table if the model reads numbers, else one text]
    #[arg(long, value_enum, value_name = "KIND")]
    pub format: Option<PipedKind>,
    /// One JSON object per sequence, with all probabilities
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// A CSV table with a header, with all probabilities
    #[arg(long)]
    pub csv: bool,
}

/// What comes from standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PipedKind {
    /// A table
    Csv,
    /// A table separated by tabs, without quotes
    Tsv,
    /// One text
    Txt,
}

impl PipedKind {
    /// The ending of a file of this kind.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Txt => "txt",
        }
    }
}

/// `dss inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss inspect runs/listops-laptop-0
  dss inspect runs/listops-laptop-0/last/model.safetensors --out pictures
  dss inspect runs/listops-laptop-0 --export npy --out arrays
  dss inspect runs/listops-laptop-0 --json | jq .peaks.argmax_95

The pictures (SVG and PNG) of a run go to RUN/inspect and into its report.html; those of a file need --out.
docs/inspect.md says how to read tables and pictures.")]
pub struct InspectArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
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
    #[command(flatten)]
    pub threads: ThreadsArg,
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
