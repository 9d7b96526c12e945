//! The phases Im(λ)Δl in f32: the listing evaluated in f32 and our blocked kernel in f32, against f64.

use crate::common::random::rng;
use crate::common::{Owned, error, to_f32, to_f64};
use dss_kernels::init;
use dss_kernels::kernel::{EPSILON, Kernel, KernelConfig, Variant, kernel_listing};
use num_complex::Complex;

pub fn run() {
    println!("# The phase in f32\n");
    println!(
        "Skew-HiPPO, H = 4, N = 64; error of K relative to max|K|, against the listing in f64:\n"
    );
    println!(
        "| L | Δ of Re Λ | Δ of Im Λ | largest phase, rad | listing in f32 | ours in f32 | ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    for len in [256, 1024, 4096, 16384] {
        row(len, [0.001, 0.1], [0.001, 0.1]);
    }
    for (re, im) in
        [(0.001, 0.001), (0.001, 0.01), (0.001, 0.1), (0.0001, 0.01), (0.0001, 0.1), (0.1, 0.1)]
    {
        row(16384, [re, re], [im, im]);
    }
    println!();
}

/// One line: Δ between the two ends, for the real and the imaginary part of Λ.
fn row(len: usize, re: [f64; 2], im: [f64; 2]) {
    let (h, n) = (4, 64);
    let config = KernelConfig::new(Variant::Softmax, h, n, len);
    let mut rng = rng(11);
    let lambda = init::skew_hippo(n).expect("N is valid");
    let mut drawn =
        |[low, high]: [f64; 2]| init::delta_log(h, low, high, &mut rng).expect("Δ is valid");
    let delta_log: Vec<f64> =
        drawn(re).into_iter().zip(drawn(im)).flat_map(|(re, im)| [re, im]).collect();
    // Parameters that f32 holds exactly: only the computation differs.
    let owned = Owned {
        lambda_re: lambda.iter().map(|z| z.re as f32).collect(),
        lambda_im: lambda.iter().map(|z| z.im as f32).collect(),
        delta_log: to_f32(&delta_log),
        w: to_f32(&init::w(1, h, n, &mut rng)),
    };
    let wide = Owned {
        lambda_re: to_f64(&owned.lambda_re),
        lambda_im: to_f64(&owned.lambda_im),
        delta_log: to_f64(&owned.delta_log),
        w: to_f64(&owned.w),
    };
    let exact = kernel_listing(&config, &wide.params());
    let mut ours = vec![0f32; h * len];
    let mut plan = Kernel::new(config).expect("sizes are valid");
    plan.forward(&owned.params(), &mut ours).expect("parameters are valid");
    let ours = error(&to_f64(&ours), &exact);
    let naive = error(&to_f64(&listing_f32(&config, &owned)), &exact);
    let fastest = wide.delta_log.iter().skip(1).step_by(2).fold(f64::MIN, |a, b| a.max(*b)).exp();
    let phase = lambda[0].im * fastest * (len - 1) as f64;
    let range = |[low, high]: [f64; 2]| {
        if low == high { format!("{low}") } else { format!("{low} to {high}") }
    };
    let (re, im) = (range(re), range(im));
    println!(
        "| {len} | {re} | {im} | {phase:.1e} | {naive:.1e} | {ours:.1e} | {:.0} |",
        naive / ours
    );
}

/// The paper's listing in f32: the phase λΔl is rounded before its exponential is taken.
fn listing_f32(config: &KernelConfig, owned: &Owned<f32>) -> Vec<f32> {
    let KernelConfig { h, n, len, .. } = *config;
    let mut k = vec![0f32; h * len];
    for c in 0..h {
        let delta = [owned.delta_log[2 * c].exp(), owned.delta_log[2 * c + 1].exp()];
        for i in 0..n {
            let lambda = Complex::new(owned.lambda_re[i], owned.lambda_im[i]);
            let z = Complex::new(lambda.re * delta[0], lambda.im * delta[1]);
            let w = 2 * (c * n + i);
            let x = ((z * len as f32).exp() - 1.0) * lambda;
            let scale = (z.exp() - 1.0) * (x.conj() / (x.norm_sqr() + EPSILON as f32));
            let w = Complex::new(owned.w[w], owned.w[w + 1]) * scale;
            for (l, k) in k[c * len..][..len].iter_mut().enumerate() {
                *k += (w * (z * l as f32).exp()).re;
            }
        }
    }
    k
}
