//! Causality by experiment: one position of the input is changed, and no earlier output may follow.

use burn::tensor::{Device, Int, Tensor, TensorData};
use dss_nn::{Input, InputKind, Mode, Model, PreparedModel};
use dss_train::bridge;
use serde::Serialize;

/// A change before the changed position that is larger than this share of the largest change counts.
const TOLERANCE: f64 = 1e-9;

/// What the experiment showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Causality {
    /// No earlier output changed, beyond rounding.
    Causal {
        /// The positions that were changed, one at a time.
        positions: Vec<usize>,
        /// The largest change of an earlier output, as a share of the largest change.
        leak: f64,
    },
    /// Earlier outputs changed.
    LooksAhead {
        /// The positions that were changed, one at a time.
        positions: Vec<usize>,
        /// The largest change of an earlier output, as a share of the largest change.
        leak: f64,
        /// Whether the model was made to do so: it is bidirectional.
        by_design: bool,
    },
    /// There was nothing to see.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Causality {
    /// Changes the input at a quarter, half and the end of sequences of length l, and looks at the activations before
    /// the head.
    ///
    /// The model must be in f64 for the tolerance to be met; sequences of length l must be possible.
    pub fn measure(model: &Model, l: usize) -> Self {
        let mut positions = vec![l / 4, l / 2, l - 1];
        positions.retain(|&at| at > 0);
        positions.dedup();
        if positions.is_empty() {
            return Self::Unknown { why: "a sequence has only one position".into() };
        }
        if matches!(model.io().input, InputKind::Tokens { vocab: 1 }) {
            return Self::Unknown { why: "there is only one token".into() };
        }
        if !model.stages.is_empty() {
            let why =
                "its stages shorten the sequence, so that positions have no outputs of their own";
            return Self::Unknown { why: why.into() };
        }
        let prepared = model.prepare(l);
        let before = activations(model, &prepared, l, None);
        let h = before.len() / l;
        let (mut early, mut all) = (0f64, 0f64);
        for &at in &positions {
            let after = activations(model, &prepared, l, Some(at));
            for (i, (a, b)) in before.iter().zip(&after).enumerate() {
                let change = (a - b).abs();
                if !change.is_finite() {
                    return Self::Unknown { why: "the activations are not finite".into() };
                }
                all = all.max(change);
                if i < at * h {
                    early = early.max(change);
                }
            }
        }
        if all == 0.0 {
            return Self::Unknown { why: "no output depends on the input".into() };
        }
        let leak = early / all;
        let by_design = model.config().bidirectional;
        if leak <= TOLERANCE {
            Self::Causal { positions, leak }
        } else {
            Self::LooksAhead { positions, leak, by_design }
        }
    }
}

/// The activations `[L, H]` of one artificial sequence, with one position changed or none.
fn activations(
    model: &Model,
    prepared: &PreparedModel,
    l: usize,
    changed: Option<usize>,
) -> Vec<f64> {
    let input = artificial_input(model.io().input, l, changed, &model.device());
    let (hidden, _) = model.hidden(input, &[l], prepared, Mode::Eval);
    bridge::host(&hidden)
}

/// A made-up sequence of length l, with one position changed or none.
pub(super) fn artificial_input(
    kind: InputKind,
    l: usize,
    changed: Option<usize>,
    device: &Device,
) -> Input {
    match kind {
        InputKind::Tokens { vocab } => {
            let token = |i: usize| {
                let moved = u64::from(Some(i) == changed);
                ((noise(i as u64) % vocab as u64 + moved) % vocab as u64) as i64
            };
            let data = TensorData::new((0..l).map(token).collect(), [1, l]);
            Input::Tokens(Tensor::<2, Int>::from_data(data, device))
        }
        InputKind::Values { channels } => {
            let value = |i: usize| {
                let moved = if Some(i / channels) == changed { 1.0 } else { 0.0 };
                (noise(i as u64) % 2001) as f64 / 1000.0 - 1.0 + moved
            };
            let data = TensorData::new((0..l * channels).map(value).collect(), [1, l, channels]);
            Input::Values(Tensor::<3>::from_data(data, (device, burn::tensor::DType::F64)))
        }
    }
}

/// SplitMix64: the same each time.
fn noise(i: u64) -> u64 {
    let mut x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::FloatDType;
    use dss_nn::{ModelConfig, ModelIo, OutputKind};

    fn model(change: impl FnOnce(&mut ModelConfig), input: InputKind, len: usize) -> Model {
        let mixer = dss_nn::config::DssConfig { n: 4, ..Default::default() }.into();
        let mut config = ModelConfig { layers: 2, h: 4, mixer, ..ModelConfig::default() };
        change(&mut config);
        let io = ModelIo { input, output: OutputKind::Sequence { outputs: 2 }, len };
        Model::new(&config, &io, 3, &Device::flex()).unwrap().cast(FloatDType::F64)
    }

    const TOKENS: InputKind = InputKind::Tokens { vocab: 7 };
    const VALUES: InputKind = InputKind::Values { channels: 3 };

    #[test]
    fn one_direction_is_causal_and_two_are_not() {
        for input in [TOKENS, VALUES] {
            for norm in [dss_nn::NormKind::Batch, dss_nn::NormKind::Layer] {
                let found = Causality::measure(&model(|c| c.norm = norm, input, 50), 50);
                let Causality::Causal { positions, leak } = &found else { panic!("{found:?}") };
                assert_eq!((positions.as_slice(), *leak < 1e-12), (&[12, 25, 49][..], true));
            }
            let found = Causality::measure(&model(|c| c.bidirectional = true, input, 50), 50);
            assert!(
                matches!(found, Causality::LooksAhead { by_design: true, leak, .. } if leak > 1e-3)
            );
        }
    }

    #[test]
    fn nothing_to_see_is_said() {
        let one = Causality::measure(&model(|_| (), VALUES, 1), 1);
        assert!(matches!(one, Causality::Unknown { .. }));
        let same = Causality::measure(&model(|_| (), InputKind::Tokens { vocab: 1 }, 9), 9);
        assert!(matches!(same, Causality::Unknown { .. }));
    }
}
