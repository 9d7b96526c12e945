//! `cargo bench -p dss-kernels --bench mixing`: attention without a softmax, and Fourier mixing, of 16 sequences of
//! length 2048 with 128 channels.

use divan::{Bencher, black_box};
use dss_kernels::attention::AttentionGrads;
use dss_kernels::fourier::{Fourier, FourierConfig};
use dss_kernels::init;
use dss_kernels::kernelised::{
    FeatureMap, Kernelised, KernelisedConfig, KernelisedInput, KernelisedState,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const ELU: FeatureMap = FeatureMap::EluPlusOne;
const FAVOR: FeatureMap = FeatureMap::Favor { features: 64, eps: 1e-6 };
const BATCH: usize = 16;
const LEN: usize = 2048;

fn main() {
    divan::main();
}

fn normal(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    init::w(1, 1, len.div_ceil(2), &mut rng)[..len].iter().map(|&x| x as f32).collect()
}

/// 4 heads of 32 channels.
fn config(map: FeatureMap, causal: bool) -> KernelisedConfig {
    KernelisedConfig { batch: BATCH, len: LEN, heads: 4, head_dim: 32, causal, map, eps: 1e-6 }
}

/// w of FAVOR+, empty for the other map.
fn directions(map: FeatureMap) -> Vec<f32> {
    match map {
        FeatureMap::Favor { features, .. } => normal(features * 32, 9),
        _ => Vec::new(),
    }
}

#[divan::bench(args = [(ELU, false), (ELU, true), (FAVOR, false), (FAVOR, true)], sample_count = 10)]
fn forward(bencher: Bencher, (map, causal): (FeatureMap, bool)) {
    let (config, w) = (config(map, causal), directions(map));
    let size = BATCH * LEN * config.channels();
    let [q, k, v] = [1, 2, 3].map(|seed| normal(size, seed));
    let input = KernelisedInput { q: &q, k: &k, v: &v, w: &w, lengths: None };
    let (mut y, mut saved) = (vec![0.0; size], vec![0.0; config.saved_len()]);
    let mut plan = Kernelised::new(config).unwrap();
    bencher.bench_local(|| plan.forward(black_box(&input), &mut y, &mut saved).unwrap());
}

#[divan::bench(args = [(ELU, false), (ELU, true), (FAVOR, false), (FAVOR, true)], sample_count = 10)]
fn forward_and_backward(bencher: Bencher, (map, causal): (FeatureMap, bool)) {
    let (config, w) = (config(map, causal), directions(map));
    let size = BATCH * LEN * config.channels();
    let [q, k, v, dy] = [1, 2, 3, 4].map(|seed| normal(size, seed));
    let input = KernelisedInput { q: &q, k: &k, v: &v, w: &w, lengths: None };
    let (mut y, mut saved) = (vec![0.0; size], vec![0.0; config.saved_len()]);
    let [mut dq, mut dk, mut dv] = [(); 3].map(|()| vec![0.0; size]);
    let mut plan = Kernelised::new(config).unwrap();
    bencher.bench_local(|| {
        plan.forward(black_box(&input), &mut y, &mut saved).unwrap();
        let grads = AttentionGrads { q: &mut dq, k: &mut dk, v: &mut dv };
        plan.backward(&input, &y, &saved, &dy, grads).unwrap();
    });
}

/// One step of one stream.
#[divan::bench]
fn step(bencher: Bencher) {
    let mut state = KernelisedState::new::<f32>(&config(ELU, true), &[]).unwrap();
    let [q, k, v] = [1, 2, 3].map(|seed| normal(128, seed));
    let mut y = vec![0.0; 128];
    bencher.bench_local(|| state.step(black_box(&q), &k, &v, &mut y).unwrap());
}

/// Transforms of 2048, of 2000 = 2⁴·5³, and of the prime 2003.
#[divan::bench(args = [2048, 2000, 2003], sample_count = 10)]
fn fourier(bencher: Bencher, len: usize) {
    let u = normal(BATCH * len * 128, 1);
    let mut y = vec![0.0; u.len()];
    let mut plan = Fourier::new(FourierConfig { len, channels: 128 }).unwrap();
    bencher.bench_local(|| plan.forward(black_box(&u), [BATCH, len], None, &mut y).unwrap());
}
