//! Reformer (Kitaev et al. 2020): positions sorted by their hashes and cut into chunks.

use super::Tiles;
use crate::par::{self, Disjoint};
use crate::real::Real;
use std::sync::Arc;

/// Sizes of a hashing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashSizes {
    /// Rounds R.
    pub rounds: usize,
    /// Buckets n of a round, an even number.
    pub buckets: usize,
    /// Positions of a chunk.
    pub chunk: usize,
    /// Chunks of a round of the longest sequences.
    pub chunks: usize,
}

/// The buckets `[B, heads, R, L]` of x `[B, L, Q]`: argmax of [x·G, −x·G], the first of equal ones, with rotations G
/// `[heads, d, R, n/2]`, or `[1, d, R, n/2]` for all heads.
///
/// # Panics
/// If the shapes do not fit together.
pub fn hash_buckets<T: Real>(
    x: &[T],
    [len, heads, d]: [usize; 3],
    rotations: &[T],
    sizes: &HashSizes,
) -> Vec<u32> {
    let HashSizes { rounds, buckets, .. } = *sizes;
    let half = buckets / 2;
    let per_head = d * rounds * half;
    let copies = rotations.len() / per_head.max(1);
    assert!([1, heads].contains(&copies) && copies * per_head == rotations.len(), "rotations");
    assert!(x.len().is_multiple_of(len * heads * d), "x must be [B, L, Q]");
    let q = heads * d;
    let mut out = vec![0; x.len() / q * heads * rounds];
    let pieces = x.len() / (len * q) * heads;
    let shared = Disjoint::new(&mut out);
    let mut scratches: Vec<Vec<T>> =
        (0..par::workers().min(pieces)).map(|_| vec![T::ZERO; rounds * half]).collect();
    par::for_each(&mut scratches, pieces, |sums, piece| {
        let (sequence, head) = (piece / heads, piece % heads);
        let rotations = &rotations[(head % copies) * per_head..][..per_head];
        // SAFETY: a head of a sequence belongs to one worker.
        let out = unsafe { shared.part(piece * rounds * len, rounds * len) };
        for t in 0..len {
            let x = &x[(sequence * len + t) * q + head * d..][..d];
            sums.fill(T::ZERO);
            for (&x, rotations) in x.iter().zip(rotations.chunks_exact(rounds * half)) {
                sums.iter_mut().zip(rotations).for_each(|(sum, &g)| *sum += x * g);
            }
            for (round, sums) in sums.chunks_exact(half).enumerate() {
                out[round * len + t] = first_largest(sums);
            }
        }
    });
    out
}

/// The place of the largest of [x, −x].
fn first_largest<T: Real>(x: &[T]) -> u32 {
    let (mut best, mut place) = (x[0], 0);
    for (i, value) in x.iter().copied().chain(x.iter().map(|&x| -x)).enumerate() {
        if value > best {
            (best, place) = (value, i);
        }
    }
    place as u32
}

/// The positions 0..L of each row of buckets `[.., L]`, sorted by (bucket, position).
pub fn sorted_positions(buckets: &[u32], len: usize) -> Vec<u32> {
    let most = buckets.iter().copied().max().unwrap_or(0) as usize;
    let (mut order, mut starts) = (vec![0; buckets.len()], vec![0; most + 2]);
    for (order, buckets) in order.chunks_exact_mut(len).zip(buckets.chunks_exact(len)) {
        starts.fill(0);
        buckets.iter().for_each(|&bucket| starts[bucket as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        for (t, &bucket) in buckets.iter().enumerate() {
            let place = &mut starts[bucket as usize];
            order[*place] = t as u32;
            *place += 1;
        }
    }
    order
}

/// A chunk of sorted positions sees itself and the one before it: that of its round, or the last one of the round before
/// (of the last round in the first). Positions at and beyond a sequence's length are sorted last and left out.
///
/// All sequences count as being of `chunks` chunks: where the tensors have fewer, the last chunk of a round is empty.
#[derive(Debug, Clone)]
pub struct ChunkTiles {
    sizes: HashSizes,
    heads: usize,
    len: usize,
    /// [B, heads, R, L]
    order: Arc<[u32]>,
    lengths: Option<Arc<[usize]>>,
}

impl ChunkTiles {
    /// Of the order `[B, heads, R, L]` that [`sorted_positions`] gives.
    ///
    /// # Panics
    /// If the order is not of that shape.
    pub fn new(
        sizes: HashSizes,
        [len, heads]: [usize; 2],
        order: Vec<u32>,
        lengths: Option<&[usize]>,
    ) -> Self {
        assert!(order.len().is_multiple_of(heads * sizes.rounds * len), "[B, heads, R, L]");
        Self { sizes, heads, len, order: order.into(), lengths: lengths.map(Into::into) }
    }
}

impl Tiles for ChunkTiles {
    fn visit(&self, sequence: usize, head: usize, tile: &mut dyn FnMut(&[u32], &[u32])) {
        let Self { sizes: HashSizes { rounds, chunk, chunks, .. }, len, .. } = *self;
        let length = self.lengths.as_ref().map_or(len, |lengths| lengths[sequence]);
        let start = (sequence * self.heads + head) * rounds;
        // The true positions of a round come first.
        let sorted = |round: usize| &self.order[(start + round) * len..][..length];
        let chunk_of = |round: usize, i: usize| {
            let row = sorted(round);
            &row[(i * chunk).min(length)..((i + 1) * chunk).min(length)]
        };
        let mut keys = Vec::new();
        for round in 0..rounds {
            for i in 0..length.div_ceil(chunk) {
                let queries = chunk_of(round, i);
                let before = match i {
                    0 => chunk_of((round + rounds - 1) % rounds, chunks - 1),
                    _ => chunk_of(round, i - 1),
                };
                keys.clear();
                keys.extend_from_slice(before);
                keys.extend_from_slice(queries);
                tile(queries, &keys);
            }
        }
    }
}
