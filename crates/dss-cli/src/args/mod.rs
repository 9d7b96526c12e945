//! The command line: commands, options, help.

mod data;
mod exchange;
mod measure;
mod runs;
mod shared;
mod streams;
mod values;

use clap::{Parser, Subcommand};
use dss_train::config::Request;

pub use self::data::*;
pub use self::exchange::*;
pub use self::measure::*;
pub use self::runs::*;
pub use self::shared::*;
pub use self::streams::*;
pub use self::values::{clap_name, serde_name};

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

Exit codes: 0 done, 1 the run failed, 2 wrong usage, 130 interrupted (continue with --resume).
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
    /// Train a model; writes the checkpoint, curves and a report to a run directory
    Train(TrainArgs),
    /// Pretrain on a task's inputs, without labels; `dss train TASK --from RUN` then starts from the result
    Pretrain(TrainArgs),
    /// Score the best checkpoint of a run
    Eval(EvalArgs),
    /// Apply the best checkpoint of a run to new sequences
    Predict(PredictArgs),
    /// Run a model on streaming input and print running predictions
    Stream(StreamArgs),
    /// Generate text with a language model
    Generate(GenerateArgs),
    /// Write the best checkpoint of a run as one file: for `dss stream`, `dss-infer`, a browser, PyTorch or ONNX
    Export(ExportArgs),
    /// Turn an exported file, or a checkpoint of ag1988/dss, the S4 repository or annotated-s4, into a checkpoint
    Import(ImportArgs),
    /// Show what a model has learned: modes, time scales, kernels, as tables and pictures
    Inspect(InspectArgs),
    /// Show settings, tasks, presets and models
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List, download, generate and check data
    #[command(subcommand)]
    Data(DataCommand),
    /// Reproduce the paper's tables within a budget of your choice
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
    /// Print the manual page, or write those of all commands to a folder
    #[command(after_help = "\
Examples:
  dss man | man -l -
  dss man --out ~/.local/share/man/man1")]
    Man {
        /// Write one page per command to this folder
        #[arg(long, value_name = "DIR")]
        out: Option<std::path::PathBuf>,
    },
}

/// `dss config`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the resolved configuration as TOML, with a comment for every key
    #[command(after_help = "\
Examples:
  dss config show listops
  dss config show listops --preset paper --set h=256
  dss config show path-x --preset paper --model s4
  dss config show delay > mine.toml; dss train delay --config mine.toml")]
    Show(Request),
    /// List tasks, presets, models and ablations
    #[command(after_help = "\
Examples:
  dss config list")]
    List,
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
