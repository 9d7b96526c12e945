//! Finding and naming run directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dss_data::TaskConfig;
use dss_train::Config;
use dss_train::config::Setting;
use dss_train::run_dir::RunDir;

use crate::failure::Failure;
use crate::text;

/// The default folder of run directories.
const ROOT: &str = "runs";

/// Directories that hold no run yet, of `runs/NAME`, `runs/NAME-2`, ...
pub fn fresh(name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let first = Path::new(ROOT).join(name);
    let name = name.to_owned();
    let more = (2u32..).map(move |i| Path::new(ROOT).join(format!("{name}-{i}")));
    std::iter::once(first).chain(more).filter(|p| !RunDir::new(p).holds_run())
}

/// The run of a task under `runs` that was written to last.
pub fn newest(task: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(ROOT).into_iter().flatten().flatten().map(|e| e.path());
    let runs = entries.filter(|dir| Config::from_run(dir).is_ok_and(|c| c.task.name() == task));
    runs.max_by_key(|dir| modified(&dir.join("last")).max(modified(&dir.join("metrics.jsonl"))))
        .ok_or_else(|| {
            Failure::usage(format!("no run of task `{task}` under {ROOT}/ to resume"))
                .hint("name the run with --out DIR, or start one without --resume")
        })
}

/// The configuration of a directory that must contain a run.
pub fn existing(dir: &Path) -> Result<Config, Failure> {
    if !dir.join("config.toml").is_file() {
        let why = if dir.is_dir() { "it has no config.toml" } else { "there is no such directory" };
        return Err(Failure::usage(format!("{} is not a run directory: {why}", dir.display()))
            .hint("name a directory created by `dss train`, such as runs/listops-laptop-0"));
    }
    Ok(Config::from_run(dir)?)
}

/// Refuses `--data` with a path that does not exist: other data must not be used instead.
pub fn check_data(data: Option<&Path>) -> Result<(), Failure> {
    match data.filter(|data| !data.exists()) {
        Some(data) => Err(Failure::usage(format!("--data: {} does not exist", data.display()))
            .hint("name an existing folder; `dss data list` says which data there are")),
        None => Ok(()),
    }
}

/// The setting that `--data PATH` means for a run that remembers where its data were: another file, or the file or
/// folder of that name in another folder. `sets` may name the data themselves.
pub fn named_data(
    own: &TaskConfig,
    data: Option<&Path>,
    sets: &[Setting],
) -> Result<Option<Setting>, Failure> {
    let Some(data) = data else { return Ok(None) };
    let keys = TaskConfig::key_docs(own.name()).unwrap_or_default();
    let places =
        ["path", "dir"].into_iter().filter(|key| keys.iter().any(|(known, _)| known == key));
    let Some(key) = places.min_by_key(|key| *key != "path") else { return Ok(None) };
    let setting =
        |path: &Path| Setting::new(format!("task.{key}"), path.to_string_lossy().into_owned());
    if data.is_file() {
        return Ok((key == "path").then(|| setting(data)));
    }
    // The variable is for all commands; what is said here is for this one.
    let said = std::env::var_os("DSS_DATA").is_none_or(|variable| Path::new(&variable) != data);
    let named = sets.iter().any(|set| set.name() == key);
    let Some(remembered) = own.place().map(Path::new).filter(|_| said && !named) else {
        return Ok(None);
    };
    match remembered.file_name().map(|name| data.join(name)).filter(|path| path.exists()) {
        Some(path) => Ok(Some(setting(&path))),
        None if !remembered.exists() => Ok(None),
        None if std::path::absolute(data).is_ok_and(|data| remembered.starts_with(data)) => {
            Ok(None)
        }
        None => {
            let (data, remembered) = (data.display(), remembered.display());
            Err(Failure::usage(format!(
                "--data: {data} does not hold the run's data, {remembered}"
            ))
            .hint(format!("to read other data, name them with --set task.{key}=PATH")))
        }
    }
}

/// The model file that a run directory or a file name means.
pub fn model_file(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_dir() {
        return best(path, &existing(path)?);
    }
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let message = format!("{} is neither a run directory nor a file", path.display());
    Err(Failure::usage(message)
        .hint("name a directory created by `dss train`, or an exported file"))
}

/// The best checkpoint of a run.
fn best(dir: &Path, config: &Config) -> Result<PathBuf, Failure> {
    let path = RunDir::new(dir).best();
    if path.is_file() {
        return Ok(path);
    }
    let message = format!(
        "{} has no checkpoint yet: the run has not reached its first evaluation",
        dir.display()
    );
    let (task, dir) = (config.task.name(), text::shell(dir));
    Err(Failure::failed(eyre::Report::msg(message))
        .hint(format!("continue training: dss train {task} --resume --out {dir}")))
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
