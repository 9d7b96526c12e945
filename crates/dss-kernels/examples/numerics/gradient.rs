//! The gradient of the paper's listing for Re λ > 0 against the true one.
//!
//! The listing takes the largest exponent P_max = λΔ(L−1) out of such a row and does not differentiate it, although the
//! normaliser next to it is that of the shifted row and does depend on it. With row_l = c·exp(ζ(L−1−l)) the part of
//! mode n in K_l, and z = λΔ, the listing's gradient of z is the true one plus conj((L−1)·Σ_l dK_l·row_l).

use crate::common::random::{layer, normal, rng};
use crate::common::{Golden, Owned, error, split};
use crate::{cosine, norm};
use dss_kernels::C64;
use dss_kernels::kernel::{EPSILON, Kernel, KernelConfig, Variant};

pub fn run() {
    println!("# The listing's gradient where Re λ > 0\n");
    println!(
        "Golden files (cosine of the listing's gradient to the true one, ratio of their norms, error of ours):\n"
    );
    println!("| file | Re λ > 0 | cosine Λ | ratio | cosine Δ_log | ratio | ours Λ | ours Δ_log |");
    println!("|---|---|---|---|---|---|---|---|");
    for name in ["kernel_softmax_pos_small", "kernel_softmax_pos_medium"] {
        golden(name);
    }
    println!("\nRandom layers, H = 8, N = 64, Δ ~ log U(0.001, 0.1), 20 layers each, dK normal:\n");
    println!(
        "| L | modes with Re λ > 0 | cosine Λ, median | worst | cosine Δ_log, median | worst | norm ratio Λ, median |"
    );
    println!("|---|---|---|---|---|---|---|");
    for l in [128, 1024, 4096] {
        for growing in [1, 6, 32] {
            random(l, growing);
        }
    }
    println!();
}

fn golden(name: &str) {
    let golden = Golden::read(name).expect("a golden file of the checkout");
    let l = golden.shape("K")[2];
    let config = golden.config(l);
    let (lambda_re, lambda_im) = golden.lambda();
    let owned = Owned {
        lambda_re,
        lambda_im,
        delta_log: golden.get("log_dt").to_vec(),
        w: golden.get("W").to_vec(),
    };
    let dk = golden.get("grad.K");
    let (truth, listing) = gradients(&config, &owned, dk);
    let interleaved = |g: &Owned<f64>| -> Vec<f64> {
        g.lambda_re.iter().zip(&g.lambda_im).flat_map(|(re, im)| [*re, *im]).collect()
    };
    // The formula above is the listing's: its gradients are those of the golden file.
    let repo = [golden.get("grad_repo.Lambda"), golden.get("grad_repo.log_dt")];
    assert!(error(&interleaved(&listing), repo[0]) < 1e-9, "{name}: not the listing's gradient");
    assert!(error(&listing.delta_log, repo[1]) < 1e-9, "{name}: not the listing's gradient");
    let real = [golden.get("grad_true.Lambda"), golden.get("grad_true.log_dt")];
    let growing = split(golden.get("Lambda")).0.iter().filter(|x| **x > 0.0).count();
    println!(
        "| `{name}` | {growing} of {} | {:.3} | {:.2} | {:.3} | {:.2} | {:.0e} | {:.0e} |",
        config.n,
        cosine(repo[0], real[0]),
        norm(repo[0]) / norm(real[0]),
        cosine(repo[1], real[1]),
        norm(repo[1]) / norm(real[1]),
        error(&interleaved(&truth), real[0]),
        error(&truth.delta_log, real[1]),
    );
}

fn random(l: usize, growing: usize) {
    let config = KernelConfig::new(Variant::Softmax, 8, 64, l);
    let (mut lambda, mut delta, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..20 {
        let mut rng = rng(seed);
        let mut owned = layer(&config, false, &mut rng);
        // Evenly spread over the frequencies; a fifth of the usual |Re λ|.
        for i in 0..growing {
            let at = i * config.n / growing;
            owned.lambda_re[at] *= -0.2;
        }
        let dk = normal(config.h * l, &mut rng);
        let (truth, listing) = gradients(&config, &owned, &dk);
        let both = |g: &Owned<f64>| [g.lambda_re.as_slice(), &g.lambda_im].concat();
        lambda.push(cosine(&both(&listing), &both(&truth)));
        delta.push(cosine(&listing.delta_log, &truth.delta_log));
        ratio.push(norm(&both(&listing)) / norm(&both(&truth)));
    }
    let of = |mut x: Vec<f64>| {
        x.sort_by(f64::total_cmp);
        (x[x.len() / 2], x[0])
    };
    let (lambda, delta, ratio) = (of(lambda), of(delta), of(ratio));
    println!(
        "| {l} | {growing} of 64 | {:.3} | {:.3} | {:.3} | {:.3} | {:.2} |",
        lambda.0, lambda.1, delta.0, delta.1, ratio.0
    );
}

/// The true gradients, and those of the listing.
fn gradients(config: &KernelConfig, owned: &Owned<f64>, dk: &[f64]) -> (Owned<f64>, Owned<f64>) {
    let mut truth = owned.clone();
    let mut plan = Kernel::new(*config).expect("sizes are valid");
    plan.backward(&owned.params(), dk, truth.grads()).expect("parameters are valid");
    let mut listing = truth.clone();
    let KernelConfig { n, h, len, .. } = *config;
    for c in 0..h {
        let delta = [owned.delta_log[2 * c].exp(), owned.delta_log[2 * c + 1].exp()];
        for i in (0..n).filter(|&i| owned.lambda_re[i] > 0.0) {
            let lambda = C64::new(owned.lambda_re[i], owned.lambda_im[i]);
            let z = C64::new(lambda.re * delta[0], lambda.im * delta[1]);
            let x = ((-z * len as f64).exp() - 1.0) * lambda;
            let scale = ((-z).exp() - 1.0) * x.conj() / (x.norm_sqr() + EPSILON);
            let w = 2 * (c * n + i);
            let coefficient = C64::new(owned.w[w], owned.w[w + 1]) * scale;
            let sum: C64 = dk[c * len..][..len]
                .iter()
                .enumerate()
                .map(|(l, g)| coefficient * (z * (l as f64 - (len - 1) as f64)).exp() * *g)
                .sum();
            let g_z = (sum * (len - 1) as f64).conj();
            listing.lambda_re[i] += g_z.re * delta[0];
            listing.lambda_im[i] += g_z.im * delta[1];
            listing.delta_log[2 * c] += g_z.re * lambda.re * delta[0];
            listing.delta_log[2 * c + 1] += g_z.im * lambda.im * delta[1];
        }
    }
    (truth, listing)
}
