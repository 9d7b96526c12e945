//! For every mixer there is: padding, the other sequences of a batch and their number change no answer.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_nn::config::{
    BigbirdConfig, CkconvConfig, Form, HTransformer1dConfig, InputKind, LunaConfig, MixerConfig,
    ModelConfig, ModelIo, NrdeConfig, NystromConfig, OutputKind, PerformerConfig, PerformerKernel,
    Pool, Positions, ReformerConfig, ReformerVariant, WaveganDConfig, WaveganVariant,
};
use dss_nn::{Input, Mode, Model, NormKind};

use crate::common::configs::small;
use crate::common::random::Random;
use crate::common::{assert_close, values};

const H: usize = 8;
const LONGEST: usize = 24;
const CHANNELS: usize = 2;

/// Each kind with its defaults, and settings under which they do what they do in long sequences.
fn mixers() -> Vec<MixerConfig> {
    let kinds = MixerConfig::KINDS.iter().map(|kind| MixerConfig::default_for(kind).unwrap());
    let mut all: Vec<_> = kinds.collect();
    let bigbird = BigbirdConfig { heads: 2, block: 2, random_blocks: 2, ..Default::default() };
    // 12 blocks, of which most see 7.
    assert_eq!(bigbird.blocks(LONGEST), Some(12));
    let favor =
        PerformerConfig { kernel: PerformerKernel::Favor, features: 6, ..Default::default() };
    let reformer = ReformerConfig { heads: 2, rounds: 2, chunk: 4, ..Default::default() };
    let lra = ReformerConfig { variant: ReformerVariant::Lra, heads: 2, ..Default::default() };
    let [chunks, lra_chunks] = [reformer, lra].map(|config| config.sizes(LONGEST).chunks);
    assert_eq!((chunks, lra_chunks), (6, 8));
    all.extend([
        bigbird.into(),
        BigbirdConfig { block: 4, random_blocks: 1, ..bigbird }.into(),
        favor.into(),
        PerformerConfig { project: false, ..favor }.into(),
        reformer.into(),
        lra.into(),
        HTransformer1dConfig { heads: 2, block: 2, ..Default::default() }.into(),
        NrdeConfig { path: 2, depth: 3, window: 5, width: 6, ..Default::default() }.into(),
        CkconvConfig { width: 4, omega: 5.0 }.into(),
        NystromConfig { heads: 2, landmarks: 4, conv: 5, padded_len: 0 }.into(),
        NystromConfig { heads: 4, landmarks: 5, conv: 0, padded_len: 40 }.into(),
        LunaConfig { heads: 2, packed: 5 }.into(),
        WaveganDConfig { variant: WaveganVariant::Original, convs: 1, shuffle: 0 }.into(),
    ]);
    all
}

/// The ways in which a mixer can be used in a model of sequences.
fn configs(mixer: &MixerConfig, io: &ModelIo) -> Vec<ModelConfig> {
    let mut all = Vec::new();
    for bidirectional in [false, true] {
        for (form, pool, ff, positions) in [
            (Form::Auto, Pool::Mean, 0, Positions::None),
            (Form::Composed, Pool::Last, 5, Positions::Learned),
            (Form::Auto, Pool::Cls, 0, Positions::None),
        ] {
            let norm = NormKind::Layer;
            let config = ModelConfig {
                bidirectional,
                form,
                pool,
                ff,
                positions,
                norm,
                ..small(H, mixer.clone())
            };
            if config.validate_for(io).is_ok() {
                all.push(config);
            }
        }
    }
    all
}

/// What a model says about the first sequence of a batch: `l` positions, of which each sequence has its length.
fn answer(model: &Model, first: &[f64], l: usize, lengths: &[usize], seed: u64) -> Vec<f64> {
    // What is not the first sequence are other numbers.
    let mut x = Random::new(seed, DType::F64).numbers(lengths.len() * l * CHANNELS);
    x[..first.len()].copy_from_slice(first);
    let x = TensorData::new(x, [lengths.len(), l, CHANNELS]);
    let input = Input::Values(Tensor::from_data(x, (&Device::flex(), DType::F64)));
    let logits = model.forward(input, lengths, &model.prepare(l), Mode::Eval).logits;
    let rows = match model.io().output {
        OutputKind::Position { .. } => lengths[0],
        _ => 1,
    };
    values(&logits.narrow(0, 0, rows))
}

#[test]
fn no_answer_depends_on_its_batch() {
    for mixer in mixers() {
        let mut checked = 0;
        let [sequence, position] =
            [OutputKind::Sequence { outputs: 3 }, OutputKind::Position { outputs: 3 }];
        for output in [sequence, position] {
            let io =
                ModelIo { input: InputKind::Values { channels: CHANNELS }, output, len: LONGEST };
            for config in configs(&mixer, &io) {
                let model =
                    Model::new(&config, &io, 5, &Device::flex()).unwrap().cast(FloatDType::F64);
                for length in [1, 13] {
                    let first = Random::new(length as u64, DType::F64).numbers(length * CHANNELS);
                    let alone = answer(&model, &first, length, &[length], 1);
                    for (l, lengths) in
                        [(LONGEST, vec![length, LONGEST, 1]), (length + 3, vec![length])]
                    {
                        let found = answer(&model, &first, l, &lengths, 2);
                        let what = format!("{config:?} {output:?} {l} {lengths:?}");
                        assert_close(&what, &found, &alone, 1e-11);
                    }
                }
                checked += 1;
            }
        }
        assert!(checked > 0, "no model of h = {H} has {mixer:?}");
    }
}
