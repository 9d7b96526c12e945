//! `dss bench train`: whole training steps of the real model on random data.

use std::env;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use burn::tensor::{DType, Device};
use dss_data::{Batch, BatchInput, BatchTarget};
use dss_nn::{Form, InputKind, Model, ModelConfig, ModelIo, NormKind, OutputKind};
use dss_train::config::{Setting, with_model};
use dss_train::memory::peak_mb;
use dss_train::optimiser::{AdamW, Rates};
use dss_train::text::plural;
use dss_train::threads;
use eyre::Report;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::{BenchArgs, Size, serde_name};
use crate::failure::Failure;
use crate::{bench_group, output};

/// Steps before the clock runs: the first ones make plans and buffers.
pub const WARM_UP: usize = 2;
const LAYERS: usize = 6;
const CLASSES: usize = 10;
pub const SEED: u64 = 1;

/// A size to measure.
pub struct Case {
    pub name: &'static str,
    pub layers: usize,
    pub h: usize,
    pub l: usize,
    pub b: usize,
    pub input: InputKind,
    pub norm: NormKind,
    pub prenorm: bool,
}

pub const CASES: [(Size, Case); 3] = [
    (
        Size::Listops,
        Case {
            name: "listops",
            layers: LAYERS,
            h: 128,
            l: 2048,
            b: 16,
            input: InputKind::Tokens { vocab: 18 },
            norm: NormKind::Batch,
            prenorm: false,
        },
    ),
    (
        Size::Image,
        Case {
            name: "image",
            layers: LAYERS,
            h: 512,
            l: 1024,
            b: 8,
            input: InputKind::Values { channels: 1 },
            norm: NormKind::Layer,
            prenorm: false,
        },
    ),
    (
        Size::Speech,
        Case {
            name: "speech",
            layers: LAYERS,
            h: 128,
            l: 16000,
            b: 4,
            input: InputKind::Values { channels: 1 },
            norm: NormKind::Batch,
            prenorm: true,
        },
    ),
];

pub fn run(args: BenchArgs) -> Result<ExitCode, Failure> {
    if args.group.mpi {
        return bench_group::run(&args);
    }
    let (simd, cores) = (dss_kernels::simd_name(), rayon::current_num_threads());
    if !args.json {
        let form = serde_name(&args.form);
        let threads = plural(args.threads.count.unwrap_or(cores) as u64, "thread");
        output::line(&format!("{}, {threads}, {simd}, {form} form", args.model))?;
        output::line(
            "size       H      L   B   ms/step      min      max   samples/s   peak MB   parameters",
        )?;
    }
    for (size, case) in CASES {
        let result = match args.size {
            Size::All => one_size(&case, &args)?,
            one if one == size => measured(&case, &args, cores)?,
            _ => continue,
        };
        if args.json { output::json(&json!(result))? } else { output::line(&row(&result))? }
    }
    Ok(ExitCode::SUCCESS)
}

/// The measurements of one size.
#[derive(Serialize, Deserialize)]
struct Measurement {
    size: String,
    model: String,
    set: Vec<Setting>,
    form: Form,
    threads: usize,
    simd: String,
    layers: usize,
    h: usize,
    l: usize,
    b: usize,
    steps: usize,
    median_ms: f64,
    min_ms: f64,
    max_ms: f64,
    samples_per_s: f64,
    peak_mb: Option<f64>,
    parameters: usize,
}

/// What a command prints as JSON. The peak memory of a process is that of all its work: each measurement gets a process
/// of its own.
pub fn in_a_process<T: DeserializeOwned>(command: &mut Command, what: &str) -> Result<T, Failure> {
    let out = command.stderr(Stdio::inherit()).output()?;
    serde_json::from_slice(&out.stdout).map_err(|_| {
        let message = format!("the measurement of {what} failed: {}", out.status);
        Failure::failed(Report::msg(message))
    })
}

fn one_size(case: &Case, args: &BenchArgs) -> Result<Measurement, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["bench", "train", "--json", "--size", case.name]);
    command.args(["--form", &serde_name(&args.form)]);
    command.args(["--model", &args.model, "--steps", &args.steps.to_string()]);
    for setting in &args.sets {
        command.args(["--set", &setting.to_string()]);
    }
    if let Some(threads) = args.threads.count {
        command.args(["--threads", &threads.to_string()]);
    }
    in_a_process(&mut command, &format!("`{}`", case.name))
}

fn measured(case: &Case, args: &BenchArgs, cores: usize) -> Result<Measurement, Failure> {
    let BenchArgs { model, sets, form, steps, .. } = args;
    let (mut times, parameters) =
        threads::with(args.threads.count, || measure(case, model, sets, *form, *steps, None))??;
    times.sort_by(f64::total_cmp);
    let median_ms = times[times.len() / 2];
    Ok(Measurement {
        size: case.name.to_owned(),
        model: model.clone(),
        set: sets.clone(),
        form: *form,
        threads: args.threads.count.unwrap_or(cores),
        simd: dss_kernels::simd_name().to_owned(),
        layers: case.layers,
        h: case.h,
        l: case.l,
        b: case.b,
        steps: *steps,
        median_ms,
        min_ms: times[0],
        max_ms: times[times.len() - 1],
        samples_per_s: case.b as f64 / median_ms * 1e3,
        peak_mb: peak_mb(),
        parameters,
    })
}

fn row(m: &Measurement) -> String {
    let peak = m.peak_mb.map_or_else(|| "-".to_owned(), |mb| format!("{mb:.0}"));
    format!(
        "{:<8}{:>4}{:>7}{:>4}{:>10.1}{:>9.1}{:>9.1}{:>12.2}{peak:>10}{:>13}",
        m.size, m.h, m.l, m.b, m.median_ms, m.min_ms, m.max_ms, m.samples_per_s, m.parameters,
    )
}

pub const RATES: Rates =
    Rates { lambda: 1e-3, delta: 1e-3, w: 1e-3, other: 1e-3, weight_decay: 0.01, ..Rates::AT_REST };

/// The model of a size.
pub fn new_model(case: &Case, model: &str, sets: &[Setting], form: Form) -> Result<Model, Failure> {
    let device = Device::flex().autodiff();
    let Case { layers, h, norm, prenorm, .. } = *case;
    let config = ModelConfig { layers, h, norm, prenorm, form, ..Default::default() };
    let config = with_model(&config, model, sets)?;
    let output = OutputKind::Sequence { outputs: CLASSES };
    let io = ModelIo { input: case.input, output, len: case.l };
    Ok(Model::new(&config, &io, SEED, &device)?)
}

/// Milliseconds of each timed step, and how many numbers are trained. No step begins once the timed ones have taken
/// `limit`.
pub fn measure(
    case: &Case,
    model: &str,
    sets: &[Setting],
    form: Form,
    steps: usize,
    limit: Option<Duration>,
) -> Result<(Vec<f64>, usize), Failure> {
    let mut model = new_model(case, model, sets, form)?;
    let trained = model
        .parameters()
        .iter()
        .filter(|p| p.trained)
        .map(|p| p.shape.iter().product::<usize>())
        .sum();
    let mut optimiser = AdamW::default();
    let batch = [random_batch(case)];
    let mut times = Vec::with_capacity(steps);
    for step in 0..WARM_UP + steps {
        let spent = times.iter().sum::<f64>();
        if limit.is_some_and(|limit| spent >= 1e3 * limit.as_secs_f64()) {
            break;
        }
        let begin = Instant::now();
        let found = dss_train::gradients(&model, &batch, SEED, step as u64, DType::F32)?;
        (model, _) = optimiser.step(model, &found.gradients, 1.0, &RATES, 0.0);
        for stats in &found.stats {
            model = model.update_stats(stats);
        }
        if step >= WARM_UP {
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok((times, trained))
}

/// B sequences of full length with random numbers, whose values do not matter.
pub fn random_batch(case: &Case) -> Batch {
    let mut state = SEED;
    let mut next = || {
        // Knuth's linear congruential generator: 31 good bits are plenty here.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i32
    };
    let positions = case.b * case.l;
    let input = match case.input {
        InputKind::Tokens { vocab } => {
            BatchInput::Tokens((0..positions).map(|_| next() % vocab as i32).collect())
        }
        InputKind::Values { channels } => {
            let unit = |x: i32| x as f32 / (1u32 << 30) as f32 - 1.0;
            let data = (0..positions * channels).map(|_| unit(next())).collect();
            BatchInput::Values { data, channels }
        }
    };
    let target = BatchTarget::Class((0..case.b).map(|_| next() % CLASSES as i32).collect());
    Batch {
        rows: case.b,
        l: case.l,
        input,
        lengths: vec![case.l; case.b],
        target,
        examples: case.b,
    }
}
