//! Causal attention one position at a time, with the keys and values of all positions before it.

use super::head::{hidden, largest, may_overflow, saturated_product};
use crate::error::{Error, Result, check_len};
use crate::real::{Real, dispatch, fuses};
use pulp::{Simd, WithSimd};

/// Keys that are side by side in a tile of the cache.
const TILE: usize = 16;

/// Keys and values of one stream. A step with t positions in the cache takes O(t·Q).
///
/// The memory, 2·t·Q elements, grows with the stream; [`AttentionCache::reserve`] takes it beforehand.
///
/// ```
/// use dss_kernels::attention::AttentionCache;
/// let mut cache = AttentionCache::<f64>::new(1, 1)?;
/// let mut y = [0.0];
/// cache.step(&[1.0], &[0.0], &[8.0], &mut y)?;
/// cache.step(&[1.0], &[3f64.ln()], &[4.0], &mut y)?; // weights 1/4 and 3/4
/// assert!((y[0] - 5.0).abs() < 1e-12);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AttentionCache<T> {
    heads: usize,
    head_dim: usize,
    /// Positions t.
    len: usize,
    /// [t/TILE, Q, TILE], zeros beyond t.
    k: Vec<T>,
    /// [t, Q]
    v: Vec<T>,
    /// The largest |k|.
    k_size: f64,
    /// Weights of one head, times their sum: t, rounded up to whole tiles.
    p: Vec<T>,
}

/// Equal keys and values, whatever memory there is.
impl<T: Real> PartialEq for AttentionCache<T> {
    fn eq(&self, other: &Self) -> bool {
        self.v == other.v && self.keys() == other.keys()
    }
}

impl<T: Real> AttentionCache<T> {
    /// An empty cache.
    pub fn new(heads: usize, head_dim: usize) -> Result<Self> {
        if heads == 0 || head_dim == 0 || heads.checked_mul(head_dim * TILE).is_none() {
            let what = format!("heads and d must be at least 1, but are {heads} and {head_dim}");
            return Err(Error::Invalid { op: "AttentionCache::new", what });
        }
        let (k, v, p) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { heads, head_dim, len: 0, k, v, k_size: 0.0, p })
    }

    /// Positions in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position has been taken yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all positions; the memory stays for the next stream.
    pub fn reset(&mut self) {
        self.len = 0;
        self.k.clear();
        self.v.clear();
        self.k_size = 0.0;
        self.p.clear();
    }

    /// Makes room for this many more positions: steps up to there do not allocate.
    pub fn reserve(&mut self, positions: usize) {
        let whole = (self.len + positions).next_multiple_of(TILE);
        self.k.reserve(whole * self.channels() - self.k.len());
        self.v.reserve(positions * self.channels());
        self.p.reserve(whole - self.p.len());
    }

    /// The keys `[t, Q]`, as [`AttentionCache::set`] takes them.
    pub fn keys(&self) -> Vec<T> {
        let q = self.channels();
        let at = |t: usize, c: usize| (t / TILE * q + c) * TILE + t % TILE;
        (0..self.len).flat_map(|t| (0..q).map(move |c| self.k[at(t, c)])).collect()
    }

    /// The values `[t, Q]`.
    pub fn values(&self) -> &[T] {
        &self.v
    }

    /// Replaces the content by keys and values `[t, Q]`.
    pub fn set(&mut self, k: &[T], v: &[T]) -> Result<()> {
        let op = "AttentionCache::set";
        let rows = self.rows(op, "k", k)?;
        check_len(op, "v", "[t, Q]", k.len(), v.len())?;
        self.reset();
        self.reserve(rows);
        for (k, v) in k.chunks_exact(self.channels()).zip(v.chunks_exact(self.channels())) {
            self.push(k, v);
        }
        Ok(())
    }

    /// One or more positions in their order; each sees itself and those before it. The same bits, whether they come in
    /// one call or in many.
    ///
    /// # Shapes
    /// q, k, v, y: `[n, Q]`.
    pub fn step(&mut self, q: &[T], k: &[T], v: &[T], y: &mut [T]) -> Result<()> {
        let op = "AttentionCache::step";
        self.rows(op, "q", q)?;
        for (name, len) in [("k", k.len()), ("v", v.len()), ("y", y.len())] {
            check_len(op, name, "[n, Q]", q.len(), len)?;
        }
        let width = self.channels();
        let rows = q.chunks_exact(width).zip(k.chunks_exact(width)).zip(v.chunks_exact(width));
        for (((q, k), v), y) in rows.zip(y.chunks_exact_mut(width)) {
            self.push(k, v);
            self.attend(q, y);
        }
        Ok(())
    }

    fn channels(&self) -> usize {
        self.heads * self.head_dim
    }

    /// How many rows of Q channels x has.
    fn rows(&self, op: &'static str, name: &'static str, x: &[T]) -> Result<usize> {
        let rows = x.len() / self.channels();
        check_len(op, name, "whole rows of Q", rows * self.channels(), x.len())?;
        Ok(rows)
    }

    /// Takes the next key and value.
    fn push(&mut self, k: &[T], v: &[T]) {
        let tile_len = self.channels() * TILE;
        let (tile, lane) = (self.len / TILE, self.len % TILE);
        if lane == 0 {
            self.k.resize((tile + 1) * tile_len, T::ZERO);
            self.p.resize((tile + 1) * TILE, T::ZERO);
        }
        let lanes = self.k[tile * tile_len..].chunks_exact_mut(TILE);
        lanes.zip(k).for_each(|(lanes, &k)| lanes[lane] = k);
        self.v.extend_from_slice(v);
        self.k_size = self.k_size.max(largest(k));
        self.len += 1;
    }

    /// y of the query q at the last position.
    fn attend(&mut self, q: &[T], y: &mut [T]) {
        let (d, width) = (self.head_dim, self.channels());
        let scale = T::rounded(1.0 / (d as f64).sqrt());
        let overflows = may_overflow::<T>(d, largest(q), self.k_size);
        let Self { len, k, v, p, .. } = self;
        for (head, (q, y)) in q.chunks_exact(d).zip(y.chunks_exact_mut(d)).enumerate() {
            let start = head * d;
            for (p, k) in p.chunks_exact_mut(TILE).zip(k.chunks_exact(width * TILE)) {
                let k = &k[start * TILE..][..d * TILE];
                dispatch(TileLogits { q, k, scale, p });
                if overflows {
                    for (lane, p) in p.iter_mut().enumerate() {
                        let k = k[lane..].iter().copied().step_by(TILE);
                        *p = saturated_product(q, k.map(|k| k * scale));
                    }
                }
            }
            p[*len..].fill(hidden());
            let v = v.chunks_exact(width).map(|v| &v[start..][..d]);
            dispatch(WeightedValues { p, v, y });
        }
    }
}

/// p: [TILE] = q·k/√d with k: [d, TILE].
struct TileLogits<'a, T> {
    q: &'a [T],
    k: &'a [T],
    scale: T,
    p: &'a mut [T],
}

impl<T: Real> WithSimd for TileLogits<'_, T> {
    type Output = ();

    // Several arrays are walked lane by lane.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let mut sums = [T::ZERO; TILE];
        for (&q, k) in self.q.iter().zip(self.k.as_chunks::<TILE>().0) {
            let q = q * self.scale;
            for lane in 0..TILE {
                sums[lane] += q * k[lane];
            }
        }
        self.p.copy_from_slice(&sums);
    }
}

/// y: [d] = softmax(p)·v. Leaves e^{p − max} in p.
struct WeightedValues<'a, T, V> {
    p: &'a mut [T],
    v: V,
    y: &'a mut [T],
}

impl<'v, T: Real, V: Iterator<Item = &'v [T]>> WithSimd for WeightedValues<'_, T, V> {
    type Output = ();

    // Several arrays are walked lane by lane.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let fuse = fuses::<S>();
        let mut lanes = [hidden::<T>(); TILE];
        for p in self.p.as_chunks::<TILE>().0 {
            for lane in 0..TILE {
                lanes[lane] = if p[lane] > lanes[lane] { p[lane] } else { lanes[lane] };
            }
        }
        let max = lanes.into_iter().fold(hidden::<T>(), |a, b| if b > a { b } else { a });
        let mut sums = [T::ZERO; TILE];
        for p in self.p.as_chunks_mut::<TILE>().0 {
            for lane in 0..TILE {
                p[lane] = (p[lane] - max).exp_nonpositive(fuse);
                sums[lane] += p[lane];
            }
        }
        let sum = sums.into_iter().fold(0.0, |sum, lane| sum + lane.to_f64());
        self.y.fill(T::ZERO);
        for (&p, v) in self.p.iter().zip(self.v) {
            self.y.iter_mut().zip(v).for_each(|(y, &v)| *y += p * v);
        }
        let inverse = T::rounded(1.0 / sum);
        self.y.iter_mut().for_each(|y| *y = *y * inverse);
    }
}
