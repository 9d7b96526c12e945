//! Every gradient against central differences in f64.

use crate::common::Owned;
use crate::common::random::{layer, normal, rng};
use dss_kernels::kernel::{Delta, Kernel, KernelConfig, Variant};
use dss_kernels::{Scan, ScanState};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Names a parameter tensor of a layer.
const TENSORS: [&str; 4] = ["lambda_re", "lambda_im", "delta_log", "w"];

fn tensor<'a>(owned: &'a mut Owned<f64>, name: &str) -> &'a mut Vec<f64> {
    match name {
        "lambda_re" => &mut owned.lambda_re,
        "lambda_im" => &mut owned.lambda_im,
        "delta_log" => &mut owned.delta_log,
        _ => &mut owned.w,
    }
}

fn zeros_like(owned: &Owned<f64>) -> Owned<f64> {
    Owned {
        lambda_re: vec![0.0; owned.lambda_re.len()],
        lambda_im: vec![0.0; owned.lambda_im.len()],
        delta_log: vec![0.0; owned.delta_log.len()],
        w: vec![0.0; owned.w.len()],
    }
}

/// Compares `gradient` with central differences of `loss` at a sample of the parameters.
fn check(
    what: &str,
    owned: &mut Owned<f64>,
    gradient: &mut Owned<f64>,
    loss: impl Fn(&Owned<f64>) -> f64,
) {
    for name in TENSORS {
        let scale = tensor(gradient, name).iter().fold(1e-3f64, |m, g| m.max(g.abs()));
        let len = tensor(owned, name).len();
        for i in (0..len).step_by(len / 7 + 1) {
            let x = tensor(owned, name)[i];
            let step = 1e-5 * x.abs().max(1e-1);
            let mut at = |steps: f64| {
                tensor(owned, name)[i] = x + steps * step;
                loss(owned)
            };
            // Fourth order: phases of a hundred turns bend the loss within one step.
            let numeric = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
            tensor(owned, name)[i] = x;
            let analytic = tensor(gradient, name)[i];
            let error = (numeric - analytic).abs() / scale;
            assert!(error <= 1e-7, "{what} {name}[{i}]: {analytic} but differences give {numeric}");
        }
    }
}

fn configs() -> Vec<(String, KernelConfig, bool)> {
    let mut all = Vec::new();
    for (variant, growing) in [
        (Variant::Softmax, false),
        (Variant::Softmax, true),
        (Variant::Exp, false),
        (Variant::ExpNoScale, false),
    ] {
        for delta in [Delta::Tied, Delta::Separate] {
            let config = KernelConfig::new(variant, 3, 7, 45).delta(delta);
            all.push((format!("{variant:?} {delta:?} growing {growing}"), config, growing));
        }
    }
    all
}

#[test]
fn gradients_of_the_kernels() {
    for (what, config, growing) in configs() {
        // Whole kernels of two channels, the head of a longer one, and several Λ.
        let systems = KernelConfig { h: 4, ..config };
        for config in [
            config.channels(2),
            KernelConfig { norm_len: 60, ..config },
            systems.systems(2).channels(2),
            systems.systems(4),
        ] {
            let mut rng = rng(3);
            let mut owned = layer(&config, growing, &mut rng);
            let g = normal(config.channels * config.h * config.len, &mut rng);
            let loss = |owned: &Owned<f64>| {
                let mut k = vec![0.0; g.len()];
                Kernel::new(config).unwrap().forward(&owned.params(), &mut k).unwrap();
                dot(&k, &g)
            };
            let mut gradient = zeros_like(&owned);
            Kernel::new(config).unwrap().backward(&owned.params(), &g, gradient.grads()).unwrap();
            check(&what, &mut owned, &mut gradient, loss);
        }
    }
}

/// Four chunks, the last one short; the loss also reads the final state.
#[test]
fn gradients_of_the_chunked_scan() {
    let (b, l, chunk) = (2, 41, 12);
    for (what, config, growing) in configs() {
        let mut rng = rng(5);
        let (h, n) = (config.h, config.n);
        let mut owned = layer(&config, growing, &mut rng);
        let mut u = normal(b * l * h, &mut rng);
        let g = normal(b * l * h, &mut rng);
        let g_state = normal(2 * b * h * n, &mut rng);
        let pieces: Vec<usize> = (0..l).step_by(chunk).collect();
        let cut = |x: &[f64], start: usize| -> Vec<f64> {
            let steps = chunk.min(l - start);
            (0..b).flat_map(|s| x[(s * l + start) * h..][..steps * h].to_vec()).collect()
        };
        let forward = |owned: &Owned<f64>, u: &[f64]| -> (f64, Vec<ScanState>, Scan<f64>) {
            let mut scan = Scan::new(config, b, chunk).unwrap();
            scan.set_params(&owned.params()).unwrap();
            let mut state = scan.state();
            let mut loss = 0.0;
            let mut states = vec![state.clone()];
            for &start in &pieces {
                let u = cut(u, start);
                let mut y = vec![0.0; u.len()];
                scan.forward(&mut state, &u, &mut y).unwrap();
                loss += dot(&y, &cut(&g, start));
                states.push(state.clone());
            }
            for (x, g) in state.values().iter().zip(g_state.chunks_exact(2)) {
                loss += x.re * g[0] + x.im * g[1];
            }
            (loss, states, scan)
        };
        let (_, states, mut scan) = forward(&owned, &u);
        let mut d_state = scan.state();
        for (d, g) in d_state.values_mut().iter_mut().zip(g_state.chunks_exact(2)) {
            (d.re, d.im) = (g[0], g[1]);
        }
        let mut du = vec![0.0; u.len()];
        for (i, &start) in pieces.iter().enumerate().rev() {
            let (u, g) = (cut(&u, start), cut(&g, start));
            let mut out = vec![0.0; u.len()];
            scan.backward(&states[i], &u, &g, &mut d_state, &mut out).unwrap();
            let size = out.len() / b;
            for (s, out) in out.chunks_exact(size).enumerate() {
                du[(s * l + start) * h..][..size].copy_from_slice(out);
            }
        }
        let mut gradient = zeros_like(&owned);
        scan.finish(&owned.params(), gradient.grads()).unwrap();
        check(&what, &mut owned, &mut gradient, |owned| forward(owned, &u).0);
        let scale = du.iter().fold(0f64, |m, g| m.max(g.abs()));
        for i in (0..u.len()).step_by(u.len() / 13) {
            let x = u[i];
            u[i] = x + 1e-3;
            let up = forward(&owned, &u).0;
            u[i] = x - 1e-3;
            let down = forward(&owned, &u).0;
            u[i] = x;
            // The loss is linear in u: the difference is exact.
            let numeric = (up - down) / 2e-3;
            assert!((numeric - du[i]).abs() <= 1e-9 * scale, "{what} u[{i}]");
        }
    }
}
