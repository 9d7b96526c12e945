//! `dss bench train --mpi`: training steps of which each process computes some shards.

use std::process::ExitCode;
use std::time::Instant;

use dss_data::{Batch, BatchInput, BatchTarget};
use dss_train::group::Group;
use dss_train::optimiser::AdamW;
use dss_train::{sharded_gradients, threads};
use serde_json::{Value, json};

use crate::args::{BenchArgs, Size};
use crate::bench::{self, CASES, Case, RATES, SEED, WARM_UP};
use crate::failure::Failure;
use crate::{group, output};

pub fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let group = group::start(&args.group)?;
    let measured = measure_all(args, &group);
    match measured {
        Err(failure) if group.is_lost() => {
            failure.report();
            group.abort(1)
        }
        Err(failure) if !group.is_first() => Err(failure.silent()),
        result => result,
    }
}

fn measure_all(args: &BenchArgs, group: &Group) -> Result<ExitCode, Failure> {
    let count = args.threads.count.unwrap_or_else(|| group.threads());
    let shards = args.shards.unwrap_or(group.size());
    let asked = |size| args.size == Size::All || args.size == size;
    let cases: Vec<Case> =
        CASES.into_iter().filter(|(size, _)| asked(*size)).map(|c| c.1).collect();
    if shards < group.size() {
        let message =
            format!("{} processes need at least as many shards, not {shards}", group.size());
        return Err(Failure::usage(message));
    }
    if let Some(case) = cases.iter().find(|case| !case.b.is_multiple_of(shards)) {
        let Case { name, b, .. } = case;
        let message = format!("{shards} shards do not divide the batch of {b} of the size {name}");
        return Err(Failure::usage(message).hint("choose with --shards and --size"));
    }
    if group.is_first() && !args.json {
        let simd = dss_kernels::simd_name();
        output::line(&format!("{}, {}, {simd}", args.model, group::describe(group, count)))?;
        output::line(
            "size     shards   ms/step  exchange ms  MB/step  one process ms  speed-up  efficiency",
        )?;
    }
    for case in &cases {
        let result = threads::with(Some(count), || measure(case, args, shards, group))??;
        if group.is_first() {
            if args.json { output::json(&result)? } else { output::line(&row(&result))? }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The steps of all processes, and those of rank 0 with all shards while the others wait.
fn measure(case: &Case, args: &BenchArgs, shards: usize, group: &Group) -> Result<Value, Failure> {
    let batches = cut(&bench::random_batch(case), shards);
    let alone = match group.is_first() {
        true => timed(case, args, shards, &batches, &Group::alone()).map(|steps| steps.median_ms),
        false => Ok(0.0),
    };
    group.patient().agree(Ok(()))?;
    let own = &batches[group.shards(shards)];
    let together = timed(case, args, shards, own, group);
    group.agree(Ok(()))?;
    let (alone, Steps { median_ms, exchange_ms, optimiser_ms, bytes }) = (alone?, together?);
    let speedup = alone / median_ms;
    Ok(json!({
        "size": case.name, "model": args.model, "processes": group.size(), "shards": shards,
        "threads": rayon::current_num_threads(), "h": case.h, "l": case.l, "b": case.b, "steps": args.steps,
        "median_ms": median_ms, "exchange_ms": exchange_ms, "optimiser_ms": optimiser_ms,
        "bytes_per_step": bytes, "one_process_ms": alone, "speedup": speedup,
        "efficiency": speedup / group.size() as f64,
    }))
}

/// Medians over the timed steps.
struct Steps {
    median_ms: f64,
    exchange_ms: f64,
    /// Of the update that every rank makes itself.
    optimiser_ms: f64,
    /// That this rank sends in a step.
    bytes: u64,
}

fn timed(
    case: &Case,
    args: &BenchArgs,
    shards: usize,
    own: &[Batch],
    group: &Group,
) -> Result<Steps, Failure> {
    let mut model = bench::new_model(case, &args.model, &args.sets, args.form)?;
    let mut optimiser = AdamW::default();
    let (mut times, mut exchanges, mut updates, mut bytes) = (vec![], vec![], vec![], 0);
    for step in 0..WARM_UP + args.steps {
        let (begin, before) = (Instant::now(), group.traffic());
        let total = case.b as u64;
        let found = sharded_gradients(&model, own, shards, 1, total, SEED, step as u64, group)?;
        let summed = begin.elapsed();
        (model, _) = optimiser.step(model, &found.gradients, 1.0, &RATES, 0.0);
        for stats in &found.stats {
            model = model.update_stats(stats);
        }
        if step >= WARM_UP {
            let after = group.traffic();
            let whole = begin.elapsed();
            times.push(whole.as_secs_f64() * 1e3);
            updates.push((whole - summed).as_secs_f64() * 1e3);
            exchanges.push((after.seconds - before.seconds) * 1e3);
            bytes = after.bytes - before.bytes;
        }
    }
    let [median_ms, exchange_ms, optimiser_ms] = [times, exchanges, updates].map(median);
    Ok(Steps { median_ms, exchange_ms, optimiser_ms, bytes })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The shards of a batch of sequences with one class each.
fn cut(batch: &Batch, shards: usize) -> Vec<Batch> {
    let size = batch.examples / shards;
    let shard = |i: usize| {
        let rows = i * size..(i + 1) * size;
        let input = match &batch.input {
            BatchInput::Tokens(ids) => {
                BatchInput::Tokens(ids[rows.start * batch.l..rows.end * batch.l].to_vec())
            }
            BatchInput::Values { data, channels } => {
                let row = batch.l * channels;
                let data = data[rows.start * row..rows.end * row].to_vec();
                BatchInput::Values { data, channels: *channels }
            }
        };
        let target = match &batch.target {
            BatchTarget::Class(classes) => BatchTarget::Class(classes[rows.clone()].to_vec()),
            other => other.clone(),
        };
        let lengths = batch.lengths[rows].to_vec();
        Batch { rows: size, examples: size, l: batch.l, input, target, lengths }
    };
    (0..shards).map(shard).collect()
}

fn row(result: &Value) -> String {
    let number = |key: &str| result[key].as_f64().unwrap_or(f64::NAN);
    format!(
        "{:<8}{:>7}{:>10.1}{:>13.2}{:>9.3}{:>16.1}{:>10.2}{:>10.1} %",
        result["size"].as_str().unwrap_or_default(),
        number("shards"),
        number("median_ms"),
        number("exchange_ms"),
        number("bytes_per_step") / 1e6,
        number("one_process_ms"),
        number("speedup"),
        100.0 * number("efficiency"),
    )
}
