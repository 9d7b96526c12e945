//! The feed-forward part of a block, y = W₂·(mask·GELU(W₁·x + b₁)) + b₂ at every row. The hidden numbers of a few rows
//! at a time stay in the cache; the backward pass recomputes them.

use super::linear::{LinearParams, Map, narrow, spread};
use super::rows;
use super::share::{SLOTS, SlotSums, row_chunks};
use super::weight::{WeightGrad, apart};
use super::wide;
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::real::Real;
use std::ops::Range;

/// Rows whose hidden numbers are there at a time.
const ROWS: usize = 64;

/// Which GELU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Gelu {
    /// x·Φ(x).
    #[default]
    Erf,
    /// ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    Tanh,
}

/// The parameters of a feed-forward part with F hidden numbers.
#[derive(Debug, Clone, Copy)]
pub struct FeedForwardParams<'a, T> {
    /// W₁ `[F, H]` and b₁ `[F]`.
    pub hidden: LinearParams<'a, T>,
    /// W₂ `[O, F]` and b₂ `[O]`.
    pub out: LinearParams<'a, T>,
    /// The function between them.
    pub gelu: Gelu,
    /// `[B, F]`: a factor of each hidden number of a sample.
    pub mask: Option<&'a [T]>,
}

/// Gradients of [`FeedForwardParams`].
#[derive(Debug)]
pub struct FeedForwardGrads<T> {
    /// Of W₁ and b₁.
    pub hidden: [Vec<T>; 2],
    /// Of W₂ and b₂.
    pub out: [Vec<T>; 2],
}

/// Both maps as products read them, and the buffers of a worker.
struct Plan<'a, T: Real> {
    params: &'a FeedForwardParams<'a, T>,
    hidden: Map<T>,
    out: Map<T>,
    /// F, H, O.
    f: usize,
    h: usize,
    o: usize,
    /// Rows of a sample.
    l: usize,
}

struct Scratch<T> {
    /// W₁·x, later the gradient of g: `[ROWS, wide(F)]`.
    z: Lines<T>,
    /// With the bias: `[ROWS, F]`.
    v: Lines<T>,
    /// mask·GELU(v): `[ROWS, apart(F)]`.
    g: Lines<T>,
    /// Its derivative: `[ROWS, F]`.
    slope: Lines<T>,
    /// Results of the second product: `[ROWS, wide(O or H)]`.
    y: Lines<T>,
}

impl<'a, T: Real> Plan<'a, T> {
    fn new(params: &'a FeedForwardParams<'a, T>, x: &[T], l: usize) -> Self {
        let ([f, h], [o, inner]) = (params.hidden.sizes(), params.out.sizes());
        assert!(inner == f && l > 0 && x.len().is_multiple_of(l * h), "sizes that do not fit");
        let samples = x.len() / (l * h);
        assert!(params.mask.is_none_or(|mask| mask.len() == samples * f), "the mask is [B, F]");
        let (hidden, out) = (Map::new(&params.hidden), Map::new(&params.out));
        Self { params, hidden, out, f, h, o, l }
    }

    fn scratch(&self) -> Scratch<T> {
        let lines = |width: usize| Lines::new((ROWS * width).div_ceil(T::LINE));
        let f = self.f;
        Scratch {
            z: lines(wide::<T>(f)),
            v: lines(f),
            g: lines(apart::<T>(f)),
            slope: lines(f),
            y: lines(wide::<T>(self.o.max(self.h))),
        }
    }

    /// The rows of a slot, a few of one sample at a time.
    fn pieces(&self, rows: usize, slot: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let pieces = |chunk: Range<usize>| {
            let end = chunk.end;
            chunk.step_by(ROWS).map(move |start| start..end.min(start + ROWS))
        };
        row_chunks(share(rows, SLOTS, slot), self.l).flat_map(pieces)
    }

    /// g and slope of some rows x of one sample.
    fn activate(&self, x: &[T], piece: &Range<usize>, scratch: &mut Scratch<T>) {
        let (f, rows) = (self.f, piece.len());
        let Scratch { z, v, g, slope, .. } = scratch;
        self.hidden.forward(rows, x, self.h, z);
        let v = &mut v[..rows * f];
        rows::add_bias(z, wide::<T>(f), self.params.hidden.bias, v);
        let sample = piece.start / self.l;
        let mask = self.params.mask.map(|mask| &mask[sample * f..][..f]);
        match self.params.gelu {
            Gelu::Erf => rows::gelu_with_slope(v, f, mask, g, apart::<T>(f), slope),
            Gelu::Tanh => rows::gelu_tanh_with_slope(v, f, mask, g, apart::<T>(f), slope),
        }
    }
}

/// y: `[B, L, O]` of x: `[B, L, H]`.
///
/// # Panics
/// If the sizes do not fit.
pub fn feed_forward<T: Real>(x: &[T], l: usize, params: &FeedForwardParams<'_, T>, y: &mut [T]) {
    let plan = Plan::new(params, x, l);
    let Plan { f, h, o, .. } = plan;
    let rows = x.len() / h;
    assert_eq!(y.len(), rows * o);
    let y = Disjoint::new(y);
    let mut scratches: Vec<_> = (0..par::workers()).map(|_| plan.scratch()).collect();
    par::for_each(&mut scratches, SLOTS, |scratch, slot| {
        for piece in plan.pieces(rows, slot) {
            plan.activate(&x[piece.start * h..piece.end * h], &piece, scratch);
            plan.out.forward(piece.len(), &scratch.g, apart::<T>(f), &mut scratch.y);
            // SAFETY: the shares of rows do not overlap.
            let y = unsafe { y.part(piece.start * o, piece.len() * o) };
            rows::add_bias(&scratch.y, wide::<T>(o), params.out.bias, y);
        }
    });
}

/// The backward of [`feed_forward`]: writes dx; gives the gradients of the parameters.
///
/// # Panics
/// If the sizes do not fit.
pub fn feed_forward_backward<T: Real>(
    x: &[T],
    l: usize,
    params: &FeedForwardParams<'_, T>,
    dy: &[T],
    dx: &mut [T],
) -> FeedForwardGrads<T> {
    /// Rows of the products that make the weights' gradients.
    struct Outer<T> {
        x: Lines<T>,
        dv: Lines<T>,
        dy: Lines<T>,
    }
    let plan = Plan::new(params, x, l);
    let Plan { f, h, o, .. } = plan;
    let rows = x.len() / h;
    assert!(dx.len() == x.len() && dy.len() == rows * o);
    let dx = Disjoint::new(dx);
    let (mut hidden, mut out) = (WeightGrad::new(f, h), WeightGrad::new(o, f));
    let (mut hidden_bias, mut out_bias) = (SlotSums::<T>::new(f), SlotSums::<T>::new(o));
    hidden.clear();
    out.clear();
    let (hidden_slots, out_slots) = (hidden.slots(), out.slots());
    let (hidden_sums, out_sums) = (hidden_bias.shared(), out_bias.shared());
    let buffers = |_| {
        let lines = |n: usize| Lines::new(ROWS * apart::<T>(n) / T::LINE);
        (plan.scratch(), Outer { x: lines(h), dv: lines(f), dy: lines(o) })
    };
    let mut scratches: Vec<_> = (0..par::workers()).map(buffers).collect();
    par::for_each(&mut scratches, SLOTS, |(scratch, outer), slot| {
        // SAFETY: there is one item per slot.
        let (hidden, out) =
            unsafe { (&mut hidden_slots.part(slot, 1)[0], &mut out_slots.part(slot, 1)[0]) };
        // SAFETY: as above.
        let (hidden_sum, out_sum) = unsafe { (hidden_sums.slot(slot), out_sums.slot(slot)) };
        for piece in plan.pieces(rows, slot) {
            let (inputs, count) = (piece.start * h..piece.end * h, piece.len());
            plan.activate(&x[inputs.clone()], &piece, scratch);
            let Scratch { z: dg, g, slope, y: dx_rows, .. } = &mut *scratch;
            let dy = &dy[piece.start * o..piece.end * o];
            rows::masked_with_sums(dy, o, None, &mut outer.dy, apart::<T>(o), out_sum);
            out.add(&outer.dy, g, count);
            plan.out.backward(count, &outer.dy, apart::<T>(o), dg);
            let (dg, slope) = (&dg[..count * wide::<T>(f)], &slope[..count * f]);
            let (dv, width) = (&mut outer.dv, apart::<T>(f));
            rows::through_gelu_with_sums(dg, slope, wide::<T>(f), dv, width, hidden_sum);
            spread(&x[inputs.clone()], h, &mut outer.x, apart::<T>(h));
            hidden.add(&outer.dv, &outer.x, count);
            plan.hidden.backward(count, &outer.dv, apart::<T>(f), dx_rows);
            // SAFETY: the shares of rows do not overlap.
            let dx = unsafe { dx.part(inputs.start, inputs.len()) };
            narrow(dx_rows, wide::<T>(h), dx, h);
        }
    });
    let rounded = |sums: &SlotSums<T>| sums.total().into_iter().map(T::rounded).collect();
    FeedForwardGrads {
        hidden: [hidden.total(), rounded(&hidden_bias)],
        out: [out.total(), rounded(&out_bias)],
    }
}
