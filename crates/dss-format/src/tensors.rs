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
//! | `side.start` | `[l, H]`: the second stream of mixers that have one, before the first layer |
//! | `side.norm.*`, `side.input_norm.*` | `[H]` each: LayerNorms of the second stream and of the sequence there |
//! | `stages.{i}.*` | in place of layers, what the file of a stack of its own declares |
//! | `norm.*` | the last norm of a pre-norm stack, unless `last_norm` is false |
//! | `head.weight`, `.bias` | `[O, H]`, `[O]` (`[O, F]` of stages that leave F numbers); of pairs `head.hidden.*` `[F, 4H]` and `head.out.*` `[O, F]`, F = `head_hidden` or H; else with `head_hidden` = F `head.hidden.*` `[F, H]` and `head.out.*` `[O, F]` |
//!
//! Weight matrices are `[out, in]` as in PyTorch.

use crate::config::{ModelConfig, NormKind, Pool, Positions};
use crate::error::{Error, Result};
use crate::io::{InputKind, ModelIo, OutputKind};
use crate::mixer::{MixerContext, Stages};

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

/// Which numbers a tensor may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRange {
    /// Any that are finite.
    Finite,
    /// Finite ones of at least 0: variances.
    NotNegative,
    /// Whole ones from 0 and below this.
    Below(usize),
}

impl NumberRange {
    fn has(self, x: f64) -> bool {
        match self {
            Self::Finite => x.is_finite(),
            Self::NotNegative => x.is_finite() && x >= 0.0,
            Self::Below(count) => x.fract() == 0.0 && (0.0..count as f64).contains(&x),
        }
    }
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
    /// false for the running statistics of BatchNorm, and for what a mixer draws once.
    pub trained: bool,
    /// Its numbers.
    pub range: NumberRange,
}

impl TensorSpec {
    /// A trained tensor.
    pub fn new(name: &str, shape: &[usize], group: ParamGroup) -> Self {
        let range = NumberRange::Finite;
        Self { name: name.to_owned(), shape: shape.to_vec(), group, trained: true, range }
    }

    /// A trained tensor without a learning rate of its own.
    pub(crate) fn other(name: &str, shape: &[usize]) -> Self {
        Self::new(name, shape, ParamGroup::Other)
    }

    /// A tensor that no training changes.
    pub(crate) fn fixed(name: &str, shape: &[usize]) -> Self {
        Self { trained: false, ..Self::other(name, shape) }
    }

    /// A tensor that no training changes, with numbers of this range.
    pub(crate) fn fixed_in(range: NumberRange, name: &str, shape: &[usize]) -> Self {
        Self { range, ..Self::fixed(name, shape) }
    }

    /// An array with this shape and these numbers can be this tensor.
    ///
    /// # Errors
    /// [`Error::File`]
    pub fn check(&self, shape: &[usize], numbers: impl IntoIterator<Item = f64>) -> Result<()> {
        let Self { name, range, .. } = self;
        if shape != self.shape {
            return Err(Error::file(format!("{name} must be {:?}, but is {shape:?}", self.shape)));
        }
        let mut numbers = numbers.into_iter().enumerate();
        let Some((at, x)) = numbers.find(|(_, x)| !range.has(*x)) else { return Ok(()) };
        let expected = match range {
            NumberRange::Below(count) => format!(", but must have whole ones below {count}"),
            NumberRange::Finite | NumberRange::NotNegative => String::new(),
        };
        Err(Error::file(format!("{name} has the number {x} at index {at}{expected}")))
    }

    /// There is no array that could be this tensor.
    pub fn missing(&self) -> Error {
        Error::file(format!("the tensor {} {:?} is missing", self.name, self.shape))
    }

    fn within(mut self, module: &str) -> Self {
        self.name = format!("{module}.{}", self.name);
        self
    }

    /// How many numbers it has; `None` if more than can be counted.
    pub fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b))
    }

    /// Whether half precision does no harm: large weights, but not Λ and Δ, whose errors a long memory multiplies, and
    /// not what was drawn once: numbers of blocks, or what hashes.
    pub(crate) fn suits_half_precision(&self) -> bool {
        let large = self.shape.len() > 1 && self.elements().is_some_and(|count| count >= 256);
        large && self.trained && matches!(self.group, ParamGroup::W | ParamGroup::Other)
    }
}

/// `name.weight` and `name.bias` of a linear map.
pub fn linear(name: &str, inputs: usize, outputs: usize) -> [TensorSpec; 2] {
    [
        TensorSpec::other(&format!("{name}.weight"), &[outputs, inputs]),
        TensorSpec::other(&format!("{name}.bias"), &[outputs]),
    ]
}

impl ModelConfig {
    /// All tensors of such a model, sorted by name.
    pub fn tensors(&self, io: &ModelIo) -> Vec<TensorSpec> {
        let stages = self.stages(io);
        let mut all = self.tensors_outside_blocks(io, stages.as_ref());
        match stages {
            Some(stages) => all.extend(stages.tensors),
            None => {
                let block = self.block_tensors(io);
                for i in 0..self.layers {
                    let block = block.iter().cloned();
                    all.extend(block.map(|tensor| tensor.within(&format!("layers.{i}"))));
                }
            }
        }
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// How many numbers such a model has, running statistics included; `None` if more than can be counted.
    pub fn tensor_elements(&self, io: &ModelIo) -> Option<usize> {
        let sum = |tensors: Vec<TensorSpec>| {
            tensors.iter().try_fold(0usize, |sum, tensor| sum.checked_add(tensor.elements()?))
        };
        let stages = self.stages(io);
        let outside = sum(self.tensors_outside_blocks(io, stages.as_ref()))?;
        let inside = match stages {
            Some(stages) => sum(stages.tensors)?,
            None => sum(self.block_tensors(io))?.checked_mul(self.layers)?,
        };
        outside.checked_add(inside)
    }

    /// What this model has in place of blocks, if it is a stack of its own.
    pub fn stages(&self, io: &ModelIo) -> Option<Stages> {
        self.mixer.settings().stages(self, io)
    }

    /// The tensors of one block, with names relative to it.
    fn block_tensors(&self, io: &ModelIo) -> Vec<TensorSpec> {
        let mixer = self.mixer.settings().tensors(&MixerContext::new(self, io.len));
        let mut all: Vec<_> = mixer.into_iter().map(|tensor| tensor.within("mixer")).collect();
        all.extend(self.norm_tensors("norm", self.h));
        if self.ff > 0 {
            all.extend(self.norm_tensors("ff_norm", self.h));
            all.extend(linear("ff.hidden", self.h, self.ff));
            all.extend(linear("ff.out", self.ff, self.h));
        }
        all
    }

    /// Those of a norm of h channels.
    pub(crate) fn norm_tensors(&self, name: &str, h: usize) -> Vec<TensorSpec> {
        let size = if self.norm == NormKind::LayerScalar { 1 } else { h };
        let part = |part: &str| format!("{name}.{part}");
        let mut all = ["gamma", "beta"].map(|x| TensorSpec::other(&part(x), &[size])).to_vec();
        if self.norm == NormKind::Batch {
            let ranges = [NumberRange::Finite, NumberRange::NotNegative];
            let statistics = ranges.into_iter().zip(["running_mean", "running_var"]);
            all.extend(statistics.map(|(range, x)| TensorSpec::fixed_in(range, &part(x), &[size])));
        }
        all
    }

    fn tensors_outside_blocks(&self, io: &ModelIo, stages: Option<&Stages>) -> Vec<TensorSpec> {
        let h = self.h;
        let features = stages.map_or(h, |stages| stages.features);
        let mut all = match io.input {
            InputKind::Tokens { vocab } => vec![TensorSpec::other("encoder.weight", &[vocab, h])],
            InputKind::Values { .. } if stages.is_some_and(|stages| !stages.encoded) => Vec::new(),
            InputKind::Values { channels } => linear("encoder", channels, h).into(),
        };
        if let Some(l) = self.mixer.settings().side_stream() {
            all.push(TensorSpec::other("side.start", &[l, h]));
            for norm in ["norm", "input_norm"] {
                let part = |part: &str| TensorSpec::other(&format!("side.{norm}.{part}"), &[h]);
                all.extend(["gamma", "beta"].map(part));
            }
        }
        if self.pool == Pool::Cls {
            all.push(TensorSpec::other("cls", &[h]));
        }
        if self.positions == Positions::Learned {
            all.push(TensorSpec::other("positions", &[self.positions_for(io.len), h]));
        }
        if self.has_last_norm() {
            all.extend(self.norm_tensors("norm", h));
        }
        match io.output {
            OutputKind::Pair { outputs } => {
                all.extend(linear("head.hidden", features.saturating_mul(4), self.pair_width()));
                all.extend(linear("head.out", self.pair_width(), outputs));
            }
            OutputKind::Sequence { outputs } | OutputKind::Position { outputs } => {
                if self.head_hidden == 0 {
                    all.extend(linear("head", features, outputs));
                } else {
                    all.extend(linear("head.hidden", h, self.head_hidden));
                    all.extend(linear("head.out", self.head_hidden, outputs));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_once_keeps_its_precision() {
        assert!(TensorSpec::other("q.weight", &[32, 32]).suits_half_precision());
        assert!(!TensorSpec::fixed("blocks", &[4, 32, 3]).suits_half_precision());
    }
}
