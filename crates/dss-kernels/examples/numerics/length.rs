//! The softmax's normaliser depends on L: a kernel made for another length is another kernel, not a piece of the first.

use crate::common::Owned;
use crate::common::random::rng;
use crate::{median_and_worst, norm};
use dss_kernels::init;
use dss_kernels::kernel::{Delta, Kernel, KernelConfig, Variant};
use safetensors::{Dtype, SafeTensors};

pub fn run() {
    println!("# Other lengths\n");
    println!(
        "Error of the taps that both have, ‖K_L' − K_L‖/‖K_L‖ of each channel, when the softmax is normalised over L'"
    );
    println!(
        "instead of the training length L = 1024; Skew-HiPPO, H = 256, N = 64, Δ ~ log U(0.001, 0.1):\n"
    );
    println!("| L' | median | worst channel | with the stored length: worst |");
    println!("|---|---|---|---|");
    let (h, n, l) = (256, 64, 1024);
    let mut rng = rng(3);
    let lambda = init::skew_hippo(n).expect("N is valid");
    let owned = Owned {
        lambda_re: lambda.iter().map(|z| z.re).collect(),
        lambda_im: lambda.iter().map(|z| z.im).collect(),
        delta_log: init::delta_log(2 * h, init::DT_MIN, init::DT_MAX, &mut rng)
            .expect("Δ is valid"),
        w: init::w(1, h, n, &mut rng),
    };
    let config = KernelConfig::new(Variant::Softmax, h, n, l);
    for other in [l - 1, l - 24, l * 9 / 10, l / 2, l / 4, 2 * l, 4 * l] {
        row(&config, &owned, other);
    }
    println!();
}

fn row(config: &KernelConfig, owned: &Owned<f64>, other: usize) {
    let (median, worst) = median_and_worst(errors(config, owned, other, other));
    let (_, kept) = median_and_worst(errors(config, owned, other, config.len));
    println!("| {other} | {:.2} % | {:.1} % | {kept:.0e} |", 100.0 * median, 100.0 * worst);
}

/// Of each channel, the error of a kernel of `len` taps whose softmax is normalised over `norm_len`.
fn errors(config: &KernelConfig, owned: &Owned<f64>, len: usize, norm_len: usize) -> Vec<f64> {
    let make = |config: KernelConfig| {
        let mut k = vec![0.0; config.channels * config.h * config.len];
        let mut plan = Kernel::new(config).expect("sizes are valid");
        plan.forward(&owned.params(), &mut k).map(|()| k)
    };
    let known = make(*config).expect("parameters are valid");
    let other = KernelConfig { len, norm_len, ..*config };
    let Ok(found) = make(other) else { return vec![f64::NAN] };
    let shared = len.min(config.len);
    let rows = known.chunks_exact(config.len).zip(found.chunks_exact(len));
    let error = |(a, b): (&[f64], &[f64])| {
        let difference: Vec<f64> = a[..shared].iter().zip(b).map(|(a, b)| a - b).collect();
        norm(&difference) / norm(&a[..shared]).max(f64::MIN_POSITIVE)
    };
    rows.map(error).collect()
}

/// The same for every layer of a trained model.
pub fn trained(path: &str) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    let fault = |e: safetensors::SafeTensorError| format!("{path}: {e}");
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(fault)?;
    let meta = header.metadata().as_ref().and_then(|all| all.get("dss")).cloned();
    let meta = meta.ok_or_else(|| format!("{path} is not a checkpoint"))?;
    // `"len":1024` of the object `io`; the training length of the model.
    let io = meta.split("\"len\":").nth(1).ok_or("the checkpoint has no length")?;
    let digits: String = io.chars().take_while(char::is_ascii_digit).collect();
    let len: usize = digits.parse().map_err(|_| "the checkpoint has no length")?;
    if !meta.contains("\"variant\":\"softmax\"") || !(2..1 << 20).contains(&len) {
        return Err(format!("{path} is not a DSS-softmax model of a usual length"));
    }
    let file = SafeTensors::deserialize(&bytes).map_err(fault)?;
    println!("A trained model, L = {len}; every layer:\n");
    println!(
        "| layer | L' | modes with Re λ > 0 | median | worst channel | with the stored length: worst |"
    );
    println!("|---|---|---|---|---|---|");
    for layer in 0.. {
        let get = |name: &str| file.tensor(&format!("layers.{layer}.mixer.{name}"));
        let (Ok(lambda), Ok(delta_log), Ok(w)) = (get("lambda"), get("delta_log"), get("w")) else {
            break;
        };
        if [lambda.dtype(), delta_log.dtype(), w.dtype()] != [Dtype::F32; 3] || w.shape().len() != 4
        {
            return Err(format!("layer {layer}: the tensors are not those of DSS in f32"));
        }
        let numbers = |data: &[u8]| -> Vec<f64> {
            let number = |b: &[u8]| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            data.chunks_exact(4).map(number).collect()
        };
        let (re, im) = crate::common::split(&numbers(lambda.data()));
        let delta = if delta_log.shape().len() == 1 { Delta::Tied } else { Delta::Separate };
        let config = KernelConfig::new(Variant::Softmax, w.shape()[1], w.shape()[2], len)
            .delta(delta)
            .channels(w.shape()[0]);
        let growing = re.iter().filter(|x| **x > 0.0).count();
        let owned = Owned {
            lambda_re: re,
            lambda_im: im,
            delta_log: numbers(delta_log.data()),
            w: numbers(w.data()),
        };
        for other in [len - 1, len / 2, 2 * len] {
            let (median, worst) = median_and_worst(errors(&config, &owned, other, other));
            let (_, kept) = median_and_worst(errors(&config, &owned, other, len));
            let kept = if kept.is_nan() { "refused".to_owned() } else { format!("{kept:.0e}") };
            println!(
                "| {} | {other} | {growing} of {} | {:.2} % | {:.1} % | {kept} |",
                layer + 1,
                config.n,
                100.0 * median,
                100.0 * worst
            );
        }
    }
    println!();
    Ok(())
}
