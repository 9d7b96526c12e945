//! The table as lines of cells, for all that show it.

use std::fmt;

use dss_train::text::duration;

use super::{Table, TableEntry, TableRun};
use crate::text::number;

/// A cell: a text, such as our number, and that of the paper.
pub(super) struct TableCell {
    pub(super) ours: String,
    pub(super) paper: Option<String>,
    /// Whether it has the best of our numbers in its column.
    pub(super) best: bool,
}

impl TableCell {
    fn new(ours: Option<String>, paper: Option<String>) -> Self {
        let nothing = if paper.is_none() { "–" } else { "" };
        Self { ours: ours.unwrap_or(nothing.to_owned()), paper, best: false }
    }

    fn text(text: impl Into<String>) -> Self {
        Self::new(Some(text.into()), None)
    }
}

/// `ours (paper)`
impl fmt::Display for TableCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, paper, .. } = self;
        match paper {
            Some(paper) if ours.is_empty() => write!(f, "({paper})"),
            Some(paper) => write!(f, "{ours} ({paper})"),
            None => f.write_str(ours),
        }
    }
}

/// A line of the table.
pub(super) struct TableLine {
    pub(super) cells: Vec<TableCell>,
}

/// The first line: the tasks, and the average where there is one.
pub(super) fn head(table: &Table) -> Vec<String> {
    let tasks = table.columns.iter().map(|column| column.task.clone());
    let average = has_average(table).then(|| "average".to_owned());
    std::iter::once("model".to_owned()).chain(tasks).chain(average).collect()
}

/// Two lines about the tasks: length and chance.
pub(super) fn about(table: &Table) -> [TableLine; 2] {
    let average = || has_average(table).then(|| TableCell::text(""));
    let lengths = table.columns.iter().map(|column| {
        let [ours, paper] = [column.length, column.paper_length];
        TableCell::new(ours.map(|l| l.to_string()), paper.map(|l| l.to_string()))
    });
    let chances = table.columns.iter().map(|column| {
        let chance = column.chance.map(|chance| format!("{chance:.2}"));
        TableCell::new(chance, None)
    });
    let line = |name: &str, cells: Vec<TableCell>| {
        let cells = std::iter::once(TableCell::text(name)).chain(cells).chain(average());
        TableLine { cells: cells.collect() }
    };
    [line("input length", lengths.collect()), line("most frequent class", chances.collect())]
}

/// A line for each system.
pub(super) fn lines(table: &Table) -> Vec<TableLine> {
    let average = has_average(table);
    let is_accuracy = |i: usize| table.columns[i].measure == Some("accuracy");
    let best: Vec<Option<f64>> = (0..table.columns.len())
        .map(|i| best(table.rows.iter().filter_map(|row| row.entries[i].ours), is_accuracy(i)))
        .collect();
    let best_average = self::best(table.rows.iter().filter_map(|row| row.average), true);
    let row = |row: &super::TableRow| {
        let is_best = |ours: Option<f64>, best: Option<f64>| ours.is_some() && ours == best;
        let entries = row.entries.iter().zip(&best).enumerate().map(|(i, (entry, best))| {
            TableCell { best: is_best(entry.ours, *best), ..shown(entry, is_accuracy(i)) }
        });
        let mean = row.average.map(|mean| format!("{mean:.2}"));
        let mean = average.then(|| TableCell {
            best: is_best(row.average, best_average),
            ..TableCell::new(mean, row.paper_average.map(str::to_owned))
        });
        let label = TableCell::text(row.label);
        TableLine { cells: std::iter::once(label).chain(entries).chain(mean).collect() }
    };
    let mut lines: Vec<TableLine> = table.rows.iter().map(row).collect();
    if !table.argmax_95.is_empty() {
        let entries = table.argmax_95.iter().map(|entry| {
            TableCell::new(entry.ours.map(|x| format!("{x:.0}")), entry.paper.map(str::to_owned))
        });
        let label = TableCell::text("DSS-softmax: argmax |K|, 95th percentile");
        let cells = std::iter::once(label).chain(entries).collect();
        lines.push(TableLine { cells });
    }
    lines
}

/// The first line of the runs.
pub(super) const RUNS: [&str; 9] =
    ["task", "model", "seed", "test", "steps", "time", "memory", "parameters", "directory"];

/// Every run of ours that has its data, and what went wrong with it.
pub(super) fn runs(table: &Table) -> Vec<(Vec<String>, Option<&str>)> {
    let mut lines = Vec::new();
    for (i, column) in table.columns.iter().enumerate() {
        for row in &table.rows {
            for run in row.entries[i].runs.iter().filter(|run| run.state != "no data") {
                let accuracy = column.measure == Some("accuracy");
                let cells = vec![
                    column.task.clone(),
                    row.label.to_owned(),
                    run.seed.to_string(),
                    run.score.map_or(run.state.to_owned(), |score| value(score, accuracy)),
                    run.steps.map(|steps| steps.to_string()).unwrap_or_default(),
                    run.seconds.map(duration).unwrap_or_default(),
                    run.peak_mb.map(|mb| format!("{mb:.0} MB")).unwrap_or_default(),
                    run.parameters.map(|n| n.to_string()).unwrap_or_default(),
                    run.dir.clone(),
                ];
                lines.push((cells, run.error.as_deref()));
            }
        }
    }
    lines
}

/// What the budget changes, a paragraph for each task.
pub(super) fn changes(table: &Table) -> Vec<(String, String)> {
    let about = |column: &super::TableColumn| {
        let mut parts = Vec::new();
        if let Some(why) = &column.skipped {
            parts.push(format!("left out: {why}"));
        }
        if let Some(steps) = column.steps {
            parts.push(format!("{steps} optimiser steps"));
        }
        if let Some(preset) = &column.preset {
            parts.push(format!("preset {preset}"));
        }
        match (column.paper_length.is_some(), column.changes.is_empty()) {
            (false, _) => parts.push("not in the paper".to_owned()),
            (true, true) => parts.push("as in the paper".to_owned()),
            (true, false) => parts.extend(column.changes.iter().cloned()),
        }
        (column.task.clone(), parts.join("; "))
    };
    table.columns.iter().map(about).collect()
}

pub(super) const LEGEND: &str = "Test scores, accuracies in per cent: ours (the paper's). ✗ as the paper prints it: the model fails or cannot be run.";

/// The best of at least two numbers.
fn best(values: impl Iterator<Item = f64> + Clone, larger_is_better: bool) -> Option<f64> {
    let several = values.clone().nth(1).is_some();
    values.reduce(if larger_is_better { f64::max } else { f64::min }).filter(|_| several)
}

pub(super) fn has_average(table: &Table) -> bool {
    table.rows.iter().any(|row| row.paper_average.is_some())
        && super::paper::LRA.tasks.iter().all(|task| table.columns.iter().any(|c| c.task == *task))
}

fn shown(entry: &TableEntry, accuracy: bool) -> TableCell {
    let ours = match (entry.ours, entry.spread) {
        (Some(mean), Some(spread)) => {
            Some(format!("{} ± {}", value(mean, accuracy), value(spread, accuracy)))
        }
        (Some(mean), None) => Some(value(mean, accuracy)),
        (None, _) => Some(unfinished(&entry.runs).to_owned()),
    };
    TableCell::new(ours, entry.paper.map(str::to_owned))
}

fn unfinished(runs: &[TableRun]) -> &'static str {
    let any = |state: &'static str| runs.iter().any(|run| run.state == state).then_some(state);
    any("failed").or_else(|| any("no data")).or_else(|| any("begun")).unwrap_or("–")
}

fn value(x: f64, accuracy: bool) -> String {
    match accuracy {
        true => format!("{x:.2}"),
        false if x != 0.0 && x.abs() < 0.01 => format!("{x:.1e}"),
        false => number(x),
    }
}
