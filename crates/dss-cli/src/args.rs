//! What can be typed.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use dss_data::TaskConfig;
use dss_train::config::{ABLATIONS, MODELS, Overlay, Request};
use dss_train::repro::{self, Budget};
use dss_train::threads::MAX_THREADS;

/// Long-sequence models with Diagonal State Spaces: train, evaluate, predict.
#[derive(Debug, Parser)]
#[command(
    name = "dss",
    version,
    about,
    after_help = "\
Examples:
  dss train listops              train on generated data; nothing to download
  dss eval runs/listops-laptop-0 score the result on the test set
  dss config show listops        every setting with a comment

Exit codes: 0 done, 1 the run failed, 2 wrong usage, 130 interrupted (go on with --resume).
Results go to standard output, progress and errors to standard error."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model and leave it, its curves and a report in a run directory
    Train(TrainArgs),
    /// Score the best checkpoint of a run
    Eval(EvalArgs),
    /// Apply the best checkpoint of a run to new sequences
    Predict(PredictArgs),
    /// Run a model on input as it arrives, and say what it thinks so far
    Stream(StreamArgs),
    /// Let a language model write
    Generate(GenerateArgs),
    /// Write the best checkpoint of a run as one file for `dss stream`, `dss-infer` or a browser
    Export(ExportArgs),
    /// Make a checkpoint of an exported file
    Import(ImportArgs),
    /// Show what a model has learned: modes, time scales, kernels, as tables and pictures
    Inspect(InspectArgs),
    /// Show settings, tasks and presets
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Find, fetch, make and check data
    #[command(subcommand)]
    Data(DataCommand),
    /// Run the paper's tables again, at a budget of your choice
    Repro(ReproArgs),
    /// Serve the page that runs models in a browser
    Web(WebArgs),
    /// Measure the speed of this machine
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  dss completions bash > ~/.local/share/bash-completion/completions/dss
  dss completions zsh > \"${fpath[1]}/_dss\"
  dss completions fish > ~/.config/fish/completions/dss.fish")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

fn tasks() -> PossibleValuesParser {
    PossibleValuesParser::new(TaskConfig::NAMES.iter().copied())
}

fn overlays(overlays: &'static [Overlay]) -> PossibleValuesParser {
    PossibleValuesParser::new(
        overlays.iter().map(|o| clap::builder::PossibleValue::new(o.name).help(o.about())),
    )
}

/// Where a configuration comes from.
#[derive(Debug, Args)]
pub struct Settings {
    /// The task; `dss config list` says what they are
    #[arg(value_parser = tasks())]
    pub task: String,
    /// A set of values that comes with the program [default: laptop]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// The state space of the layers, over the preset's [default: that of the preset, dss-softmax in ours]
    #[arg(long, value_name = "NAME", value_parser = overlays(MODELS))]
    pub model: Option<String>,
    /// An ablation of the paper (§4.2), over preset and model; may be given several times
    #[arg(long, value_name = "NAME", value_parser = overlays(ABLATIONS))]
    pub ablation: Vec<String>,
    /// A TOML file over all of these; may be given several times
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// A single setting over all others, such as model.h=128 or lr=0.01; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
}

impl Settings {
    /// What they ask for.
    pub fn request(&self) -> Request {
        Request {
            task: self.task.clone(),
            preset: self.preset.clone(),
            model: self.model.clone(),
            ablations: self.ablation.clone(),
            files: self.config.clone(),
            sets: self.set.clone(),
        }
    }
}

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
  dss train listops --resume                       go on with the newest run of the task
  dss train listops --resume --out runs/big --set epochs=80
  dss train files --resume --set path=moved/mine.csv
  dss train delay --json | jq -c 'select(.event == \"eval\")'

Ctrl-C or SIGTERM finishes the step at hand, saves the state and exits with code 130; a second one ends at once.
A run that was killed in any other way goes on with --resume too, to the same bits.
With --json every line of standard output is one object: event is loading, start, step, eval,
checkpoint, note or end.")]
pub struct TrainArgs {
    #[command(flatten)]
    pub settings: Settings,
    /// Where downloaded data lies; for lm and forecast also a file to learn from
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
    /// The reported result
    Test,
    /// Chose the checkpoint
    Val,
    /// Was trained on
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
    /// Where downloaded data lies
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// A setting of [task] over the run's own, such as path=FILE for data that was moved; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
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

/// `dss web`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss web                        serve the page of web/dist to this machine, and open it
  dss web --port 9000 --no-open
  dss web --dir ~/page           a page that lies elsewhere

The script web/build makes web/dist. The address is printed to standard output. Nothing but the files of the folder is served, to this machine only.")]
pub struct WebArgs {
    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub port: u16,
    /// The folder of the page [default: web/dist here, above, or above this program]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,
}

/// `dss stream`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss stream runs/speech-laptop-0 word.wav
  arecord -q -t raw -f S16_LE -r 16000 | dss stream runs/speech-laptop-0 - --every 250ms
  dss stream speech.safetensors phone.wav --rate 8000 --json
  tail -f sensor.csv | dss stream runs/files-laptop-0 - --every 1 --state sensor.state
  dss stream runs/text-laptop-0 review.txt --every 100

Reads WAV, FLAC, raw samples, lines of numbers or text, as the model was trained on. Every line is the prediction for all
input so far: its time (or place), the answer and, for classes, the probability; the last line is that for the whole.
Sound at another rate than the model's is read with a longer or shorter step. With --state the stream goes on where it
stopped, also after Ctrl-C (exit code 130).")]
pub struct StreamArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// The input; - for standard input
    #[arg(default_value = "-", value_name = "INPUT")]
    pub input: PathBuf,
    /// How often to speak: 100ms, 2s, or a number of positions [default: 100ms of sound, else every position]
    #[arg(long, value_name = "TIME|N", value_parser = every)]
    pub every: Option<Every>,
    /// Positions per second of the input [default: what a sound file says, else the model's own]
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    pub rate: Option<f64>,
    /// What the bytes are
    #[arg(long, value_enum, default_value = "auto")]
    pub format: Format,
    /// Begin with the state in this file, if it exists, and leave the last one there
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// One JSON object per line, with all probabilities
    #[arg(long)]
    pub json: bool,
}

/// How often `dss stream` speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// Seconds of input.
    Seconds(f64),
    /// Positions of input.
    Positions(u64),
}

/// What the bytes of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// By its first bytes: WAV, FLAC, else raw samples of 16 bits for models of sound, else text
    Auto,
    /// WAV
    Wav,
    /// FLAC
    Flac,
    /// Raw samples of 16 bits, little-endian
    S16le,
    /// Raw samples or numbers as 32-bit floats, little-endian
    F32le,
    /// Lines of numbers, or text
    Text,
}

/// `dss generate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss generate runs/lm-laptop-0 --prompt 'ROMEO:'
  dss generate runs/lm-laptop-0 --prompt 'To be' --length 2000 --temperature 0.7 --top-p 0.9 --seed 4
  dss generate lm.safetensors --prompt 'First' --temperature 0

The same seed gives the same text. The speed is said on standard error.")]
pub struct GenerateArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// What the text begins with
    #[arg(long, value_name = "TEXT", default_value = "\n", hide_default_value = true)]
    pub prompt: String,
    /// Tokens to write
    #[arg(long, default_value = "500", value_name = "N")]
    pub length: usize,
    /// Below 1 more sober, above 1 wilder; 0 always takes the likeliest token
    #[arg(long, default_value = "1", value_name = "T", allow_negative_numbers = true)]
    pub temperature: f64,
    /// Choose among so many of the likeliest tokens; 0: all
    #[arg(long, default_value = "0", value_name = "K")]
    pub top_k: usize,
    /// Choose among the likeliest tokens that together have this probability
    #[arg(long, default_value = "1", value_name = "P")]
    pub top_p: f64,
    /// Where the random numbers begin
    #[arg(long, default_value = "0", value_name = "S")]
    pub seed: u64,
}

/// `dss export`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss export runs/speech-laptop-0 --to speech.safetensors
  dss export runs/lm-laptop-0 --to lm.safetensors --f16

With --f16 the weights have 11 bits and the file half the size; what a long memory multiplies (the eigenvalues and the
step) keeps all its digits.")]
pub struct ExportArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Weights in half precision
    #[arg(long)]
    pub f16: bool,
}

/// `dss import`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss import speech.safetensors --to checkpoint.safetensors

The checkpoint has all weights in single precision, as training and the library `dss` read them.")]
pub struct ImportArgs {
    /// The model file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The checkpoint to write
    #[arg(long, value_name = "CHECKPOINT")]
    pub to: PathBuf,
}

/// `dss config`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the resolved configuration as TOML, with a comment at every key
    #[command(after_help = "\
Examples:
  dss config show listops
  dss config show listops --preset paper --set h=256
  dss config show path-x --preset paper --model s4
  dss config show delay > mine.toml; dss train delay --config mine.toml")]
    Show(Settings),
    /// List tasks and presets
    #[command(after_help = "\
Examples:
  dss config list")]
    List,
}

/// `dss data`
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// For every task: whether its data are there, and how to get them
    #[command(after_help = "\
Examples:
  dss data list --data ~/data
  dss data list --json | jq -r 'select(.state == \"missing\") | .get.command'")]
    List(DataListArgs),
    /// Fetch the published data of a task
    #[command(after_help = "\
Examples:
  dss data get text --to ~/data
  dss data get smnist --data ~/data --url http://mirror.example/mnist
  dss data get speech --data ~/data --url http://mirror.example/speech_commands_v0.01.tar.gz

The archive is put into the folder when it is complete and its SHA-256 is right; it need not be unpacked. Until then it
is called NAME.part. After Ctrl-C, or when the connection is lost, the same command goes on where it stopped. A file
with the wrong SHA-256 is kept as NAME.bad. Exit code 130: interrupted.")]
    Get(DataGetArgs),
    /// Write generated data to files, in the form of the published ones
    #[command(after_help = "\
Examples:
  dss data make listops --out listops
  dss data make pathfinder --data ~/data --count 20000 --seed 7
  dss data make path-x --out ~/data --count 1000")]
    Make(DataMakeArgs),
    /// Look over the data of a task: counts, checksums, balance of the classes, a sample, faulty files
    #[command(after_help = "\
Examples:
  dss data check text --data ~/data
  dss data check files --set path=mine.csv
  dss data check listops --preset laptop --json | jq .split_hash

Exit code 1: something is wrong with the data.")]
    Check(DataCheckArgs),
}

/// `dss data list`
#[derive(Debug, Args)]
pub struct DataListArgs {
    /// Where downloaded data lies
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// One JSON object per task
    #[arg(long)]
    pub json: bool,
}

/// `dss data get`
#[derive(Debug, Args)]
pub struct DataGetArgs {
    /// The task
    #[arg(value_parser = tasks())]
    pub task: String,
    /// Where downloaded data lies
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// The folder to put it into [default: that of --data]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Another place of the archive; for a task with several files, the folder that has them
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The SHA-256 it must have [default: that of the published file, where one is known]
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
}

/// `dss data make`
#[derive(Debug, Args)]
pub struct DataMakeArgs {
    /// The task
    #[arg(value_parser = tasks())]
    pub task: String,
    /// Where downloaded data lies
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// The folder to write to [default: that of --data, or the current one; a folder in it for listops]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Examples of all splits together [default: as many as are published]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub count: Option<usize>,
    /// Seed of the generator
    #[arg(long, default_value = "1112", value_name = "S")]
    pub seed: u64,
    /// Side of the pictures [default: that of the task]
    #[arg(long, value_name = "PIXELS", value_parser = positive)]
    pub size: Option<usize>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
}

/// `dss data check`
#[derive(Debug, Args)]
pub struct DataCheckArgs {
    /// The task
    #[arg(value_parser = tasks())]
    pub task: String,
    /// Where downloaded data lies
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// The settings of a preset [default: those of the task: all of its data]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// A setting of [task], such as dir=DIR; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// The report as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// `dss repro`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss repro lra --budget 10m --data ~/data
  dss repro lra --budget 1h --seeds 3 --tasks listops,image --models s4,dss-softmax --data ~/data
  dss repro ablations --tasks delay,listops --budget 2000steps
  dss repro speech --budget full --data ~/data --dry-run
  dss repro lra --tasks listops --set listops:max_length=500 --set n=32

The budget is for each run, and is made a number of optimiser steps: the same for all models of a task, as many as
DSS-softmax makes in that time on this machine. It is measured once and kept in grid.toml. Budget full is the paper's own
settings. The same command goes on where it was stopped (Ctrl-C, a crash): runs that are complete are not run again,
others go on to the same bits, those that failed are tried again. More seeds, tasks and models may be asked for later.
Exit codes: 1 if a run failed, 130 if interrupted; the tables of what is there are written in any case.")]
pub struct ReproArgs {
    /// Which table: Long Range Arena, Speech Commands, or the ablations of DSS-softmax
    #[arg(value_enum)]
    pub table: ReproTable,
    /// What each run gets: a time (90s, 10m, 1h30m), steps (2000steps) or full [default: 10m, or as the grid in --out]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// Runs of each model on each task [default: 1, or as the grid in --out]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Tasks, by commas; also ones that are not in the paper [default: those of the table]
    #[arg(long, value_name = "TASKS", value_delimiter = ',', value_parser = tasks())]
    pub tasks: Vec<String>,
    /// Models and ablations, by commas [default: those of the table]
    #[arg(long, value_name = "MODELS", value_delimiter = ',', value_parser = rows())]
    pub models: Vec<String>,
    /// A setting for all runs, or as TASK:KEY=VALUE for those of a task; may be given several times
    #[arg(long, value_name = "[TASK:]KEY=VALUE", value_parser = task_key_value)]
    pub set: Vec<String>,
    /// Where downloaded data lies
    #[arg(long, value_name = "DIR", env = "DSS_DATA")]
    pub data: Option<PathBuf>,
    /// The directory of the grid [default: runs/repro-TABLE-BUDGET]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only show the runs, their settings and about how long they take
    #[arg(long)]
    pub dry_run: bool,
    /// Where to compute
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub device: String,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// The table as a JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// No progress, only the table
    #[arg(long)]
    pub quiet: bool,
}

/// The tables of `dss repro`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ReproTable {
    /// Table 1: Long Range Arena
    Lra,
    /// Table 2: Speech Commands
    Speech,
    /// Table 3: DSS-softmax without its parts
    Ablations,
}

/// `dss bench`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Time whole training steps: forward, backward, AdamW
    Train(BenchArgs),
    /// Time the steps of a stream on one core
    Step(BenchStepArgs),
}

/// `dss bench step`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss bench step
  dss bench step --model s4 --json
  dss bench step --layers 4 --h 64 --n 32

The model is a new one with BatchNorm before each layer, numbers in, 10 classes out, the answer made at every step.")]
pub struct BenchStepArgs {
    /// Which model
    #[arg(long, default_value = MODELS[0].name, value_name = "NAME", value_parser = overlays(MODELS))]
    pub model: String,
    /// Layers
    #[arg(long, default_value = "6", value_name = "N", value_parser = positive)]
    pub layers: usize,
    /// H: channels
    #[arg(long, default_value = "128", value_name = "N", value_parser = positive)]
    pub h: usize,
    /// N: states per channel
    #[arg(long, default_value = "64", value_name = "N", value_parser = positive)]
    pub n: usize,
    /// Leave the model in this file
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `dss bench train`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss bench train
  dss bench train --size speech --steps 5
  dss bench train --size listops --model s4
  dss bench train --size listops --form composed --json

Sizes (layers x H, length L, batch B, N = 64, random data):
  listops  6 x 128, L  2048, B 16, tokens, BatchNorm behind each layer
  image    6 x 512, L  1024, B  8, numbers, LayerNorm behind each layer
  speech   6 x 128, L 16000, B  4, numbers, BatchNorm before each layer")]
pub struct BenchArgs {
    /// Which size
    #[arg(long, value_enum, default_value = "all")]
    pub size: Size,
    /// The state space of the layers
    #[arg(long, default_value = MODELS[0].name, value_name = "NAME", value_parser = overlays(MODELS))]
    pub model: String,
    /// Timed steps, after two that are not
    #[arg(long, default_value = "10", value_name = "N", value_parser = positive)]
    pub steps: usize,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Which implementation
    #[arg(long, value_enum, default_value = "fused")]
    pub form: Form,
    /// One JSON object per size
    #[arg(long)]
    pub json: bool,
}

/// The sizes of `dss bench train`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    Listops,
    Image,
    Speech,
    All,
}

/// The forms of a model that can be forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One custom operation per layer
    Fused,
    /// Burn's tensor operations
    Composed,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as lr=0.01")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn rows() -> PossibleValuesParser {
    PossibleValuesParser::new(repro::MODELS.iter().map(|model| model.name))
}

fn task_key_value(text: &str) -> Result<String, String> {
    let (key, value) = key_value(text)?;
    match key.split_once(':') {
        Some((task, _)) if !TaskConfig::NAMES.contains(&task) => {
            Err(format!("there is no task `{task}`; expected TASK:KEY=VALUE or KEY=VALUE"))
        }
        _ => Ok(format!("{key}={value}")),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        _ => Err(format!("expected a whole number from 1 to {MAX_THREADS}")),
    }
}

fn every(text: &str) -> Result<Every, String> {
    let text = text.trim();
    let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (_, Some(number)) => (number, 1.0),
        _ => {
            let positions = text.parse().ok().filter(|&n| n >= 1).map(Every::Positions);
            return positions.ok_or_else(|| {
                "expected a time such as 100ms or 2s, or a number of positions".into()
            });
        }
    };
    match number.trim().parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(Every::Seconds(x * factor)),
        _ => Err("expected a time such as 100ms or 2s, or a number of positions".into()),
    }
}

fn hertz(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected positions per second, such as 16000".into()),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n >= 1 => Ok(n),
        _ => Err("expected a whole number of at least 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    /// Every command that does something shows how.
    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            if command.get_subcommands().next().is_none() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Examples:\n  dss "), "{path}");
            }
            command.get_subcommands().for_each(|c| check(c, &path));
        }
        check(&Cli::command(), "");
    }
}
