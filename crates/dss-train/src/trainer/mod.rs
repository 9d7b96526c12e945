//! The training loop.

mod average;
mod batches;
mod carry;
mod clock;
mod events;
mod recalibrate;
mod restoring;
mod saving;
mod scoring;
mod session;
mod step;
mod transfer;
mod watch;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Device;
use dss_data::{Batch, Loader, Task};

use clock::Clock;
use session::Session;

use crate::config::{Config, TrainConfig};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::run_dir::{EvalRecord, RunDir, stored_test};
use crate::{bridge, memory, threads};

pub use batches::epoch_batches;
pub use events::{Event, Observer, Split, Stopped, Summary};
pub use step::{StepGradients, gradients};

/// How a training is run; nothing here changes its outcome.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// Whether to resume the run in the directory.
    pub resume: bool,
    /// Where downloaded data is.
    pub data_dir: Option<PathBuf>,
    /// Threads to compute with; `None`: one per core.
    pub threads: Option<usize>,
    /// Where to compute.
    pub device: Device,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self { resume: false, data_dir: None, threads: None, device: Device::flex().autodiff() }
    }
}

/// Trains a model and leaves everything about it in the directory `out`.
///
/// When `stop` becomes true, the step at hand is finished, the state saved, and the summary says
/// [`Stopped::Interrupted`]. Otherwise the training ends with the best checkpoint's score on the test set.
///
/// # Errors
/// A directory that holds a run (or, with `resume`, does not), data that cannot be read, a disk that is full, a loss
/// that is not finite, a run that does not fit into memory. What was saved before is intact; a directory that was
/// made for a run that did not begin is removed.
pub fn train(
    config: &Config,
    out: &Path,
    options: TrainOptions,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Summary> {
    threads::with(options.threads, || run(config, out, &options, observer, stop))?
}

fn run(
    config: &Config,
    out: &Path,
    options: &TrainOptions,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Summary> {
    config.validate()?;
    let remembered = || options.resume.then(|| Environment::data_dir(out)).flatten();
    let data_dir = options.data_dir.clone().or_else(remembered);
    let data_dir = data_dir.as_deref();
    let config = &Config { task: config.task.located(data_dir), ..config.clone() };
    let clock = Clock::start();
    let run = if options.resume { RunDir::resume(out, config)? } else { RunDir::create(out)? };
    let observer = RefCell::new(observer);
    let tell = |text: &str| observer.borrow_mut().event(&Event::Loading(text.to_owned()));
    let task = config.load_task(data_dir, &tell)?;
    let observer = observer.into_inner();
    for note in &task.notes {
        observer.event(&Event::Note(note.to_string()));
    }
    check_sizes(&task)?;
    if config.train.carry && task.train.len() < config.train.batch {
        let (windows, streams) = (task.train.len(), config.train.batch);
        let what = format!("train.carry: {windows} windows are too few for {streams} streams");
        return Err(Error::Mismatch(format!("{what}; lower train.batch or task.len")));
    }
    let examples = [&task.train, &task.val, &task.test].map(|split| split.len());
    memory::check(config, &bridge::io(&task.spec), examples)?;
    let device = &options.device.clone().autodiff();
    let stored_test = stored_test(&run.metrics());
    let mut session = if run.has_save() {
        Session::restore(config, &task, &run, device, clock, observer)?
    } else if options.resume && run.has_results() {
        // Not a run that was killed before its first save: starting over would overwrite what there is.
        return Err(Error::NothingToResume { dir: out.into() });
    } else {
        Session::start(config, &task, &run, device, clock, observer)?
    };
    Environment::current(rayon::current_num_threads(), data_dir).write(run.root())?;
    session.announce(observer);
    let stop = || stop.load(Ordering::Relaxed);
    let restored = session.state.step;
    let stopped = steps(&mut session, &config.train, &task, observer, &stop)?;
    let interrupted = stopped == Stopped::Interrupted;
    let stored_test = stored_test.filter(|_| session.state.step == restored && !interrupted);
    let test = match &stored_test {
        Some(record) => Some(session.keep_test(record)?),
        None if interrupted => None,
        None => session.test(observer, &stop)?,
    };
    let stopped = if test.is_none() { Stopped::Interrupted } else { stopped };
    let mut summary = session.summary(stopped, test);
    if let Some(EvalRecord { seconds, peak_mb, .. }) = stored_test {
        summary = Summary { was_complete: true, seconds, peak_mb, ..summary };
    }
    observer.event(&Event::End(&summary));
    Ok(summary)
}

/// Steps and evaluations until the end, or until `stop`.
fn steps(
    session: &mut Session<'_>,
    config: &TrainConfig,
    task: &Task,
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
) -> Result<Stopped> {
    let mut batches: Option<Loader> = None;
    loop {
        if session.evaluation_due() {
            if !session.validate(observer, stop)? {
                session.save(observer)?;
                return Ok(Stopped::Interrupted);
            }
            session.save(observer)?;
        }
        if session.stalled() {
            return Ok(Stopped::Early);
        }
        if session.state.step >= session.total_steps() {
            return Ok(Stopped::Finished);
        }
        if stop() {
            session.save(observer)?;
            return Ok(Stopped::Interrupted);
        }
        if session.epoch_ends() {
            batches = None;
        }
        let loader = match &mut batches {
            Some(loader) => loader,
            none => {
                let (step, of) = (session.state.step, session.state.steps_per_epoch);
                none.insert(epoch_batches(config, task, step / of, step % of)?)
            }
        };
        let micro: Vec<Batch> = loader.take(config.accumulate).collect::<dss_data::Result<_>>()?;
        session.step(&micro, observer)?;
        if session.save_due() && !session.evaluation_due() {
            session.save(observer)?;
        }
    }
}

fn check_sizes(task: &Task) -> Result<()> {
    for (name, data) in [("training", &task.train), ("validation", &task.val), ("test", &task.test)]
    {
        if data.is_empty() {
            return Err(Error::Mismatch(format!("the {name} set has no examples")));
        }
    }
    Ok(())
}
