//! `dss eval`

use std::process::ExitCode;

use dss_train::config::Setting;
use dss_train::evaluate::{Evaluation, evaluate_checkpoint};
use dss_train::{Config, threads};
use serde_json::json;

use crate::args::{EvalArgs, Split};
use crate::failure::Failure;
use crate::{device, output, progress, runs, text};

pub fn run(args: EvalArgs) -> Result<ExitCode, Failure> {
    let config = changed(runs::existing(&args.run)?, &args.set)?;
    let checkpoint = runs::best(&args.run)?;
    let device = device::named(&args.device)?;
    let batch = args.batch.unwrap_or(config.train.evaluation_batch());
    let found = threads::with(args.threads, || -> Result<Evaluation, Failure> {
        let bar = progress::loading();
        let tell = |text: &str| {
            bar.set_message(text.to_owned());
            bar.tick();
        };
        let task = config.task.load(args.data.as_deref(), &tell)?;
        bar.finish_and_clear();
        let dataset = match args.split {
            Split::Test => &task.test,
            Split::Val => &task.val,
            Split::Train => &task.train,
        };
        let mut found = evaluate_checkpoint(&checkpoint, &task, dataset, batch, &device)?;
        found.notes.extend(task.notes.iter().map(|note| note.to_string()));
        Ok(found)
    })??;
    for note in &found.notes {
        output::log_line(format_args!("note: {note}"));
    }
    let split = match args.split {
        Split::Test => "test",
        Split::Val => "val",
        Split::Train => "train",
    };
    let (scores, step) = (&found.scores, found.meta.step);
    if args.json {
        let mut value = serde_json::to_value(scores).unwrap_or_default();
        value["split"] = json!(split);
        value["step"] = json!(step);
        value["labels"] = json!(found.meta.labels);
        output::json(&value)?;
    } else {
        let mut lines =
            vec![format!("{split} {:<20}{}", scores.measure().name(), text::score(scores))];
        if scores.accuracy.is_some() {
            lines.push(format!("{split} {:<20}{}", "loss", text::number(scores.loss)));
        }
        if let Some(mae) = scores.mae {
            lines.push(format!("{split} {:<20}{}", "mean absolute error", text::number(mae)));
        }
        lines.extend(text::baselines(scores));
        lines.push(format!("{split} {:<20}{}", "examples", scores.examples));
        lines.push(format!("{:<width$}step {step}", "checkpoint", width = split.len() + 21));
        lines.extend(text::confusion(scores, &found.meta.labels));
        output::line(&lines.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The settings of a run, other ones of `[task]` laid over them: the model and its training are what they are.
fn changed(own: Config, sets: &[Setting]) -> Result<Config, Failure> {
    let changed = own.changed(&[], sets).map_err(Failure::for_task(own.task.name()))?;
    if changed.model == own.model && changed.train == own.train {
        return Ok(changed);
    }
    Err(Failure::usage("--set of `dss eval` changes settings of [task] only")
        .hint("the model is that of the run; for the batch of the evaluation there is --batch"))
}
