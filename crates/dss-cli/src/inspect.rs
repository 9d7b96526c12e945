//! `dss inspect`

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use burn::tensor::Device;
use dss_report::inspect::causality::Causality;
use dss_report::inspect::deltas::Deltas;
use dss_report::inspect::portraits::{PortraitNumbers, PortraitReport};
use dss_report::inspect::statistics::Spread;
use dss_report::inspect::{Inspection, LayerReport, Report, export, pictures};
use dss_report::report::write_report;
use dss_train::run_dir::write_file;
use dss_train::text::plural;
use dss_train::threads;

use crate::args::{Export, InspectArgs};
use crate::failure::Failure;
use crate::{output, runs, text};

pub fn run(args: InspectArgs) -> Result<ExitCode, Failure> {
    threads::with(args.threads.count, || inspect(&args))?
}

fn inspect(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let (is_run, checkpoint) = (args.model.is_dir(), runs::model_file(&args.model)?);
    let out = args.out.clone().or_else(|| is_run.then(|| args.model.join("inspect")));
    if let Some(dir) = out.as_ref().filter(|dir| args.out.is_none() && dir.is_symlink()) {
        let message = format!("{} is a link, and may lead out of the run", dir.display());
        return Err(Failure::usage(message).hint("remove it, or choose a folder with --out"));
    }
    let found = Inspection::load(&checkpoint, &Device::flex())?;
    let report = found.report()?;
    if args.json {
        output::json(&serde_json::to_value(&report).map_err(Failure::failed)?)?;
    } else {
        output::line(&tables(&report))?;
    }
    let mut written: Vec<String> = Vec::new();
    if let Some(format) = args.export {
        let Some(dir) = &out else {
            return Err(Failure::usage("--export of a model file needs a folder to write to")
                .hint("name a folder with --out DIR"));
        };
        let format = match format {
            Export::Npy => export::Format::Npy,
            Export::Safetensors => export::Format::Safetensors,
            Export::Csv => export::Format::Csv,
        };
        let files = export::export(&found, dir, format)?;
        let files = plural(files.len() as u64, "exported file");
        written.push(format!("{files} in {}", text::shell(dir)));
    }
    if let (Some(dir), false) = (&out, args.no_pictures) {
        let count = draw(&found, dir)?;
        if count > 0 {
            let files = plural(count as u64, "picture");
            written.push(format!("{files} in {}", text::shell(dir)));
        }
        if is_run {
            let page = write_report(&args.model)?;
            let what =
                if count > 0 { "the same pictures" } else { "no picture to draw; the report is" };
            written.push(format!("{what} in {}", text::shell(&page)));
        }
    }
    for line in written {
        output::log_line(line);
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all pictures as SVG and PNG, and says how many files there are.
fn draw(found: &Inspection, dir: &Path) -> Result<usize, Failure> {
    const HINT: &str = "choose another folder with --out";
    fs::create_dir_all(dir).map_err(|e| {
        let message = format!("cannot make the folder {}: {e}", dir.display());
        Failure::failed(eyre::Report::msg(message)).hint(HINT)
    })?;
    let scenes = pictures(found);
    for scene in &scenes {
        for (ending, bytes) in [("svg", scene.svg().into_bytes()), ("png", scene.png())] {
            let path = dir.join(format!("{}.{ending}", scene.name));
            write_file(&path, &bytes).map_err(|e| Failure::from(e).hint(HINT))?;
        }
    }
    Ok(2 * scenes.len())
}

/// Everything for a terminal.
fn tables(report: &Report) -> String {
    let mut out = head(report);
    out += "\n\n";
    if report.layers.is_empty() && report.portraits.is_empty() {
        out += "Its layers cannot be shown: their numbers are not finite.\n\n";
    }
    if !report.portraits.is_empty() {
        out += "Layers\n";
        out += &portraits_table(report);
        out += "\n";
    }
    if !report.layers.is_empty() {
        out += "Modes\n";
        out += &table(&modes_table(report));
        if !report.layers.iter().all(has_fixed_step) {
            out += "\nΔ\n";
            out += &table(&delta_table(report));
            out += &outliers(report);
        }
        out += "\nKernels\n";
        out += &table(&kernel_table(report));
        out += "\n";
    }
    let past = &report.past_end;
    let verdict = if past.allowed { "yes" } else { "no" };
    let beyond = format!("beyond L = {}", report.len);
    out += &format!("{beyond:<18}{verdict}: {}\n", past.why);
    out += &format!("{:<18}{}", "causal", causality(&report.causality));
    out
}

fn head(report: &Report) -> String {
    let config = &report.model;
    let task = if report.task.is_empty() { "a model" } else { &report.task };
    format!(
        "{task}: {}, {} of H = {} channels, {}, L = {}, step {}",
        config.mixer.settings().title(),
        plural(config.layers as u64, "layer"),
        config.h,
        config.mixer.settings().size(),
        report.len,
        report.step
    )
}

fn modes_table(report: &Report) -> Vec<Vec<String>> {
    let seconds = report.rate.is_some();
    let mut rows = vec![words(&["layer", "Re λ > 0", "Re λ", "", "half-life, steps", "", ""])];
    let mut second = words(&["", "", "least", "greatest", "5 %", "median", "95 %"]);
    if seconds {
        rows[0].extend(words(&["half-life, seconds", "", ""]));
        second.extend(words(&["5 %", "median", "95 %"]));
    }
    rows.push(second);
    for (i, layer) in report.layers.iter().enumerate() {
        let LayerReport { growing, modes, lambda_re, .. } = layer;
        let mut row = vec![
            (i + 1).to_string(),
            format!("{growing} of {modes}"),
            short(lambda_re.least),
            short(lambda_re.greatest),
        ];
        row.extend(three(layer.half_life_steps));
        if seconds {
            row.extend(three(layer.half_life_seconds));
        }
        rows.push(row);
    }
    rows
}

/// What layers that are not state spaces show, one line each.
fn portraits_table(report: &Report) -> String {
    let of = |all: usize, growing: usize| match growing {
        0 => "none grows".to_owned(),
        growing => format!("{growing} of {all} grow"),
    };
    let lines = report.portraits.iter().map(|PortraitReport { layer, name, numbers }| {
        let numbers = match numbers {
            PortraitNumbers::Attention { heads, positions_seen, positions, distance } => {
                let far = distance.map_or(String::new(), |d| format!(", {} steps away", short(d)));
                let heads = plural(*heads as u64, "head");
                format!(
                    "{heads}; a position looks at {} of {positions}{far}",
                    short(*positions_seen)
                )
            }
            PortraitNumbers::Step { eigenvalues, radius, growing } => {
                format!("largest |λ| {}, {}", short(*radius), of(*eigenvalues, *growing))
            }
            PortraitNumbers::Rate { eigenvalues, greatest_re, growing } => {
                format!("greatest Re λ {}, {}", short(*greatest_re), of(*eigenvalues, *growing))
            }
            PortraitNumbers::Frequencies { frequencies, gain, constant, half } => format!(
                "{} times its input; half of it at {half} of {frequencies} frequencies, {} at 0",
                short(*gain),
                per_cent(*constant)
            ),
            PortraitNumbers::Kernels { peaks } => format!(
                "{}; argmax |K|: median {}, 95th percentile {}",
                plural(peaks.kernels as u64, "kernel"),
                short(peaks.median_argmax),
                short(peaks.argmax_95)
            ),
        };
        format!("  {:>5}   {name}: {numbers}\n", layer + 1)
    });
    lines.collect()
}

/// Whether Δ is 1 and no parameter.
fn has_fixed_step(layer: &LayerReport) -> bool {
    let Spread { least, greatest, .. } = layer.delta_re.delta;
    layer.delta_im.is_none() && (least, greatest) == (1.0, 1.0)
}

fn delta_table(report: &Report) -> Vec<Vec<String>> {
    let two = report.layers.iter().any(|layer| layer.delta_im.is_some());
    let name = if two { "Δ of Re Λ" } else { "Δ" };
    let mut first = words(&["layer", name, "", "", "outliers"]);
    let mut second = words(&["", "least", "median", "greatest", ""]);
    if two {
        first.extend(words(&["Δ of Im Λ", "", "", "outliers"]));
        second.extend(words(&["least", "median", "greatest", ""]));
    }
    let mut rows = vec![first, second];
    let of = |deltas: &Deltas| {
        let Spread { least, median, greatest, .. } = deltas.delta;
        vec![short(least), short(median), short(greatest), deltas.outliers.len().to_string()]
    };
    for (i, layer) in report.layers.iter().enumerate() {
        let mut row = vec![(i + 1).to_string()];
        row.extend(of(&layer.delta_re));
        row.extend(layer.delta_im.as_ref().map(of).unwrap_or_default());
        rows.push(row);
    }
    rows
}

/// The outliers one by one, the first few.
fn outliers(report: &Report) -> String {
    const SHOWN: usize = 6;
    let mut lines = Vec::new();
    for (i, layer) in report.layers.iter().enumerate() {
        for (part, deltas) in [("Re", Some(&layer.delta_re)), ("Im", layer.delta_im.as_ref())] {
            for outlier in deltas.map(|d| d.outliers.as_slice()).unwrap_or_default() {
                let (h, log) = (outlier.channel, outlier.delta_log);
                lines.push(format!(
                    "  outlier: layer {}, channel {h}: Δ_log of {part} Λ is {log:.2}, Δ is {}\n",
                    i + 1,
                    short(log.exp())
                ));
            }
        }
    }
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    let mut out = lines.concat();
    if more > 0 {
        out += &format!("  and {more} more; --json lists all\n");
    }
    out
}

fn kernel_table(report: &Report) -> Vec<Vec<String>> {
    let mut rows = vec![
        words(&["layer", "kernels", "argmax |K|", "", "peak from", "95 % of Σ|K|"]),
        words(&["", "", "median", "95th percentile", "128 on", "lies before"]),
    ];
    let all = report.layers.iter().map(|layer| &layer.peaks).enumerate();
    let all =
        all.map(|(i, peaks)| ((i + 1).to_string(), peaks)).chain([("all".into(), &report.peaks)]);
    for (name, peaks) in all {
        rows.push(vec![
            name,
            peaks.kernels.to_string(),
            short(peaks.median_argmax),
            short(peaks.argmax_95),
            format!("{:.1} %", 100.0 * peaks.long),
            short(peaks.median_reach),
        ]);
    }
    rows
}

fn causality(found: &Causality) -> String {
    match found {
        Causality::Causal { positions, leak: 0.0 } => {
            format!("yes: when the input changes at {}, no earlier output does", list(positions))
        }
        Causality::Causal { positions, leak } => format!(
            "yes: when the input changes at {}, earlier outputs change by {leak:.0e} of the largest change: rounding",
            list(positions)
        ),
        Causality::LooksAhead { leak, by_design: true, .. } => format!(
            "no, by design: the model is bidirectional (earlier outputs change by {leak:.0e} of the largest change)"
        ),
        Causality::LooksAhead { positions, leak, by_design: false } => format!(
            "NO: when the input changes at {}, earlier outputs change by {leak:.0e} of the largest change",
            list(positions)
        ),
        Causality::Unknown { why } => format!("not checked: {why}"),
    }
}

fn list(positions: &[usize]) -> String {
    positions.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn three(spread: Option<Spread>) -> Vec<String> {
    match spread {
        Some(Spread { low, median, high, .. }) => [low, median, high].map(short).to_vec(),
        None => words(&["-", "-", "-"]),
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Three digits.
fn short(x: f64) -> String {
    match x.abs() {
        _ if x.is_infinite() => "never".to_owned(),
        a if a != 0.0 && !(1e-4..1e5).contains(&a) => format!("{x:.1e}"),
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 || x.fract() == 0.0 => format!("{}", (10.0 * x).round() / 10.0),
        a => format!("{x:.*}", (2.0 - a.log10().floor()).max(0.0) as usize),
    }
}

/// Columns flush right; a head over several columns begins where the first of them does.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; columns];
    // The first row names groups of columns: its words may run over the empty ones behind them.
    for row in rows.iter().skip(1) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let Some(heads) = rows.first() else { return String::new() };
    for (i, head) in heads.iter().enumerate().filter(|(_, head)| !head.is_empty()) {
        let end = (i + 1..columns)
            .find(|&j| heads.get(j).is_none_or(|h| !h.is_empty()))
            .unwrap_or(columns);
        let room: usize = widths[i..end].iter().sum::<usize>() + 3 * (end - i - 1);
        widths[i] += head.chars().count().saturating_sub(room);
    }
    let mut out = String::new();
    let mut line = String::new();
    for (i, head) in heads.iter().enumerate() {
        let start: usize = 2 + widths[..i].iter().sum::<usize>() + 3 * i;
        if !head.is_empty() {
            let gap = start.saturating_sub(line.chars().count());
            line += &" ".repeat(gap);
            line += head;
        }
    }
    out += line.trim_end();
    out.push('\n');
    for row in &rows[1..] {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        let line = format!("  {}", cells.collect::<Vec<_>>().join("   "));
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let found = [0.0, 12.0, 1234.5, 0.01234, 1.5, 23.46, 3e9, -0.5, f64::INFINITY].map(short);
        assert_eq!(
            found,
            ["0", "12", "1234", "0.0123", "1.50", "23.5", "3.0e9", "-0.500", "never"]
        );
    }

    #[test]
    fn columns_stand_under_their_heads() {
        let rows = [
            words(&["layer", "a long head", "", "x"]),
            words(&["", "1", "2", ""]),
            words(&["1", "3", "4", "5"]),
        ];
        let found = table(&rows);
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines[0], "  layer   a long head   x");
        assert_eq!(lines[2], "      1         3   4   5");
    }
}
