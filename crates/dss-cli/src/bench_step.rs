//! `dss bench step`: a stream's steps on one core.

use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use dss_infer::{Input, Model, State};
use dss_nn::checkpoint;
use dss_nn::config::DssConfig;
use dss_nn::{InputKind, ModelConfig, ModelIo, OutputKind};
use dss_train::config::with_model;
use dss_train::memory;
use dss_train::text::plural;
use serde_json::json;

use crate::args::BenchStepArgs;
use crate::failure::Failure;
use crate::{device, output};

const CLASSES: usize = 10;
const LEN: usize = 16000;
/// Samples of a block: 10 ms of sound.
const BLOCK: usize = 160;
/// Streams of a batch.
const STREAMS: usize = 16;
/// Steps after which the logits are shown, for other programs to compare with.
const CHECKED: usize = 64;
/// How long each kind of step is repeated.
const TIME: Duration = Duration::from_secs(1);

pub fn run(args: BenchStepArgs) -> Result<ExitCode, Failure> {
    let BenchStepArgs { layers, h, n, .. } = args;
    let mixer = DssConfig { n, ..DssConfig::default() }.into();
    let config = ModelConfig { layers, h, mixer, prenorm: true, ..ModelConfig::default() };
    let config = with_model(&config, &args.model, &[])?;
    let io = ModelIo {
        input: InputKind::Values { channels: 1 },
        output: OutputKind::Sequence { outputs: CLASSES },
        len: LEN,
    };
    memory::check_forward(&config, &io, 1)?;
    let burn = dss_nn::Model::new(&config, &io, 1, &device::named("cpu")?)?;
    let name = format!("dss-bench-step-{}.safetensors", process::id());
    let path = args.keep.clone().unwrap_or_else(|| std::env::temp_dir().join(name));
    checkpoint::save(&path, &burn, &burn.meta())?;
    let model = Model::load(&path);
    if args.keep.is_none() {
        // It may be gone already; nothing depends on it.
        let _ = std::fs::remove_file(&path);
    }
    let model = model?;

    let sound: Vec<f32> = (0..LEN).map(|t| (t as f32 * 0.05).sin()).collect();
    let mut state = model.state()?;
    let mut logits = [0.0; CLASSES];
    for x in sound[..CHECKED].chunks(1) {
        model.step(&mut state, Input::Values(x), &mut logits)?;
    }
    let check = logits;
    let step = median(|| model.step(&mut state, Input::Values(&sound[..1]), &mut logits))?;
    let block =
        median(|| model.block_step(&mut state, Input::Values(&sound[..BLOCK]), &mut logits))?;
    let mut states: Vec<State> = vec![model.state()?; STREAMS];
    let mut out = [0.0; STREAMS * CLASSES];
    let batch =
        median(|| model.step_batch(&mut states, Input::Values(&sound[..STREAMS]), &mut out))?;

    let micro = |time: f64, steps: usize| 1e6 * time / steps as f64;
    let (step, block) = (micro(step, 1), micro(block, BLOCK));
    let batch = micro(batch, STREAMS);
    let simd = dss_kernels::simd_name();
    if args.json {
        output::json(&json!({
            "model": args.model, "layers": layers, "h": h, "n": n, "simd": simd,
            "step_us": step, "block_step_us": block, "batch_step_us": batch,
            "block": BLOCK, "streams": STREAMS, "checked": CHECKED, "logits": check,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = &args.model;
    let lines = [
        format!("{name}, {}, H {h}, N {n}, one core, {simd}", plural(layers as u64, "layer")),
        format!("one step                    {step:8.2} us"),
        format!("a step in a block of {BLOCK}    {block:8.2} us"),
        format!("a step of one of {STREAMS} streams  {batch:8.2} us"),
    ];
    output::line(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The median time of a call, in seconds.
fn median(mut call: impl FnMut() -> dss_infer::Result<()>) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < TIME || times.len() < 10 {
        let begin = Instant::now();
        call()?;
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
