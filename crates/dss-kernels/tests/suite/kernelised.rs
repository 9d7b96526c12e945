//! Kernelised attention against the formula with all weights, its differences, and steps against the whole.

use crate::common::random::{normal, rng};
use crate::common::{error, to_f32, to_f64};
use dss_kernels::Real;
use dss_kernels::attention::AttentionGrads;
use dss_kernels::kernelised::{
    FeatureMap, Kernelised, KernelisedConfig, KernelisedInput, KernelisedState,
    kernelised_reference,
};

const ELU: FeatureMap = FeatureMap::EluPlusOne;
const RELU: FeatureMap = FeatureMap::Relu { eps: 1e-3 };

fn favor(features: usize) -> FeatureMap {
    FeatureMap::Favor { features, eps: 1e-4 }
}

/// q, k, v, dy, w and lengths of one attention.
#[derive(Debug, Clone)]
struct Case<T> {
    config: KernelisedConfig,
    /// q, k, v, dy: [B, L, Q].
    tensors: [Vec<T>; 4],
    w: Vec<T>,
    lengths: Option<Vec<usize>>,
}

impl Case<f64> {
    /// Of B sequences of L positions with heads of d channels.
    fn random(
        [batch, len, heads, head_dim]: [usize; 4],
        map: FeatureMap,
        causal: bool,
        lengths: Option<&[usize]>,
    ) -> Self {
        let mut rng = rng((len * 100 + head_dim) as u64);
        let config = KernelisedConfig { batch, len, heads, head_dim, causal, map, eps: 1e-6 };
        let size = batch * len * config.channels();
        // Away from the corner of relu, where there is no derivative to compare with.
        let apart = |x: f64| if x.abs() < 1e-4 { x + 1e-3 } else { x };
        let tensors =
            [(); 4].map(|()| normal(size, &mut rng).into_iter().map(apart).collect::<Vec<_>>());
        let w = match map {
            FeatureMap::Favor { features, .. } => normal(features * head_dim, &mut rng),
            _ => Vec::new(),
        };
        Self { config, tensors, w, lengths: lengths.map(<[usize]>::to_vec) }
    }

    fn to_f32(&self) -> Case<f32> {
        let tensors = self.tensors.each_ref().map(|x| to_f32(x));
        let (w, lengths) = (to_f32(&self.w), self.lengths.clone());
        Case { config: self.config, tensors, w, lengths }
    }

    fn reference(&self) -> Vec<f64> {
        kernelised_reference(&self.config, &self.input())
    }
}

impl<T: Real> Case<T> {
    fn input(&self) -> KernelisedInput<'_, T> {
        let [q, k, v, _] = &self.tensors;
        KernelisedInput { q, k, v, w: &self.w, lengths: self.lengths.as_deref() }
    }

    /// y, dq, dk, dv; every buffer is NaN before.
    fn run(&self) -> [Vec<T>; 4] {
        let nan = || vec![T::rounded(f64::NAN); self.tensors[0].len()];
        let [mut y, mut dq, mut dk, mut dv] = [nan(), nan(), nan(), nan()];
        let mut saved = vec![T::rounded(f64::NAN); self.config.saved_len()];
        let mut plan = Kernelised::new(self.config).unwrap();
        // The second call finds used buffers.
        for _ in 0..2 {
            plan.forward(&self.input(), &mut y, &mut saved).unwrap();
            let grads = AttentionGrads { q: &mut dq, k: &mut dk, v: &mut dv };
            plan.backward(&self.input(), &y, &saved, &self.tensors[3], grads).unwrap();
        }
        [y, dq, dk, dv]
    }
}

/// Sizes on both sides of a chunk of 64 and of a cache line.
fn cases() -> Vec<Case<f64>> {
    let mut all = Vec::new();
    for causal in [false, true] {
        for (map, d) in [(ELU, 5), (RELU, 16), (favor(3), 7), (favor(37), 4)] {
            for (size, lengths) in [
                ([1, 1, 1, d], None),
                ([2, 64, 2, d], None),
                ([3, 150, 2, d], Some(&[150, 65, 1][..])),
                ([2, 70, 1, d], Some(&[0, 64][..])),
            ] {
                all.push(Case::random(size, map, causal, lengths));
            }
        }
    }
    all
}

#[test]
fn equals_the_formula_with_all_weights() {
    for case in cases() {
        let want = case.reference();
        let worst = error(&case.run()[0], &want);
        assert!(worst <= 1e-12, "{:?}: {worst:e}", case.config);
        let worst = error(&to_f64(&case.to_f32().run()[0]), &want);
        assert!(worst <= 1e-5, "{:?} in f32: {worst:e}", case.config);
    }
}

/// Along a random direction of each of q, k and v.
#[test]
fn gradients_are_those_of_the_formula() {
    for case in cases() {
        // FAVOR+'s maxima change their place: small steps.
        let (step, mut rng) = (1e-6, rng(9));
        let [_, grads @ ..] = case.run();
        let [_, single @ ..] = case.to_f32().run();
        let size = case.tensors[0].len() as f64;
        let largest = grads.iter().flatten().fold(0.0f64, |m, g| m.max(g.abs()));
        for (i, grad) in grads.iter().enumerate() {
            let direction = normal(grad.len(), &mut rng);
            let loss = |side: f64| -> f64 {
                let mut moved = case.clone();
                let x = moved.tensors[i].iter_mut().zip(&direction);
                x.for_each(|(x, d)| *x += side * step * d);
                moved.reference().iter().zip(&case.tensors[3]).map(|(y, dy)| y * dy).sum()
            };
            let difference = (loss(1.0) - loss(-1.0)) / (2.0 * step);
            let slope: f64 = grad.iter().zip(&direction).map(|(g, d)| g * d).sum();
            let scale = grad.iter().fold(1e-3f64, |m, g| m.max(g.abs())) * size.sqrt();
            let off = (slope - difference).abs();
            assert!(off <= 1e-6 * scale, "{:?} {i}: {slope} {difference}", case.config);
            // Of one key the weight is 1, and the gradients of q and k are what rounding leaves.
            let scale = grad.iter().fold(1e-3 * largest, |m, g| m.max(g.abs()));
            let off =
                to_f64(&single[i]).iter().zip(grad).fold(0.0, |m, (a, b)| (a - b).abs().max(m));
            assert!(off <= 1e-3 * scale, "{:?} {i} in f32: {off:e} of {scale:e}", case.config);
        }
    }
}

/// The recurrence S += φ(k)·vᵀ, z += φ(k) is causal attention, and its state does not depend on how the steps come.
#[test]
fn steps_are_the_whole() {
    for (map, d) in [(ELU, 5), (RELU, 4), (favor(9), 6)] {
        let case = Case::random([1, 130, 2, d], map, true, None);
        let whole = &case.run()[0];
        let [q, k, v, _] = &case.tensors;
        let mut state = KernelisedState::new(&case.config, &case.w).unwrap();
        let mut y = vec![0.0; q.len()];
        let mut in_blocks = state.clone();
        in_blocks.step(q, k, v, &mut y).unwrap();
        assert!(error(&y, whole) <= 1e-12);
        let width = case.config.channels();
        for t in 0..case.config.len {
            let row = t * width..(t + 1) * width;
            let mut one = vec![0.0; width];
            state.step(&q[row.clone()], &k[row.clone()], &v[row.clone()], &mut one).unwrap();
            assert_eq!(one, y[row]);
        }
        assert_eq!(state.sums(), in_blocks.sums());
        let mut copy = KernelisedState::new(&case.config, &case.w).unwrap();
        copy.set_sums(state.sums()).unwrap();
        let mut next = [vec![0.0; width], vec![0.0; width]];
        for (state, y) in [&mut state, &mut copy].into_iter().zip(&mut next) {
            state.step(&q[..width], &k[..width], &v[..width], y).unwrap();
        }
        assert_eq!(next[0], next[1]);
    }
}

/// A million steps of the same input: f32 sums would have stopped growing at 2²⁴ terms of this size.
#[test]
fn long_streams_lose_nothing() {
    let map = FeatureMap::Relu { eps: 0.0 };
    let config =
        KernelisedConfig { batch: 1, len: 1, heads: 1, head_dim: 1, causal: true, map, eps: 0.0 };
    let mut state = KernelisedState::new::<f32>(&config, &[]).unwrap();
    state.set_sums(&[0.0, f64::from(1 << 24)]).unwrap();
    let mut y = [0.0f32];
    for _ in 0..1 << 20 {
        state.step(&[1.0f32], &[1.0], &[1.0], &mut y).unwrap();
    }
    assert!((y[0] - 1.0 / 17.0).abs() < 1e-7, "{}", y[0]);
}

#[test]
fn wrong_shapes_are_errors() {
    let case = Case::random([2, 3, 1, 2], favor(4), true, None);
    let [q, ..] = &case.tensors;
    let (mut y, mut saved) = (vec![0.0; q.len()], vec![0.0; case.config.saved_len()]);
    let mut plan = Kernelised::<f64>::new(case.config).unwrap();
    let input = KernelisedInput { w: &case.w[1..], ..case.input() };
    let message = plan.forward(&input, &mut y, &mut saved).unwrap_err().to_string();
    assert!(message.contains("`w`"), "{message}");
    let input = KernelisedInput { lengths: Some(&[3, 4]), ..case.input() };
    let message = plan.forward(&input, &mut y, &mut saved).unwrap_err().to_string();
    assert!(message.contains("a length is 4"), "{message}");
    let none = KernelisedConfig { map: favor(0), ..case.config };
    assert!(Kernelised::<f64>::new(none).is_err());
    let both_ways = KernelisedConfig { causal: false, ..case.config };
    let message = KernelisedState::new(&both_ways, &case.w).unwrap_err().to_string();
    assert!(message.contains("not causal"), "{message}");
}
