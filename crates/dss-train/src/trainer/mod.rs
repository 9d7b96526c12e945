//! The training loop.

mod average;
mod batches;
mod carry;
mod clock;
mod events;
mod joining;
mod recalibrate;
mod restoring;
mod saving;
mod scoring;
mod session;
mod shards;
mod step;
mod target_units;
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
use crate::group::Group;
use crate::run_dir::{RunDir, stored_test};
use crate::{bridge, memory, threads};

use batches::shard_batches;

pub use batches::epoch_batches;
pub use events::{Event, Observer, Split, Stopped, Summary};
pub(crate) use shards::gather_tallies;
pub use shards::sharded_gradients;
pub use step::{StepGradients, gradients};

/// How a training is run; nothing here changes its outcome.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// Whether to resume the run in the directory.
    pub resume: bool,
    /// The folder of downloaded data.
    pub data_dir: Option<PathBuf>,
    /// Threads to compute with; `None`: one per core.
    pub threads: Option<usize>,
    /// Where to compute.
    pub device: Device,
    /// The processes that train together; each of them calls [`train`] with the same arguments.
    pub group: Group,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            resume: false,
            data_dir: None,
            threads: None,
            device: Device::flex().autodiff(),
            group: Group::alone(),
        }
    }
}

/// Trains a model and writes everything about it to the directory `out`.
///
/// When `stop` becomes true, the current step is finished, the state saved, and the summary says
/// [`Stopped::Interrupted`]. Otherwise the training ends with the best checkpoint's score on the test set.
///
/// # Errors
/// A directory that holds a run (or, with `resume`, does not), data that cannot be read, a disk that is full, a loss
/// that is not finite, a run that does not fit into memory. What was saved before is intact; a directory that was
/// made for a run that did not begin is removed. With a group, an error of one rank ends all of them in the same step.
pub fn train(
    config: &Config,
    out: &Path,
    options: TrainOptions,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Summary> {
    let group = &options.group;
    let trained = threads::with(options.threads, || run(config, out, &options, observer, stop));
    group.finish(trained.flatten())
}

fn run(
    config: &Config,
    out: &Path,
    options: &TrainOptions,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Summary> {
    config.validate()?;
    let group = &options.group;
    group.agree(joining::enough_shards(config, group.size()))?;
    let remembered = joining::remembered_data(options, out)?;
    let data_dir = options.data_dir.clone().or(remembered);
    let data_dir = data_dir.as_deref();
    let config = &Config { task: config.task.located(data_dir), ..config.clone() };
    let clock = Clock::start();
    joining::check_alike(config, group)?;
    let run = group.agree(match (group.is_first(), options.resume) {
        (true, true) => RunDir::resume(out, config),
        (true, false) => RunDir::create(out),
        (false, _) => Ok(RunDir::new(out)),
    })?;
    let task = load(config, data_dir, group, observer)?;
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
    let stored_test = group.is_first().then(|| stored_test(&run.metrics())).flatten();
    let begin = || {
        if !group.is_first() {
            return Session::blank(config, &task, &run, device, clock);
        }
        let mut environment = Environment::current(rayon::current_num_threads(), data_dir);
        environment.processes = (group.size() > 1).then_some(group.size());
        let session = if run.has_save() {
            Session::restore(config, &task, &run, device, clock, observer)?
        } else if options.resume && run.has_results() {
            // Not a run that was killed before its first save: starting over would overwrite what there is.
            return Err(Error::NothingToResume { dir: out.into() });
        } else {
            Session::start(config, &task, &run, device, clock, observer)?
        };
        environment.write(run.root())?;
        Ok(session)
    };
    let mut session = group.agree(begin())?;
    let stored_test = session.join(group, stored_test)?;
    joining::compare_gradients(&session)?;
    session.announce(observer);
    let stop = || stop.load(Ordering::Relaxed);
    let restored = session.state.step;
    let stopped = steps(&mut session, &config.train, &task, observer, &stop)?;
    let interrupted = stopped == Stopped::Interrupted;
    let stored_test = stored_test.filter(|_| session.state.step == restored && !interrupted);
    let was_complete = stored_test.is_some();
    let test = match stored_test {
        Some(record) => Some(session.keep_test(record)?),
        None if interrupted => None,
        None => session.test(observer, &stop)?,
    };
    let stopped = if test.is_none() { Stopped::Interrupted } else { stopped };
    let summary = Summary { was_complete, ..session.summary(stopped, test) };
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
        let group = session.group.clone();
        // One process does not read ahead of its end.
        let micro = match group.size() == 1 && stop() {
            true => Ok(Vec::new()),
            false => next_batches(session, &mut batches, config, task),
        };
        let scored = micro.as_ref().map_or(0, |micro| step::scored(micro));
        let agreed = group.agree_with(micro, stop(), scored);
        let agreed = agreed.inspect_err(|error| session.save_before(error, observer))?;
        if agreed.stop {
            session.save(observer)?;
            return Ok(Stopped::Interrupted);
        }
        session.step(&agreed.value, agreed.numbers.iter().sum(), observer)?;
        if session.save_due() && !session.evaluation_due() {
            session.save(observer)?;
        }
    }
}

/// The batches of this rank in the next step.
fn next_batches(
    session: &Session<'_>,
    batches: &mut Option<Loader>,
    config: &TrainConfig,
    task: &Task,
) -> Result<Vec<Batch>> {
    if session.epoch_ends() {
        *batches = None;
    }
    let group = &session.group;
    let loader = match batches {
        Some(loader) => loader,
        none => {
            let (step, of) = (session.state.step, session.state.steps_per_epoch);
            let own = group.shards(config.shards);
            none.insert(shard_batches(config, task, step / of, step % of, own)?)
        }
    };
    let count = group.shards(config.shards).len() * config.accumulate;
    Ok(loader.take(count).collect::<dss_data::Result<_>>()?)
}

/// The data. The first rank of each machine makes or decodes them; the others then find them in the cache.
fn load(
    config: &Config,
    data_dir: Option<&Path>,
    group: &Group,
    observer: &mut dyn Observer,
) -> Result<Task> {
    let observer = RefCell::new(observer);
    let tell = |text: &str| observer.borrow_mut().event(&Event::Loading(text.to_owned()));
    let load = || config.load_task(data_dir, &tell);
    if group.size() == 1 {
        return load();
    }
    let group = group.patient();
    let first = group.is_first_of_machine();
    let task = group.agree(first.then(load).transpose())?;
    let task = group.agree(task.map_or_else(load, Ok))?;
    joining::compare(&group, "has different data from rank 0", task.split_hash.as_bytes())?;
    Ok(task)
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
