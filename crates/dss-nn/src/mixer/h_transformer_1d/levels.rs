//! The levels of hierarchical attention, from positions to ever coarser means.
//!
//! Level 0 has q/√d, k, v and the count 1 of every true position; level λ + 1 has the means of q and k over the non-empty
//! ones of each pair, and the sums of v and of the counts c. In blocks of n positions of a level,
//!
//! ```text
//! level 0:   blocks (i, i), (i, i ± 1)
//! level λ:   blocks (i, i ± 1) without the quarter that finer levels have covered
//! Y = Σ_λ up^λ(Σ e^S v_λ),   Z = Σ_λ up^λ(Σ e^S c_λ),   y = Y/Z
//! ```
//!
//! where up repeats each position twice: every pair of positions is covered exactly once. In the causal form there are
//! only the blocks (i, i − 1) and the lower triangle of (i, i), and a coarse query is the first of its pair.

use burn::tensor::{Bool, Tensor};

use crate::composed::constant;
use crate::mixer::heads::{cut, flags, join, padded, split};

/// Stands for −∞ where maxima are subtracted: far below any logit, and its difference to itself is 0.
const HIDDEN_LOGIT: f64 = -1e30;

/// How heads attend.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelSpec {
    pub heads: usize,
    /// Positions of a block at each level, an even number.
    pub block: usize,
    pub causal: bool,
}

/// One level of all heads.
struct Level {
    /// `[B·heads, P, d]` each; v has the counts as one more channel.
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    /// How many true positions are in each, `[B, P]`.
    counts: Vec<u32>,
}

/// Maxima `[B·heads, P, 1]` of the logits, and Σ e^{S − max}·(v, c) `[B·heads, P, d + 1]`.
struct Sums {
    max: Tensor<3>,
    sums: Tensor<3>,
}

/// q, k, v `[B, L, Q]` -> `[B, L, Q]`; positions beyond a length do not exist and give 0.
pub(super) fn hierarchical(
    [q, k, v]: [Tensor<3>; 3],
    lengths: Option<&[usize]>,
    spec: LevelSpec,
) -> Tensor<3> {
    let [batch, l, width] = q.dims();
    let LevelSpec { heads, block, .. } = spec;
    let (d, device, dtype) = (width / heads, q.device(), q.dtype());
    let size = l.div_ceil(block).next_power_of_two().max(2) * block;
    let [q, k, v] = [q * (1.0 / (d as f64).sqrt()), k, v]
        .map(|x| split(padded(cut(x, lengths), size), heads).reshape([batch * heads, size, d]));
    let length = |b: usize| lengths.map_or(l, |lengths| lengths[b]);
    let counts = (0..batch).flat_map(|b| (0..size).map(move |t| u32::from(t < length(b))));
    let counts: Vec<_> = counts.collect();
    let per_head = counts.chunks_exact(size).flat_map(|row| vec![row; heads]).flatten();
    let per_head = per_head.map(|&count| f64::from(count)).collect();
    let ones = constant(per_head, [batch * heads, size, 1], &device, dtype);
    let mut level = Level { q, k, v: Tensor::cat(vec![v, ones], 2), counts };

    let mut all = vec![level.attend(spec, true)];
    while level.q.dims()[1] > 2 * block {
        level = level.coarser(spec);
        all.push(level.attend(spec, false));
    }
    let first = all.pop().expect("a level");
    let Sums { sums, .. } = all.into_iter().rev().fold(first, |coarse, fine| coarse.onto(fine));

    let sums = sums.narrow(1, 0, l);
    let (y, z) = (sums.clone().narrow(2, 0, d), sums.narrow(2, d, 1));
    let z = match lengths {
        // Nothing is divided by what padding sees.
        Some(_) => {
            let exists = (0..batch * heads)
                .flat_map(|i| (0..l).map(move |t| if t < length(i / heads) { 1.0 } else { 0.0 }));
            let exists = constant(exists.collect(), [batch * heads, l, 1], &device, dtype);
            z * exists.clone() + (exists.neg() + 1.0)
        }
        None => z,
    };
    let y = y * z.recip();
    cut(join(y.reshape([batch, heads, l, d])), lengths)
}

impl Level {
    /// The weights of this level's blocks; `finest`: it is that of the positions.
    fn attend(&self, spec: LevelSpec, finest: bool) -> Sums {
        let [rows, positions, d] = self.q.dims();
        let (block, n) = (spec.block, positions / spec.block);
        let neighbours: &[isize] = match (finest, spec.causal) {
            (true, false) => &[-1, 0, 1],
            (true, true) => &[-1, 0],
            (false, false) => &[-1, 1],
            (false, true) => &[-1],
        };
        let side_by_side = |x: &Tensor<3>| {
            let width = x.dims()[2];
            let x = x.clone().reshape([rows, n, block, width]);
            Tensor::cat(neighbours.iter().map(|&by| shifted(&x, by)).collect(), 2)
        };
        let q = self.q.clone().reshape([rows, n, block, d]);
        let (k, v) = (side_by_side(&self.k), side_by_side(&self.v));
        let logits = q.matmul(k.swap_dims(2, 3)); // [B·heads, n, block, neighbours·block]
        let full = logits.dims();
        let logits = logits.mask_fill(self.uncovered(neighbours, spec, finest, full), HIDDEN_LOGIT);
        let logits = match self.empty(neighbours, spec, full) {
            Some(empty) => logits.mask_fill(empty, HIDDEN_LOGIT),
            None => logits,
        };
        let max = logits.clone().detach().max_dim(3);
        let sums = (logits - max.clone()).exp().matmul(v);
        Sums {
            max: max.reshape([rows, positions, 1]),
            sums: sums.reshape([rows, positions, d + 1]),
        }
    }

    /// What this level leaves to others, or does not see.
    fn uncovered(
        &self,
        neighbours: &[isize],
        spec: LevelSpec,
        finest: bool,
        full: [usize; 4],
    ) -> Tensor<4, Bool> {
        let (block, half, n) = (spec.block, spec.block / 2, full[1]);
        let hidden = |i: usize, row: usize, by: isize, column: usize| match by {
            -1 => i == 0 || (!finest && row < half && column >= half),
            1 => i + 1 == n || (!finest && row >= half && column < half),
            _ => spec.causal && column > row,
        };
        let mut flags_of_level = Vec::with_capacity(n * block * full[3]);
        for i in 0..n {
            for row in 0..block {
                for &by in neighbours {
                    flags_of_level.extend((0..block).map(|column| hidden(i, row, by, column)));
                }
            }
        }
        flags(flags_of_level, [1, n, block, full[3]], full, &self.q.device())
    }

    /// Keys without a true position, where there are any.
    fn empty(
        &self,
        neighbours: &[isize],
        spec: LevelSpec,
        full: [usize; 4],
    ) -> Option<Tensor<4, Bool>> {
        if !self.counts.contains(&0) {
            return None;
        }
        let ([rows, n, _, columns], block) = (full, spec.block);
        let mut hidden = Vec::with_capacity(rows * n * columns);
        for row in 0..rows {
            let counts = &self.counts[row / spec.heads * n * block..][..n * block];
            for i in 0..n {
                for &by in neighbours {
                    // Where there is no such block, all is hidden anyway.
                    let j = i.saturating_add_signed(by).min(n - 1);
                    hidden.extend(counts[j * block..][..block].iter().map(|&count| count == 0));
                }
            }
        }
        Some(flags(hidden, [rows, n, 1, columns], full, &self.q.device()))
    }

    /// The level of pairs.
    fn coarser(self, spec: LevelSpec) -> Self {
        let Self { q, k, v, counts } = self;
        let ([rows, positions, d], half) = (q.dims(), q.dims()[1] / 2);
        let share = |pair: &[u32]| {
            let members = pair.iter().filter(|count| **count > 0).count();
            1.0 / members.max(1) as f64
        };
        let per_sequence = counts.chunks_exact(positions);
        let shares =
            per_sequence.flat_map(|row| vec![row.chunks_exact(2).map(share); spec.heads]).flatten();
        let shares = constant(shares.collect(), [rows, half, 1, 1], &q.device(), q.dtype());
        let pairs = |x: Tensor<3>| {
            let width = x.dims()[2];
            x.reshape([rows, half, 2, width])
        };
        // What does not exist is 0.
        let mean = |x: Tensor<3>| (pairs(x).sum_dim(2) * shares.clone()).reshape([rows, half, d]);
        let q = match spec.causal {
            true => pairs(q).narrow(2, 0, 1).reshape([rows, half, d]),
            false => mean(q),
        };
        let v = pairs(v).sum_dim(2).reshape([rows, half, d + 1]);
        let counts = counts.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        Self { q, k: mean(k), v, counts }
    }
}

/// Block i becomes block i + `by`; zeros where there is none.
fn shifted(x: &Tensor<4>, by: isize) -> Tensor<4> {
    let [rows, n, block, width] = x.dims();
    let zeros = || Tensor::zeros([rows, 1, block, width], (&x.device(), x.dtype()));
    match by {
        0 => x.clone(),
        1 => Tensor::cat(vec![x.clone().narrow(1, 1, n - 1), zeros()], 1),
        _ => Tensor::cat(vec![zeros(), x.clone().narrow(1, 0, n - 1)], 1),
    }
}

impl Sums {
    /// A coarse level and the next finer one under one reference for each row.
    fn onto(self, fine: Self) -> Self {
        let up = |x: Tensor<3>| {
            let [rows, positions, width] = x.dims();
            let x = x.reshape([rows, positions, 1, width]);
            x.expand([rows, positions, 2, width]).reshape([rows, 2 * positions, width])
        };
        let (coarse_max, coarse_sums) = (up(self.max), up(self.sums));
        let max = coarse_max.clone().max_pair(fine.max.clone());
        let shrunk = |sums: Tensor<3>, own: Tensor<3>| sums * (own - max.clone()).exp();
        let sums = shrunk(coarse_sums, coarse_max) + shrunk(fine.sums, fine.max);
        Self { max, sums }
    }
}
