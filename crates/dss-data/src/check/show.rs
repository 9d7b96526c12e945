//! The report as text.

use std::fmt::{self, Display, Formatter};

use super::{FileReport, Report, Sample, Shape, SplitReport, ValueRange};
use crate::catalogue::Verdict;
use crate::units::bytes;

/// Classes that are listed.
const CLASSES: usize = 40;
/// Width of the first column.
const NAME: usize = 14;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<NAME$}{}", "task", self.task)?;
        self.files.iter().try_for_each(|file| write!(f, "{file}"))?;
        if let Some(shape) = &self.shape {
            writeln!(f, "{:<NAME$}{}", "input", shape.input())?;
            writeln!(f, "{:<NAME$}{}", "target", shape.target())?;
        }
        if !self.splits.is_empty() {
            table(f, &self.splits)?;
        }
        if let Some(hash) = &self.split_hash {
            writeln!(f, "{:<NAME$}{hash}", "split hash")?;
        }
        if let Some(sample) = &self.sample {
            write!(f, "{sample}")?;
        }
        for (i, note) in self.notes.iter().enumerate() {
            writeln!(f, "{:<NAME$}{note}", if i == 0 { "notes" } else { "" })?;
        }
        for (i, fault) in self.faults.iter().enumerate() {
            writeln!(f, "{:<NAME$}{fault}", if i == 0 { "faults" } else { "" })?;
        }
        if self.faults.is_empty() {
            writeln!(f, "{:<NAME$}none", "faults")?;
        }
        Ok(())
    }
}

impl Display for FileReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let size = self.bytes.map_or_else(|| "folder".into(), bytes);
        writeln!(f, "{:<NAME$}{} ({size})", "source", self.path.display())?;
        if let Some(sha256) = &self.sha256 {
            let verdict = match self.verdict {
                Some(Verdict::Official) => "the published file",
                Some(Verdict::Mismatch) => "NOT the published file",
                Some(Verdict::Other) => "not the published file",
                Some(Verdict::Unknown) | None => "nothing to compare with",
            };
            writeln!(f, "{:<NAME$}SHA-256 {sha256}: {verdict}", "")?;
        }
        Ok(())
    }
}

impl Shape {
    fn input(&self) -> String {
        let what = match (self.vocab, self.channels) {
            (Some(vocab), _) => format!("{vocab} different tokens"),
            (_, Some(1)) => "1 number per position".into(),
            (_, channels) => format!("{} numbers per position", channels.unwrap_or_default()),
        };
        let pair = if self.pair { "two sequences of " } else { "" };
        format!("{pair}{what}, length up to {}", self.len)
    }

    fn target(&self) -> String {
        let what = match self.outputs {
            Some(1) => "1 number".into(),
            Some(outputs) => format!("{outputs} numbers"),
            None => format!("{} classes", self.labels.len()),
        };
        if self.positions { format!("{what}, at every position") } else { what }
    }
}

/// One column per split.
fn table(f: &mut Formatter<'_>, splits: &[SplitReport]) -> fmt::Result {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut row = |name: &str, cell: &dyn Fn(&SplitReport) -> String| {
        let cells: Vec<String> = splits.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            rows.push((name.to_owned(), cells));
        }
    };
    row("", &|s| s.name.to_owned());
    row("examples", &|s| s.examples.to_string());
    row("faulty", &|s| if s.faulty > 0 { s.faulty.to_string() } else { String::new() });
    let length = |get: &dyn Fn(&super::Lengths) -> u32, s: &SplitReport| {
        s.lengths.as_ref().map_or(String::new(), |lengths| get(lengths).to_string())
    };
    row("shortest", &|s| length(&|l| l.min, s));
    row("median", &|s| length(&|l| l.median, s));
    row("longest", &|s| length(&|l| l.max, s));
    let range = |range: &Option<ValueRange>| {
        range.map_or(String::new(), |r| format!("{:.4} .. {:.4}", r.min, r.max))
    };
    let mean = |range: &Option<ValueRange>| {
        range.map_or(String::new(), |r| format!("{:.4} ± {:.4}", r.mean, r.deviation))
    };
    row("values", &|s| range(&s.values));
    row("mean", &|s| mean(&s.values));
    row("targets", &|s| range(&s.targets));
    row("mean target", &|s| mean(&s.targets));
    row("tokens used", &|s| s.tokens.map_or(String::new(), |n| n.to_string()));
    row("unknown", &|s| match s.unknown {
        Some(share) if share > 0.0 => format!("{:.3} %", 100.0 * share),
        _ => String::new(),
    });
    let classes = splits.first().map_or(&[][..], |split| &split.labels);
    for (class, (label, _)) in classes.iter().enumerate().take(CLASSES) {
        let label: String = label.chars().filter(|c| !c.is_control()).take(NAME - 2).collect();
        row(&label, &|s| {
            let all: u64 = s.labels.iter().map(|(_, count)| count).sum();
            let count = s.labels.get(class).map_or(0, |(_, count)| *count);
            format!("{count} ({:.1} %)", 100.0 * count as f64 / all.max(1) as f64)
        });
    }
    let widths: Vec<usize> = (0..splits.len())
        .map(|i| rows.iter().map(|(_, cells)| cells[i].chars().count()).max().unwrap_or(0))
        .collect();
    for (name, cells) in &rows {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        writeln!(f, "{name:<NAME$}{}", cells.collect::<Vec<_>>().join("  "))?;
    }
    if classes.len() > CLASSES {
        writeln!(f, "{:<NAME$}and {} more classes", "", classes.len() - CLASSES)?;
    }
    Ok(())
}

impl Display for Sample {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<NAME$}the first of train, target: {}", "sample", self.target)?;
        for (i, input) in self.inputs.iter().enumerate() {
            if i > 0 {
                writeln!(f, "{:<NAME$}and", "")?;
            }
            for line in input.lines() {
                writeln!(f, "{}", format!("{:<NAME$}{line}", "").trim_end())?;
            }
        }
        Ok(())
    }
}
