//! `dss train`

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dss_report::report::write_report;
use dss_train::config::{DEFAULT_PRESET, Objective, Setting};
use dss_train::run_dir::RunDir;
use dss_train::text::{duration, plural};
use dss_train::{Config, Error, Event, Stopped, Summary, TrainConfig, TrainOptions, train};

use crate::args::TrainArgs;
use crate::failure::Failure;
use crate::{device, group, interrupt, output, progress, runs, text};

pub fn run(args: TrainArgs) -> Result<ExitCode, Failure> {
    let group = group::start(&args.group)?;
    let resolve = || {
        runs::check_data(args.data.as_deref())?;
        if args.resume { resumed(&args) } else { fresh(&args) }
    };
    let together = group.size() > 1;
    let (config, mut dirs) = match together {
        false => resolve()?,
        true => {
            let first = |(config, mut dirs): (Config, OutDirs)| {
                (config, dirs.next().expect("there is a first one"))
            };
            let resolved = match group.is_first() {
                true => resolve().map(first),
                false => Err(Failure::usage("rank 0 resolves")),
            };
            let (config, out) = group::shared(&group, resolved)?;
            (config, only(out))
        }
    };
    let silent = |failure: Failure| if group.is_first() { failure } else { failure.silent() };
    let device = device::named(&args.compute.device).map_err(silent)?;
    let threads = args.compute.threads.count.or_else(|| together.then(|| group.threads()));
    let options = TrainOptions {
        resume: args.resume,
        data_dir: args.data,
        threads,
        device: device.autodiff(),
        group: group.clone(),
    };
    let stop = interrupt::flag()?;
    let lost = progress::WriteError::default();
    let (json, quiet) = (args.json && group.is_first(), args.quiet || !group.is_first());
    let mut observer = progress::observer(json, quiet, &stop, &lost);
    if together {
        interrupt::together(group.speaker());
        let threads = threads.unwrap_or(1);
        observer.event(&Event::Note(group::describe(&group, threads)));
    }
    let named = args.resume || args.out.is_some() || together;
    let (out, result) = loop {
        let out = dirs.next().expect("numbers do not end");
        match train(&config, &out, options.clone(), &mut *observer, &stop) {
            // Another process was faster.
            Err(Error::RunBusy { .. } | Error::RunExists { .. }) if !named => {}
            result => break (out, result),
        }
    };
    drop(observer);
    let summary = match result {
        Ok(summary) => summary,
        Err(error) => {
            // The curves show what happened before the loss diverged.
            let diverged = matches!(error, Error::NonFinite { .. });
            let full = matches!(&error, Error::Io { source, .. }
                if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded));
            let report = (diverged && group.is_first()).then(|| write_report(&out));
            let failure = group::failure(&group, error, config.task.name(), &out);
            return Err(match report {
                Some(Ok(path)) => {
                    failure.hint(format!("the curves so far: {}", text::shell(&path)))
                }
                _ if full && group.size() == 1 && RunDir::new(&out).holds_run() => {
                    failure.hint(make_room(&config, &out))
                }
                _ => failure,
            });
        }
    };
    let code = match summary.stopped {
        Stopped::Interrupted => ExitCode::from(interrupt::INTERRUPTED),
        Stopped::Finished | Stopped::Early => ExitCode::SUCCESS,
    };
    if !group.is_first() {
        return Ok(code);
    }
    let report = write_report(&out);
    if !args.json {
        output::line(&describe(&summary, &config, &out, report.as_deref().ok()))?;
    }
    report?;
    // A reader that has gone away is not a failure.
    if let Some(error) = lost.get().filter(|e| e.kind() != io::ErrorKind::BrokenPipe) {
        return Err(Failure::failed(eyre::Report::msg(format!("{error}; the state is saved")))
            .hint(make_room(&config, &out)));
    }
    Ok(code)
}

/// What to do about a full disk.
fn make_room(config: &Config, out: &Path) -> String {
    let (task, dir) = (config.task.name(), text::shell(out));
    format!("make room, then continue: dss train {task} --resume --out {dir}")
}

/// `dss pretrain`
pub fn pretrain(mut args: TrainArgs) -> Result<ExitCode, Failure> {
    args.settings.sets.insert(0, Setting::new("train.objective", "pretrain"));
    run(args)
}

/// Directories to try in turn.
type OutDirs = Box<dyn Iterator<Item = PathBuf>>;

/// A new run.
fn fresh(args: &TrainArgs) -> Result<(Config, OutDirs), Failure> {
    let s = &args.request()?;
    s.from.as_deref().map(runs::model_file).transpose()?;
    let (mut config, sources) = s.resolve().map_err(Failure::for_task(&s.task))?;
    if args.group.mpi && sources.source("train.shards") == "default" && !config.train.carry {
        let batch = config.train.batch;
        config.train.shards = group::default_shards(batch);
        if !args.quiet {
            eprintln!(
                "note: train.shards = {}, for a batch of {batch} with --mpi (--set shards=N chooses another divisor; it \
                 is part of the result)",
                config.train.shards
            );
        }
    }
    let out = args.out.clone();
    let seed = config.train.seed.to_string();
    let parts = [s.task.as_str(), s.preset.as_deref().unwrap_or(DEFAULT_PRESET)].into_iter();
    let chosen = s.model.iter().chain(&s.ablations).map(String::as_str);
    let pretrain = (config.train.objective == Objective::Pretrain).then_some("pretrain");
    let chosen = chosen.chain(pretrain).chain([seed.as_str()]);
    let name = parts.chain(chosen).collect::<Vec<_>>().join("-");
    Ok((config, out.map_or_else(|| Box::new(runs::fresh(&name)) as OutDirs, only)))
}

fn only(place: PathBuf) -> OutDirs {
    Box::new(std::iter::once(place))
}

/// A run to resume, with its own settings or those of the preset, model or ablation given, and changes to them.
fn resumed(args: &TrainArgs) -> Result<(Config, OutDirs), Failure> {
    let s = &args.request()?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => runs::newest(&s.task)?,
    };
    let own = runs::existing(&out)?;
    if own.task.name() != s.task {
        let (own, dir) = (own.task.name(), out.display());
        return Err(Failure::usage(format!("{dir} is a run of task `{own}`, not of `{}`", s.task)));
    }
    let named = s.preset.is_some() || s.model.is_some() || !s.ablations.is_empty();
    let data = runs::named_data(&own.task, args.data.as_deref(), &s.sets)?;
    let sets: Vec<Setting> = data.into_iter().chain(s.sets.clone()).collect();
    let config = match named {
        true => s.resolve().map(|(config, _)| config),
        false => own.changed(&s.files, &sets),
    };
    Ok((config.map_err(Failure::for_task(&s.task))?, only(out)))
}

/// The result, and what to do next.
fn describe(summary: &Summary, config: &Config, out: &Path, report: Option<&Path>) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let measure = summary.test.as_ref().map_or("", |test| test.measure().short_name());
    let test_name = format!("test {measure}");
    let (dir, task) = (text::shell(out), config.task.name());
    if summary.was_complete {
        rows.push(("complete", "this run is already complete; its stored result:".to_owned()));
    }
    if let Some(test) = &summary.test {
        let (examples, step) = (plural(test.examples as u64, "example"), summary.best_step);
        let what = format!("{}, {examples}, checkpoint of step {step}", text::score(test));
        rows.push((&test_name, what));
    } else {
        rows.push(("interrupted", format!("after step {}; the state is saved", summary.steps)));
    }
    if let Some(val) = &summary.best_val {
        let what =
            format!("{} {} at step {}", val.measure().name(), text::score(val), summary.best_step);
        rows.push(("best validation", what));
    }
    let (steps, epochs) = (plural(summary.steps, "step"), plural(summary.epochs, "epoch"));
    rows.push(("time", format!("{}, {steps}, {epochs}", duration(summary.seconds))));
    if summary.stopped == Stopped::Early {
        // With a minimum of steps, an epoch may be several passes: as many as there are between two evaluations.
        let unit = if config.train.min_steps > 0 { "evaluation" } else { "epoch" };
        let epochs = plural(config.train.early_stop as u64, unit);
        let what = format!("no better validation score for {epochs} (train.early_stop)");
        rows.push(("stopped early", what));
    }
    if let Some(peak) = summary.peak_mb {
        rows.push(("peak memory", format!("{peak:.0} MB")));
    }
    if let Some(report) = report {
        rows.push(("report", text::shell(report)));
    }
    if summary.stopped == Stopped::Interrupted {
        rows.push(("resume", format!("dss train {task} --resume --out {dir}")));
    } else {
        rows.push(("evaluate", format!("dss eval {dir}")));
        rows.push(match config.train.objective {
            Objective::Task => ("predict", format!("dss predict {dir} FILE...")),
            Objective::Pretrain => ("start from it", format!("dss train {task} --from {dir}")),
        });
    }
    if summary.stopped == Stopped::Finished {
        let sets = longer(&config.train);
        rows.push(("train longer", format!("dss train {task} --resume --out {dir}{sets}")));
    }
    let rows = rows.iter().map(|(name, value)| format!("{name:<16}{value}"));
    let baselines = summary.test.as_ref().map(text::baselines).unwrap_or_default();
    baselines.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// The settings that make a run twice as long: all of its limits grow.
fn longer(train: &TrainConfig) -> String {
    let mut sets = format!(" --set epochs={}", train.epochs.saturating_mul(2));
    for (key, steps) in [("max_steps", train.max_steps), ("min_steps", train.min_steps)] {
        if steps > 0 {
            sets += &format!(" --set {key}={}", steps.saturating_mul(2));
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_stop_says_after_how_many_epochs() {
        let mut config = Config::resolve("delay", None, &[], &[]).unwrap();
        config.train.early_stop = 8;
        let summary = Summary {
            test: None,
            best_val: None,
            best_step: 0,
            epochs: 12,
            steps: 120,
            seconds: 3.0,
            peak_mb: None,
            parameters: 100,
            bounded_steps: 0,
            was_complete: false,
            stopped: Stopped::Early,
        };
        let text = describe(&summary, &config, Path::new("run"), None);
        assert!(text.contains("no better validation score for 8 epochs"), "{text}");
    }
}
