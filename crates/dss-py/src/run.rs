//! Trainings: a run directory as `dss train` makes it, watched and stopped from Python.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use burn_core::tensor::Device;
use dss_report::inspect::Inspection;
use dss_report::report::write_report;
use dss_train::config::{Request, Setting};
use dss_train::run_dir::RunDir;
use dss_train::{Config, Error, Event, Observer, TrainOptions};
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyFloatingPointError, PyKeyboardInterrupt, PyOSError,
    PyRuntimeError,
};
use pyo3::prelude::*;

use crate::{threads, value_error};

/// How long Ctrl-C waits at most until it is noticed.
const SIGNALS: Duration = Duration::from_millis(50);

/// The settings that a training of `task` would have, under their dotted keys, as JSON. `sets` are lines `key=value`.
#[pyfunction]
#[pyo3(signature = (task, preset, model, sets))]
pub fn resolve_settings(
    task: String,
    preset: Option<String>,
    model: Option<String>,
    sets: Vec<String>,
) -> PyResult<String> {
    let config = resolved(task, preset, model, &sets)?;
    serde_json::to_string(&config.flat()).map_err(value_error)
}

/// The settings of the run in a directory, as JSON.
#[pyfunction]
pub fn run_settings(path: PathBuf) -> PyResult<String> {
    serde_json::to_string(&own_config(&path)?.flat()).map_err(value_error)
}

/// Trains a new model into the directory `out` and gives its summary as JSON.
///
/// `tell` is called with each event as JSON. Ctrl-C finishes the current step and saves: the summary says
/// "interrupted".
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "all that a training can be told")]
#[pyo3(signature = (task, preset, model, sets, out, data_dir, threads, tell))]
pub fn train(
    py: Python<'_>,
    task: String,
    preset: Option<String>,
    model: Option<String>,
    sets: Vec<String>,
    out: PathBuf,
    data_dir: Option<PathBuf>,
    threads: Option<i64>,
    tell: Py<PyAny>,
) -> PyResult<String> {
    let config = resolved(task, preset, model, &sets)?;
    let threads = computing(threads)?;
    let options = TrainOptions { data_dir, threads, ..TrainOptions::default() };
    watched(py, &config, &out, options, &tell)
}

/// Continues the run in the directory `out`, as [`train`]; `sets` may make it longer.
#[pyfunction]
pub fn resume(
    py: Python<'_>,
    out: PathBuf,
    sets: Vec<String>,
    data_dir: Option<PathBuf>,
    threads: Option<i64>,
    tell: Py<PyAny>,
) -> PyResult<String> {
    let config = own_config(&out)?.changed(&[], &settings(&sets)?).map_err(python_error)?;
    let threads = computing(threads)?;
    let options = TrainOptions { resume: true, data_dir, threads, ..TrainOptions::default() };
    watched(py, &config, &out, options, &tell)
}

/// Writes `report.html` of a run and gives its path.
#[pyfunction]
pub fn report(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    own_config(&path)?;
    let page = py.detach(|| threads::in_pool(|| write_report(&path)))?.map_err(value_error)?;
    Ok(page.to_string_lossy().into_owned())
}

/// What a model has learned, as JSON: its modes, time scales and kernels.
#[pyfunction]
pub fn inspect(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let inspected = || -> PyResult<String> {
        let found = Inspection::load(&path, &Device::flex()).map_err(value_error)?;
        serde_json::to_string(&found.report().map_err(value_error)?).map_err(value_error)
    };
    py.detach(|| threads::in_pool(inspected))?
}

/// As many threads as asked for, or as everything else has.
fn computing(threads: Option<i64>) -> PyResult<Option<usize>> {
    Ok(Some(threads.map_or_else(|| Ok(threads::get_num_threads()), threads::count)?))
}

fn settings(sets: &[String]) -> PyResult<Vec<Setting>> {
    sets.iter().map(|set| set.parse().map_err(value_error)).collect()
}

fn resolved(
    task: String,
    preset: Option<String>,
    model: Option<String>,
    sets: &[String],
) -> PyResult<Config> {
    let request = Request { task, preset, model, sets: settings(sets)?, ..Request::default() };
    Ok(request.resolve().map_err(python_error)?.0)
}

fn own_config(path: &Path) -> PyResult<Config> {
    if !RunDir::new(path).config().is_file() {
        let what = format!("{} is not a run directory: it has no config.toml", path.display());
        return Err(PyFileNotFoundError::new_err(what));
    }
    Config::from_run(path).map_err(python_error)
}

/// The training on a thread of its own, while this one tells Python what happens and listens for Ctrl-C.
fn watched(
    py: Python<'_>,
    config: &Config,
    out: &Path,
    options: TrainOptions,
    tell: &Py<PyAny>,
) -> PyResult<String> {
    let stop = &AtomicBool::new(false);
    let mut failure: Option<PyErr> = None;
    let result = py.detach(|| {
        let (sender, events) = mpsc::channel();
        std::thread::scope(|scope| {
            let training = scope.spawn(move || {
                let mut observer = Sender(sender);
                dss_train::train(config, out, options, &mut observer, stop)
            });
            loop {
                let event: Option<String> = match events.recv_timeout(SIGNALS) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                Python::attach(|py| {
                    let told = match event {
                        Some(event) if failure.is_none() => tell.call1(py, (event,)).map(|_| ()),
                        _ => Ok(()),
                    };
                    let Err(error) = py.check_signals().and(told) else { return };
                    stop.store(true, Ordering::Relaxed);
                    // Ctrl-C, here or in what was called, is an orderly end.
                    if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                        failure = Some(error);
                    }
                });
            }
            training.join()
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let summary = result.map_err(|_| PyRuntimeError::new_err("the training panicked"))?;
    Ok(summary.map_err(python_error)?.to_json().to_string())
}

/// An error of the trainer as the exception that a Python program expects.
fn python_error(error: Error) -> PyErr {
    let text = in_python(&error.to_string());
    match error {
        Error::RunExists { .. } => PyFileExistsError::new_err(text),
        Error::NothingToResume { .. } => PyFileNotFoundError::new_err(text),
        Error::RunBusy { .. } | Error::Io { .. } => PyOSError::new_err(text),
        Error::NonFinite { .. } => PyFloatingPointError::new_err(text),
        _ => value_error(text),
    }
}

/// Advice for a command line, as it reads in Python.
fn in_python(text: &str) -> String {
    [
        (
            "continue it with --resume, or choose another directory with --out",
            "continue it with Run(path).resume(), or choose another directory with out=",
        ),
        ("choose another directory with --out", "choose another directory with out="),
        ("continue with --resume", "continue with Run(path).resume()"),
        ("dss train files FILE (a table or a folder)", "data=(X, y), or a path"),
        ("--set ", ""),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Sends events as JSON to whoever listens.
struct Sender(mpsc::Sender<String>);

impl Observer for Sender {
    fn event(&mut self, event: &Event<'_>) {
        // Nobody listens any more when the call has failed; the flag ends the training.
        let _ = self.0.send(event.to_json().to_string());
    }
}
