//! A trained network's passes over rows: all of a block but the mixing along time, for networks that are only run.
//!
//! Around the mixer v = K * u, by convolution or one step at a time, a block is
//!
//! u = before(x),   y = after(skip·x + Out(GELU(v + D·u)) + offset)
//!
//! Each row is computed alone and always by the same operations, so that one row at a time, many rows at once and any
//! number of threads give the same bits.

use super::Gelu;
use super::share::CHUNK;
use super::{rows, wide};
use crate::error::{Result, check_len};
use crate::lines::Lines;
use crate::par::{self, Disjoint};
use crate::product::{Layout, Product, store_transposed};
use crate::real::Real;

/// A linear map of rows, y = W·x + b.
///
/// ```
/// use dss_kernels::frozen::{Linear, Scratch};
/// let map = Linear::new(&[1.0f32, 2.0, 0.0, 1.0], &[0.5, 0.0])?; // W: [2, 2]
/// let mut y = [0.0; 2];
/// map.forward(&[3.0, 4.0], &mut y, &mut Scratch::new(1))?;
/// assert_eq!(y, [11.5, 4.0]);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Linear<T: Real> {
    inputs: usize,
    /// The transpose `[in, out]` with rows of whole cache lines, in panels.
    weight_t: Lines<T>,
    bias: Vec<T>,
}

impl<T: Real> Linear<T> {
    /// Of W: `[out, in]` and b: `[out]`.
    pub fn new(weight: &[T], bias: &[T]) -> Result<Self> {
        let inputs = weight.len() / bias.len().max(1);
        let size = inputs.max(1) * bias.len().max(1);
        check_len("Linear::new", "weight", "[out, in]", size, weight.len())?;
        let mut weight_t = Lines::new(inputs * wide::<T>(bias.len()) / T::LINE);
        store_transposed(weight, inputs, &mut weight_t);
        Ok(Self { inputs, weight_t, bias: bias.to_vec() })
    }

    /// Numbers in a row of x.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers in a row of y.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// x: `[R, in]` -> y: `[R, out]`.
    pub fn forward(&self, x: &[T], y: &mut [T], scratch: &mut Scratch<T>) -> Result<()> {
        let op = "Linear::forward";
        let (inputs, outputs) = (self.inputs, self.outputs());
        let count = x.len() / inputs;
        check_len(op, "x", "[R, in]", count * inputs, x.len())?;
        check_len(op, "y", "[R, out]", count * outputs, y.len())?;
        scratch.fit(0, wide::<T>(outputs));
        scratch.for_chunks(count, &mut [(y, outputs)], |buffers, range, [y]| {
            let x = &x[range.start * inputs..range.end * inputs];
            self.product(x, inputs, range.len(), &mut buffers.z);
            rows::add_bias(&buffers.z, wide::<T>(outputs), &self.bias, y);
        });
        Ok(())
    }

    /// z = W·x of `count` rows, x with rows of `width`, z with rows of whole cache lines.
    fn product(&self, x: &[T], width: usize, count: usize, z: &mut [T]) {
        Product {
            size: [count, wide::<T>(self.outputs()), self.inputs],
            a: x,
            a_strides: [width, 1],
            b: &self.weight_t,
            b_layout: Layout::Panels,
            c: z,
            add: false,
        }
        .run();
    }
}

/// A norm with its statistics fixed.
#[derive(Debug, Clone)]
pub enum Norm<T> {
    /// None.
    Identity,
    /// y = scale·x + shift: BatchNorm.
    Affine {
        /// `[H]`
        scale: Vec<T>,
        /// `[H]`
        shift: Vec<T>,
    },
    /// Each row by its own mean and variance.
    Layer {
        /// γ: `[H]`
        gamma: Vec<T>,
        /// β: `[H]`
        beta: Vec<T>,
        /// ε
        eps: f64,
    },
    /// γ·(x − mean + β)/√var with numbers γ and β.
    LayerScalar {
        /// γ
        gamma: T,
        /// β
        beta: T,
    },
}

impl<T: Real> Norm<T> {
    fn check(&self, h: usize) -> Result<()> {
        let [a, b] = match self {
            Self::Affine { scale, shift } => [scale, shift],
            Self::Layer { gamma, beta, .. } => [gamma, beta],
            _ => return Ok(()),
        };
        check_len("frozen::Norm", "gain", "[H]", h, a.len())?;
        check_len("frozen::Norm", "offset", "[H]", h, b.len())
    }

    /// x: `[R, H]` -> y: `[R, H]`.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn forward(&self, x: &[T], h: usize, y: &mut [T], scratch: &mut Scratch<T>) {
        assert_eq!((x.len() / h * h, x.len()), (x.len(), y.len()), "x and y must be [R, H]");
        self.check(h).expect("a norm of H channels");
        scratch.for_chunks(x.len() / h, &mut [(y, h)], |buffers, range, [y]| {
            self.rows(&x[range.start * h..range.end * h], h, y, buffers);
        });
    }

    fn rows(&self, x: &[T], h: usize, y: &mut [T], buffers: &mut Buffers<T>) {
        match self {
            Self::Identity => y.copy_from_slice(x),
            Self::Affine { scale, shift } => rows::affine(x, scale, shift, y),
            Self::Layer { gamma, beta, eps } => {
                let [mean, rstd] = &mut buffers.stats;
                let count = x.len() / h;
                rows::layer_norm(x, gamma, beta, *eps, y, &mut mean[..count], &mut rstd[..count]);
            }
            Self::LayerScalar { gamma, beta } => rows::layer_scalar_norm(x, h, *gamma, *beta, y),
        }
    }
}

/// x = GELU(x).
pub fn gelu<T: Real>(x: &mut [T]) {
    rows::gelu_in_place(x);
}

/// x = GELU(x) in its approximation ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
///
/// ```
/// let mut x = [-1.0f64, 0.0, 2.0];
/// dss_kernels::frozen::gelu_tanh(&mut x);
/// for (x, y) in x.into_iter().zip([-0.158_808_01, 0.0, 1.954_597_69]) {
///     assert!((x - y).abs() < 1e-8);
/// }
/// ```
pub fn gelu_tanh<T: Real>(x: &mut [T]) {
    rows::gelu_tanh_in_place(x);
}

/// The parts of a [`Rows`].
pub struct RowsParams<'a, T> {
    /// D: `[H]`
    pub d: &'a [T],
    /// `[H, H]`, or `[2H, H]` for a gated unit a·σ(b).
    pub out_weight: &'a [T],
    /// Added before the gate: `[2H]`; empty if there is none.
    pub gate_bias: &'a [T],
    /// `[H]`
    pub skip: &'a [T],
    /// `[H]`
    pub offset: &'a [T],
    /// Of the mixer's input.
    pub before: Norm<T>,
    /// Of the block's output.
    pub after: Norm<T>,
    /// Of the mixer's output.
    pub gelu: Gelu,
}

/// A block without its mixer: see the module's formula.
pub struct Rows<T: Real> {
    d: Vec<T>,
    out: Linear<T>,
    gated: bool,
    skip: Vec<T>,
    offset: Vec<T>,
    before: Norm<T>,
    after: Norm<T>,
    gelu: Gelu,
}

impl<T: Real> Rows<T> {
    /// Checks the sizes and packs the weight.
    pub fn new(params: RowsParams<'_, T>) -> Result<Self> {
        let op = "Rows::new";
        let RowsParams { d, out_weight, gate_bias, skip, offset, before, after, gelu } = params;
        let h = d.len();
        let gated = !gate_bias.is_empty();
        let outputs = if gated { 2 * h } else { h };
        check_len(op, "out_weight", "[O, H]", outputs * h, out_weight.len())?;
        check_len(op, "skip", "[H]", h, skip.len())?;
        check_len(op, "offset", "[H]", h, offset.len())?;
        before.check(h)?;
        after.check(h)?;
        let none = vec![T::ZERO; if gated { 0 } else { h }];
        let out = Linear::new(out_weight, if gated { gate_bias } else { &none })?;
        let (d, skip, offset) = (d.to_vec(), skip.to_vec(), offset.to_vec());
        Ok(Self { d, out, gated, skip, offset, before, after, gelu })
    }

    /// H
    pub fn channels(&self) -> usize {
        self.d.len()
    }

    /// u = before(x): `[R, H]`.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn before(&self, x: &[T], u: &mut [T], scratch: &mut Scratch<T>) {
        self.before.forward(x, self.channels(), u, scratch);
    }

    /// x becomes y, given u and the mixer's v; v is overwritten. All `[R, H]`.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn after(&self, x: &mut [T], u: &[T], v: &mut [T], scratch: &mut Scratch<T>) {
        let h = self.channels();
        assert!(x.len() == u.len() && x.len() == v.len() && x.len().is_multiple_of(h), "[R, H]");
        let (width, out_width) = (wide::<T>(h), wide::<T>(self.out.outputs()));
        scratch.fit(width, out_width);
        scratch.for_chunks(x.len() / h, &mut [(x, h), (v, h)], |buffers, range, [x, v]| {
            let u = &u[range.start * h..range.end * h];
            match self.gelu {
                Gelu::Erf => rows::gelu_with_skip(v, u, &self.d, &mut buffers.g, width),
                Gelu::Tanh => rows::gelu_tanh_with_skip(v, u, &self.d, &mut buffers.g, width),
            }
            self.out.product(&buffers.g, width, range.len(), &mut buffers.z);
            let z = &mut buffers.z[..range.len() * out_width];
            if self.gated {
                rows::gate(z, out_width, &self.out.bias);
            }
            rows::scaled_residual(z, out_width, &self.skip, &self.offset, x, v);
            self.after.rows(v, h, x, buffers);
        });
    }
}

/// Buffers of the passes over rows, for any block.
pub struct Scratch<T: Real> {
    rows: usize,
    sizes: [usize; 2],
    workers: Vec<Buffers<T>>,
}

/// Of one worker: `[rows, width]` with rows of whole cache lines, and `[rows]`.
struct Buffers<T: Real> {
    g: Lines<T>,
    z: Lines<T>,
    stats: [Vec<T>; 2],
}

/// For one row at a time.
impl<T: Real> Default for Scratch<T> {
    fn default() -> Self {
        Self::new(1)
    }
}

impl<T: Real> Scratch<T> {
    /// For calls of up to `rows` rows on the calling thread; of more, too, but then rows go through in portions.
    pub fn new(rows: usize) -> Self {
        Self::with_workers(rows, 1)
    }

    /// The same on every core: for calls of many rows.
    pub fn parallel(rows: usize) -> Self {
        Self::with_workers(rows, par::workers())
    }

    fn with_workers(rows: usize, workers: usize) -> Self {
        let rows = rows.clamp(1, CHUNK);
        let buffers = || Buffers {
            g: Lines::new(0),
            z: Lines::new(0),
            stats: [vec![T::ZERO; rows], vec![T::ZERO; rows]],
        };
        Self { rows, sizes: [0; 2], workers: (0..workers).map(|_| buffers()).collect() }
    }

    /// Makes room for rows of these widths; nothing is allocated the second time.
    fn fit(&mut self, g: usize, z: usize) {
        let Self { rows, sizes, workers } = self;
        let lines = |width: usize| Lines::new(*rows * width / T::LINE);
        if g > sizes[0] {
            workers.iter_mut().for_each(|buffers| buffers.g = lines(g));
            sizes[0] = g;
        }
        if z > sizes[1] {
            workers.iter_mut().for_each(|buffers| buffers.z = lines(z));
            sizes[1] = z;
        }
    }

    /// Calls `body` for portions of `count` rows, with their parts of `outputs`, each with its numbers per row.
    fn for_chunks<const K: usize>(
        &mut self,
        count: usize,
        outputs: &mut [(&mut [T], usize); K],
        body: impl Fn(&mut Buffers<T>, std::ops::Range<usize>, [&mut [T]; K]) + Sync,
    ) {
        let rows = self.rows;
        let outputs = outputs.each_mut().map(|(x, width)| (Disjoint::new(x), *width));
        par::for_each(&mut self.workers, count.div_ceil(rows), |buffers, chunk| {
            let range = chunk * rows..count.min((chunk + 1) * rows);
            let parts = outputs.each_ref().map(|(x, width)| {
                // SAFETY: the portions do not overlap.
                unsafe { x.part(range.start * width, range.len() * width) }
            });
            body(buffers, range, parts);
        });
    }
}
