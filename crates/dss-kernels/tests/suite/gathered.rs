//! Attention to chosen keys: against the sums themselves, differences, and the number of threads.

use crate::common::random::{normal, rng};
use crate::common::{error, to_f32, to_f64};
use dss_kernels::Real;
use dss_kernels::attention::AttentionGrads;
use dss_kernels::attention::gathered::{
    BlockTiles, ChunkTiles, Gathered, GatheredConfig, GatheredInput, HashSizes, SELF_LOGIT, Tiles,
    hash_buckets, sorted_positions,
};

const BATCH: usize = 2;
const HEADS: usize = 3;

fn config(len: usize, head_dim: usize) -> GatheredConfig {
    GatheredConfig {
        batch: BATCH,
        len,
        heads: HEADS,
        head_dim,
        scale: 0.7,
        causal: false,
        self_last: false,
    }
}

/// y, dq, dk, dv of q, k, v, dy; every buffer is NaN before.
fn run<T: Real>(config: GatheredConfig, tensors: &[Vec<T>; 4], tiles: &dyn Tiles) -> [Vec<T>; 4] {
    let nan = |count| vec![T::rounded(f64::NAN); count];
    let [q, k, v, dy] = tensors;
    let [mut y, mut dq, mut dk, mut dv] = [(); 4].map(|()| nan(q.len()));
    let mut saved = nan(config.saved_len());
    let input = GatheredInput { q, k, v, tiles };
    let mut plan = Gathered::new(config).unwrap();
    plan.forward(&input, &mut y, &mut saved).unwrap();
    let grads = AttentionGrads { q: &mut dq, k: &mut dk, v: &mut dv };
    plan.backward(&input, &y, &saved, dy, grads).unwrap();
    [y, dq, dk, dv]
}

/// y by the definition: one softmax over all keys of all tiles of a query.
fn literal(config: GatheredConfig, [q, k, v]: [&[f64]; 3], tiles: &dyn Tiles) -> Vec<f64> {
    let GatheredConfig { len, head_dim: d, scale, .. } = config;
    let at = |b: usize, head: usize, t: u32| ((b * len + t as usize) * HEADS + head) * d;
    let mut y = vec![0.0; q.len()];
    for b in 0..BATCH {
        for head in 0..HEADS {
            let mut seen = vec![Vec::new(); len];
            tiles.visit(b, head, &mut |queries, keys| {
                for &i in queries {
                    for &j in keys.iter().filter(|&&j| !config.causal || j <= i) {
                        let pairs = q[at(b, head, i)..][..d].iter().zip(&k[at(b, head, j)..][..d]);
                        let own = config.self_last && i == j;
                        let logit = scale * pairs.map(|(q, k)| q * k).sum::<f64>();
                        seen[i as usize].push((j, if own { SELF_LOGIT } else { logit }));
                    }
                }
            });
            for (i, seen) in seen.iter().enumerate().filter(|(_, seen)| !seen.is_empty()) {
                let most = seen.iter().fold(f64::MIN, |m, (_, s)| m.max(*s));
                let z: f64 = seen.iter().map(|(_, s)| (s - most).exp()).sum();
                for (j, s) in seen {
                    for c in 0..d {
                        let weight = (s - most).exp() / z;
                        y[at(b, head, i as u32) + c] += weight * v[at(b, head, *j) + c];
                    }
                }
            }
        }
    }
    y
}

/// Tiles of both kinds, with lengths and without.
fn all_tiles(len: usize, d: usize) -> Vec<(GatheredConfig, Box<dyn Tiles>)> {
    let plain = config(len, d);
    let mut all: Vec<(GatheredConfig, Box<dyn Tiles>)> = Vec::new();
    for lengths in [None, Some(vec![len, len / 3 + 1])] {
        let (block, blocks) = (len.div_ceil(7), 7);
        let random: Vec<u32> = (0..HEADS * 5).map(|i| [4, 1, 5, 3, 2][i % 5]).collect();
        let lengths = lengths.as_deref();
        let tiles = BlockTiles::new(blocks, block, HEADS, &random, lengths, len);
        all.push((plain, Box::new(tiles)));
        for (causal, self_last, rounds) in
            [(false, false, 1), (false, true, 2), (true, true, 3), (true, false, 2)]
        {
            let sizes = HashSizes { rounds, buckets: 6, chunk: len.div_ceil(4), chunks: 4 };
            let x = normal(BATCH * len * HEADS * d, &mut rng(7));
            let rotations = normal(HEADS * d * rounds * 3, &mut rng(8));
            let mut buckets = hash_buckets(&x, [len, HEADS, d], &rotations, &sizes);
            for (row, buckets) in buckets.chunks_exact_mut(len).enumerate() {
                buckets[lengths.map_or(len, |lengths| lengths[row / (HEADS * rounds)])..].fill(6);
            }
            let order = sorted_positions(&buckets, len);
            let tiles = ChunkTiles::new(sizes, [len, HEADS], order, lengths);
            all.push((GatheredConfig { causal, self_last, ..plain }, Box::new(tiles)));
        }
    }
    all
}

fn tensors(config: &GatheredConfig) -> [Vec<f64>; 4] {
    let mut rng = rng(3);
    [(); 4].map(|()| normal(BATCH * config.len * HEADS * config.head_dim, &mut rng))
}

/// More queries and keys in a tile than in a block of the kernel, and heads that fill no cache line.
#[test]
fn tiles_are_one_softmax() {
    for (len, d) in [(23, 5), (300, 3), (2, 1), (1, 1)] {
        for (config, tiles) in all_tiles(len, d) {
            let tensors = tensors(&config);
            let [q, k, v, _] = tensors.each_ref().map(Vec::as_slice);
            let known = literal(config, [q, k, v], &*tiles);
            let found = run(config, &tensors, &*tiles);
            assert!(error(&found[0], &known) < 1e-13, "{config:?} {tiles:?}");
            let single = run(config, &tensors.each_ref().map(|x| to_f32(x)), &*tiles);
            for (single, precise) in single.iter().zip(&found) {
                let scale = precise.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
                let off = to_f64(single)
                    .iter()
                    .zip(precise)
                    .fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                assert!(off < 1e-4 * scale, "{config:?}: {off:e}");
            }
        }
    }
}

#[test]
fn gradients_are_differences() {
    for (config, tiles) in all_tiles(9, 2) {
        let tensors = tensors(&config);
        let [_, dq, dk, dv] = run(config, &tensors, &*tiles);
        let loss = |tensors: &[Vec<f64>; 4]| {
            let [q, k, v, dy] = tensors.each_ref().map(Vec::as_slice);
            let y = literal(config, [q, k, v], &*tiles);
            y.iter().zip(dy).map(|(y, dy)| y * dy).sum::<f64>()
        };
        for (which, found) in [dq, dk, dv].into_iter().enumerate() {
            for i in 0..found.len() {
                let moved = |by: f64| {
                    let mut tensors = tensors.clone();
                    tensors[which][i] += by;
                    loss(&tensors)
                };
                let known = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((known - found[i]).abs() < 1e-8, "{config:?} {which} {i}: {known}");
            }
        }
    }
}

#[cfg(feature = "rayon")]
#[test]
fn threads_change_no_bit() {
    let bits = |threads: usize| -> Vec<u32> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let all = all_tiles(50, 4).into_iter().flat_map(|(config, tiles)| {
                run(config, &tensors(&config).map(|x| to_f32(&x)), &*tiles).concat()
            });
            all.map(f32::to_bits).collect()
        })
    };
    assert_eq!(bits(1), bits(2));
    assert_eq!(bits(1), bits(3));
}

#[test]
fn hashes_and_their_order() {
    // d = 2, one round of four buckets: the axes x, y, −x, −y.
    let sizes = HashSizes { rounds: 1, buckets: 4, chunk: 2, chunks: 2 };
    let x = [0.0, -3.0, 2.0, 1.0, -2.0, 0.5, 1.0, 0.0];
    let buckets = hash_buckets(&x, [4, 1, 2], &[1.0, 0.0, 0.0, 1.0], &sizes);
    assert_eq!(buckets, [3, 0, 2, 0]);
    assert_eq!(sorted_positions(&buckets, 4), [1, 3, 2, 0]);
    // The first of equal ones, and 0 for nothing at all.
    assert_eq!(
        hash_buckets(&[1.0, 1.0, 0.0, 0.0], [2, 1, 2], &[1.0, 0.0, 0.0, 1.0], &sizes),
        [0, 0]
    );
    // One set of rotations for two heads.
    let rows = hash_buckets(&[0.0, -3.0, 2.0, 1.0], [1, 2, 2], &[1.0, 0.0, 0.0, 1.0], &sizes);
    assert_eq!(rows, [3, 0]);
    // Two rows of buckets are sorted apart.
    assert_eq!(sorted_positions(&[1, 0, 1, 2, 0, 0], 3), [1, 0, 2, 1, 2, 0]);
}

#[test]
fn chunks_look_back() {
    let sizes = HashSizes { rounds: 2, buckets: 2, chunk: 2, chunks: 2 };
    let order = vec![0, 1, 2, 3, 3, 2, 1, 0];
    let visited = |lengths: Option<&[usize]>| {
        let mut all = Vec::new();
        let tiles = ChunkTiles::new(sizes, [4, 1], order.clone(), lengths);
        tiles.visit(0, 0, &mut |queries, keys| all.push((queries.to_vec(), keys.to_vec())));
        all
    };
    let known = [
        (vec![0, 1], vec![1, 0, 0, 1]), // the last chunk of the last round
        (vec![2, 3], vec![0, 1, 2, 3]),
        (vec![3, 2], vec![2, 3, 3, 2]),
        (vec![1, 0], vec![3, 2, 1, 0]),
    ];
    assert_eq!(visited(None), known);
}
