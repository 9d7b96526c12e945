//! Train, evaluate and run Diagonal State Space models from the command line.

// Under the name that most programs use.
extern crate burn_core as burn;

mod allocator;
mod args;
mod bench;
mod bench_group;
mod bench_lengths;
mod bench_step;
mod card;
mod config;
mod data;
mod device;
mod eval;
mod export;
mod failure;
mod generate;
mod group;
mod inspect;
mod interrupt;
mod manual;
mod output;
mod predict;
mod progress;
mod repro;
mod runs;
mod stream;
mod text;
mod train;
mod web;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, ConfigCommand};
use failure::Failure;

fn main() -> ExitCode {
    allocator::keep_memory();
    let result = match Cli::try_parse() {
        Ok(cli) => run(cli),
        // Help, the version, or wrong usage.
        Err(text) => text
            .print()
            .map(|()| ExitCode::from(u8::try_from(text.exit_code()).unwrap_or(2)))
            .map_err(|error| output::lost(error).into()),
    };
    result.unwrap_or_else(Failure::report)
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Train(args) => train::run(args),
        Command::Pretrain(args) => train::pretrain(args),
        Command::Eval(args) => eval::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Stream(args) => stream::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Export(args) => export::export(args),
        Command::Import(args) => export::import(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Config(ConfigCommand::Show(args)) => config::show(args),
        Command::Config(ConfigCommand::List) => config::list(),
        Command::Data(command) => data::run(command),
        Command::Repro(args) => repro::run(args),
        Command::Web(args) => web::run(args),
        Command::Bench(args::BenchCommand::Train(args)) => bench::run(args),
        Command::Bench(args::BenchCommand::Lengths(args)) => bench_lengths::run(args),
        Command::Bench(args::BenchCommand::Step(args)) => bench_step::run(args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { out } => manual::pages(out.as_deref()),
    }
}
