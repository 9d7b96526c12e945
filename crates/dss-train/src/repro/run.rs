//! Working through a grid.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use burn::tensor::Device;

use super::budget::Budget;
use super::cell::{Cell, State};
use super::grid::Grid;
use super::models::REFERENCE;
use super::plan::{self, Plan};
use super::table::Table;
use super::{estimate, speed};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::report::write_report;
use crate::trainer::{Observer, Stopped, TrainOptions, train};

/// How the runs are made; nothing here changes their outcome, but `threads` and `device` the speed that is measured.
#[derive(Clone, Debug)]
pub struct GridOptions {
    /// Threads to compute with; `None`: one per core.
    pub threads: Option<usize>,
    /// Where to compute.
    pub device: Device,
}

/// Watches a grid being worked through.
pub trait Watch {
    /// Something worth a line.
    fn note(&mut self, text: &str);
    /// A run begins or goes on: number `number` of `of`, with about `left` seconds for it and all after it.
    fn begin(&mut self, cell: &Cell, number: usize, of: usize, left: Option<f64>);
    /// Who watches that run.
    fn observer(&mut self) -> Box<dyn Observer>;
    /// The run ended, was interrupted, or failed.
    fn end(&mut self, cell: &Cell, state: &State);
}

/// How the work on a grid ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Runs that failed.
    pub failed: usize,
    /// Tasks that were left out.
    pub skipped: usize,
    /// Whether the stop flag ended it.
    pub interrupted: bool,
}

/// Seconds for which the speed of a task is measured, and the share of a short budget.
const MEASURE: f64 = 10.0;
const MEASURE_SHARE: f64 = 0.05;

impl Grid {
    /// Runs what is not complete, one after the other, and writes the tables after each.
    ///
    /// A run that was interrupted goes on to the same bits; one that failed is tried again; when it fails, the others
    /// go on. When `stop` becomes true, the run at hand saves its state and the work ends.
    ///
    /// # Errors
    /// If the grid's own files cannot be written, or another process works on it.
    pub fn run(
        &mut self,
        options: &GridOptions,
        watch: &mut dyn Watch,
        stop: &AtomicBool,
    ) -> Result<Ended> {
        let _lock = self.claim()?;
        let stopped = || stop.load(Ordering::Relaxed);
        let cells = self.cells()?;
        for task in self.tasks().to_vec() {
            if let Some(why) = self.skipped(&task) {
                watch.note(&format!("{task} is left out: {why}"));
            }
        }
        for (i, cell) in cells.iter().enumerate() {
            if stopped() {
                break;
            }
            if self.skipped(&cell.task).is_some() || matches!(self.state(cell), State::Done(_)) {
                continue;
            }
            if self.plan(&cell.task).is_none() {
                match self.decide(&cell.task, options, watch, stop) {
                    Ok(()) if self.plan(&cell.task).is_none() => break,
                    Ok(()) => self.save()?,
                    Err(Error::Data(missing @ dss_data::Error::Missing { .. })) => {
                        let why = missing.message_and_hint();
                        watch.note(&format!("{} is left out: {why}", cell.task));
                        self.skipped.insert(cell.task.clone(), why);
                        continue;
                    }
                    Err(error) => {
                        self.failed(cell, &error, watch)?;
                        continue;
                    }
                }
            }
            watch.begin(cell, i + 1, cells.len(), self.left(&cells[i..]));
            if self.set_failed(cell, None) {
                self.save()?;
            }
            match self.train(cell, options, watch, stop) {
                Ok(Stopped::Interrupted) => {
                    watch.end(cell, &self.state(cell));
                    break;
                }
                Ok(Stopped::Finished | Stopped::Early) => watch.end(cell, &self.state(cell)),
                Err(error) => self.failed(cell, &error, watch)?,
            }
            Table::of(self)?.write(self.root())?;
        }
        Table::of(self)?.write(self.root())?;
        let failed = cells.iter().filter(|cell| matches!(self.state(cell), State::Failed { .. }));
        Ok(Ended { failed: failed.count(), skipped: self.skipped.len(), interrupted: stopped() })
    }

    fn train(
        &self,
        cell: &Cell,
        options: &GridOptions,
        watch: &mut dyn Watch,
        stop: &AtomicBool,
    ) -> Result<Stopped> {
        let (config, dir) = (self.config(cell)?, self.dir(cell));
        let options = TrainOptions {
            resume: dir.join("config.toml").exists(),
            data_dir: self.data_dir.clone(),
            threads: options.threads,
            device: options.device.clone(),
        };
        let mut observer = watch.observer();
        let result = train(&config, &dir, options, &mut *observer, stop);
        drop(observer);
        if matches!(result, Ok(_) | Err(Error::NonFinite { .. }))
            && let Err(error) = write_report(&dir)
        {
            watch.note(&format!("no report of {}: {error}", cell.name()));
        }
        Ok(result?.stopped)
    }

    fn failed(&mut self, cell: &Cell, error: &Error, watch: &mut dyn Watch) -> Result<()> {
        self.set_failed(cell, Some(error.to_string()));
        self.save()?;
        watch.end(cell, &State::Failed { error: error.to_string() });
        Ok(())
    }

    /// Measures the speed of a task and fits its steps to the budget; no plan if `stop` ended it.
    fn decide(
        &mut self,
        task: &str,
        options: &GridOptions,
        watch: &mut dyn Watch,
        stop: &AtomicBool,
    ) -> Result<()> {
        let Budget::Seconds(seconds) = self.budget() else { return Ok(()) };
        let seconds = seconds as f64;
        watch.note(&format!("{task}: measuring how fast {} trains", REFERENCE.label));
        let config = self.base(task, REFERENCE)?;
        let loaded = config.task.load(self.data_dir.as_deref(), &|_| ())?;
        let limit = Duration::from_secs_f64(MEASURE.min(MEASURE_SHARE * seconds));
        let device = &options.device;
        let speed = speed::measure(&config, &loaded, device, options.threads, limit, stop)?;
        if let Some(speed) = speed {
            // Examples that were asked for stay as many.
            let preset = Config::resolve(task, None, &[], &[])?;
            let paper = self.paper_config(task).filter(|_| plan::same_train(&config, &preset));
            let plan = Plan::of_time(&config, paper.as_ref(), seconds, speed);
            watch.note(&format!(
                "{task}: {:.1} ms per step; every run has {}",
                1e3 * speed.seconds_per_step,
                plan.settings.join(" ")
            ));
            self.set_plan(task, plan);
        }
        Ok(())
    }

    /// About how many seconds these runs will take; `None` if nothing is known of one of them.
    pub fn left(&self, cells: &[Cell]) -> Option<f64> {
        let mut expected: BTreeMap<&str, Option<f64>> = BTreeMap::new();
        let open = cells.iter().filter(|cell| self.skipped(&cell.task).is_none());
        let open = open.filter(|cell| !matches!(self.state(cell), State::Done(_)));
        open.map(|cell| *expected.entry(&cell.task).or_insert_with(|| self.expected(&cell.task)))
            .sum()
    }

    /// About how many seconds a run of the paper's size takes on each task that has open runs, without evaluations,
    /// from a few steps on random data; tasks that are not in the paper are not among them.
    ///
    /// # Errors
    /// If a model cannot be made.
    pub fn estimate(&self, cells: &[Cell], options: &GridOptions) -> Result<BTreeMap<String, f64>> {
        let mut found = BTreeMap::new();
        for cell in cells {
            let known = found.contains_key(&cell.task) || self.skipped(&cell.task).is_some();
            if !known && !matches!(self.state(cell), State::Done(_)) {
                let config = self.base(&cell.task, REFERENCE)?;
                let one = estimate::seconds(&config, &options.device, options.threads)?;
                found.extend(one.map(|one| (cell.task.clone(), one)));
            }
        }
        Ok(found)
    }

    /// The mean time of the task's runs that are done, or the budget.
    fn expected(&self, task: &str) -> Option<f64> {
        let mut done = Vec::new();
        for model in self.models() {
            for cell in self.seeds(task, model).unwrap_or_default() {
                if let State::Done(outcome) = self.state(&cell) {
                    done.push(outcome.seconds);
                }
            }
        }
        match (done.len(), self.budget()) {
            (0, Budget::Seconds(seconds)) => Some(seconds as f64),
            (0, Budget::Full | Budget::Steps(_)) => None,
            (n, _) => Some(done.iter().sum::<f64>() / n as f64),
        }
    }
}
