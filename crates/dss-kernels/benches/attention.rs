//! `cargo bench -p dss-kernels --bench attention`: softmax attention of 16 sequences of length 2048, 4 heads of 32.

use divan::{Bencher, black_box};
use dss_kernels::attention::{
    Attention, AttentionCache, AttentionConfig, AttentionGrads, AttentionInput,
};
use dss_kernels::init;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn main() {
    divan::main();
}

fn normal(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    init::w(1, 1, len.div_ceil(2), &mut rng)[..len].iter().map(|&x| x as f32).collect()
}

fn config(causal: bool) -> AttentionConfig {
    AttentionConfig { batch: 16, queries: 2048, keys: 2048, heads: 4, head_dim: 32, causal }
}

#[divan::bench(args = [false, true], sample_count = 10)]
fn forward(bencher: Bencher, causal: bool) {
    let config = config(causal);
    let size = config.batch * config.queries * config.channels();
    let [q, k, v] = [1, 2, 3].map(|seed| normal(size, seed));
    let input = AttentionInput { q: &q, k: &k, v: &v, query_lengths: None, key_lengths: None };
    let (mut y, mut saved) = (vec![0.0; size], vec![0.0; config.saved_len()]);
    let mut plan = Attention::new(config).unwrap();
    bencher.bench_local(|| plan.forward(black_box(&input), &mut y, &mut saved).unwrap());
}

#[divan::bench(args = [false, true], sample_count = 10)]
fn forward_and_backward(bencher: Bencher, causal: bool) {
    let config = config(causal);
    let size = config.batch * config.queries * config.channels();
    let [q, k, v, dy] = [1, 2, 3, 4].map(|seed| normal(size, seed));
    let input = AttentionInput { q: &q, k: &k, v: &v, query_lengths: None, key_lengths: None };
    let (mut y, mut saved) = (vec![0.0; size], vec![0.0; config.saved_len()]);
    let [mut dq, mut dk, mut dv] = [(); 3].map(|()| vec![0.0; size]);
    let mut plan = Attention::new(config).unwrap();
    bencher.bench_local(|| {
        plan.forward(black_box(&input), &mut y, &mut saved).unwrap();
        let grads = AttentionGrads { q: &mut dq, k: &mut dk, v: &mut dv };
        plan.backward(&input, &y, &saved, &dy, grads).unwrap();
    });
}

/// One step of one stream after 2048 others.
#[divan::bench]
fn step(bencher: Bencher) {
    let (heads, head_dim, len) = (4, 32, 2048);
    let width = heads * head_dim;
    let [k, v] = [1, 2].map(|seed| normal(len * width, seed));
    let mut y = vec![0.0; width];
    bencher
        .with_inputs(|| {
            let mut cache = AttentionCache::new(heads, head_dim).unwrap();
            cache.set(&k, &v).unwrap();
            cache.reserve(1);
            cache
        })
        .bench_local_values(|mut cache| {
            cache.step(black_box(&k[..width]), &k[..width], &v[..width], &mut y).unwrap();
            cache
        });
}
