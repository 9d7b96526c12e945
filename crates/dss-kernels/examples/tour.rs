//! The layer's map in its three forms, on a long sequence: do they agree, how fast are they, what do they need?
//!
//! `tour [--length L] [--features H] [--modes N] [--variant softmax|exp|exp-no-scale] [--seed S]`

use dss_kernels::kernel::{Kernel, KernelConfig, Params, Variant};
use dss_kernels::{Conv, Recurrence, Scan, init, simd_name};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Compares convolution, recurrence and chunked scan of one DSS layer.

usage: tour [--length L] [--features H] [--modes N] [--variant V] [--seed S]

  --length L     steps of the sequence, 1 to 4194304 (default 16384)
  --features H   channels, 1 to 4096 (default 32)
  --modes N      modes per channel, 1 to 512 (default 64)
  --variant V    softmax, exp or exp-no-scale (default softmax)
  --seed S       of weights and input (default 0)

L times H may be 33554432 at most (about 3 GB of memory).";

/// Elements of the input: what a laptop holds several times over.
const MOST: usize = 1 << 25;

struct Options {
    length: usize,
    features: usize,
    modes: usize,
    variant: Variant,
    seed: u64,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("tour: {message}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tour: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options =
        Options { length: 16384, features: 32, modes: 64, variant: Variant::Softmax, seed: 0 };
    while let Some(arg) = args.next() {
        if arg == "--help" || arg == "-h" {
            return Ok(None);
        }
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let number = |text: String, most: usize| match text.parse::<usize>() {
            Ok(n) if (1..=most).contains(&n) => Ok(n),
            _ => Err(format!("{arg} takes a whole number from 1 to {most}, not '{text}'")),
        };
        match arg.as_str() {
            "--length" => options.length = number(value()?, 1 << 22)?,
            "--features" => options.features = number(value()?, 4096)?,
            "--modes" => options.modes = number(value()?, init::MAX_N)?,
            "--seed" => {
                let text = value()?;
                options.seed =
                    text.parse().map_err(|_| format!("--seed takes a number, not '{text}'"))?;
            }
            "--variant" => {
                options.variant = match value()?.as_str() {
                    "softmax" => Variant::Softmax,
                    "exp" => Variant::Exp,
                    "exp-no-scale" => Variant::ExpNoScale,
                    other => return Err(format!("no variant '{other}'")),
                }
            }
            _ => return Err(format!("unknown option '{arg}'")),
        }
    }
    if options.length * options.features > MOST {
        return Err(format!("--length times --features may be {MOST} at most"));
    }
    Ok(Some(options))
}

fn run(options: &Options) -> dss_kernels::Result<()> {
    let &Options { length: l, features: h, modes: n, variant, seed } = options;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let f32s = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let lambda = init::skew_hippo(n)?;
    let log_re = |re: f64| if variant == Variant::Softmax { re } else { (-re).ln() };
    let lambda_re: Vec<f32> = lambda.iter().map(|z| log_re(z.re) as f32).collect();
    let lambda_im: Vec<f32> = lambda.iter().map(|z| z.im as f32).collect();
    let delta_log = f32s(&init::delta_log(2 * h, init::DT_MIN, init::DT_MAX, &mut rng)?);
    let w = f32s(&init::w(1, h, n, &mut rng));
    let u = f32s(&init::w(1, 1, (l * h).div_ceil(2), &mut rng)[..l * h]);
    let params =
        Params { lambda_re: &lambda_re, lambda_im: &lambda_im, delta_log: &delta_log, w: &w };
    let config = KernelConfig::new(variant, h, n, l);
    println!(
        "DSS {variant:?}: L = {l} steps, H = {h} channels, N = {n} modes, f32, {}",
        simd_name()
    );

    let mut kernel = Kernel::new(config)?;
    let mut conv = Conv::new(1, l, h)?;
    let (mut k, mut y) = (vec![0f32; h * l], vec![0f32; l * h]);
    let kernel_ms = timed(|| kernel.forward(&params, &mut k))?;
    let conv_ms = timed(|| {
        conv.set_kernel(&k)?;
        conv.forward(&u, &mut y)
    })?;
    let scale = y.iter().fold(0f32, |m, y| m.max(y.abs()));
    let difference =
        |x: &[f32]| x.iter().zip(&y).fold(0f32, |m, (x, y)| m.max((x - y).abs())) / scale;
    println!("  kernel            {kernel_ms:9.2} ms");
    println!("  convolution       {conv_ms:9.2} ms");

    let model = Recurrence::new(config, &params)?;
    let mut state = model.state();
    let mut stepped = vec![0f32; l * h];
    let ms = timed(|| model.run(&mut state, &u, &mut stepped))?;
    let us = ms * 1e3 / l as f64;
    println!(
        "  recurrence        {ms:9.2} ms   {us:.2} us per step, largest difference {:.1e}",
        difference(&stepped)
    );

    let chunk = 1024.min(l);
    let mut scan = Scan::new(config, 1, chunk)?;
    scan.set_params(&params)?;
    let mut state = scan.state();
    let mut scanned = vec![0f32; l * h];
    let ms = timed(|| {
        for (u, y) in u.chunks(chunk * h).zip(scanned.chunks_mut(chunk * h)) {
            scan.forward(&mut state, u, y)?;
        }
        Ok(())
    })?;
    println!(
        "  chunks of {chunk:<5}   {ms:9.2} ms   largest difference {:.1e}",
        difference(&scanned)
    );
    println!("Differences are relative to the largest output.");
    Ok(())
}

/// Milliseconds of one call.
fn timed(call: impl FnOnce() -> dss_kernels::Result<()>) -> dss_kernels::Result<f64> {
    let start = Instant::now();
    call()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
