//! The model card that `dss export` writes beside a file: what the model is, how good it is, and how to use it.

use std::fs;
use std::path::{Path, PathBuf};

use dss_data::{TaskConfig, units};
use dss_format::encoder::Encoder;
use dss_infer::{CheckpointMeta, Model};
use dss_train::Config;
use dss_train::run_dir::{EvalRecord, Record, RunDir, read_metrics};

use crate::failure::Failure;
use crate::text;

/// How every card begins: another file of that name is not overwritten.
const TITLE: &str = "# Model card: ";

/// Writes the card of the model file `to`; `run` is the run directory it comes from. `None` if another file is there.
pub fn write(to: &Path, model: &Model, run: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let path = to.with_extension("md");
    if path == to || fs::read_to_string(&path).map_or(path.exists(), |old| !old.starts_with(TITLE))
    {
        return Ok(None);
    }
    dss_nn::checkpoint::write_whole(&path, card(to, model, run).as_bytes())?;
    Ok(Some(path))
}

fn card(to: &Path, model: &Model, run: Option<&Path>) -> String {
    let (meta, file) = (model.meta(), text::shell(to));
    let name = to.file_stem().unwrap_or_default().to_string_lossy();
    let task = meta.task_name().unwrap_or("unknown");
    let mut out = format!("{TITLE}{name}\n\n");
    let mixer = meta.model.mixer.settings();
    out += &format!(
        "{}, {} of {} channels, {}; training length {}.\n\n",
        mixer.title(),
        units::plural(meta.model.layers as u64, "layer"),
        meta.model.h,
        mixer.size(),
        meta.io.len
    );
    let mut rows =
        vec![("task", format!("{task}: {}", TaskConfig::about(task).unwrap_or("unknown")))];
    if !meta.labels.is_empty() {
        rows.push(("labels", labels(&meta.labels)));
    }
    rows.push(("data", format!("split {}", short(&meta.split_hash))));
    rows.push(("training", format!("seed {}, checkpoint of step {}", meta.seed, meta.step)));
    let metrics =
        run.and_then(|run| read_metrics(&RunDir::new(run).metrics()).ok()).unwrap_or_default();
    let val = metrics.iter().rev().find_map(|record| match record {
        Record::Val(val) if val.step == meta.step => Some(val),
        _ => None,
    });
    let test = metrics.iter().rev().find_map(|record| match record {
        Record::Test(test) if test.step == meta.step => Some(test),
        _ => None,
    });
    for (name, record) in [("validation", val), ("test", test)] {
        rows.extend(record.map(|record| (name, score(record))));
    }
    out += "| | |\n| --- | --- |\n";
    for (name, value) in rows {
        out += &format!("| {name} | {} |\n", cell(&value));
    }
    out += &format!("\n## How to use it\n\n```sh\n{}```\n", commands(&file, model));
    out += "\nIn Rust, with the crate `dss-infer`: `dss_infer::Model::load(path)`.\n";
    out += "\n## Settings\n\n| key | value |\n| --- | --- |\n";
    for (key, value) in settings(meta, run) {
        out += &format!("| `{key}` | {} |\n", cell(&value.to_string()));
    }
    out
}

/// The commands that this model can be used with.
fn commands(file: &str, model: &Model) -> String {
    let generates = matches!(Encoder::from_extra(&model.meta().extra), Ok(Encoder::Lm(_)));
    let streams = Encoder::from_extra(&model.meta().extra)
        .is_ok_and(|encoder| encoder.feed().is_ok())
        && model.state().is_ok();
    let mut out = format!("dss predict {file} FILE...\ndss eval {file} --data DIR\n");
    if streams {
        out += &format!("dss stream {file} FILE\n");
    }
    if generates && streams {
        out += &format!("dss generate {file} --prompt TEXT\n");
    }
    out
}

/// Everything that decided the training, as far as it is known, without the places of files on this machine.
fn settings(meta: &CheckpointMeta, run: Option<&Path>) -> Vec<(String, serde_json::Value)> {
    let config = match run {
        Some(run) => Config::from_run(run).ok(),
        None => crate::eval::meta_config(meta),
    };
    let shown = |key: &str| {
        !["task.path", "task.dir", "task.cache"].contains(&key)
            && (run.is_some() || !key.starts_with("train."))
    };
    let all = config.map(|config| config.flat()).unwrap_or_default();
    all.into_iter().filter(|(key, _)| shown(key)).collect()
}

fn score(record: &EvalRecord) -> String {
    let scores = &record.scores;
    format!("{} {}, {} examples", scores.measure().name(), text::score(scores), scores.examples)
}

/// The first labels of a long list.
fn labels(labels: &[String]) -> String {
    const SHOWN: usize = 40;
    let shown = labels.iter().take(SHOWN).map(|label| format!("`{}`", label.escape_debug()));
    let more = labels.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text::printable(text).replace('|', "\\|").replace('\n', " ")
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
