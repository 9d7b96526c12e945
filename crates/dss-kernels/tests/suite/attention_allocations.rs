//! Nothing allocates in the hot calls of attention: a counting allocator around the calling thread.

use crate::common::random::{normal, rng};
use crate::common::to_f32;
use crate::counting;
use dss_kernels::attention::{
    Attention, AttentionCache, AttentionConfig, AttentionGrads, AttentionInput,
};

fn hot_calls() {
    let config =
        AttentionConfig { batch: 2, queries: 200, keys: 200, heads: 2, head_dim: 12, causal: true };
    let x = to_f32(&normal(2 * 200 * 24, &mut rng(1)));
    let lengths = Some(&[200, 90][..]);
    let input =
        AttentionInput { q: &x, k: &x, v: &x, query_lengths: lengths, key_lengths: lengths };
    let [mut y, mut dq, mut dk, mut dv] = [(); 4].map(|()| x.clone());
    let mut saved = vec![0.0; config.saved_len()];
    let mut plan = Attention::new(config).unwrap();
    let mut both = || {
        plan.forward(&input, &mut y, &mut saved).unwrap();
        let grads = AttentionGrads { q: &mut dq, k: &mut dk, v: &mut dv };
        plan.backward(&input, &y, &saved, &x, grads).unwrap();
    };
    both();
    assert_eq!(counting::allocations(both), 0, "forward and backward");

    let mut cache = AttentionCache::new(2, 12).unwrap();
    cache.reserve(200);
    let n = 200 * 24;
    let steps = || cache.step(&x[..n], &x[..n], &x[..n], &mut y[..n]).unwrap();
    assert_eq!(counting::allocations(steps), 0, "steps");
    cache.reset();
    let steps = || cache.step(&x[..n], &x[..n], &x[..n], &mut y[..n]).unwrap();
    assert_eq!(counting::allocations(steps), 0, "steps after a reset");
}

/// On one thread, so that every allocation is counted and none is a thread pool's own.
#[test]
fn hot_calls_do_not_allocate() {
    #[cfg(feature = "rayon")]
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(hot_calls);
    #[cfg(not(feature = "rayon"))]
    hot_calls();
}
