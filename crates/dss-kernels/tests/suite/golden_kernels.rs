//! Kernels, their gradients and the convolution against the golden tensors (PyTorch f64, checked with 50-digit
//! arithmetic; each file holds parameters, K, an input u, y = K * u and the gradients of Σ y·g).

use crate::common::{Golden, Owned, channels_last, error, to_f32, to_f64};
use dss_kernels::kernel::{
    Delta, EPSILON, Kernel, KernelConfig, ParamGrads, Variant, kernel_listing, kernel_softmax_eps,
};
use dss_kernels::{Conv, Real};

const FILES: [&str; 17] = [
    "kernel_exp_medium",
    "kernel_exp_no_scale_medium",
    "kernel_exp_no_scale_odd_c2",
    "kernel_exp_no_scale_small",
    "kernel_exp_no_scale_small_tied",
    "kernel_exp_odd_c2",
    "kernel_exp_small",
    "kernel_exp_small_tied",
    "kernel_exp_tiny_lambda",
    "kernel_softmax_medium",
    "kernel_softmax_odd_c2",
    "kernel_softmax_pos_medium",
    "kernel_softmax_pos_small",
    "kernel_softmax_singular",
    "kernel_softmax_small",
    "kernel_softmax_small_tied",
    "kernel_softmax_tiny_lambda",
];

/// Everything a file holds, computed in precision T and returned in f64.
struct Computed {
    k: Vec<f64>,
    y: Vec<f64>,
    du: Vec<f64>,
    dk: Vec<f64>,
    lambda_re: Vec<f64>,
    lambda_im: Vec<f64>,
    delta_log: Vec<f64>,
    w: Vec<f64>,
}

fn owned<T>(golden: &Golden, cast: fn(&[f64]) -> Vec<T>) -> Owned<T> {
    let (re, im) = golden.lambda();
    Owned {
        lambda_re: cast(&re),
        lambda_im: cast(&im),
        delta_log: cast(golden.get("log_dt")),
        w: cast(golden.get("W")),
    }
}

fn compute<T: Real>(
    golden: &Golden,
    config: KernelConfig,
    cast: fn(&[f64]) -> Vec<T>,
    back: fn(&[T]) -> Vec<f64>,
) -> Computed {
    let (c, h, l) = (config.channels, config.h, config.len);
    let b = golden.shape("u")[0];
    let owned = owned(golden, cast);
    let mut kernel = Kernel::new(config).unwrap();
    let mut k = vec![T::ZERO; c * h * l];
    kernel.forward(&owned.params(), &mut k).unwrap();

    let u = cast(&channels_last(golden.get("u"), b, h, l));
    let mut conv = Conv::new(b, l, h).unwrap();
    let (mut y_all, mut du_all) = (vec![0.0; b * c * h * l], vec![0.0; b * h * l]);
    let mut dk = vec![T::ZERO; k.len()];
    for channel in 0..c {
        let pick = |x: &[f64]| -> Vec<f64> {
            (0..b).flat_map(|s| x[(s * c + channel) * h * l..][..h * l].to_vec()).collect()
        };
        let g = cast(&channels_last(&pick(golden.get("g")), b, h, l));
        let rows = channel * h * l..(channel + 1) * h * l;
        conv.set_kernel(&k[rows.clone()]).unwrap();
        let (mut y, mut du) = (vec![T::ZERO; u.len()], vec![T::ZERO; u.len()]);
        conv.forward(&u, &mut y).unwrap();
        conv.backward(&u, &g, &mut du, &mut dk[rows]).unwrap();
        for (s, y) in y.chunks_exact(l * h).enumerate() {
            let to = &mut y_all[(s * c + channel) * h * l..][..h * l];
            for (i, y) in back(y).into_iter().enumerate() {
                to[i % h * l + i / h] = y;
            }
        }
        for (s, du) in du.chunks_exact(l * h).enumerate() {
            for (i, du) in back(du).into_iter().enumerate() {
                du_all[s * h * l + i % h * l + i / h] += du;
            }
        }
    }
    let zeros = |n: usize| vec![T::ZERO; n];
    let (mut lambda_re, mut lambda_im) = (zeros(config.n), zeros(config.n));
    let (mut delta_log, mut w) = (zeros(owned.delta_log.len()), zeros(owned.w.len()));
    let grads = ParamGrads {
        lambda_re: &mut lambda_re,
        lambda_im: &mut lambda_im,
        delta_log: &mut delta_log,
        w: &mut w,
    };
    kernel.backward(&owned.params(), &dk, grads).unwrap();
    Computed {
        k: back(&k),
        y: y_all,
        du: du_all,
        dk: back(&dk),
        lambda_re: back(&lambda_re),
        lambda_im: back(&lambda_im),
        delta_log: back(&delta_log),
        w: back(&w),
    }
}

/// (name, error relative to the tensor's maximum) of everything.
fn errors(golden: &Golden, computed: &Computed) -> Vec<(&'static str, f64)> {
    let (re, im) = golden.lambda_grad();
    // Real and imaginary parts are one tensor in the softmax files: relative to its maximum.
    let joined = |a: &[f64], b: &[f64]| [a, b].concat();
    let lambda = if golden.has("Lambda") {
        error(&joined(&computed.lambda_re, &computed.lambda_im), &joined(&re, &im))
    } else {
        error(&computed.lambda_re, &re).max(error(&computed.lambda_im, &im))
    };
    vec![
        ("K", error(&computed.k, golden.get("K"))),
        ("y", error(&computed.y, golden.get("y"))),
        ("grad.u", error(&computed.du, golden.get("grad.u"))),
        ("grad.K", error(&computed.dk, golden.get("grad.K"))),
        ("grad.Lambda", lambda),
        ("grad.log_dt", error(&computed.delta_log, golden.grad("log_dt"))),
        ("grad.W", error(&computed.w, golden.grad("W"))),
    ]
}

/// 1e-10 is what a one-ulp change of the parameters can do; 1e-8 next to the poles.
#[test]
fn f64_path() {
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let config = golden.config(golden.shape("K")[2]);
        let computed = compute(&golden, config, <[f64]>::to_vec, <[f64]>::to_vec);
        let tolerance = if file.contains("singular") { 1e-8 } else { 1e-10 };
        for (name, error) in errors(&golden, &computed) {
            println!("{file} {name}: {error:.1e}");
            assert!(error <= tolerance, "{file} {name}: {error:.1e} > {tolerance:.0e}");
        }
    }
}

/// The f32 path against the f64 path at the same parameters, both rounded to f32.
///
/// Rounding the parameters themselves moves K by up to 1e-4 of its maximum (phases Im(λ)Δl reach 10⁵ rad), whatever
/// is computed from them afterwards; that is a matter of their storage and not measured here.
#[test]
fn f32_path() {
    let round = |x: &[f64]| to_f64(&to_f32(x));
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let config = golden.config(golden.shape("K")[2]);
        let exact = compute(&golden, config, round, <[f64]>::to_vec);
        let fast = compute(&golden, config, to_f32, to_f64);
        for (name, fast, exact, tolerance) in [
            ("K", &fast.k, &exact.k, 2e-6),
            ("y", &fast.y, &exact.y, 2e-6),
            ("grad.u", &fast.du, &exact.du, 2e-6),
            ("grad.K", &fast.dk, &exact.dk, 2e-6),
            ("grad.lambda_re", &fast.lambda_re, &exact.lambda_re, 2e-6),
            ("grad.lambda_im", &fast.lambda_im, &exact.lambda_im, 2e-6),
            ("grad.log_dt", &fast.delta_log, &exact.delta_log, 2e-6),
            ("grad.W", &fast.w, &exact.w, 2e-6),
        ] {
            let error = error(fast, exact);
            println!("{file} {name}: {error:.1e}");
            assert!(error <= tolerance, "{file} {name}: {error:.1e} > {tolerance:.0e}");
        }
    }
}

/// The literal forms agree with the golden kernels: they are the oracles of everything else.
#[test]
fn reference_forms() {
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let config = golden.config(golden.shape("K")[2]);
        let owned = owned(&golden, <[f64]>::to_vec);
        let k = kernel_listing(&config, &owned.params());
        let tolerance =
            if file.contains("singular") || file.contains("tiny") { 1e-8 } else { 1e-10 };
        let e = error(&k, golden.get("K"));
        assert!(e <= tolerance, "{file} listing: {e:.1e}");
        if golden.has("K_paper") {
            let k = kernel_softmax_eps(&config, &owned.params());
            let e = error(&k, golden.get("K_paper"));
            assert!(e <= 1e-8, "{file} softmax_eps: {e:.1e}");
        }
    }
}

/// The poles of the softmax one at a time: L = 32, one mode, λΔL = 2πik(1 + δ), both forms of ε.
#[test]
fn poles_one_at_a_time() {
    let golden = Golden::read("softmax_singular_rows").unwrap();
    let config = KernelConfig::new(Variant::Softmax, 1, 1, 32).delta(Delta::Tied);
    for (row, lambda) in golden.get("Lambda").chunks_exact(2).enumerate() {
        let owned = Owned {
            lambda_re: vec![lambda[0]],
            lambda_im: vec![lambda[1]],
            delta_log: golden.get("log_dt").to_vec(),
            w: golden.get("W").to_vec(),
        };
        let mut k = vec![0.0; 32];
        Kernel::new(config).unwrap().forward(&owned.params(), &mut k).unwrap();
        let e = error(&k, golden.get(&format!("K.{row}")));
        assert!(e <= 1e-8, "row {row} K: {e:.1e}");
        // On the pole §A.2's normaliser is conj(Σ)/ε with Σ nothing but rounding, up to L·2⁻⁵³.
        let paper = kernel_softmax_eps(&config, &owned.params());
        let size = owned.w[0].hypot(owned.w[1]) / lambda[0].hypot(lambda[1]);
        let noise = size * 32.0 * f64::EPSILON / EPSILON;
        for (l, (k, expected)) in
            paper.iter().zip(golden.get(&format!("K_paper.{row}"))).enumerate()
        {
            let e = (k - expected).abs();
            assert!(e <= 1e-8 * expected.abs() + noise, "row {row} K_paper[{l}]: {e:.1e}");
        }
    }
}
