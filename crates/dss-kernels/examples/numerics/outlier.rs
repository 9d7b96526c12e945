//! A Δ_log far outside its range, as the 22 that the paper found on ListOps (§4.2): which kernel it gives, which
//! gradient, and what a bound of 10 changes.

use crate::common::random::{normal, rng};
use crate::common::{Owned, to_f32};
use crate::norm;
use dss_kernels::init;
use dss_kernels::kernel::{Kernel, KernelConfig, Variant};

const N: usize = 64;
const L: usize = 1024;

pub fn run() {
    println!("# An outlier of Δ_log\n");
    println!(
        "One channel, Skew-HiPPO, N = {N}, L = {L}, dK normal. `tap 0`: |K_0|/Σ|K|. `one ulp`: relative"
    );
    println!("change of K when Δ_log moves by f32's ε·max(|Δ_log|, 1).\n");
    let heads = [
        "outlier in",
        "Δ_log",
        "Δ",
        "tap 0",
        "max abs K",
        "one ulp",
        "∂Δ_log Re, f64",
        "f32",
        "∂Δ_log Im, f64",
        "f32",
        "norm ∂Λ_re",
        "norm ∂Λ_im",
        "norm ∂W",
    ];
    println!("| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
    let usual = -4.0;
    for log in [-4.0, 0.0, 2.0, 5.0, 10.0, 22.0] {
        row("both", log, [log, log]);
    }
    for log in [5.0, 10.0, 22.0] {
        row("Re Λ", log, [log, usual]);
    }
    for log in [0.0, 5.0, 10.0, 22.0] {
        row("Im Λ", log, [usual, log]);
    }
    println!();
}

fn row(part: &str, log: f64, delta_log: [f64; 2]) {
    let config = KernelConfig::new(Variant::Softmax, 1, N, L);
    let mut rng = rng(5);
    let lambda = init::skew_hippo(N).expect("N is valid");
    let owned = Owned {
        lambda_re: lambda.iter().map(|z| z.re).collect(),
        lambda_im: lambda.iter().map(|z| z.im).collect(),
        delta_log: delta_log.to_vec(),
        w: init::w(1, 1, N, &mut rng),
    };
    let dk = normal(L, &mut rng);
    let mut plan = Kernel::new(config).expect("sizes are valid");
    let mut kernel = |owned: &Owned<f64>| {
        let mut k = vec![0.0; L];
        plan.forward(&owned.params(), &mut k).expect("parameters are valid");
        k
    };
    let k = kernel(&owned);
    let total: f64 = k.iter().map(|x| x.abs()).sum();
    let mut moved = owned.clone();
    for x in moved.delta_log.iter_mut().filter(|x| **x == log) {
        *x += f64::from(f32::EPSILON) * x.abs().max(1.0);
    }
    let change: Vec<f64> = kernel(&moved).iter().zip(&k).map(|(a, b)| a - b).collect();
    let mut grads = owned.clone();
    plan.backward(&owned.params(), &dk, grads.grads()).expect("parameters are valid");
    let (narrow, mut narrow_grads) = (owned.to_f32(), owned.to_f32());
    let mut plan = Kernel::new(config).expect("sizes are valid");
    plan.backward(&narrow.params(), &to_f32(&dk), narrow_grads.grads())
        .expect("parameters are valid");
    let figures = [
        grads.delta_log[0],
        narrow_grads.delta_log[0].into(),
        grads.delta_log[1],
        narrow_grads.delta_log[1].into(),
        norm(&grads.lambda_re),
        norm(&grads.lambda_im),
        norm(&grads.w),
    ];
    println!(
        "| {part} | {log} | {:.1e} | {:.3} | {:.1e} | {:.0e} | {} |",
        log.exp(),
        k[0].abs() / total,
        k.iter().fold(0f64, |m, x| m.max(x.abs())),
        norm(&change) / norm(&k),
        figures.map(|x| format!("{x:.1e}")).join(" | ")
    );
}
