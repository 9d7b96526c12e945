//! The tensors of a model: names, shapes, and which learning rate they have.
//!
//! | name | shape |
//! |------|-------|
//! | `encoder.weight` | `[V, H]` of tokens, `[H, channels]` of numbers (then also `encoder.bias` `[H]`) |
//! | `cls` | `[H]`, with cls pooling |
//! | `positions` | `[L, H]`, learned positions (`[L + 1, H]` with cls pooling) |
//! | `layers.{i}.mixer.*` | what the file of that mixer in [`crate::mixer`] declares |
//! | `layers.{i}.norm.gamma`, `.beta` | `[H]` each (`[1]` for layer-scalar) |
//! | `layers.{i}.norm.running_mean`, `.running_var` | `[H]` each, BatchNorm only |
//! | `layers.{i}.ff.hidden.*`, `layers.{i}.ff.out.*` | `[F, H]`, `[H, F]` with their biases: the feed-forward part |
//! | `layers.{i}.ff_norm.*` | its norm, as `norm` |
//! | `norm.*` | the last norm of a pre-norm stack, unless `last_norm` is false |
//! | `head.weight`, `.bias` | `[O, H]`, `[O]`; of pairs `head.hidden.*` `[F, 4H]` and `head.out.*` `[O, F]`, F = `head_hidden` or H; else with `head_hidden` = F `head.hidden.*` `[F, H]` and `head.out.*` `[O, F]` |
//!
//! Weight matrices are `[out, in]` as in PyTorch.

use crate::config::{ModelConfig, NormKind, Pool, Positions};
use crate::io::{InputKind, Io, OutputKind};
use crate::mixer::MixerContext;

/// Parameters that share a learning rate (§4: those of the state space have their own, and no weight decay).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParamGroup {
    /// Λ; P and B of S4.
    Lambda,
    /// Δ_log.
    Delta,
    /// W; C of S4 and S4D.
    W,
    /// Everything else.
    Other,
}

/// One tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// Its shape; sizes beyond any memory are clamped.
    pub shape: Vec<usize>,
    /// Which learning rate it has.
    pub group: ParamGroup,
    /// false for the running statistics of BatchNorm.
    pub trained: bool,
}

impl TensorSpec {
    /// A trained tensor.
    pub fn new(name: &str, shape: &[usize], group: ParamGroup) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), group, trained: true }
    }

    fn within(mut self, module: &str) -> Self {
        self.name = format!("{module}.{}", self.name);
        self
    }

    /// How many numbers it has; `None` if more than can be counted.
    pub fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b))
    }

    /// Whether half precision does no harm: large weights, but not Λ and Δ, whose errors a long memory multiplies.
    pub(crate) fn suits_half_precision(&self) -> bool {
        let large = self.shape.len() > 1 && self.elements().is_some_and(|count| count >= 256);
        large && matches!(self.group, ParamGroup::W | ParamGroup::Other)
    }
}

/// `name.weight` and `name.bias` of a linear map.
pub fn linear(name: &str, inputs: usize, outputs: usize) -> [TensorSpec; 2] {
    [
        TensorSpec::new(&format!("{name}.weight"), &[outputs, inputs], ParamGroup::Other),
        TensorSpec::new(&format!("{name}.bias"), &[outputs], ParamGroup::Other),
    ]
}

impl ModelConfig {
    /// All tensors of such a model, sorted by name.
    pub fn tensors(&self, io: &Io) -> Vec<TensorSpec> {
        let mut all = self.tensors_outside_blocks(io);
        let block = self.block_tensors(io);
        for i in 0..self.layers {
            all.extend(block.iter().cloned().map(|tensor| tensor.within(&format!("layers.{i}"))));
        }
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// How many numbers such a model has, running statistics included; `None` if more than can be counted.
    pub fn tensor_elements(&self, io: &Io) -> Option<usize> {
        let sum = |tensors: Vec<TensorSpec>| {
            tensors.iter().try_fold(0usize, |sum, tensor| sum.checked_add(tensor.elements()?))
        };
        let blocks = sum(self.block_tensors(io))?.checked_mul(self.layers)?;
        sum(self.tensors_outside_blocks(io))?.checked_add(blocks)
    }

    /// The tensors of one block, with names relative to it.
    fn block_tensors(&self, io: &Io) -> Vec<TensorSpec> {
        let mixer = self.mixer.settings().tensors(&MixerContext::new(self, io.len));
        let mut all: Vec<_> = mixer.into_iter().map(|tensor| tensor.within("mixer")).collect();
        all.extend(self.norm_tensors("norm"));
        if self.ff > 0 {
            all.extend(self.norm_tensors("ff_norm"));
            all.extend(linear("ff.hidden", self.h, self.ff));
            all.extend(linear("ff.out", self.ff, self.h));
        }
        all
    }

    fn norm_tensors(&self, name: &str) -> Vec<TensorSpec> {
        let size = if self.norm == NormKind::LayerScalar { 1 } else { self.h };
        let tensor =
            |part: &str| TensorSpec::new(&format!("{name}.{part}"), &[size], ParamGroup::Other);
        let statistic = |part: &str| TensorSpec { trained: false, ..tensor(part) };
        let mut all = vec![tensor("gamma"), tensor("beta")];
        if self.norm == NormKind::Batch {
            all.extend([statistic("running_mean"), statistic("running_var")]);
        }
        all
    }

    fn tensors_outside_blocks(&self, io: &Io) -> Vec<TensorSpec> {
        let h = self.h;
        let other = |name: &str, shape: &[usize]| TensorSpec::new(name, shape, ParamGroup::Other);
        let mut all = match io.input {
            InputKind::Tokens { vocab } => vec![other("encoder.weight", &[vocab, h])],
            InputKind::Values { channels } => linear("encoder", channels, h).into(),
        };
        if self.pool == Pool::Cls {
            all.push(other("cls", &[h]));
        }
        if self.positions == Positions::Learned {
            all.push(other("positions", &[self.positions_for(io.len), h]));
        }
        if self.has_last_norm() {
            all.extend(self.norm_tensors("norm"));
        }
        match io.output {
            OutputKind::Pair { outputs } => {
                all.extend(linear("head.hidden", h.saturating_mul(4), self.pair_width()));
                all.extend(linear("head.out", self.pair_width(), outputs));
            }
            OutputKind::Sequence { outputs } | OutputKind::Position { outputs } => {
                if self.head_hidden == 0 {
                    all.extend(linear("head", h, outputs));
                } else {
                    all.extend(linear("head.hidden", h, self.head_hidden));
                    all.extend(linear("head.out", self.head_hidden, outputs));
                }
            }
        }
        all
    }
}
