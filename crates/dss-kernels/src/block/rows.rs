//! The passes over rows of channels between the matrix products and the convolution.
//!
//! Every function takes a few whole rows, `[rows, H]`, and is compiled for the machine's widest instruction set.

use crate::real::{Real, dispatch, fuses};
use pulp::{Simd, WithSimd};

/// A function whose plain loops are compiled once per instruction set, the right one being chosen at run time.
macro_rules! simd {
    ($(#[$doc:meta])* fn $name:ident<T>($($arg:ident: $ty:ty),* $(,)?) |$fuse:pat_param| $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $name<'a, T: Real>($($arg: $ty),*) {
            struct Pass<'a, T: Real> {
                $($arg: $ty,)*
                marker: std::marker::PhantomData<&'a T>,
            }
            impl<'a, T: Real> WithSimd for Pass<'a, T> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: Simd>(self, _: S) {
                    let Self { $($arg,)* .. } = self;
                    let $fuse = fuses::<S>();
                    $body
                }
            }
            dispatch(Pass { $($arg,)* marker: std::marker::PhantomData });
        }
    };
}

/// The factor of v³ in the approximation of GELU.
const CUBIC: f64 = 0.044715;

/// ½(1 + tanh(√(2/π)·(v + 0.044715·v³))), the factor of v in the approximation of GELU, by ½(1 + tanh z) = σ(2z).
struct TanhGate<T> {
    scale: T,
    cubic: T,
}

impl<T: Real> TanhGate<T> {
    fn new() -> Self {
        let scale = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
        Self { scale: T::rounded(scale), cubic: T::rounded(CUBIC) }
    }

    #[inline(always)]
    fn at(&self, v: T, fuse: bool) -> T {
        (self.scale * (v + self.cubic * v * v * v)).sigmoid(fuse)
    }
}

simd! {
    /// g = GELU(v)·mask. v: `[rows, H]`; g: `[rows, width]`.
    fn gelu<T>(
        v: &'a [T], h: usize, mask: Option<&'a [T]>, g: &'a mut [T], width: usize,
    ) |fuse| {
        for (v, g) in v.chunks_exact(h).zip(g.chunks_exact_mut(width)) {
            for (&v, g) in v.iter().zip(g.iter_mut()) {
                *g = v * v.normal(fuse).0;
            }
            if let Some(mask) = mask {
                for (g, &mask) in g.iter_mut().zip(mask) {
                    *g = *g * mask;
                }
            }
        }
    }
}

simd! {
    /// As [`gelu`], of ½v·(1 + tanh(√(2/π)·(v + 0.044715·v³))).
    fn gelu_tanh<T>(
        v: &'a [T], h: usize, mask: Option<&'a [T]>, g: &'a mut [T], width: usize,
    ) |fuse| {
        let gate = TanhGate::new();
        for (v, g) in v.chunks_exact(h).zip(g.chunks_exact_mut(width)) {
            for (&v, g) in v.iter().zip(g.iter_mut()) {
                *g = v * gate.at(v, fuse);
            }
            if let Some(mask) = mask {
                for (g, &mask) in g.iter_mut().zip(mask) {
                    *g = *g * mask;
                }
            }
        }
    }
}

simd! {
    /// g = GELU(v)·mask and slope = GELU'(v)·mask. v, slope: `[rows, H]`; g: `[rows, width]`.
    fn gelu_with_slope<T>(
        v: &'a [T], h: usize, mask: Option<&'a [T]>, g: &'a mut [T], width: usize, slope: &'a mut [T],
    ) |fuse| {
        let rows = v.chunks_exact(h).zip(g.chunks_exact_mut(width)).zip(slope.chunks_exact_mut(h));
        for ((v, g), slope) in rows {
            for ((&v, g), slope) in v.iter().zip(g.iter_mut()).zip(slope.iter_mut()) {
                let (cdf, pdf) = v.normal(fuse);
                *g = v * cdf;
                *slope = cdf + v * pdf;
            }
            if let Some(mask) = mask {
                for ((g, slope), &mask) in g.iter_mut().zip(slope.iter_mut()).zip(mask) {
                    *g = *g * mask;
                    *slope = *slope * mask;
                }
            }
        }
    }
}

simd! {
    /// As [`gelu_with_slope`], of ½v·(1 + tanh(√(2/π)·(v + 0.044715·v³))).
    fn gelu_tanh_with_slope<T>(
        v: &'a [T], h: usize, mask: Option<&'a [T]>, g: &'a mut [T], width: usize, slope: &'a mut [T],
    ) |fuse| {
        let gate = TanhGate::new();
        let (one, cubic_slope) = (T::rounded(1.0), T::rounded(3.0 * CUBIC));
        let rows = v.chunks_exact(h).zip(g.chunks_exact_mut(width)).zip(slope.chunks_exact_mut(h));
        for ((v, g), slope) in rows {
            for ((&v, g), slope) in v.iter().zip(g.iter_mut()).zip(slope.iter_mut()) {
                let s = gate.at(v, fuse);
                *g = v * s;
                *slope = s + v * s * (one - s) * gate.scale * (one + cubic_slope * v * v);
            }
            if let Some(mask) = mask {
                for ((g, slope), &mask) in g.iter_mut().zip(slope.iter_mut()).zip(mask) {
                    *g = *g * mask;
                    *slope = *slope * mask;
                }
            }
        }
    }
}

simd! {
    /// s = x + mask·(z + bias). x, s: `[rows, H]`; z: `[rows, width]`.
    fn residual<T>(
        z: &'a mut [T], width: usize, bias: Option<&'a [T]>, mask: Option<&'a [T]>,
        x: &'a [T], s: &'a mut [T], h: usize,
    ) |_| {
        let rows = z.chunks_exact_mut(width).zip(x.chunks_exact(h)).zip(s.chunks_exact_mut(h));
        for ((z, x), s) in rows {
            if let Some(bias) = bias {
                for (z, &bias) in z.iter_mut().zip(bias) {
                    *z += bias;
                }
            }
            if let Some(mask) = mask {
                for (z, &mask) in z.iter_mut().zip(mask) {
                    *z = *z * mask;
                }
            }
            for ((&z, &x), s) in z.iter().zip(x).zip(s.iter_mut()) {
                *s = x + z;
            }
        }
    }
}

simd! {
    /// The gated unit: z = (a, b) becomes (a + bias_a)·σ(b + bias_b) in its first half. z: `[rows, width]`, bias: `[2H]`.
    fn gate<T>(z: &'a mut [T], width: usize, bias: &'a [T]) |fuse| {
        let h = bias.len() / 2;
        for z in z.chunks_exact_mut(width) {
            let (a, b) = z[..2 * h].split_at_mut(h);
            let (bias_a, bias_b) = bias.split_at(h);
            for (((a, &b), &bias_a), &bias_b) in a.iter_mut().zip(b.iter()).zip(bias_a).zip(bias_b) {
                *a = (*a + bias_a) * (b + bias_b).sigmoid(fuse);
            }
        }
    }
}

simd! {
    /// dz = mask·ds. ds: `[rows, H]`; dz: `[rows, width]`.
    fn masked<T>(ds: &'a [T], h: usize, mask: Option<&'a [T]>, dz: &'a mut [T], width: usize) |_| {
        for (ds, dz) in ds.chunks_exact(h).zip(dz.chunks_exact_mut(width)) {
            match mask {
                None => dz[..h].copy_from_slice(ds),
                Some(mask) => {
                    for ((dz, &ds), &mask) in dz.iter_mut().zip(ds).zip(mask) {
                        *dz = ds * mask;
                    }
                }
            }
        }
    }
}

simd! {
    /// dz = mask·ds and sum += Σ dz over the rows. ds: `[rows, H]`; dz: `[rows, width]`.
    fn masked_with_sums<T>(
        ds: &'a [T], h: usize, mask: Option<&'a [T]>, dz: &'a mut [T], width: usize, sum: &'a mut [T],
    ) |_| {
        for (ds, dz) in ds.chunks_exact(h).zip(dz.chunks_exact_mut(width)) {
            match mask {
                None => {
                    for ((dz, &ds), sum) in dz.iter_mut().zip(ds).zip(sum.iter_mut()) {
                        *dz = ds;
                        *sum += ds;
                    }
                }
                Some(mask) => {
                    for (((dz, &ds), &mask), sum) in dz.iter_mut().zip(ds).zip(mask).zip(sum.iter_mut()) {
                        *dz = ds * mask;
                        *sum += *dz;
                    }
                }
            }
        }
    }
}

simd! {
    /// The gated unit's backward. dz holds the gradient of its output in the first half and that of (a, b) afterwards;
    /// z: (a, b) without their bias. Each with rows of its width; bias: `[2H]`.
    fn gate_backward<T>(
        z: &'a [T], z_width: usize, dz: &'a mut [T], dz_width: usize, bias: &'a [T],
    ) |fuse| {
        let h = bias.len() / 2;
        let (bias_a, bias_b) = bias.split_at(h);
        for (z, dz) in z.chunks_exact(z_width).zip(dz.chunks_exact_mut(dz_width)) {
            let (a, b) = z[..2 * h].split_at(h);
            let (da, db) = dz[..2 * h].split_at_mut(h);
            let bias = bias_a.iter().zip(bias_b);
            for ((((&a, &b), da), db), (&bias_a, &bias_b)) in a.iter().zip(b).zip(da).zip(db).zip(bias) {
                let gate = (b + bias_b).sigmoid(fuse);
                *db = *da * (a + bias_a) * (gate - gate * gate);
                *da = *da * gate;
            }
        }
    }
}

simd! {
    /// sum += Σ over the rows. rows: `[rows, width]`.
    fn column_sums<T>(rows: &'a [T], width: usize, sum: &'a mut [T]) |_| {
        for row in rows.chunks_exact(width) {
            for (sum, &x) in sum.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}

simd! {
    /// dv = dg·slope. dg: `[rows, width]`; slope, dv: `[rows, H]`.
    fn through_gelu<T>(dg: &'a [T], slope: &'a [T], width: usize, dv: &'a mut [T], h: usize) |_| {
        let rows = dg.chunks_exact(width).zip(slope.chunks_exact(h));
        for ((dg, slope), dv) in rows.zip(dv.chunks_exact_mut(h)) {
            for ((&dg, &slope), dv) in dg.iter().zip(slope).zip(dv) {
                *dv = dg * slope;
            }
        }
    }
}

simd! {
    /// dv = dg·slope and sum += Σ dv over the rows. dg: `[rows, width]`; slope: `[rows, F]`; dv: `[rows, dv_width]`.
    fn through_gelu_with_sums<T>(
        dg: &'a [T], slope: &'a [T], width: usize, dv: &'a mut [T], dv_width: usize, sum: &'a mut [T],
    ) |_| {
        let rows = dg.chunks_exact(width).zip(slope.chunks_exact(sum.len()));
        for ((dg, slope), dv) in rows.zip(dv.chunks_exact_mut(dv_width)) {
            for (((&dg, &slope), dv), sum) in dg.iter().zip(slope).zip(dv).zip(sum.iter_mut()) {
                *dv = dg * slope;
                *sum += *dv;
            }
        }
    }
}

simd! {
    /// y = scale·(x − mean) + β per channel. x, y: `[rows, H]`.
    fn batch_norm<T>(x: &'a [T], mean: &'a [T], scale: &'a [T], beta: &'a [T], y: &'a mut [T]) |_| {
        let h = scale.len();
        for (x, y) in x.chunks_exact(h).zip(y.chunks_exact_mut(h)) {
            let channels = mean.iter().zip(scale).zip(beta);
            for ((&x, y), ((&mean, &scale), &beta)) in x.iter().zip(y.iter_mut()).zip(channels) {
                *y = (x - mean) * scale + beta;
            }
        }
    }
}

simd! {
    /// Mean and sum of squared deviations per channel. x: `[rows, H]`; mean, deviation: `[H]`.
    fn moments<T>(x: &'a [T], mean: &'a mut [T], deviation: &'a mut [T]) |_| {
        let h = mean.len();
        mean.fill(T::ZERO);
        deviation.fill(T::ZERO);
        let share = T::rounded(h as f64 / x.len() as f64);
        for x in x.chunks_exact(h) {
            for (mean, &x) in mean.iter_mut().zip(x) {
                *mean += x;
            }
        }
        for mean in mean.iter_mut() {
            *mean = *mean * share;
        }
        for x in x.chunks_exact(h) {
            for ((deviation, &mean), &x) in deviation.iter_mut().zip(mean.iter()).zip(x) {
                *deviation += (x - mean) * (x - mean);
            }
        }
    }
}

simd! {
    /// sum += Σ dy and product += Σ dy·x̂, x̂ = (x − mean)·rstd. dy, x: `[rows, H]`; the rest `[H]`.
    fn norm_sums<T>(
        dy: &'a [T], x: &'a [T], mean: &'a [T], rstd: &'a [T], sum: &'a mut [T], product: &'a mut [T],
    ) |_| {
        let h = mean.len();
        for (dy, x) in dy.chunks_exact(h).zip(x.chunks_exact(h)) {
            let channels = mean.iter().zip(rstd).zip(sum.iter_mut().zip(product.iter_mut()));
            for ((&dy, &x), ((&mean, &rstd), (sum, product))) in dy.iter().zip(x).zip(channels) {
                *sum += dy;
                *product += dy * ((x - mean) * rstd);
            }
        }
    }
}

/// Where the gradient of a norm's output is.
#[derive(Clone, Copy)]
pub(super) enum OutputGradient<'a, T> {
    /// In dx.
    InPlace,
    /// `[rows, H]`.
    From(&'a [T]),
    /// In dx; this one, `[rows, H]`, is added to that of x: a residual.
    Residual(&'a [T]),
}

impl<T: Real> OutputGradient<'_, T> {
    /// That of the first elements, and that of the others.
    pub(super) fn split_at(self, at: usize) -> [Self; 2] {
        match self {
            Self::InPlace => [Self::InPlace; 2],
            Self::From(dy) => [Self::From(&dy[..at]), Self::From(&dy[at..])],
            Self::Residual(dy) => [Self::Residual(&dy[..at]), Self::Residual(&dy[at..])],
        }
    }
}

simd! {
    /// dx = a·dy + b·(x − mean) + c per channel, and dy of a residual. All `[rows, H]` or `[H]`.
    fn batch_norm_backward<T>(
        dy: OutputGradient<'a, T>,
        x: &'a [T], mean: &'a [T], a: &'a [T], b: &'a [T], c: &'a [T], dx: &'a mut [T],
    ) |_| {
        let h = a.len();
        for (row, (x, dx)) in x.chunks_exact(h).zip(dx.chunks_exact_mut(h)).enumerate() {
            let channels = mean.iter().zip(a).zip(b.iter().zip(c));
            let all = x.iter().zip(dx).zip(channels);
            match dy {
                OutputGradient::InPlace => {
                    for ((&x, dx), ((&mean, &a), (&b, &c))) in all {
                        *dx = a * *dx + (b * (x - mean) + c);
                    }
                }
                OutputGradient::From(dy) => {
                    for (&dy, ((&x, dx), ((&mean, &a), (&b, &c)))) in dy[row * h..][..h].iter().zip(all) {
                        *dx = a * dy + (b * (x - mean) + c);
                    }
                }
                OutputGradient::Residual(dy) => {
                    for (&dy, ((&x, dx), ((&mean, &a), (&b, &c)))) in dy[row * h..][..h].iter().zip(all) {
                        *dx = dy + (a * *dx + (b * (x - mean) + c));
                    }
                }
            }
        }
    }
}

simd! {
    /// LayerNorm of each row; its mean and 1/√(var + ε) are kept. x, y: `[rows, H]`; mean, rstd: `[rows]`.
    fn layer_norm<T>(
        x: &'a [T], gamma: &'a [T], beta: &'a [T], eps: f64, y: &'a mut [T], mean: &'a mut [T], rstd: &'a mut [T],
    ) |_| {
        let h = gamma.len();
        let share = T::rounded(1.0 / h as f64);
        let rows = x.chunks_exact(h).zip(y.chunks_exact_mut(h)).zip(mean.iter_mut().zip(rstd));
        for ((x, y), (row_mean, row_rstd)) in rows {
            let mean = lane_sum([x, x, x], |x, _, _| x) * share;
            let var = lane_sum([x, x, x], |x, _, _| (x - mean) * (x - mean)) * share;
            let r = T::rounded(1.0 / (var.to_f64() + eps).sqrt());
            (*row_mean, *row_rstd) = (mean, r);
            for (((&x, y), &gamma), &beta) in x.iter().zip(y.iter_mut()).zip(gamma).zip(beta) {
                *y = (x - mean) * r * gamma + beta;
            }
        }
    }
}

simd! {
    /// As LayerNorm, with one gain and one offset for all channels and no ε: γ·(x − mean + β)/√var.
    fn layer_scalar_norm<T>(x: &'a [T], h: usize, gamma: T, beta: T, y: &'a mut [T]) |_| {
        let share = T::rounded(1.0 / h as f64);
        for (x, y) in x.chunks_exact(h).zip(y.chunks_exact_mut(h)) {
            let mean = lane_sum([x, x, x], |x, _, _| x) * share;
            let var = lane_sum([x, x, x], |x, _, _| (x - mean) * (x - mean)) * share;
            let r = gamma * T::rounded(1.0 / var.to_f64().sqrt());
            for (&x, y) in x.iter().zip(y.iter_mut()) {
                *y = (x - mean + beta) * r;
            }
        }
    }
}

simd! {
    /// y = scale·x + shift per channel. x, y: `[rows, H]`.
    fn affine<T>(x: &'a [T], scale: &'a [T], shift: &'a [T], y: &'a mut [T]) |_| {
        let h = scale.len();
        for (x, y) in x.chunks_exact(h).zip(y.chunks_exact_mut(h)) {
            for (((&x, y), &scale), &shift) in x.iter().zip(y.iter_mut()).zip(scale).zip(shift) {
                *y = x * scale + shift;
            }
        }
    }
}

simd! {
    /// y = skip·x + (z + offset) per channel. x, y: `[rows, H]`; z: `[rows, width]`.
    fn scaled_residual<T>(
        z: &'a [T], width: usize, skip: &'a [T], offset: &'a [T], x: &'a [T], y: &'a mut [T],
    ) |_| {
        let h = skip.len();
        for ((z, x), y) in z.chunks_exact(width).zip(x.chunks_exact(h)).zip(y.chunks_exact_mut(h)) {
            let channels = skip.iter().zip(offset);
            for (((&z, &x), y), (&skip, &offset)) in z.iter().zip(x).zip(y.iter_mut()).zip(channels) {
                *y = skip * x + (z + offset);
            }
        }
    }
}

simd! {
    /// y = z + bias. y: `[rows, O]`; z: `[rows, width]`.
    fn add_bias<T>(z: &'a [T], width: usize, bias: &'a [T], y: &'a mut [T]) |_| {
        for (z, y) in z.chunks_exact(width).zip(y.chunks_exact_mut(bias.len())) {
            for ((&z, y), &bias) in z.iter().zip(y.iter_mut()).zip(bias) {
                *y = z + bias;
            }
        }
    }
}

simd! {
    /// g = GELU(v + D·u). v, u: `[rows, H]`; g: `[rows, width]`.
    fn gelu_with_skip<T>(v: &'a [T], u: &'a [T], d: &'a [T], g: &'a mut [T], width: usize) |fuse| {
        let h = d.len();
        for ((v, u), g) in v.chunks_exact(h).zip(u.chunks_exact(h)).zip(g.chunks_exact_mut(width)) {
            for (((&v, &u), &d), g) in v.iter().zip(u).zip(d).zip(g.iter_mut()) {
                let v = v + d * u;
                *g = v * v.normal(fuse).0;
            }
        }
    }
}

simd! {
    /// As [`gelu_with_skip`], of ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    fn gelu_tanh_with_skip<T>(v: &'a [T], u: &'a [T], d: &'a [T], g: &'a mut [T], width: usize) |fuse| {
        let gate = TanhGate::new();
        let h = d.len();
        for ((v, u), g) in v.chunks_exact(h).zip(u.chunks_exact(h)).zip(g.chunks_exact_mut(width)) {
            for (((&v, &u), &d), g) in v.iter().zip(u).zip(d).zip(g.iter_mut()) {
                let v = v + d * u;
                *g = v * gate.at(v, fuse);
            }
        }
    }
}

simd! {
    /// x = GELU(x).
    fn gelu_in_place<T>(x: &'a mut [T]) |fuse| {
        for x in x.iter_mut() {
            *x = *x * x.normal(fuse).0;
        }
    }
}

simd! {
    /// x = ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    fn gelu_tanh_in_place<T>(x: &'a mut [T]) |fuse| {
        let gate = TanhGate::new();
        for x in x.iter_mut() {
            *x = *x * gate.at(*x, fuse);
        }
    }
}

simd! {
    /// LayerNorm's backward: turns dy into dx, in place; sum += Σ dy (that of β), product += Σ dy·x̂ (that of γ).
    fn layer_norm_backward<T>(
        x: &'a [T], gamma: &'a [T], mean: &'a [T], rstd: &'a [T],
        dx: &'a mut [T], sum: &'a mut [T], product: &'a mut [T],
    ) |_| {
        let h = gamma.len();
        let share = T::rounded(1.0 / h as f64);
        let rows = x.chunks_exact(h).zip(dx.chunks_exact_mut(h));
        for ((x, dx), (&mean, &r)) in rows.zip(mean.iter().zip(rstd)) {
            let dy = &*dx;
            let sums = sum.iter_mut().zip(product.iter_mut());
            for ((&dy, &x), (sum, product)) in dy.iter().zip(x).zip(sums) {
                *sum += dy;
                *product += dy * ((x - mean) * r);
            }
            let m1 = lane_sum([dy, gamma, x], |dy, gamma, _| dy * gamma) * share;
            let m2 = lane_sum([dy, gamma, x], |dy, gamma, x| dy * gamma * ((x - mean) * r)) * share;
            for ((dx, &gamma), &x) in dx.iter_mut().zip(gamma).zip(x) {
                *dx = (*dx * gamma - m1 - (x - mean) * r * m2) * r;
            }
        }
    }
}

simd! {
    /// out += x.
    fn add<T>(out: &'a mut [T], x: &'a [T]) |_| {
        for (out, &x) in out.iter_mut().zip(x) {
            *out += x;
        }
    }
}

/// Σ term(a, b, c) in 16 interleaved partial sums, which the compiler keeps in vector registers.
#[inline(always)]
fn lane_sum<T: Real>([a, b, c]: [&[T]; 3], term: impl Fn(T, T, T) -> T) -> T {
    const LANES: usize = 16;
    let mut lanes = [T::ZERO; LANES];
    let chunks = || a.chunks_exact(LANES).zip(b.chunks_exact(LANES)).zip(c.chunks_exact(LANES));
    for ((a, b), c) in chunks() {
        for (lane, ((&a, &b), &c)) in lanes.iter_mut().zip(a.iter().zip(b).zip(c)) {
            *lane += term(a, b, c);
        }
    }
    let rest = a.len() / LANES * LANES;
    let tail = a[rest..].iter().zip(&b[rest..]).zip(&c[rest..]);
    for (lane, ((&a, &b), &c)) in lanes.iter_mut().zip(tail) {
        *lane += term(a, b, c);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}
