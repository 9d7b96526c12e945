//! The block's backward pass.

use super::forward::{layer_normed, mask_of};
use super::norm::{Apply, BackwardCoefficients, ChannelSums, Norm, counted_rows};
use super::rows::OutputGradient;
use super::share::{SLOTS, SlotSums, row_chunks};
use super::weight::{SlotGrad, apart};
use super::{
    Block, BlockConfig, BlockParams, Gelu, NormStats, S_SHAPE, Saved, SavedSlices, Scratch, rows,
    wide,
};
use crate::conv::{Input, OutputMode};
use crate::error::{Result, check_len};
use crate::par::{self, Disjoint, share};
use crate::product::{Layout, Product, store, store_transposed};
use crate::real::Real;

/// Gradients of a block's parameters, in the shapes of [`BlockParams`].
#[derive(Debug, Clone)]
pub struct BlockGrads<T> {
    /// Of K.
    pub k: Vec<T>,
    /// Of D.
    pub d: Vec<T>,
    /// Of the projection.
    pub out_weight: Vec<T>,
    /// Of its bias.
    pub out_bias: Vec<T>,
    /// Of the norm's gain.
    pub gamma: Vec<T>,
    /// Of the norm's offset.
    pub beta: Vec<T>,
    /// Of the past, if there is one.
    pub past: Option<Vec<T>>,
}

/// Sums over the rows of each slot.
struct Sums<T: Real> {
    /// O, in whole cache lines.
    bias: SlotSums<T>,
    norm: ChannelSums<T>,
}

impl<T: Real> Block<T> {
    /// Given dy = ∂loss/∂y of a forward call that was kept, writes dx and gives the gradients of the parameters.
    ///
    /// x and p are those of the forward call. x, dy, dx: `[B, L, H]`.
    pub fn backward(
        &mut self,
        x: &[T],
        p: &BlockParams<'_, T>,
        saved: Saved<T>,
        dy: &[T],
        dx: &mut [T],
    ) -> Result<BlockGrads<T>> {
        let Saved { v, s, stats } = saved;
        self.backward_from(x, p, SavedSlices { v: &v, s: s.as_deref(), stats }, dy, dx)
    }

    /// As [`Self::backward`], from what [`Self::forward_into`] left.
    pub fn backward_from(
        &mut self,
        x: &[T],
        p: &BlockParams<'_, T>,
        saved: SavedSlices<'_, T>,
        dy: &[T],
        dx: &mut [T],
    ) -> Result<BlockGrads<T>> {
        let op = "Block::backward";
        check_len(op, "dy", "that of x", x.len(), dy.len())?;
        check_len(op, "dx", "that of x", x.len(), dx.len())?;
        check_len(op, "v", "that of x", x.len(), saved.v.len())?;
        let needed = if self.config.prenorm { 0 } else { x.len() };
        check_len(op, "s", S_SHAPE, needed, saved.s.map_or(0, <[T]>::len))?;
        let layer = matches!(p.norm.norm, Norm::Layer);
        let stats = if layer { x.len() / self.config.h } else { self.config.h };
        check_len(op, "mean", "one per row or channel", stats, saved.stats.mean.len())?;
        check_len(op, "rstd", "one per row or channel", stats, saved.stats.rstd.len())?;
        par::together(|| self.backward_checked(op, x, p, saved, dy, dx))
    }

    fn backward_checked(
        &mut self,
        op: &'static str,
        x: &[T],
        p: &BlockParams<'_, T>,
        saved: SavedSlices<'_, T>,
        dy: &[T],
        dx: &mut [T],
    ) -> Result<BlockGrads<T>> {
        self.load(op, x, p)?;
        let BlockConfig { l, h, prenorm, glu, bidirectional, .. } = self.config;
        let (o, out_width) = (self.config.outputs(), wide::<T>(self.config.outputs()));
        store(p.out_weight, h, &mut self.weight);
        if glu {
            store_transposed(p.out_weight, h, &mut self.weight_t);
        }
        self.weight_grad.clear();
        let layer = matches!(p.norm.norm, Norm::Layer);
        let mut sums = Sums { bias: SlotSums::new(out_width), norm: ChannelSums::new(h) };
        let SavedSlices { v, s, mut stats } = saved;

        // A batch norm after the block: its sums over all rows come first.
        let mut post = None;
        if let (false, false, Some(s)) = (prenorm, layer, s) {
            sums.norm.gather(dy, s, &stats, l);
            let (sum, product) = sums.norm.total();
            post = Some(p.norm.backward_coefficients(&stats, &sum, &product));
        }
        let total_rows = x.len() / h;
        let mut past = p.past.map(|_| Vec::with_capacity(x.len()));
        let size = self.group * l * h;
        let scale = (prenorm && !layer).then(|| p.norm.scale(&stats));
        for (group, x) in x.chunks(size).enumerate() {
            let at = group * size..group * size + x.len();
            let first = group * self.group;
            let inside = ..x.len();
            let normed = (prenorm && layer).then(|| {
                // LayerNorm recomputes its statistics: they are the same.
                let norm = Apply::new(&p.norm, &mut stats, total_rows);
                layer_normed(x, first * l, &norm, &mut self.u, size)
            });
            let affine = scale.as_ref().map(|scale| [&stats.mean[..], scale, p.norm.beta]);
            let lengths = p.lengths.map(|lengths| &lengths[first..]);
            let u = Input { x: normed.unwrap_or(x), affine, lengths };
            let (dy, dx) = (&dy[at.clone()], &mut dx[at.clone()]);
            let pass = RowPass {
                config: self.config,
                p,
                stats: &stats,
                weight: &self.weight,
                weight_t: &self.weight_t,
                first_sample: first,
                post: post.as_ref(),
            };
            let v = &v[at.clone()];
            let s = s.map(|s| &s[at]);
            let dv = &mut self.v.as_mut_slice()[inside];
            let weight_grad = self.weight_grad.slots();
            pass.before_conv([v, dy], s, dx, dv, &mut sums, &weight_grad, &mut self.scratch);
            let dv = &self.v.as_slice()[inside];
            past.iter_mut().for_each(|past| past.extend_from_slice(dv));
            if prenorm {
                self.conv.adjoint_samples(u, dv, dx, OutputMode::Write, group == 0);
                pass.before_norm(x, dy, dx, &mut sums);
            } else {
                self.conv.adjoint_samples(u, dv, dx, OutputMode::Add, group == 0);
            }
        }
        if prenorm && !layer {
            // A batch norm before the block: dx holds the gradient of its output.
            let (sum, product) = sums.norm.total();
            let coefficients = p.norm.backward_coefficients(&stats, &sum, &product);
            finish_batch_norm(&coefficients, p, l, x, dy, dx);
        }

        let kernels = if bidirectional { 2 * h } else { h };
        let mut k = vec![T::ZERO; p.k.len()];
        self.conv.kernel_gradient(&mut k);
        // D is part of the first causal tap.
        let d = k.chunks_exact(k.len() / kernels).take(h).map(|k| k[0]).collect();
        let round = |x: &[f64]| x.iter().map(|&x| T::rounded(x)).collect::<Vec<_>>();
        let (sum, product) = sums.norm.total();
        Ok(BlockGrads {
            k,
            d,
            out_weight: self.weight_grad.total(),
            out_bias: round(&sums.bias.total()[..o]),
            gamma: round(&product),
            beta: round(&sum),
            past,
        })
    }
}

/// dx = dy + BatchNorm's gradient, for which dx holds that of its output.
fn finish_batch_norm<T: Real>(
    coefficients: &BackwardCoefficients<T>,
    p: &BlockParams<'_, T>,
    l: usize,
    x: &[T],
    dy: &[T],
    dx: &mut [T],
) {
    let h = p.d.len();
    let dx = Disjoint::new(dx);
    par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
        for range in row_chunks(share(x.len() / h, SLOTS, slot), l) {
            let at = range.start * h..range.end * h;
            // SAFETY: the shares do not overlap.
            let dx = unsafe { dx.part(at.start, at.len()) };
            let counted = counted_rows(p.norm.counted(), &range, l);
            let dy = OutputGradient::Residual(&dy[at.clone()]);
            coefficients.apply(dy, &x[at], dx, counted);
        }
    });
}

/// The passes over the rows of a group of samples, on both sides of the convolution.
struct RowPass<'a, T: Real> {
    config: BlockConfig,
    p: &'a BlockParams<'a, T>,
    stats: &'a NormStats<T>,
    weight: &'a [T],
    weight_t: &'a [T],
    first_sample: usize,
    /// A batch norm after the block.
    post: Option<&'a BackwardCoefficients<T>>,
}

impl<T: Real> RowPass<'_, T> {
    /// From dy to dv, the gradient of v, for the rows of a group; a post-norm block's dx gets the gradient of s.
    #[allow(clippy::too_many_arguments)]
    fn before_conv(
        &self,
        [v, dy]: [&[T]; 2],
        s: Option<&[T]>,
        dx: &mut [T],
        dv: &mut [T],
        sums: &mut Sums<T>,
        weight_grad: &Disjoint<'_, SlotGrad<T>>,
        scratch: &mut [Scratch<T>],
    ) {
        let BlockConfig { l, h, prenorm, glu, gelu, .. } = self.config;
        let o = self.config.outputs();
        let (width, out_width) = (wide::<T>(h), wide::<T>(o));
        let (g_width, dz_width) = (apart::<T>(h), apart::<T>(o));
        let dx = Disjoint::new(dx);
        let dv = Disjoint::new(dv);
        let bias_sums = sums.bias.shared();
        let (beta_sums, gamma_sums) = (sums.norm.sum.shared(), sums.norm.product.shared());
        par::for_each(scratch, SLOTS, |scratch, slot| {
            // SAFETY: there is one item per slot.
            let (bias_sum, beta_sum, gamma_sum) =
                unsafe { (bias_sums.slot(slot), beta_sums.slot(slot), gamma_sums.slot(slot)) };
            // SAFETY: likewise.
            let weight_grad = &mut unsafe { weight_grad.part(slot, 1) }[0];
            for range in row_chunks(share(v.len() / h, SLOTS, slot), l) {
                let at = range.start * h..range.end * h;
                let count = range.len();
                let all = self.first_sample * l + range.start..self.first_sample * l + range.end;
                let sample = all.start / l;
                let dy = &dy[at.clone()];
                let ds = if let (false, Some(s)) = (prenorm, s) {
                    let s = &s[at.clone()];
                    // SAFETY: the shares of rows do not overlap.
                    let dx = unsafe { dx.part(at.start, at.len()) };
                    match self.post {
                        Some(post) => {
                            let counted = counted_rows(self.p.norm.counted(), &all, l);
                            post.apply(OutputGradient::From(dy), s, dx, counted);
                        }
                        None => {
                            dx.copy_from_slice(dy);
                            let (mean, rstd) =
                                (&self.stats.mean[all.clone()], &self.stats.rstd[all]);
                            let gamma = self.p.norm.gamma;
                            rows::layer_norm_backward(
                                s, gamma, mean, rstd, dx, beta_sum, gamma_sum,
                            );
                        }
                    }
                    &*dx
                } else {
                    dy
                };
                let Scratch { g, dz, dg, z, slope, .. } = scratch;
                let (g, dz) = (&mut g[..count * g_width], &mut dz[..count * dz_width]);
                let mask = mask_of(self.p, 0, sample, h);
                let v = &v[at.clone()];
                match gelu {
                    Gelu::Erf => rows::gelu_with_slope(v, h, mask, g, g_width, slope),
                    Gelu::Tanh => rows::gelu_tanh_with_slope(v, h, mask, g, g_width, slope),
                }
                let mask = mask_of(self.p, 1, sample, h);
                let (b_layout, add) = (Layout::Panels, false);
                if glu {
                    rows::masked(ds, h, mask, dz, dz_width);
                    let (size, a_strides) = ([count, out_width, h], [g_width, 1]);
                    let (a, b) = (&*g, self.weight_t);
                    Product { size, a, a_strides, b, b_layout, c: z, add }.run();
                    rows::gate_backward(z, out_width, dz, dz_width, self.p.out_bias);
                    rows::column_sums(dz, dz_width, bias_sum);
                } else {
                    rows::masked_with_sums(ds, h, mask, dz, dz_width, bias_sum);
                }
                let (size, a_strides) = ([count, width, o], [dz_width, 1]);
                let (a, b) = (&*dz, self.weight);
                Product { size, a, a_strides, b, b_layout, c: dg, add }.run();
                // SAFETY: the shares of rows do not overlap.
                let dv = unsafe { dv.part(at.start, at.len()) };
                let dg = &dg[..count * width];
                rows::through_gelu(dg, slope, width, dv, h);
                weight_grad.add(dz, g, count);
            }
        });
    }

    /// Takes the gradient of u, in dx, through a norm before the block. A batch norm's waits for its sums.
    fn before_norm(&self, x: &[T], dy: &[T], dx: &mut [T], sums: &mut Sums<T>) {
        let BlockConfig { l, h, .. } = self.config;
        let dx = Disjoint::new(dx);
        let (beta_sums, gamma_sums) = (sums.norm.sum.shared(), sums.norm.product.shared());
        par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
            // SAFETY: there is one item per slot.
            let (beta_sum, gamma_sum) = unsafe { (beta_sums.slot(slot), gamma_sums.slot(slot)) };
            for range in row_chunks(share(x.len() / h, SLOTS, slot), l) {
                let at = range.start * h..range.end * h;
                let all = self.first_sample * l + range.start..self.first_sample * l + range.end;
                // SAFETY: the shares of rows do not overlap.
                let dx = unsafe { dx.part(at.start, at.len()) };
                let true_rows = counted_rows(self.p.lengths, &all, l);
                let (x, dy) = (&x[at.clone()], &dy[at]);
                let gamma = self.p.norm.gamma;
                let NormStats { mean, rstd, .. } = self.stats;
                dx[true_rows * h..].fill(T::ZERO);
                match self.p.norm.norm {
                    Norm::Layer => {
                        let (mean, rstd) = (&mean[all.clone()], &rstd[all]);
                        rows::layer_norm_backward(x, gamma, mean, rstd, dx, beta_sum, gamma_sum);
                        rows::add(dx, dy);
                    }
                    _ => rows::norm_sums(dx, x, mean, rstd, beta_sum, gamma_sum),
                }
            }
        });
    }
}
