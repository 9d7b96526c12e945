//! How accurate the fast f32 kernel is at L = 16384, next to the naive f32 form. Figures: `--nocapture`.

use crate::common::{Owned, error, random, to_f32, to_f64};
use dss_kernels::init;
use dss_kernels::kernel::{Kernel, KernelConfig, Variant, kernel_listing};
use num_complex::Complex;

/// The paper's listing in f32: exp(λΔl) element by element, the phase λΔl rounded to f32 first.
fn naive_f32(config: &KernelConfig, owned: &Owned<f32>) -> Vec<f32> {
    let KernelConfig { h, n, len, .. } = *config;
    let mut k = vec![0f32; h * len];
    for c in 0..h {
        for i in 0..n {
            let (re, im) = (owned.lambda_re[i], owned.lambda_im[i]);
            let lambda = Complex::new(re, im);
            let z = Complex::new(
                re * owned.delta_log[2 * c].exp(),
                im * owned.delta_log[2 * c + 1].exp(),
            );
            let w = Complex::new(owned.w[2 * (c * n + i)], owned.w[2 * (c * n + i) + 1]);
            let x = ((z * len as f32).exp() - 1.0) * lambda;
            let w = w * (z.exp() - 1.0) * (x.conj() / (x.norm_sqr() + 1e-7));
            for (l, k) in k[c * len..][..len].iter_mut().enumerate() {
                *k += (w * (z * l as f32).exp()).re;
            }
        }
    }
    k
}

#[test]
fn f32_kernel_at_16384() {
    let (h, n, len) = (4, 64, 16384);
    let config = KernelConfig::new(Variant::Softmax, h, n, len);
    let mut rng = random::rng(11);
    let lambda = init::skew_hippo(n).unwrap();
    // Parameters that are exactly representable in f32, so that only the computation differs.
    let owned = Owned {
        lambda_re: lambda.iter().map(|z| z.re as f32).collect(),
        lambda_im: lambda.iter().map(|z| z.im as f32).collect(),
        delta_log: to_f32(&init::delta_log(2 * h, 0.001, 0.1, &mut rng).unwrap()),
        w: to_f32(&init::w(1, h, n, &mut rng)),
    };
    let wide = Owned {
        lambda_re: to_f64(&owned.lambda_re),
        lambda_im: to_f64(&owned.lambda_im),
        delta_log: to_f64(&owned.delta_log),
        w: to_f64(&owned.w),
    };
    let exact = kernel_listing(&config, &wide.params());
    let mut fast = vec![0f32; h * len];
    Kernel::new(config).unwrap().forward(&owned.params(), &mut fast).unwrap();
    let fast_error = error(&to_f64(&fast), &exact);
    let naive_error = error(&to_f64(&naive_f32(&config, &owned)), &exact);
    println!(
        "L = {len}, error of K relative to max|K|: fast f32 {fast_error:.1e}, naive f32 {naive_error:.1e}"
    );
    assert!(fast_error <= 1e-6, "{fast_error:.1e}");
    assert!(
        naive_error >= 20.0 * fast_error,
        "the naive form is no longer worse: {naive_error:.1e}"
    );

    let g = random::normal(h * len, &mut rng);
    let g = to_f32(&g);
    let mut narrow = owned.clone();
    let mut exact = wide.clone();
    let mut plan = Kernel::new(config).unwrap();
    plan.backward(&owned.params(), &g, narrow.grads()).unwrap();
    let mut plan = Kernel::new(config).unwrap();
    plan.backward(&wide.params(), &to_f64(&g), exact.grads()).unwrap();
    for (name, fast, exact) in [
        ("lambda_re", &narrow.lambda_re, &exact.lambda_re),
        ("lambda_im", &narrow.lambda_im, &exact.lambda_im),
        ("delta_log", &narrow.delta_log, &exact.delta_log),
        ("w", &narrow.w, &exact.w),
    ] {
        let e = error(&to_f64(fast), exact);
        println!("L = {len}, gradient of {name}: fast f32 {e:.1e}");
        assert!(e <= 5e-6, "{name}: {e:.1e}");
    }
}
