//! What must hold for every kernel and every input: convolution = recurrence = chunked scan, linearity, causality,
//! shift, truncation, change of rate, and no number that is not finite.

use crate::common::random::{layer, normal, rng};
use crate::common::{Owned, error, to_f32, to_f64};
use dss_kernels::kernel::{Delta, Kernel, KernelConfig, Params, Variant};
use dss_kernels::{Conv, Real, Recurrence, Scan, change_rate};
use proptest::prelude::*;
use rand::RngExt;

const VARIANTS: [Variant; 3] = [Variant::Softmax, Variant::Exp, Variant::ExpNoScale];

fn kernel<T: Real>(config: KernelConfig, params: &Params<T>) -> Vec<T> {
    let mut k = vec![T::ZERO; config.channels * config.h * config.len];
    Kernel::new(config).unwrap().forward(params, &mut k).unwrap();
    k
}

/// u [B, L, H] through the kernel as a convolution.
fn convolve<T: Real>(k: &[T], u: &[T], b: usize, l: usize, h: usize) -> Vec<T> {
    let mut conv = Conv::new(b, l, h).unwrap();
    conv.set_kernel(k).unwrap();
    let mut y = vec![T::ZERO; u.len()];
    conv.forward(u, &mut y).unwrap();
    y
}

/// The same one step at a time.
fn recur<T: Real>(config: KernelConfig, params: &Params<T>, u: &[T], b: usize) -> Vec<T> {
    let model = Recurrence::new(config, params).unwrap();
    let mut y = vec![T::ZERO; u.len()];
    let size = u.len() / b;
    for (u, y) in u.chunks_exact(size).zip(y.chunks_exact_mut(size)) {
        model.run(&mut model.state(), u, y).unwrap();
    }
    y
}

/// The same in chunks.
fn scan<T: Real>(
    config: KernelConfig,
    params: &Params<T>,
    u: &[T],
    b: usize,
    chunk: usize,
) -> Vec<T> {
    let h = config.h;
    let l = u.len() / (b * h);
    let mut scan = Scan::new(config, b, chunk).unwrap();
    scan.set_params(params).unwrap();
    let mut state = scan.state();
    let mut y = vec![T::ZERO; u.len()];
    for start in (0..l).step_by(chunk) {
        let steps = chunk.min(l - start);
        let part = |s: usize| (s * l + start) * h..(s * l + start + steps) * h;
        let u: Vec<T> = (0..b).flat_map(|s| u[part(s)].to_vec()).collect();
        let mut out = vec![T::ZERO; u.len()];
        scan.forward(&mut state, &u, &mut out).unwrap();
        for (s, out) in out.chunks_exact(steps * h).enumerate() {
            y[part(s)].copy_from_slice(out);
        }
    }
    y
}

/// Channel h has the Λ of system h mod S: as if each were alone. Modes of one index may grow in one system and decay in
/// another.
#[test]
fn several_systems() {
    let (b, h, n, l) = (2, 4, 5, 60);
    for variant in VARIANTS {
        for systems in [1, 2, 4] {
            let mut rng = rng(11);
            let config = KernelConfig::new(variant, h, n, l).systems(systems);
            let owned = layer(&config, true, &mut rng);
            let k = kernel(config, &owned.params());
            for channel in 0..h {
                let system = channel % systems * n..(channel % systems + 1) * n;
                let params = Params {
                    lambda_re: &owned.lambda_re[system.clone()],
                    lambda_im: &owned.lambda_im[system],
                    delta_log: &owned.delta_log[2 * channel..][..2],
                    w: &owned.w[2 * channel * n..][..2 * n],
                };
                let alone = kernel(KernelConfig::new(variant, 1, n, l), &params);
                assert_eq!(alone, k[channel * l..][..l], "{variant:?} {systems} {channel}");
            }
            let u = normal(b * l * h, &mut rng);
            let y = convolve(&k, &u, b, l, h);
            assert!(error(&recur(config, &owned.params(), &u, b), &y) < 1e-11, "{variant:?}");
            assert!(error(&scan(config, &owned.params(), &u, b, 13), &y) < 1e-11, "{variant:?}");
            let model = Recurrence::new(config, &owned.params()).unwrap();
            let mut state = model.state();
            model.run(&mut state, &u[..20 * h], &mut vec![0.0; 20 * h]).unwrap();
            let copy = model.state_from(20, &model.values(&state)).unwrap();
            let mut next = [vec![0.0; h], vec![0.0; h]];
            for (mut state, next) in [state, copy].into_iter().zip(&mut next) {
                model.step(&mut state, &u[20 * h..21 * h], next).unwrap();
            }
            assert_eq!(next[0], next[1], "{variant:?} {systems}");
        }
    }
    let config = KernelConfig::new(Variant::Exp, 4, 5, 60);
    assert!(Kernel::<f64>::new(config.systems(3)).is_err());
    assert!(Kernel::<f64>::new(config.systems(0)).is_err());
}

/// At the length of the paper's longest tasks: f64 to 1e-11, f32 to 1e-5, relative to the largest output.
#[test]
fn three_views_agree_at_16384() {
    let (h, n, l) = (4, 64, 16384);
    for variant in VARIANTS {
        for growing in [false, true] {
            if growing && variant != Variant::Softmax {
                continue;
            }
            let mut rng = rng(7);
            let config = KernelConfig::new(variant, h, n, l);
            let owned = layer(&config, growing, &mut rng);
            let u = normal(l * h, &mut rng);
            let y = convolve(&kernel(config, &owned.params()), &u, 1, l, h);
            let stepped = error(&recur(config, &owned.params(), &u, 1), &y);
            let chunked = error(&scan(config, &owned.params(), &u, 1, 1000), &y);
            println!(
                "{variant:?} growing {growing} f64: step {stepped:.1e}, chunked {chunked:.1e}"
            );
            assert!(stepped <= 1e-11 && chunked <= 1e-11);

            let owned = owned.to_f32();
            let u = to_f32(&u);
            let y = to_f64(&convolve(&kernel(config, &owned.params()), &u, 1, l, h));
            let stepped = error(&to_f64(&recur(config, &owned.params(), &u, 1)), &y);
            let chunked = error(&to_f64(&scan(config, &owned.params(), &u, 1, 1000)), &y);
            println!(
                "{variant:?} growing {growing} f32: step {stepped:.1e}, chunked {chunked:.1e}"
            );
            assert!(stepped <= 1e-5 && chunked <= 1e-5);
        }
    }
}

fn any_config() -> impl Strategy<Value = (KernelConfig, bool, u64)> {
    (0..3usize, any::<bool>(), 1..20usize, 1..40usize, 1..150usize, any::<bool>(), any::<u64>())
        .prop_map(|(variant, tied, h, n, len, growing, seed)| {
            let delta = if tied { Delta::Tied } else { Delta::Separate };
            (KernelConfig::new(VARIANTS[variant], h, n, len).delta(delta), growing, seed)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn convolution_recurrence_and_scan_agree(
        (config, growing, seed) in any_config(), b in 1..4usize, chunk in 1..60usize,
    ) {
        let mut rng = rng(seed);
        let owned = layer(&config, growing, &mut rng);
        let chunk = chunk.min(config.len);
        let u = normal(b * config.len * config.h, &mut rng);
        let y = convolve(&kernel(config, &owned.params()), &u, b, config.len, config.h);
        prop_assert!(error(&recur(config, &owned.params(), &u, b), &y) <= 1e-11);
        prop_assert!(error(&scan(config, &owned.params(), &u, b, chunk), &y) <= 1e-11);
    }

    /// A kernel is linear in W, a convolution in u; an input shifted by one shifts the output; what comes later
    /// changes nothing before.
    #[test]
    fn linear_causal_and_shift_invariant((config, growing, seed) in any_config(), at in 0..150usize) {
        let mut rng = rng(seed);
        let (h, l) = (config.h, config.len);
        let mut owned = layer(&config, growing, &mut rng);
        let k = kernel(config, &owned.params());
        let u = normal(l * h, &mut rng);
        let y = convolve(&k, &u, 1, l, h);
        for w in &mut owned.w {
            *w *= -2.5;
        }
        let scaled: Vec<f64> = k.iter().map(|k| -2.5 * k).collect();
        prop_assert!(error(&kernel(config, &owned.params()), &scaled) <= 1e-13);

        let at = at % l;
        let mut later = u.clone();
        for u in &mut later[at * h..] {
            *u += 3.0;
        }
        let after = convolve(&k, &later, 1, l, h);
        let scale = y.iter().chain(&after).fold(0f64, |m, y| m.max(y.abs()));
        for i in 0..at * h {
            prop_assert!((after[i] - y[i]).abs() <= 1e-13 * scale, "position {i} saw the future");
        }
        let mut shifted = vec![0.0; h];
        shifted.extend_from_slice(&u[..(l - 1) * h]);
        let moved = convolve(&k, &shifted, 1, l, h);
        for i in h..l * h {
            prop_assert!((moved[i] - y[i - h]).abs() <= 1e-13 * scale);
        }
    }

    /// The head of a kernel is the kernel of fewer taps with the same normaliser.
    #[test]
    fn truncation((config, growing, seed) in any_config(), taps in 1..150usize) {
        let owned = layer(&config, growing, &mut rng(seed));
        let (h, l) = (config.h, config.len);
        let taps = taps.min(l);
        let whole = kernel(config, &owned.params());
        let head = KernelConfig { len: taps, ..config };
        let short = kernel(head, &owned.params());
        let max = whole.iter().fold(0f64, |m, k| m.max(k.abs()));
        for c in 0..h {
            for t in 0..taps {
                prop_assert!((short[c * taps + t] - whole[c * l + t]).abs() <= 1e-12 * max);
            }
        }
    }

    /// K(2Δ, L/2)_k = K(Δ, L)_{2k} + K(Δ, L)_{2k+1}; without the scale, K(2Δ, L/2)_k = K(Δ, L)_{2k}.
    #[test]
    fn half_the_rate((config, growing, seed) in any_config()) {
        let config = KernelConfig { len: 2 * config.len, norm_len: 2 * config.len, ..config };
        let owned = layer(&config, growing, &mut rng(seed));
        let k = kernel(config, &owned.params());
        let (slow, delta_log) = change_rate(&config, &owned.delta_log, 2.0).unwrap();
        let half = kernel(slow, &Params { delta_log: &delta_log, ..owned.params() });
        let max = k.iter().fold(0f64, |m, k| m.max(k.abs()));
        for (half, pair) in half.iter().zip(k.chunks_exact(2)) {
            let expected =
                if config.variant == Variant::ExpNoScale { pair[0] } else { pair[0] + pair[1] };
            prop_assert!((half - expected).abs() <= 1e-11 * max);
        }
    }

    /// Any finite parameters: kernels and gradients stay finite, in both precisions; steps too while |W| ≤ 1e30.
    #[test]
    fn never_nan(
        variant in 0..3usize, tied in any::<bool>(), len in 1..70usize, seed in any::<u64>(),
    ) {
        let mut rng = rng(seed);
        let (h, n) = (3, 6);
        let delta = if tied { Delta::Tied } else { Delta::Separate };
        let config = KernelConfig::new(VARIANTS[variant], h, n, len).delta(delta);
        // Every other layer is beyond f32.
        let top = if seed % 2 == 0 { 38.0 } else { 300.0 };
        let mut wild = |range: f64| {
            let choices = [
                0.0,
                rng.random_range(-1.0..1.0) * 10f64.powf(rng.random_range(-40.0..range)),
                rng.random_range(-1.0..1.0),
                // On a pole of the softmax with Δ = 1.
                std::f64::consts::TAU * rng.random_range(-3..4) as f64 / len as f64,
                30.0,
                -30.0,
            ];
            choices[rng.random_range(0..choices.len())]
        };
        let owned = Owned {
            lambda_re: (0..n).map(|_| wild(top)).collect(),
            lambda_im: (0..n).map(|_| wild(top)).collect(),
            delta_log: (0..h * delta.per_channel()).map(|_| wild(3.0)).collect(),
            w: (0..2 * h * n).map(|_| wild(top)).collect(),
        };
        prop_assert!(finite(config, &owned), "f64 {owned:?}");
        if top < 39.0 {
            prop_assert!(finite(config, &owned.to_f32()), "f32 {owned:?}");
        }
    }
}

fn finite<T: Real>(config: KernelConfig, owned: &Owned<T>) -> bool {
    let mut plan = Kernel::new(config).unwrap();
    let mut k = vec![T::ZERO; config.h * config.len];
    plan.forward(&owned.params(), &mut k).unwrap();
    let ones = vec![T::from_f64(1.0); k.len()];
    let mut g = owned.clone();
    plan.backward(&owned.params(), &ones, g.grads()).unwrap();
    let mut owned = owned.clone();
    for w in &mut owned.w {
        *w = T::from_f64(w.to_f64().clamp(-1e30, 1e30));
    }
    let model = Recurrence::new(config, &owned.params()).unwrap();
    let mut y = vec![T::ZERO; k.len()];
    model.run(&mut model.state(), &ones, &mut y).unwrap();
    [k, g.lambda_re, g.lambda_im, g.delta_log, g.w, y]
        .iter()
        .all(|x| x.iter().all(|x| x.is_finite()))
}
