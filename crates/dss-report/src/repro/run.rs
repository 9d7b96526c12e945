//! Working through a grid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use burn::tensor::Device;
use dss_train::config::Config;
use dss_train::{Observer, TrainOptions, memory, train};

use super::budget::Budget;
use super::grid::Grid;
use super::grid_run::{GridRun, RunStatus};
use super::models::reference;
use super::plan::{self, Plan};
use super::progress::Progress;
use super::table::Table;
use super::{estimate, speed};
use crate::error::{Error, Result};
use crate::report::write_report;

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
    /// A run begins or continues: number `number` of `of`, with about `left` seconds for it and all after it.
    fn begin(&mut self, cell: &GridRun, number: usize, of: usize, left: Option<f64>);
    /// Who watches that run.
    fn observer(&mut self) -> Box<dyn Observer>;
    /// The run ended, was interrupted, or failed.
    fn end(&mut self, cell: &GridRun, status: &RunStatus);
}

/// How the work on a grid ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridSummary {
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
    /// A run that was interrupted continues to the same bits; one that failed is tried again; a failure does not stop the
    /// others. When `stop` becomes true, the run at hand saves its state and the work ends.
    ///
    /// # Errors
    /// If the grid's own files cannot be written, or another process works on it.
    pub fn run(
        &mut self,
        options: &GridOptions,
        watch: &mut dyn Watch,
        stop: &AtomicBool,
    ) -> Result<GridSummary> {
        let _lock = self.claim()?;
        let stopped = || stop.load(Ordering::Relaxed);
        for task in self.tasks() {
            if let Some(why) = self.skipped(task) {
                watch.note(&format!("{task} is left out: {why}"));
            }
        }
        let cells = self.cells();
        let mut progress = Progress::read(self);
        for (i, cell) in cells.iter().enumerate() {
            if stopped() {
                break;
            }
            if self.skipped(&cell.task).is_some() || progress.is_done(cell) {
                continue;
            }
            if self.plan(&cell.task).is_none() {
                match self.decide(&cell.task, options, watch, stop) {
                    Ok(()) if self.plan(&cell.task).is_none() => break,
                    Ok(()) => {
                        self.save()?;
                        progress = Progress::read(self);
                    }
                    Err(Error::Train(dss_train::Error::Data(
                        missing @ dss_data::Error::Missing { .. },
                    ))) => {
                        let why = missing.message_and_hint();
                        watch.note(&format!("{} is left out: {why}", cell.task));
                        self.skipped.insert(cell.task.clone(), why);
                        continue;
                    }
                    Err(error) => {
                        self.failed(cell, &error, &mut progress, watch)?;
                        continue;
                    }
                }
            }
            watch.begin(cell, i + 1, cells.len(), progress.seconds_left(self, &cells[i..]));
            if self.set_failed(cell, None) {
                self.save()?;
            }
            match self.train(cell, options, watch, stop) {
                Ok(()) => {
                    progress.update(self, cell);
                    watch.end(cell, progress.status(cell));
                }
                Err(error) => self.failed(cell, &error, &mut progress, watch)?,
            }
            Table::new(self, &progress).write(self.root())?;
        }
        Table::new(self, &progress).write(self.root())?;
        let failed = |cell: &&GridRun| matches!(progress.status(cell), RunStatus::Failed { .. });
        Ok(GridSummary {
            failed: cells.iter().filter(failed).count(),
            skipped: self.skipped.len(),
            interrupted: stopped(),
        })
    }

    fn train(
        &self,
        cell: &GridRun,
        options: &GridOptions,
        watch: &mut dyn Watch,
        stop: &AtomicBool,
    ) -> Result<()> {
        let (config, dir) = (self.config(cell), self.dir(cell));
        let options = TrainOptions {
            resume: dir.join("config.toml").exists(),
            data_dir: self.data_dir.clone(),
            threads: options.threads,
            device: options.device.clone(),
            ..TrainOptions::default()
        };
        let mut observer = watch.observer();
        memory::reset_peak();
        let result = train(&config, &dir, options, &mut *observer, stop);
        drop(observer);
        if matches!(result, Ok(_) | Err(dss_train::Error::NonFinite { .. }))
            && let Err(error) = write_report(&dir)
        {
            watch.note(&format!("no report for {}: {error}", cell.name()));
        }
        result?;
        Ok(())
    }

    fn failed(
        &mut self,
        cell: &GridRun,
        error: &Error,
        progress: &mut Progress,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        self.set_failed(cell, Some(error.to_string()));
        self.save()?;
        progress.update(self, cell);
        watch.end(cell, progress.status(cell));
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
        watch.note(&format!("{task}: measuring how fast {} trains", reference().label));
        let config = self.base(task, reference()).clone();
        let loaded = config.task.load(self.data_dir.as_deref(), &|_| ())?;
        let limit = Duration::from_secs_f64(MEASURE.min(MEASURE_SHARE * seconds));
        let device = &options.device;
        let speed = speed::measure(&config, &loaded, device, options.threads, limit, stop)?;
        if let Some(speed) = speed {
            // Examples that were asked for stay as many.
            let preset = Config::resolve(task, Some(self.preset(task)), &[], &[])?;
            let paper = self
                .paper_config(task)
                .filter(|_| plan::training_examples(&config) == plan::training_examples(&preset));
            let plan = Plan::of_time(&config, paper.as_ref(), seconds, speed);
            watch.note(&format!(
                "{task}: {:.1} ms per step; every run has {}",
                1e3 * speed.seconds_per_step,
                plan.settings
            ));
            self.set_plan(task, plan)?;
        }
        Ok(())
    }

    /// About how many seconds a run of the paper's size takes on each task of these runs, without evaluations, from a
    /// few steps on random data; tasks that are not in the paper are not among them.
    ///
    /// # Errors
    /// If a model cannot be made.
    pub fn estimate<'a>(
        &self,
        cells: impl Iterator<Item = &'a GridRun>,
        options: &GridOptions,
    ) -> Result<BTreeMap<&'a str, f64>> {
        let tasks: BTreeSet<&str> = cells.map(|cell| cell.task.as_str()).collect();
        let mut found = BTreeMap::new();
        for task in tasks {
            let config = self.base(task, reference());
            let seconds = estimate::seconds(config, &options.device, options.threads)?;
            found.extend(seconds.map(|seconds| (task, seconds)));
        }
        Ok(found)
    }
}
