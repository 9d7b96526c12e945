//! `dss eval`

use std::path::Path;
use std::process::ExitCode;

use dss_nn::checkpoint::CheckpointMeta;
use dss_train::config::Setting;
use dss_train::environment::Environment;
use dss_train::evaluate::{Evaluation, evaluate_checkpoint};
use dss_train::{Config, TrainConfig, threads};
use serde_json::json;

use crate::args::{EvalArgs, Split, clap_name};
use crate::failure::Failure;
use crate::{device, output, progress, runs, text};

pub fn run(args: EvalArgs) -> Result<ExitCode, Failure> {
    runs::check_data(args.data.as_deref())?;
    let checkpoint = runs::model_file(&args.model)?;
    let own =
        if args.model.is_dir() { runs::existing(&args.model)? } else { file_config(&checkpoint)? };
    let named = runs::named_data(&own.task, args.data.as_deref(), &args.set)?;
    let sets: Vec<Setting> = named.into_iter().chain(args.set).collect();
    let config = changed(own, &sets)?;
    let device = device::named(&args.compute.device)?;
    let batch = args.batch.unwrap_or(config.train.evaluation_batch());
    let remembered = Environment::data_dir(&args.model).filter(|_| args.data.is_none());
    let data = args.data.as_deref().or(remembered.as_deref());
    let found = threads::with(args.compute.threads.count, || -> Result<Evaluation, Failure> {
        let bar = progress::loading();
        let tell = |text: &str| {
            bar.set_message(text.to_owned());
            bar.tick();
        };
        let task = config
            .load_task(data, &tell)
            .map_err(Failure::for_task(config.task.name()))
            .map_err(|failure| moved(failure, remembered.as_deref()))?;
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
    let split = clap_name(&args.split);
    let (scores, step) = (&found.scores, found.meta.step);
    if args.json {
        let mut value = serde_json::to_value(scores).unwrap_or_default();
        value["split"] = json!(split);
        value["step"] = json!(step);
        value["labels"] = json!(found.meta.labels);
        value["most_frequent_class"] = json!(scores.majority());
        value["macro_f1"] = json!(scores.macro_f1());
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
        lines.extend(text::confusion(scores, &found.meta.labels, output::columns()));
        output::line(&lines.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration of a model file, as far as it is in the file.
fn file_config(path: &Path) -> Result<Config, Failure> {
    meta_config(&dss_nn::checkpoint::load_meta(path)?).ok_or_else(|| {
        let message = format!("{} does not say which task it was trained on", path.display());
        Failure::failed(eyre::Report::msg(message)).hint("evaluate its run directory: dss eval RUN")
    })
}

/// The configuration in a model's description, the training's being the default; `None` if it has no task.
pub fn meta_config(meta: &CheckpointMeta) -> Option<Config> {
    let task = serde_json::from_value(meta.task.clone()).ok()?;
    Some(Config { task, model: meta.model.clone(), train: TrainConfig::default() })
}

/// An error about data, with what to do if the folder that the run remembers is gone.
fn moved(error: Failure, remembered: Option<&Path>) -> Failure {
    match remembered.filter(|folder| !folder.exists()) {
        Some(folder) => error.hint(format!(
            "the run was trained with --data {}, which no longer exists: give its new place with --data",
            text::shell(folder)
        )),
        None => error,
    }
}

/// The settings of a run, other ones of `[task]` laid over them: the model and its training are what they are.
fn changed(own: Config, sets: &[Setting]) -> Result<Config, Failure> {
    let changed = own.changed(&[], sets).map_err(Failure::for_task(own.task.name()))?;
    if changed.model == own.model && changed.train == own.train {
        return Ok(changed);
    }
    Err(Failure::usage("`dss eval --set` changes settings of [task] only")
        .hint("the model is that of the run; the batch size is set with --batch"))
}
