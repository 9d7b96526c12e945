//! One operation, timed alone in a process, for the comparison with other implementations (`bench/peers/run`).
//!
//! `peer_ops --case NAME [--repeats R]` prints one JSON object with the median and the fastest time and the peak of the
//! resident memory above what the process had before its inputs. `peer_ops --list` names the cases.

use dss_kernels::kernel::{Delta, Kernel, KernelConfig, ParamGrads, Params, Variant};
use dss_kernels::{Conv, init};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::process::ExitCode;
use std::time::Instant;

/// Sizes of a case; N = 0 for a convolution alone, B = 0 for a kernel alone.
struct Case {
    name: String,
    b: usize,
    h: usize,
    n: usize,
    l: usize,
}

fn cases() -> Vec<Case> {
    let kernel = |l: usize| Case { name: format!("kernel_h128_n64_l{l}"), b: 0, h: 128, n: 64, l };
    let conv = |l: usize| Case { name: format!("conv_b16_h128_l{l}"), b: 16, h: 128, n: 0, l };
    let scale = |l: usize| Case { name: format!("scale_l{l}"), b: 1, h: 16, n: 64, l };
    let mut cases = vec![kernel(2048), kernel(16384), conv(2048), conv(16384)];
    cases.extend([10, 12, 14, 16, 18, 20].map(|power| scale(1 << power)));
    cases
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("peer_ops: {message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let usage = "usage: peer_ops --case NAME [--repeats R] | --list";
    let (mut name, mut repeats) = (None, 10usize);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value; {usage}"));
        match arg.as_str() {
            "--list" => {
                cases().iter().for_each(|case| println!("{}", case.name));
                return Ok(());
            }
            "--case" => name = Some(value()?),
            "--repeats" => {
                repeats = value()?.parse().map_err(|e| format!("--repeats: {e}; {usage}"))?;
            }
            _ => return Err(format!("unknown option {arg}; {usage}")),
        }
    }
    let name = name.ok_or(usage)?;
    let case = cases().into_iter().find(|case| case.name == name);
    let case = case.ok_or(format!("no case {name}; --list names them"))?;
    if repeats == 0 {
        return Err("--repeats must be at least 1".into());
    }
    measure(&case, repeats).map_err(|e| e.to_string())
}

fn measure(case: &Case, repeats: usize) -> dss_kernels::Result<()> {
    let Case { b, h, n, l, .. } = *case;
    let before = status_mb("VmRSS:");
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut normal = |len: usize| -> Vec<f32> {
        init::w(1, 1, len.div_ceil(2), &mut rng)[..len].iter().map(|&x| x as f32).collect()
    };
    let lambda = init::skew_hippo(n.max(1))?;
    let lambda_re: Vec<f32> = lambda.iter().map(|z| z.re as f32).collect();
    let lambda_im: Vec<f32> = lambda.iter().map(|z| z.im as f32).collect();
    let (lo, hi) = (init::DT_MIN.ln(), init::DT_MAX.ln());
    let delta_log: Vec<f32> =
        (0..h).map(|i| (lo + (hi - lo) * i as f64 / (h - 1) as f64) as f32).collect();
    let w = normal(2 * h * n);
    let u = normal(b * l * h);
    let dy = normal(b * l * h);
    let given = normal(h * l);
    let params =
        Params { lambda_re: &lambda_re, lambda_im: &lambda_im, delta_log: &delta_log, w: &w };
    let config = KernelConfig::new(Variant::Softmax, h, n.max(1), l).delta(Delta::Tied);
    let mut kernel = if n > 0 { Some(Kernel::new(config)?) } else { None };
    let mut conv = if b > 0 { Some(Conv::new(b, l, h)?) } else { None };
    let (mut k, mut dk) = (vec![0f32; h * l], vec![0f32; h * l]);
    let (mut y, mut du) = (vec![0f32; u.len()], vec![0f32; u.len()]);
    let (mut g_re, mut g_im) = (lambda_re.clone(), lambda_im.clone());
    let (mut g_delta, mut g_w) = (delta_log.clone(), w.clone());
    let mut times = Vec::new();
    for round in 0..=repeats {
        let start = Instant::now();
        if let Some(kernel) = &mut kernel {
            kernel.forward(&params, &mut k)?;
        }
        if let Some(conv) = &mut conv {
            conv.set_kernel(if kernel.is_some() { &k } else { &given })?;
            conv.forward(&u, &mut y)?;
            conv.backward(&u, &dy, &mut du, &mut dk)?;
        }
        if let Some(kernel) = &mut kernel {
            let grads = ParamGrads {
                lambda_re: &mut g_re,
                lambda_im: &mut g_im,
                delta_log: &mut g_delta,
                w: &mut g_w,
            };
            kernel.backward(&params, if conv.is_some() { &dk } else { &given }, grads)?;
        }
        // The first round warms up.
        if round > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let median = (times[(repeats - 1) / 2] + times[repeats / 2]) / 2.0;
    println!(
        "{{\"case\": \"{}\", \"median_ms\": {median:.4}, \"min_ms\": {:.4}, \"repeats\": {repeats}, \
         \"peak_mb\": {:.1}, \"simd\": \"{}\"}}",
        case.name,
        times[0],
        (status_mb("VmHWM:") - before).max(0.0),
        dss_kernels::simd_name(),
    );
    Ok(())
}

/// A line of /proc/self/status in MB; 0 where there is none.
fn status_mb(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let kib = line.split_whitespace().next().and_then(|x| x.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
