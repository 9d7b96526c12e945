//! `dss bench lengths`: one training step of several models against the length, as a table and a picture.

use std::env;
use std::process::{Command, ExitCode};
use std::time::Duration;

use dss_nn::{Form, InputKind, NormKind};
use dss_report::{LengthCurve, LengthPoint, lengths_picture};
use dss_train::config::MODELS;
use dss_train::memory::peak_mb;
use dss_train::run_dir::write_file;
use dss_train::text::plural;
use dss_train::threads;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::BenchLengthsArgs;
use crate::bench::{self, Case, in_a_process};
use crate::failure::Failure;
use crate::output;

/// Timed steps of a length: as many as fit into this time, at least one and at most `STEPS`.
const TIME: Duration = Duration::from_secs(2);
const STEPS: usize = 20;

/// The measurements of one model at one length.
#[derive(Serialize, Deserialize)]
struct Measurement {
    model: String,
    layers: usize,
    h: usize,
    l: usize,
    b: usize,
    threads: usize,
    steps: usize,
    median_ms: f64,
    min_ms: f64,
    peak_mb: Option<f64>,
}

pub fn run(args: BenchLengthsArgs) -> Result<ExitCode, Failure> {
    if args.to < args.from {
        let wrong = format!("--to {} is less than --from {}", args.to, args.from);
        return Err(Failure::usage(wrong));
    }
    let doubled = |length: &usize| length.checked_mul(2).filter(|next| *next <= args.to);
    let lengths: Vec<usize> = std::iter::successors(Some(args.from), doubled).collect();
    if let ([model], [length], true) = (&args.models[..], &lengths[..], args.json) {
        output::json(&json!(measured(&args, model, *length)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let sizes = format!(
        "{}, H {}, batch {}, {}",
        plural(args.layers as u64, "layer"),
        args.h,
        args.batch,
        plural(args.threads.count.unwrap_or_else(rayon::current_num_threads) as u64, "thread"),
    );
    if !args.json {
        output::line(&format!("milliseconds per step / peak MB; {sizes}"))?;
        let heads: String = lengths.iter().map(|length| format!("{length:>15}")).collect();
        output::line(&format!("{:<20}{heads}", "L"))?;
    }
    let mut curves = Vec::new();
    for model in &args.models {
        let mut curve = LengthCurve { name: label(model), points: Vec::new() };
        for &length in &lengths {
            let result = one_length(&args, model, length)?;
            if args.json {
                output::json(&json!(result))?;
            }
            let (milliseconds, peak_mb) = (result.median_ms, result.peak_mb);
            curve.points.push(LengthPoint { length, milliseconds, peak_mb });
        }
        if !args.json {
            let cells: String =
                curve.points.iter().map(|point| format!("{:>15}", cell(point))).collect();
            output::line(&format!("{model:<20}{cells}"))?;
        }
        curves.push(curve);
    }
    if let (Some(path), Some(picture)) = (&args.svg, lengths_picture(&curves, &sizes)) {
        write_file(path, picture.svg().as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn label(model: &str) -> String {
    let known = MODELS.iter().find(|known| known.name == model);
    known.map_or(model, |known| known.label).to_owned()
}

fn cell(point: &LengthPoint) -> String {
    let memory = point.peak_mb.map_or_else(|| "-".to_owned(), |mb| format!("{mb:.0}"));
    let digits = if point.milliseconds < 100.0 { 1 } else { 0 };
    format!("{:.digits$} / {memory}", point.milliseconds)
}

fn one_length(args: &BenchLengthsArgs, model: &str, length: usize) -> Result<Measurement, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["bench", "lengths", "--json", "--models", model]);
    let numbers = [
        ("--from", length),
        ("--to", length),
        ("--layers", args.layers),
        ("--h", args.h),
        ("--batch", args.batch),
    ];
    for (name, number) in numbers.into_iter().chain(args.threads.count.map(|n| ("--threads", n))) {
        command.args([name, &number.to_string()]);
    }
    in_a_process(&mut command, &format!("{model} at L = {length}"))
}

fn measured(args: &BenchLengthsArgs, model: &str, length: usize) -> Result<Measurement, Failure> {
    let case = Case {
        name: "lengths",
        layers: args.layers,
        h: args.h,
        l: length,
        b: args.batch,
        input: InputKind::Tokens { vocab: 18 },
        norm: NormKind::Batch,
        prenorm: false,
    };
    let (mut times, _) = threads::with(args.threads.count, || {
        bench::measure(&case, model, &[], Form::Fused, STEPS, Some(TIME))
    })??;
    times.sort_by(f64::total_cmp);
    Ok(Measurement {
        model: model.to_owned(),
        layers: args.layers,
        h: args.h,
        l: length,
        b: args.batch,
        threads: args.threads.count.unwrap_or_else(rayon::current_num_threads),
        steps: times.len(),
        median_ms: times[times.len() / 2],
        min_ms: times[0],
        peak_mb: peak_mb(),
    })
}
