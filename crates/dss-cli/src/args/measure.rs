//! Reproduction of the paper's tables, and the speed of this machine.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use dss_nn::Form;
use dss_report::repro::{self, Budget, GridSetting, TableKind};
use dss_train::config::clap_values::{overlays, tasks};
use dss_train::config::{MODELS, Setting};

use super::values::{named, positive};
use super::{ComputeArgs, DataArg, GroupArgs, ThreadsArg};

/// `dss repro`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss repro lra --budget 10m --data ~/data
  dss repro lra --budget 1h --seeds 3 --tasks listops,image --models s4,dss-softmax --data ~/data
  dss repro ablations --tasks delay,listops --budget 2000steps
  dss repro speech --budget full --data ~/data --dry-run
  dss repro lra --tasks listops --set listops:max_length=500 --set n=32
  dss repro lra --tasks listops,image --models dss-softmax,transformer --set transformer:ff=64

The budget applies to each run. It is converted to a number of optimiser steps, the same for all models of a task: as \
many as DSS-softmax makes in that time on this machine. It is measured once and kept in grid.toml. Budget full means \
the paper's own settings. The same command continues a grid that was stopped (Ctrl-C, a crash): complete runs are not \
repeated, others continue to the same bits, failed ones are tried again. More seeds, tasks and models may be added later.
Exit codes: 1 if a run failed, 130 if interrupted; the tables so far are written in any case.")]
pub struct ReproArgs {
    /// Which table: Long Range Arena, Speech Commands, or the ablations of DSS-softmax
    #[arg(value_parser = tables())]
    pub table: TableKind,
    /// Budget per run: a time (90s, 10m, 1h30m), steps (2000steps) or full [default: 10m, or that of the grid in --out]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// Runs of each model on each task [default: 1, or that of the grid in --out]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Comma-separated tasks, including ones that are not in the paper [default: those of the table]
    #[arg(long, value_name = "TASKS", value_delimiter = ',', value_parser = tasks())]
    pub tasks: Vec<String>,
    /// Comma-separated models and ablations [default: those of the table]
    #[arg(long, value_name = "MODELS", value_delimiter = ',', value_parser = rows())]
    pub models: Vec<String>,
    /// A setting for all runs, or for those of a task, a model or both; may be given several times
    #[arg(long, value_name = "[TASK:][MODEL:]KEY=VALUE")]
    pub set: Vec<GridSetting>,
    #[command(flatten)]
    pub data: DataArg,
    /// The directory of the grid [default: runs/repro-TABLE-BUDGET]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only show the runs, their settings and estimated times
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    #[command(flatten)]
    pub compute: ComputeArgs,
    /// The table as a JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// No progress, only the table
    #[arg(long)]
    pub quiet: bool,
}

/// `dss bench`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Time whole training steps: forward, backward, AdamW
    Train(BenchArgs),
    /// Time training steps of several models at growing lengths, as a table and a picture
    Lengths(BenchLengthsArgs),
    /// Time the steps of a stream on one core
    Step(BenchStepArgs),
}

/// `dss bench lengths`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss bench lengths --svg lengths.svg
  dss bench lengths --models dss-softmax,transformer,gru --to 4096
  dss bench lengths --layers 2 --h 64 --batch 4 --json

Each length is twice the one before. Random tokens, 10 classes; each measurement is a process of its own.")]
pub struct BenchLengthsArgs {
    /// Comma-separated models
    #[arg(
        long, value_name = "MODELS", value_delimiter = ',', value_parser = overlays(MODELS),
        default_value = "dss-softmax,s4,transformer,linear-transformer,performer,fnet"
    )]
    pub models: Vec<String>,
    /// Smallest length L
    #[arg(long, default_value = "512", value_name = "L", value_parser = positive)]
    pub from: usize,
    /// Largest length L
    #[arg(long, default_value = "16384", value_name = "L", value_parser = positive)]
    pub to: usize,
    /// Layers
    #[arg(long, default_value = "4", value_name = "N", value_parser = positive)]
    pub layers: usize,
    /// H: channels
    #[arg(long, default_value = "128", value_name = "N", value_parser = positive)]
    pub h: usize,
    /// B: sequences per step
    #[arg(long, default_value = "1", value_name = "N", value_parser = positive)]
    pub batch: usize,
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// Draw time and memory into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// One JSON object per model and length
    #[arg(long)]
    pub json: bool,
}

/// `dss bench step`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss bench step
  dss bench step --model s4 --json
  dss bench step --layers 4 --h 64 --n 32

The model is a new one with BatchNorm before each layer, numbers in, 10 classes out, with an answer at every step.")]
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
    /// Save the model to this file
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
  dss bench train --size listops --set ssms=128
  dss bench train --size listops --form composed --json
  mpirun -np 2 --bind-to none dss bench train --mpi --size listops --threads 1

Sizes (layers x H, length L, batch B, N = 64, random data):
  listops  6 x 128, L  2048, B 16, tokens, BatchNorm after each layer
  image    6 x 512, L  1024, B  8, numbers, LayerNorm after each layer
  speech   6 x 128, L 16000, B  4, numbers, BatchNorm before each layer")]
pub struct BenchArgs {
    /// Which size
    #[arg(long, value_enum, default_value = "all")]
    pub size: Size,
    /// Which model
    #[arg(long, default_value = MODELS[0].name, value_name = "NAME", value_parser = overlays(MODELS))]
    pub model: String,
    /// A setting of the model, such as ssms=128 or model.ff=512; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<Setting>,
    /// Timed steps, after two warm-up steps
    #[arg(long, default_value = "10", value_name = "N", value_parser = positive)]
    pub steps: usize,
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// Which implementation
    #[arg(long, value_parser = named(FORMS), default_value = "fused")]
    pub form: Form,
    #[command(flatten)]
    pub group: GroupArgs,
    /// With --mpi: shards of the batch [default: one per process]
    #[arg(long, value_name = "N", requires = "mpi", value_parser = positive)]
    pub shards: Option<usize>,
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
const FORMS: &[(Form, &str)] = &[
    (Form::Fused, "One custom operation per layer"),
    (Form::Composed, "Burn's tensor operations"),
];

fn rows() -> PossibleValuesParser {
    PossibleValuesParser::new(repro::MODELS.iter().map(|model| model.name))
}

fn tables() -> impl TypedValueParser<Value = TableKind> {
    let value = |table: TableKind| PossibleValue::new(table.name()).help(table.title());
    let names = PossibleValuesParser::new(TableKind::ALL.map(value));
    names.map(|name| {
        let named = TableKind::ALL.into_iter().find(|table| table.name() == name);
        named.expect("one of the names")
    })
}
