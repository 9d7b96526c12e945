//! Attention with weights φ(q)·φ(k) over [B, L, Q] and its backward, in time and memory linear in L.
//!
//! The Q = heads·d channels are cut into heads, each a contiguous slice of d channels. For one head of one sequence,
//! with m features φ(x) ∈ ℝᵐ (Katharopoulos et al. 2020, Eq. 5; Choromanski et al. 2021, Eq. 4)
//!
//! $$ y_i = \frac{S^\top φ(q_i)}{z \cdot φ(q_i) + ε}, \qquad S = \sum_j φ(k_j) v_j^\top, \qquad z = \sum_j φ(k_j) $$
//!
//! ```text
//! y_i = Sᵀφ(q_i)/D_i,   D_i = z·φ(q_i) + ε,   S = Σ_j φ(k_j)·v_jᵀ: [m, d],   z = Σ_j φ(k_j): [m]
//! ```
//!
//! over the keys j that the query i sees: j < ℓ, the sequence's length, and j ≤ i if the attention is causal. Rows at
//! and beyond ℓ are 0. z is S's column of values that are all 1, and is made with it.
//!
//! # Feature maps
//!
//! See [`FeatureMap`]. Those of FAVOR+ have exponents w_r·x̂ − |x̂|²/2 − c, x̂ = x/d^¼, with a constant c that keeps them
//! at or below 0 and cancels in y but for ε. For a query it is the maximum of w·x̂ over the features; for keys that over
//! all true keys and features of the head. If the attention is causal that would look ahead, and c = max_r |w_r|²/2,
//! which no exponent exceeds.
//!
//! # Causal attention
//!
//! Positions come in chunks of 64. Within a chunk the weights φ(q_i)·φ(k_j), j ≤ i, are made; S of all chunks before is
//! carried along. So S exists once, not once per position. The backward carries S forwards for dq, and its gradient
//! backwards for dk and dv:
//!
//! ```text
//! g_i = [dy_i, −dy_i·y_i]/D_i,   dφ(q_i) = [S, z]·g_i,   d[S, z] = Σ_i φ(q_i)·g_iᵀ
//! dφ(k_j) = d[S, z]·[v_j, 1],   dv_j = dSᵀφ(k_j)
//! ```
//!
//! # Memory
//!
//! Besides the arguments, a worker has O(64·(m + d) + m·d) elements. Features are recomputed in the backward pass.

mod backward;
mod forward;
mod head;
mod map;
mod reference;
mod state;

use crate::attention::{AttentionGrads, check_lengths};
use crate::error::{Error, Result, check_len, check_memory};
use crate::par::{self, Disjoint};
use crate::real::Real;
use head::Head;
use map::Map;

pub use reference::kernelised_reference;
pub use state::KernelisedState;

/// φ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FeatureMap {
    /// max(x, 0) + e^min(x, 0), element by element: linear attention.
    EluPlusOne,
    /// max(x, 0) + ε, element by element: Performer with relu.
    Relu {
        /// ε.
        eps: f64,
    },
    /// φ_r(x) = (e^{w_r·x̂ − |x̂|²/2 − c} + ε)/√m, x̂ = x/d^¼: the random features of the softmax, FAVOR+ (see the
    /// [module](self)).
    Favor {
        /// m.
        features: usize,
        /// ε.
        eps: f64,
    },
}

/// Sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelisedConfig {
    /// Sequences B.
    pub batch: usize,
    /// Positions L.
    pub len: usize,
    /// Heads.
    pub heads: usize,
    /// Channels d of a head.
    pub head_dim: usize,
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
    /// φ.
    pub map: FeatureMap,
    /// What is added to the sum of a row's weights before it divides.
    pub eps: f64,
}

impl KernelisedConfig {
    /// Q = heads·d.
    pub fn channels(&self) -> usize {
        self.heads * self.head_dim
    }

    /// m: features of a head.
    pub fn features(&self) -> usize {
        match self.map {
            FeatureMap::EluPlusOne | FeatureMap::Relu { .. } => self.head_dim,
            FeatureMap::Favor { features, .. } => features,
        }
    }

    /// Elements of the saved denominators: `[B, heads, L]`.
    pub fn saved_len(&self) -> usize {
        self.batch * self.heads * self.len
    }

    /// Elements of w: those of `[m, d]` for FAVOR+, else none.
    fn directions_len(&self) -> usize {
        match self.map {
            FeatureMap::Favor { features, .. } => features * self.head_dim,
            _ => 0,
        }
    }

    fn check(&self, op: &'static str) -> Result<()> {
        let Self { batch, len, heads, head_dim, .. } = *self;
        let sizes = [batch, len, heads, head_dim, self.features()];
        if sizes.contains(&0) {
            let what = format!("B, L, heads, d and m must be at least 1, but are {sizes:?}");
            return Err(Error::Invalid { op, what });
        }
        let names = format_args!("B, L, heads, d and m = {sizes:?}");
        let number = size_of::<f64>();
        check_memory(op, [number, batch, len, heads, head_dim], names)?;
        // S and its padding, with room to spare.
        check_memory(op, [number, 64, self.features(), head_dim, heads], names)
    }
}

/// What attends, to what.
#[derive(Debug, Clone, Copy)]
pub struct KernelisedInput<'a, T> {
    /// Queries `[B, L, Q]`.
    pub q: &'a [T],
    /// Keys `[B, L, Q]`.
    pub k: &'a [T],
    /// Values `[B, L, Q]`.
    pub v: &'a [T],
    /// w `[m, d]`, the directions of [`FeatureMap::Favor`]; empty for the other maps.
    pub w: &'a [T],
    /// True positions ℓ of every sequence, `[B]`, at most L; L where absent.
    pub lengths: Option<&'a [usize]>,
}

/// Plan and buffers of kernelised attention (see the [module](self)).
///
/// Results are equal bit for bit whatever the number of threads.
///
/// ```
/// use dss_kernels::kernelised::{FeatureMap, Kernelised, KernelisedConfig, KernelisedInput};
/// let config = KernelisedConfig {
///     batch: 1, len: 2, heads: 1, head_dim: 1, causal: true, map: FeatureMap::EluPlusOne, eps: 0.0,
/// };
/// let mut attention = Kernelised::<f64>::new(config)?;
/// let input = KernelisedInput { q: &[1.0, 1.0], k: &[0.0, 2.0], v: &[8.0, 4.0], w: &[], lengths: None };
/// let (mut y, mut saved) = ([0.0; 2], vec![0.0; config.saved_len()]);
/// attention.forward(&input, &mut y, &mut saved)?;
/// // The first sees itself alone, the second both, with weights 1/4 and 3/4.
/// assert!((y[0] - 8.0).abs() < 1e-12 && (y[1] - 5.0).abs() < 1e-12);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Kernelised<T: Real> {
    config: KernelisedConfig,
    forward: Vec<forward::Scratch<T>>,
    backward: Vec<backward::Scratch<T>>,
}

impl<T: Real> Kernelised<T> {
    /// A plan; its buffers are made by the first calls.
    pub fn new(config: KernelisedConfig) -> Result<Self> {
        config.check("Kernelised::new")?;
        Ok(Self { config, forward: Vec::new(), backward: Vec::new() })
    }

    /// The sizes of this plan.
    pub fn config(&self) -> &KernelisedConfig {
        &self.config
    }

    /// y of the [module](self), head by head.
    ///
    /// # Shapes
    /// y: `[B, L, Q]`; saved: `[B, heads, L]`, the denominators D for the backward.
    pub fn forward(
        &mut self,
        input: &KernelisedInput<'_, T>,
        y: &mut [T],
        saved: &mut [T],
    ) -> Result<()> {
        let op = "Kernelised::forward";
        self.check_input(op, input)?;
        self.check_activation(op, "y", y)?;
        check_len(op, "saved", "[B, heads, L]", self.config.saved_len(), saved.len())?;
        let Self { config, forward: scratches, .. } = self;
        let pieces = config.batch * config.heads;
        par::fill(scratches, pieces, || forward::Scratch::new(config));
        let map = Map::new(config, input.w);
        let out = forward::Output { y: &Disjoint::new(y), saved: &Disjoint::new(saved) };
        par::for_each(scratches, pieces, |scratch, piece| {
            let head = Head::new(config, input.lengths, piece);
            forward::attend(config, &head, &map, input, scratch, &out);
        });
        Ok(())
    }

    /// Given dy = ∂loss/∂y, writes the gradients of q, k and v for the input, y and saved denominators of a forward call.
    ///
    /// # Shapes
    /// y, dy: `[B, L, Q]`; saved: `[B, heads, L]`. dy counts as 0 at and beyond the lengths.
    pub fn backward(
        &mut self,
        input: &KernelisedInput<'_, T>,
        y: &[T],
        saved: &[T],
        dy: &[T],
        grads: AttentionGrads<'_, T>,
    ) -> Result<()> {
        let op = "Kernelised::backward";
        self.check_input(op, input)?;
        check_len(op, "saved", "[B, heads, L]", self.config.saved_len(), saved.len())?;
        let activations = [("y", y), ("dy", dy), ("dq", grads.q), ("dk", grads.k), ("dv", grads.v)];
        for (name, x) in activations {
            self.check_activation(op, name, x)?;
        }
        let Self { config, backward: scratches, .. } = self;
        let pieces = config.batch * config.heads;
        par::fill(scratches, pieces, || backward::Scratch::new(config));
        let map = Map::new(config, input.w);
        let given = backward::BackwardInput { input, y, saved, dy };
        let AttentionGrads { q, k, v } = grads;
        let out = [q, k, v].map(|grad| Disjoint::new(grad));
        par::for_each(scratches, pieces, |scratch, piece| {
            let head = Head::new(config, input.lengths, piece);
            backward::attend(config, &head, &map, &given, scratch, &out);
        });
        Ok(())
    }

    fn check_input(&self, op: &'static str, input: &KernelisedInput<'_, T>) -> Result<()> {
        for (name, x) in [("q", input.q), ("k", input.k), ("v", input.v)] {
            self.check_activation(op, name, x)?;
        }
        check_len(
            op,
            "w",
            "[m, d] of FAVOR+, or none",
            self.config.directions_len(),
            input.w.len(),
        )?;
        check_lengths(op, input.lengths, [self.config.batch, self.config.len])
    }

    fn check_activation(&self, op: &'static str, name: &'static str, x: &[T]) -> Result<()> {
        let KernelisedConfig { batch, len, .. } = self.config;
        check_len(op, name, "[B, L, Q]", batch * len * self.config.channels(), x.len())
    }
}
