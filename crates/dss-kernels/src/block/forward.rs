//! The block's forward pass.

use super::moments::{BatchMoments, Moments};
use super::norm::{Apply, NormStats, counted_rows, normalise};
use super::share::{SLOTS, row_chunks};
use super::weight::apart;
use super::{Block, BlockConfig, BlockParams, Gelu, S_SHAPE, Saved, Scratch, rows, wide};
use crate::conv::Input;
use crate::error::{Result, check_len};
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::product::{Layout, Product, store_transposed};
use crate::real::Real;

impl<T: Real> Block<T> {
    /// y = block(x). x, y: `[B, L, H]`.
    ///
    /// `keep` gives what the backward needs; the moments come with [`super::Norm::BatchTrain`].
    pub fn forward(
        &mut self,
        x: &[T],
        p: &BlockParams<'_, T>,
        y: &mut [T],
        keep: bool,
    ) -> Result<(Option<Saved<T>>, Option<BatchMoments>)> {
        let mut v = keep.then(|| self.buffers.take(x.len()));
        let keep_s = !self.config.prenorm && (keep || p.norm.of_batch());
        let mut s = keep_s.then(|| self.buffers.take(x.len()));
        let (stats, moments) = self.forward_into(x, p, y, v.as_deref_mut(), s.as_deref_mut())?;
        Ok((v.map(|v| Saved { v, s, stats }), moments))
    }

    /// As [`Self::forward`], leaving what the backward needs in the caller's memory: v for any block, s for a post-norm
    /// block. With neither there is no backward; a post-norm block with [`super::Norm::BatchTrain`] always needs s.
    /// v, s: `[B, L, H]`.
    pub fn forward_into(
        &mut self,
        x: &[T],
        p: &BlockParams<'_, T>,
        y: &mut [T],
        v: Option<&mut [T]>,
        s: Option<&mut [T]>,
    ) -> Result<(NormStats<T>, Option<BatchMoments>)> {
        let op = "Block::forward";
        check_len(op, "y", "that of x", x.len(), y.len())?;
        if let Some(v) = &v {
            check_len(op, "v", "that of x", x.len(), v.len())?;
        }
        let needed = !self.config.prenorm && (v.is_some() || p.norm.of_batch());
        let got = s.as_ref().map_or(0, |s| s.len());
        check_len(op, "s", S_SHAPE, if needed { x.len() } else { 0 }, got)?;
        par::together(|| self.forward_checked(op, x, p, y, v, s))
    }

    fn forward_checked(
        &mut self,
        op: &'static str,
        x: &[T],
        p: &BlockParams<'_, T>,
        y: &mut [T],
        mut v_kept: Option<&mut [T]>,
        mut s_kept: Option<&mut [T]>,
    ) -> Result<(NormStats<T>, Option<BatchMoments>)> {
        self.load(op, x, p)?;
        store_transposed(p.out_weight, self.config.h, &mut self.weight_t);
        let BlockConfig { l, h, prenorm, .. } = self.config;
        let batch_post = !prenorm && p.norm.of_batch();

        let (mut stats, mut moments) = (NormStats::default(), None);
        if !batch_post {
            (stats, moments) = p.norm.channel_stats(x, l);
        }
        let mut slots = vec![Moments::new(if batch_post { h } else { 0 }); SLOTS];
        let size = self.group * l * h;
        {
            let apply = (!batch_post).then(|| Apply::new(&p.norm, &mut stats, x.len() / h));
            for (group, (x, y)) in x.chunks(size).zip(y.chunks_mut(size)).enumerate() {
                let at = group * size..group * size + x.len();
                let first = group * self.group;
                let before = apply.as_ref().filter(|_| prenorm);
                let affine = before.and_then(Apply::affine);
                let layer = before.filter(|_| affine.is_none());
                let normed = layer.map(|norm| layer_normed(x, first * l, norm, &mut self.u, size));
                let lengths = p.lengths.map(|lengths| &lengths[first..]);
                let u = Input { x: normed.unwrap_or(x), affine, lengths };
                let v = match &mut v_kept {
                    Some(v) => &mut v[at.clone()],
                    None => &mut self.v.as_mut_slice()[..x.len()],
                };
                self.conv.filter_samples(u, v);
                if let Some(past) = p.past {
                    add_past(&past[at.clone()], v);
                }
                let s = s_kept.as_mut().map(|s| &mut s[at]);
                RowPass {
                    config: self.config,
                    p,
                    weight_t: &self.weight_t,
                    first_sample: first,
                    apply: apply.as_ref(),
                }
                .run(x, v, s, y, &mut slots, &mut self.scratch);
            }
        }
        if batch_post {
            let all;
            (stats, all) = Moments::finish(&slots, p.norm.eps);
            moments = Some(all);
            let s = s_kept.as_ref().expect("kept for a batch norm");
            let apply = Apply::new(&p.norm, &mut stats, x.len() / h);
            normalise(s, 0, &apply, y);
        }
        Ok((stats, moments))
    }
}

/// v += past.
fn add_past<T: Real>(past: &[T], v: &mut [T]) {
    let v = Disjoint::new(v);
    par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
        let part = share(past.len(), SLOTS, slot);
        // SAFETY: the shares do not overlap.
        let v = unsafe { v.part(part.start, part.len()) };
        v.iter_mut().zip(&past[part]).for_each(|(v, &past)| *v += past);
    });
}

/// norm(x) of the rows from `first` on, in a buffer that is made, of `size` elements, when it is first needed.
pub(super) fn layer_normed<'a, T: Real>(
    x: &[T],
    first: usize,
    norm: &Apply<'_, T>,
    buffer: &'a mut Option<Lines<T>>,
    size: usize,
) -> &'a [T] {
    let buffer = buffer.get_or_insert_with(|| Lines::new(size.div_ceil(T::LINE)));
    let u = &mut buffer.as_mut_slice()[..x.len()];
    normalise(x, first, norm, u);
    u
}

/// From v to the block's output, row by row: GELU, projection, residual, norm.
struct RowPass<'a, T: Real> {
    config: BlockConfig,
    p: &'a BlockParams<'a, T>,
    weight_t: &'a [T],
    first_sample: usize,
    /// Absent when the norm needs the statistics of what is being made.
    apply: Option<&'a Apply<'a, T>>,
}

impl<T: Real> RowPass<'_, T> {
    #[allow(clippy::too_many_arguments)]
    fn run(
        &self,
        x: &[T],
        v: &[T],
        mut s: Option<&mut [T]>,
        y: &mut [T],
        slots: &mut [Moments],
        scratch: &mut [Scratch<T>],
    ) {
        let BlockConfig { l, h, prenorm, .. } = self.config;
        let y = Disjoint::new(y);
        let s = s.as_mut().map(|s| Disjoint::new(s));
        let slots = Disjoint::new(slots);
        par::for_each(scratch, SLOTS, |scratch, slot| {
            for range in row_chunks(share(x.len() / h, SLOTS, slot), l) {
                let at = range.start * h..range.end * h;
                // SAFETY: the shares of rows do not overlap.
                let y = unsafe { y.part(at.start, at.len()) };
                let sample = self.first_sample + range.start / l;
                self.project(&v[at.clone()], sample, scratch);
                let Scratch { z, s: local, moments, .. } = scratch;
                let x = &x[at.clone()];
                if prenorm {
                    return_residual(self, z, sample, x, y);
                    continue;
                }
                let s = match &s {
                    // SAFETY: the shares of rows do not overlap.
                    Some(s) => unsafe { s.part(at.start, at.len()) },
                    None => &mut local[..at.len()],
                };
                return_residual(self, z, sample, x, s);
                match self.apply {
                    Some(apply) => apply.rows(s, self.first_sample * l + range.start, y),
                    None => {
                        let before = self.first_sample * l;
                        let rows = before + range.start..before + range.end;
                        let counted = counted_rows(self.p.norm.counted(), &rows, l);
                        // SAFETY: there is one item per slot.
                        let slot = &mut unsafe { slots.part(slot, 1) }[0];
                        slot.add(&s[..counted * h], moments);
                    }
                }
            }
        });
    }

    /// z = Out·drop(GELU(v)), without the bias.
    fn project(&self, v: &[T], sample: usize, scratch: &mut Scratch<T>) {
        let BlockConfig { h, gelu, .. } = self.config;
        let Scratch { g, z, .. } = scratch;
        let (width, out_width) = (apart::<T>(h), wide::<T>(self.config.outputs()));
        let count = v.len() / h;
        let mask = mask_of(self.p, 0, sample, h);
        match gelu {
            Gelu::Erf => rows::gelu(v, h, mask, g, width),
            Gelu::Tanh => rows::gelu_tanh(v, h, mask, g, width),
        }
        Product {
            size: [count, out_width, h],
            a: g,
            a_strides: [width, 1],
            b: self.weight_t,
            b_layout: Layout::Panels,
            c: z,
            add: false,
        }
        .run();
    }
}

/// out = x + drop(z + bias), or with the gate.
fn return_residual<T: Real>(
    pass: &RowPass<'_, T>,
    z: &mut [T],
    sample: usize,
    x: &[T],
    out: &mut [T],
) {
    let BlockConfig { h, glu, .. } = pass.config;
    let out_width = wide::<T>(pass.config.outputs());
    let z = &mut z[..x.len() / h * out_width];
    let mask = mask_of(pass.p, 1, sample, h);
    if glu {
        rows::gate(z, out_width, pass.p.out_bias);
        rows::residual(z, out_width, None, mask, x, out, h);
    } else {
        rows::residual(z, out_width, Some(pass.p.out_bias), mask, x, out, h);
    }
}

/// A sample's row of dropout mask `which`.
pub(super) fn mask_of<'a, T>(
    p: &BlockParams<'a, T>,
    which: usize,
    sample: usize,
    h: usize,
) -> Option<&'a [T]> {
    p.masks.map(|masks| &masks[which][sample * h..][..h])
}
