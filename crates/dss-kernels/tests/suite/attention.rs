//! Attention against its golden file, finite differences and the textbook formula; steps against the whole.

use crate::common::random::{normal, rng};
use crate::common::{Golden, error, to_f32, to_f64};
use dss_kernels::Real;
use dss_kernels::attention::{
    Attention, AttentionCache, AttentionConfig, AttentionGrads, AttentionInput,
    attention_backward_reference, attention_reference,
};
use proptest::prelude::*;

/// q, k, v, dy and lengths of one attention.
#[derive(Debug, Clone)]
struct Case<T> {
    config: AttentionConfig,
    /// q: [B, M, Q]; k, v: [B, L, Q]; dy: [B, M, Q].
    tensors: [Vec<T>; 4],
    /// True queries and keys.
    lengths: [Option<Vec<usize>>; 2],
}

impl Case<f64> {
    /// Of a sequence to itself.
    fn random(config: AttentionConfig, seed: u64, lengths: Option<Vec<usize>>) -> Self {
        Self::cross(config, seed, [lengths.clone(), lengths])
    }

    fn cross(config: AttentionConfig, seed: u64, lengths: [Option<Vec<usize>>; 2]) -> Self {
        let mut rng = rng(seed);
        let AttentionConfig { batch, queries, keys, .. } = config;
        let tensors = [queries, keys, keys, queries].map(|len| {
            let size = batch * len * config.channels();
            normal(size, &mut rng).iter().map(|x| 1.5 * x).collect()
        });
        Self { config, tensors, lengths }
    }

    fn to_f32(&self) -> Case<f32> {
        let tensors = self.tensors.each_ref().map(|x| to_f32(x));
        Case { config: self.config, tensors, lengths: self.lengths.clone() }
    }

    /// y, dq, dk, dv by the textbook.
    fn reference(&self) -> [Vec<f64>; 4] {
        let y = attention_reference(&self.config, &self.input());
        let grads = attention_backward_reference(&self.config, &self.input(), &self.tensors[3]);
        [y, grads.q, grads.k, grads.v]
    }
}

impl<T: Real> Case<T> {
    fn input(&self) -> AttentionInput<'_, T> {
        let [q, k, v, _] = &self.tensors;
        let [query_lengths, key_lengths] = self.lengths.each_ref().map(Option::as_deref);
        AttentionInput { q, k, v, query_lengths, key_lengths }
    }

    /// y, dq, dk, dv; every buffer is NaN before.
    fn run(&self) -> [Vec<T>; 4] {
        let [mut y, mut dq, mut dk, mut dv] =
            [0, 0, 1, 2].map(|like| vec![T::rounded(f64::NAN); self.tensors[like].len()]);
        let mut saved = vec![T::rounded(f64::NAN); self.config.saved_len()];
        let mut plan = Attention::new(self.config).unwrap();
        plan.forward(&self.input(), &mut y, &mut saved).unwrap();
        let grads = AttentionGrads { q: &mut dq, k: &mut dk, v: &mut dv };
        plan.backward(&self.input(), &y, &saved, &self.tensors[3], grads).unwrap();
        [y, dq, dk, dv]
    }
}

fn config(
    batch: usize,
    len: usize,
    heads: usize,
    head_dim: usize,
    causal: bool,
) -> AttentionConfig {
    AttentionConfig { batch, queries: len, keys: len, heads, head_dim, causal }
}

/// x·Wᵀ + b with x: [rows, in], W: [out, in].
fn affine(x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let inputs = weight.len() / bias.len();
    let product = |x: &[f64], w: &[f64]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
    let row = |x| weight.chunks(inputs).zip(bias).map(move |(w, b)| product(x, w) + b);
    x.chunks(inputs).flat_map(row).collect()
}

/// dx, dW and db of [`affine`].
fn affine_backward(x: &[f64], weight: &[f64], dy: &[f64], outputs: usize) -> [Vec<f64>; 3] {
    let inputs = weight.len() / outputs;
    let mut grads = [vec![0.0; x.len()], vec![0.0; weight.len()], vec![0.0; outputs]];
    let [dx, dw, db] = &mut grads;
    for (t, dy) in dy.chunks(outputs).enumerate() {
        for (o, dy) in dy.iter().enumerate() {
            db[o] += dy;
            for i in 0..inputs {
                dx[t * inputs + i] += dy * weight[o * inputs + i];
                dw[o * inputs + i] += dy * x[t * inputs + i];
            }
        }
    }
    grads
}

/// `attention.safetensors` comes from PyTorch in f64: q, k, v = affine(u), attention, affine. The tolerances are those
/// of its README, relative to a tensor's maximum (gradients: or a thousandth of the largest gradient of the case).
#[test]
fn golden_values_and_gradients() {
    let golden = Golden::read("attention").unwrap();
    let (width, heads) = (16, 2);
    let (batch, len) = (golden.shape("u")[0], golden.shape("u")[1]);
    let lengths: Vec<usize> = golden.get("lengths").iter().map(|&l| l as usize).collect();
    let u = golden.get("u");
    let map =
        |name: &str| (golden.get(&format!("{name}.weight")), golden.get(&format!("{name}.bias")));
    for (case, causal, masked) in [
        ("", false, false),
        ("masked.", false, true),
        ("causal.", true, false),
        ("causal_masked.", true, true),
    ] {
        let mut g = golden.get("g").to_vec();
        let hide = |x: &mut [f64]| {
            for (x, &l) in x.chunks_mut(len * width).zip(&lengths) {
                if masked {
                    x[l * width..].fill(0.0);
                }
            }
        };
        hide(&mut g);
        let [q, k, v] = ["q", "k", "v"].map(|name| affine(u, map(name).0, map(name).1));
        let [dy, _, _] = affine_backward(&g, map("out").0, &g, width);
        let config = config(batch, len, heads, width / heads, causal);
        let lengths = masked.then(|| lengths.clone());
        let lengths = [lengths.clone(), lengths];
        let double = Case { config, tensors: [q, k, v, dy], lengths };
        let single = double.to_f32().run().map(|x| to_f64(&x));
        for (core, y_tolerance, tolerance) in [(double.run(), 1e-11, 1e-10), (single, 1e-5, 1e-3)] {
            let [y, dq, dk, dv] = core;
            let mut out = affine(&y, map("out").0, map("out").1);
            hide(&mut out);
            let worst = error(&out, golden.get(&format!("{case}y")));
            assert!(worst <= y_tolerance, "{case}y: {worst:e}");

            let mut du = vec![0.0; u.len()];
            let mut grads = Vec::new();
            for (name, x, d) in [("q", u, &dq), ("k", u, &dk), ("v", u, &dv), ("out", &y, &g)] {
                let [dx, dw, db] = affine_backward(x, map(name).0, d, width);
                grads.push((format!("{name}.weight"), dw));
                grads.push((format!("{name}.bias"), db));
                if name != "out" {
                    du.iter_mut().zip(dx).for_each(|(du, dx)| *du += dx);
                }
            }
            grads.push(("u".to_string(), du));
            let size = |x: &[f64]| x.iter().fold(0f64, |m, x| m.max(x.abs()));
            let truth = |name: &str| golden.get(&format!("{case}grad.{name}"));
            let largest = grads.iter().map(|(name, _)| size(truth(name))).fold(0.0, f64::max);
            for (name, grad) in &grads {
                let scale = size(truth(name)).max(largest / 1000.0);
                let worst = error(grad, truth(name)) * size(truth(name)) / scale;
                assert!(worst <= tolerance, "{case}grad.{name}: {worst:e}");
            }
        }
    }
}

#[test]
fn gradients_are_finite_differences() {
    let cross = AttentionConfig { keys: 131, ..config(2, 70, 2, 3, false) };
    for mut case in [
        Case::random(config(2, 70, 2, 3, false), 5, Some(vec![70, 67])),
        Case::random(config(2, 70, 2, 3, true), 5, Some(vec![70, 67])),
        Case::cross(cross, 5, [Some(vec![70, 67]), Some(vec![131, 90])]),
    ] {
        let [_, dq, dk, dv] = case.run();
        let mut loss = |tensor: usize, i: usize, by: f64| {
            let before = case.tensors[tensor][i];
            case.tensors[tensor][i] = before + by;
            let [y, ..] = case.run();
            case.tensors[tensor][i] = before;
            y.iter().zip(&case.tensors[3]).map(|(y, dy)| y * dy).sum::<f64>()
        };
        for (tensor, grad) in [dq, dk, dv].iter().enumerate() {
            for i in (0..grad.len()).step_by(37) {
                let slope = (loss(tensor, i, 1e-5) - loss(tensor, i, -1e-5)) / 2e-5;
                assert!((grad[i] - slope).abs() < 1e-7, "{tensor} [{i}]: {} {slope}", grad[i]);
            }
        }
    }
}

/// A case of any odd size.
fn cases() -> impl Strategy<Value = Case<f64>> {
    let sizes = (1usize..4, 1usize..300, 1usize..6, 1usize..40, any::<bool>(), any::<u64>());
    (sizes, any::<bool>(), proptest::collection::vec(0.0..=1.0, 3)).prop_map(
        |((batch, len, heads, head_dim, causal, seed), masked, lengths)| {
            let lengths = lengths[..batch].iter().map(|part| (part * len as f64) as usize);
            let lengths = masked.then(|| lengths.collect());
            Case::random(config(batch, len, heads, head_dim, causal), seed, lengths)
        },
    )
}

/// Queries of any number to keys of another.
fn cross_cases() -> impl Strategy<Value = Case<f64>> {
    let parts = || proptest::collection::vec(0.0..=1.0, 3);
    (cases(), 1usize..300, any::<[bool; 2]>(), parts(), parts()).prop_map(
        |(case, keys, masked, query_parts, key_parts)| {
            let config = AttentionConfig { keys, causal: false, ..case.config };
            // At least one of each: a sequence with queries has keys.
            let lengths = [(config.queries, query_parts), (keys, key_parts)].map(|(len, parts)| {
                let lengths = parts[..config.batch].iter();
                lengths.map(|part| 1 + (part * (len - 1) as f64) as usize).collect()
            });
            let mut masked = masked.into_iter();
            let lengths = lengths.map(|lengths| masked.next().unwrap().then_some(lengths));
            Case::cross(config, keys as u64, lengths)
        },
    )
}

/// |a − b| at most `tolerance`, relative to the larger of 1 and the largest |b|.
fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    let scale = b.iter().fold(1f64, |m, x| m.max(x.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * scale)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn equals_the_textbook(case in prop_oneof![cases(), cross_cases()]) {
        let truth = case.reference();
        let single = case.to_f32().run().map(|x| to_f64(&x));
        for (name, ((double, single), truth)) in
            ["y", "dq", "dk", "dv"].iter().zip(case.run().iter().zip(&single).zip(&truth))
        {
            prop_assert!(close(double, truth, 1e-12), "{name} in f64");
            prop_assert!(close(single, truth, 2e-5), "{name} in f32");
        }
    }

    #[test]
    fn steps_equal_the_whole(case in cases(), cut in 0.0..1.0) {
        let config = AttentionConfig { causal: true, ..case.config };
        let case = Case { config, lengths: [None, None], ..case };
        let truth = attention_reference(&config, &case.input());
        let width = config.channels();
        let sequence = config.queries * width;
        let cut = (cut * config.queries as f64) as usize * width;
        let single = case.to_f32();
        let mut y = vec![0.0; truth.len()];
        let mut y_single = vec![0.0; truth.len()];
        for b in 0..config.batch {
            let rows = b * sequence..(b + 1) * sequence;
            let [q, k, v, _] = case.tensors.each_ref().map(|x| &x[rows.clone()]);
            let mut cache = AttentionCache::new(config.heads, config.head_dim).unwrap();
            cache.step(q, k, v, &mut y[rows.clone()]).unwrap();

            // One by one, with a copy of the stream taken in the middle: the same bits.
            let [q, k, v, _] = single.tensors.each_ref().map(|x| &x[rows.clone()]);
            let mut block = AttentionCache::new(config.heads, config.head_dim).unwrap();
            block.step(q, k, v, &mut y_single[rows.clone()]).unwrap();
            let mut steps = AttentionCache::new(config.heads, config.head_dim).unwrap();
            let mut one = vec![0.0; width];
            for t in (0..sequence).step_by(width) {
                if t == cut {
                    let (keys, values) = (steps.keys(), steps.values().to_vec());
                    prop_assert_eq!(&keys[..], &k[..t]);
                    steps = AttentionCache::new(config.heads, config.head_dim).unwrap();
                    steps.step(&q[..width], &v[..width], &k[..width], &mut one).unwrap();
                    steps.set(&keys, &values).unwrap();
                }
                let row = t..t + width;
                steps.step(&q[row.clone()], &k[row.clone()], &v[row.clone()], &mut one).unwrap();
                prop_assert_eq!(&one[..], &y_single[rows.clone()][row]);
            }
        }
        prop_assert!(close(&y, &truth, 1e-12));
        prop_assert!(close(&to_f64(&y_single), &truth, 2e-5));
    }
}

/// A hidden key or query may hold anything: nothing changes, and its own gradients are 0.
#[test]
fn hidden_positions_have_no_influence() {
    let config = config(2, 150, 2, 8, false);
    let mut case = Case::random(config, 3, Some(vec![97, 0]));
    let before = case.run();
    let hidden = [97 * 16..150 * 16, 150 * 16..300 * 16];
    for x in &mut case.tensors {
        hidden.iter().for_each(|hidden| x[hidden.clone()].fill(1e200));
    }
    for (before, after) in before.iter().zip(case.run()) {
        assert_eq!(*before, after);
        assert!(hidden.iter().all(|hidden| after[hidden.clone()].iter().all(|&x| x == 0.0)));
    }
}

/// Logits beyond the range of the type, and dot products whose terms are ∞ − ∞, still give weights that sum to 1.
#[test]
fn huge_logits_are_not_nan() {
    fn check<T: Real>(size: f64) {
        for causal in [false, true] {
            let config = config(1, 130, 2, 4, causal);
            let mut case = Case::<f64>::random(config, 9, None);
            for x in &mut case.tensors[..2] {
                x.iter_mut().for_each(|x| *x = (*x * size).clamp(-T::MAX, T::MAX));
            }
            let cast = |x: &Vec<f64>| x.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
            let mut case =
                Case { config, tensors: case.tensors.each_ref().map(cast), lengths: [None, None] };
            case.tensors[2].fill(T::rounded(1.0));
            let [y, ..] = case.run();
            let [q, k, v, _] = &case.tensors;
            let mut steps = y.clone();
            AttentionCache::new(2, 4).unwrap().step(q, k, v, &mut steps).unwrap();
            for y in y.iter().chain(&steps) {
                assert!((y.to_f64() - 1.0).abs() < 1e-5, "{size}: {y}");
            }
        }
    }
    for size in [1e3, 1e10, 1e19, 1e30, 3e38] {
        check::<f32>(size);
    }
    for size in [1e10, 1e154, 1e300, 1e308] {
        check::<f64>(size);
    }
}

/// A NaN among the inputs is not hidden by the safety above.
#[test]
fn nan_comes_out() {
    for tensor in 0..3 {
        let mut case = Case::random(config(1, 70, 1, 4, false), 1, None).to_f32();
        case.tensors[tensor][5] = f32::NAN;
        assert!(case.run()[0].iter().any(|y| y.is_nan()), "{tensor}");
    }
}

#[test]
#[cfg(feature = "rayon")]
fn threads_do_not_change_a_bit() {
    for (batch, len, heads, causal) in [(1, 1, 1, false), (1, 700, 1, true), (3, 200, 2, false)] {
        let lengths = (batch == 3).then(|| vec![200, 70, 131]);
        let case = Case::random(config(batch, len, heads, 20, causal), 4, lengths).to_f32();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| case.run().concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        };
        let one = run(1);
        for threads in [2, 3, 7] {
            assert!(run(threads) == one, "{threads} threads, L = {len}");
        }
    }
}

#[test]
fn wrong_sizes_are_named() {
    assert!(Attention::<f32>::new(config(1, 0, 1, 1, false)).is_err());
    assert!(Attention::<f32>::new(config(usize::MAX, 2, 2, 2, false)).is_err());
    assert!(AttentionCache::<f32>::new(0, 4).is_err());
    let config = config(2, 3, 1, 2, false);
    let mut plan = Attention::<f32>::new(config).unwrap();
    let (x, mut y, mut saved) = (vec![0.0; 12], vec![0.0; 12], vec![0.0; config.saved_len()]);
    let mut message = |k: &[f32], lengths: [&[usize]; 2]| {
        let [query_lengths, key_lengths] = lengths.map(Some);
        let input = AttentionInput { q: &x, k, v: &x, query_lengths, key_lengths };
        plan.forward(&input, &mut y, &mut saved).unwrap_err().to_string()
    };
    assert_eq!(
        message(&x[1..], [&[3, 3]; 2]),
        "Attention::forward: `k` must be [B, L, Q] = 12 elements, but has 11"
    );
    assert_eq!(message(&x, [&[3, 4]; 2]), "Attention::forward: a length is 4, but L is 3");
    assert_eq!(
        message(&x, [&[3, 1], &[3, 0]]),
        "Attention::forward: sequence 1 has queries, but no keys"
    );
    let causal = AttentionConfig { keys: 4, causal: true, ..config };
    assert_eq!(
        Attention::<f32>::new(causal).err().unwrap().to_string(),
        "Attention::new: causal attention has as many queries as keys, not 3 and 4"
    );
}
