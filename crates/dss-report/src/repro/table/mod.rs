//! The table of a grid: the paper's numbers next to ours.

mod csv;
mod html;
mod layout;
mod markdown;
mod terminal;

use std::path::Path;

use burn::tensor::Device;
use dss_train::Scores;
use dss_train::config::Overlay;
use dss_train::run_dir::{RunDir, write_file};
use serde::Serialize;

use super::grid::Grid;
use super::grid_run::{GridRun, RunStatus};
use super::models::{GridModel, model, reference};
use super::paper::PaperRow;
use super::progress::Progress;
use super::setting::GridSetting;
use super::table_kind::TableKind;
use super::{Budget, changes, paper};
use crate::error::Result;
use crate::inspect::Inspection;

/// Everything that the files show.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Which table.
    pub table: TableKind,
    /// Its title.
    pub title: &'static str,
    /// What each run got.
    pub budget: Budget,
    /// Settings that were asked for.
    pub sets: Vec<GridSetting>,
    /// The tasks.
    pub columns: Vec<TableColumn>,
    /// The systems.
    pub rows: Vec<TableRow>,
    /// Systems of the paper's table that are not run here, with its numbers.
    pub reported: Vec<TableRow>,
    /// The 95th percentile of argmax |K| of DSS-softmax, by task; only for the ablations.
    pub argmax_95: Vec<TableEntry>,
    /// What to know about the numbers.
    pub notes: Vec<String>,
}

/// A task.
#[derive(Clone, Debug, Serialize)]
pub struct TableColumn {
    /// Its name.
    pub task: String,
    /// L, once a run is complete.
    pub length: Option<usize>,
    /// L in the paper.
    pub paper_length: Option<usize>,
    /// The score of always giving the most frequent answer, in per cent.
    pub chance: Option<f64>,
    /// What the numbers are: `accuracy` in per cent, `mse` or `loss`.
    pub measure: Option<&'static str>,
    /// The preset of its runs.
    pub preset: Option<String>,
    /// Settings of its runs that override the preset.
    pub settings: Overlay,
    /// Optimiser steps of a complete run.
    pub steps: Option<u64>,
    /// How its settings differ from the paper's.
    pub changes: Vec<String>,
    /// Why it was left out, and what to do.
    pub skipped: Option<String>,
}

/// A system.
#[derive(Clone, Debug, Serialize)]
pub struct TableRow {
    /// Its name.
    pub label: &'static str,
    /// Its name here; none for systems that are only reported.
    pub model: Option<&'static str>,
    /// One for each column.
    pub entries: Vec<TableEntry>,
    /// The paper's average over the Long Range Arena.
    pub paper_average: Option<&'static str>,
    /// Ours, if all of its tasks are done.
    pub average: Option<f64>,
}

/// A system on a task.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TableEntry {
    /// The paper's number, as printed.
    pub paper: Option<&'static str>,
    /// Mean over the complete runs.
    pub ours: Option<f64>,
    /// Their standard deviation, if there are at least two.
    pub spread: Option<f64>,
    /// The runs.
    pub runs: Vec<TableRun>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct TableRun {
    /// Its directory, in that of the grid.
    pub dir: String,
    /// Its seed.
    pub seed: u64,
    /// `done`, `begun`, `waiting`, `failed` or `no data`.
    pub state: &'static str,
    /// On the test set: accuracy in per cent, or the error.
    pub score: Option<f64>,
    /// Optimiser steps.
    pub steps: Option<u64>,
    /// Seconds of work.
    pub seconds: Option<f64>,
    /// The most memory in MB while it ran.
    pub peak_mb: Option<f64>,
    /// Trained numbers of the model.
    pub parameters: Option<usize>,
    /// What went wrong.
    pub error: Option<String>,
}

impl Table {
    /// The table of what is there.
    pub fn new(grid: &Grid, progress: &Progress) -> Self {
        let kind = grid.table();
        let mut columns: Vec<_> = grid.tasks().iter().map(|task| column(grid, task)).collect();
        let mut reported: Vec<TableRow> = Vec::new();
        let is_reported = |row: &&PaperRow| {
            row.by_others && grid.models().all(|model| Some(model.name) != row.model)
        };
        for row in kind.paper().rows.iter().filter(is_reported) {
            let number = |task: &String| kind.paper().number(row, task);
            let entry = |task| TableEntry { paper: number(task), ..TableEntry::default() };
            reported.push(TableRow {
                label: row.model.and_then(model).map_or(row.label, |model| model.label),
                model: None,
                entries: grid.tasks().iter().map(entry).collect(),
                paper_average: row.average,
                average: None,
            });
        }
        reported.retain(|row| row.entries.iter().any(|entry| entry.paper.is_some()));
        let rows = grid.models().map(|model| ours(grid, progress, model, &mut columns)).collect();
        let argmax_95 = match kind {
            TableKind::Ablations => {
                grid.tasks().iter().map(|task| peaks(grid, progress, task)).collect()
            }
            TableKind::Lra | TableKind::Speech => Vec::new(),
        };
        let mut table = Self {
            table: kind,
            title: kind.title(),
            budget: grid.budget(),
            sets: grid.sets().to_vec(),
            columns,
            rows,
            reported,
            argmax_95,
            notes: Vec::new(),
        };
        table.notes = table.remarks();
        table
    }

    /// Writes `table.md`, `table.json`, `table.csv` and `table.html`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        for (name, text) in [
            ("table.md", markdown::text(self)),
            ("table.json", json),
            ("table.csv", csv::text(self)),
            ("table.html", html::page(self)),
        ] {
            write_file(&dir.join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        terminal::text(self)
    }

    /// What a budget is, and what to know before comparing.
    fn remarks(&self) -> Vec<String> {
        let mut notes = vec![match self.budget {
            Budget::Full => {
                "Budget full: the paper's settings, each model with its own.".to_owned()
            }
            Budget::Steps(steps) => format!(
                "Budget: {steps} optimiser steps for every run, with half a cosine as schedule; on one task all models \
                 have the same layers, width and data."
            ),
            Budget::Seconds(seconds) => format!(
                "Budget: about {} for each run, as a number of optimiser steps: as many as DSS-softmax makes in that \
                 time on the machine that began the grid. On one task all models have the same steps, layers, width and \
                 data; the schedule is half a cosine over these steps.",
                dss_train::text::duration(seconds as f64)
            ),
        }];
        if !self.sets.is_empty() {
            let sets: Vec<String> = self.sets.iter().map(GridSetting::to_string).collect();
            notes.push(format!("Set for all runs: {}.", sets.join(" ")));
        }
        notes.extend(self.numbers_of_others());
        notes.extend(self.short_kernels());
        if self.rows.iter().flat_map(|row| &row.entries).any(|entry| entry.spread.is_some()) {
            notes.push("± is the standard deviation over the seeds.".to_owned());
        }
        notes
    }

    /// What the paper reports of systems that have no row here.
    fn numbers_of_others(&self) -> Option<String> {
        let system = |row: &TableRow| {
            let numbers =
                self.columns.iter().zip(&row.entries).filter_map(|(column, entry)| {
                    Some(format!("{} {}", column.task, entry.paper?))
                });
            let average = row.paper_average.filter(|_| layout::has_average(self));
            let average = average.map(|average| format!("average {average}"));
            format!("{}: {}", row.label, numbers.chain(average).collect::<Vec<_>>().join(", "))
        };
        let systems: Vec<String> = self.reported.iter().map(system).collect();
        (!systems.is_empty())
            .then(|| format!("Not run here, as the paper reports it: {}.", systems.join("; ")))
    }

    /// A kernel of 128 taps takes less away from a shorter sequence.
    fn short_kernels(&self) -> Option<String> {
        self.rows.iter().find(|row| row.model == Some("kernel-128"))?;
        let shares = self.columns.iter().filter_map(|column| {
            let (here, there) = (column.length?, column.paper_length?);
            let share = |length: usize| (12_800 / length.max(1)).min(100);
            let text = format!("{} % ({} %) on {}", share(here), share(there), column.task);
            (here != there).then_some(text)
        });
        let shares: Vec<String> = shares.collect();
        (!shares.is_empty()).then(|| {
            format!(
                "A kernel of 128 taps covers this share of the sequence here (in the paper): {}.",
                shares.join(", ")
            )
        })
    }
}

fn column(grid: &Grid, task: &str) -> TableColumn {
    let plan = grid.plan(task);
    let config = grid.base(task, reference());
    let paper = grid.paper_config(task);
    let changes = match paper {
        Some(paper) if paper::number(reference().name, task).is_some() => {
            changes::between(config, &paper)
        }
        _ if paper::length(task).is_some() => {
            vec![format!("the paper has no {} here", reference().label)]
        }
        _ => Vec::new(),
    };
    TableColumn {
        task: task.to_owned(),
        length: plan.and_then(|plan| plan.speed.map(|speed| speed.length)),
        paper_length: paper::length(task),
        chance: None,
        measure: None,
        preset: plan.map(|plan| plan.preset.clone()),
        settings: plan.map(|plan| plan.settings.clone()).unwrap_or_default(),
        steps: None,
        changes,
        skipped: grid.skipped(task).map(str::to_owned),
    }
}

/// The row of a model; fills in what its runs tell about the columns.
fn ours(
    grid: &Grid,
    progress: &Progress,
    model: &'static GridModel,
    columns: &mut [TableColumn],
) -> TableRow {
    let mut entries = Vec::new();
    for column in columns {
        let mut runs = Vec::new();
        for cell in grid.seeds(&column.task, model) {
            let status = progress.status(&cell);
            if let RunStatus::Done(outcome) = status {
                column.length = outcome.length.or(column.length);
                column.chance =
                    outcome.test.majority().map(|share| 100.0 * share).or(column.chance);
                column.measure = Some(outcome.test.measure().short_name());
                column.steps = column.steps.max(Some(outcome.steps));
            }
            runs.push(run(&cell, status, column.skipped.is_some()));
        }
        let scores: Vec<f64> = runs.iter().filter_map(|run| run.score).collect();
        let (ours, spread) = mean_and_spread(&scores);
        entries.push(TableEntry {
            paper: paper::number(model.name, &column.task),
            ours,
            spread,
            runs,
        });
    }
    let lra = |task: &&str| {
        let at = grid.tasks().iter().position(|name| name == *task)?;
        entries[at].ours
    };
    let means: Option<Vec<f64>> = match grid.table() {
        TableKind::Lra => paper::LRA.tasks.iter().map(lra).collect(),
        TableKind::Speech | TableKind::Ablations => None,
    };
    let paper_average = paper::average(model.name).filter(|_| grid.table() == TableKind::Lra);
    let average = means.map(|means| means.iter().sum::<f64>() / means.len() as f64);
    TableRow { label: model.label, model: Some(model.name), entries, paper_average, average }
}

fn run(cell: &GridRun, status: &RunStatus, skipped: bool) -> TableRun {
    let empty = TableRun {
        dir: cell.name(),
        seed: cell.seed,
        state: status.name(skipped),
        score: None,
        steps: None,
        seconds: None,
        peak_mb: None,
        parameters: None,
        error: None,
    };
    match status {
        RunStatus::Done(outcome) => TableRun {
            score: Some(score(&outcome.test)),
            steps: Some(outcome.steps),
            seconds: Some(outcome.seconds),
            peak_mb: outcome.peak_mb,
            parameters: Some(outcome.parameters),
            ..empty
        },
        RunStatus::Failed { error } => TableRun { error: Some(error.clone()), ..empty },
        RunStatus::Begun { steps } if !skipped => TableRun { steps: Some(*steps), ..empty },
        RunStatus::Begun { .. } | RunStatus::Waiting => empty,
    }
}

/// Of the complete runs of DSS-softmax.
fn peaks(grid: &Grid, progress: &Progress, task: &str) -> TableEntry {
    let done = grid.seeds(task, reference()).into_iter().filter(|cell| progress.is_done(cell));
    let best = done.map(|cell| RunDir::new(&grid.dir(&cell)).best());
    // A table does not fail for a checkpoint that was removed.
    let models = best.filter_map(|path| Inspection::load(&path, &Device::flex()).ok());
    let found: Vec<f64> = models.map(|model| model.peaks().argmax_95).collect();
    let (ours, spread) = mean_and_spread(&found);
    TableEntry { paper: paper::argmax_95(task), ours, spread, runs: Vec::new() }
}

/// The score that counts, accuracies in per cent.
fn score(scores: &Scores) -> f64 {
    scores.accuracy.map_or(scores.loss, |accuracy| 100.0 * accuracy)
}

/// Mean, and standard deviation of at least two values.
fn mean_and_spread(values: &[f64]) -> (Option<f64>, Option<f64>) {
    let n = values.len() as f64;
    let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n);
    let spread = mean.filter(|_| values.len() > 1).map(|mean| {
        let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (squares / (n - 1.0)).sqrt()
    });
    (mean, spread)
}

#[cfg(test)]
mod tests;
