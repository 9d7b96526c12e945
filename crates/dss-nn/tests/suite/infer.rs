//! `dss-infer`, which shares no code with the modules here but the kernels and the format, says what they say: for every kind of model,
//! by convolution, step by step, in blocks, and for many streams at once.

use std::io::Write;

use crate::common::configs::recurrent_mixers;
use crate::common::random::Random;
use crate::common::saved::saved;
use crate::common::values;
use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use dss_infer as infer;
use dss_nn::checkpoint;
use dss_nn::config::{
    Delta, Discretisation, DssConfig, FnetConfig, Gelu, InputKind, LambdaInit,
    LinearAttentionConfig, LipschitzRnnConfig, MixerConfig, ModelConfig, ModelIo, NormKind,
    OdeRnnConfig, OutputKind, PerformerConfig, PerformerKernel, Pool, Positions, S4Config,
    S4dConfig, S5Config, Variant,
};
use dss_nn::{Input, Mode, Model};

const L: usize = 40;
const VOCAB: usize = 7;
const CHANNELS: usize = 3;

/// A model whose norms have seen something, and its bytes.
fn model(config: &ModelConfig, io: &ModelIo, seed: u64) -> (Model, Vec<u8>) {
    let mut random = Random::new(seed, DType::F32);
    let model = Model::new(config, io, seed, &Device::flex()).unwrap();
    let tensors = model.named_tensors().into_iter().map(|(name, data)| {
        let count = data.num_elements();
        let norm = ["gamma", "beta", "running_mean", "running_var"];
        if !norm.iter().any(|part| name.ends_with(part)) {
            return (name, data);
        }
        let positive = name.ends_with("running_var") || name.ends_with("gamma");
        let numbers = random.numbers(count).into_iter();
        let numbers = numbers.map(|x| if positive { 0.5 + 0.2 * x * x } else { 0.3 * x });
        let shape = data.shape().clone();
        (name, TensorData::new(numbers.collect::<Vec<_>>(), shape))
    });
    let model = model.clone().load_named(tensors.collect()).unwrap();
    let bytes = saved(&model, |path| std::fs::read(path).unwrap());
    (model, bytes)
}

/// One sequence in the forms of both crates.
enum Sequence {
    Tokens(Vec<u32>),
    Values(Vec<f32>),
}

impl Sequence {
    fn new(io: &ModelIo, seed: u64) -> Self {
        let mut random = Random::new(seed, DType::F32);
        match io.input {
            InputKind::Tokens { vocab } => {
                Self::Tokens((0..L).map(|_| random.below(vocab) as u32).collect())
            }
            InputKind::Values { channels } => {
                Self::Values(random.numbers(L * channels).iter().map(|&x| x as f32).collect())
            }
        }
    }

    /// The positions from `start` on.
    fn part(&self, start: usize, count: usize) -> infer::Input<'_> {
        match self {
            Self::Tokens(x) => infer::Input::Tokens(&x[start..start + count]),
            Self::Values(x) => {
                let width = x.len() / L;
                infer::Input::Values(&x[start * width..(start + count) * width])
            }
        }
    }

    fn tensor(all: &[&Self], count: usize) -> Input {
        let (device, batch) = (Device::flex(), all.len());
        match all[0].part(0, count) {
            infer::Input::Tokens(_) => {
                let ids = all.iter().flat_map(|s| match s.part(0, count) {
                    infer::Input::Tokens(x) => x.iter().map(|&x| i64::from(x)).collect::<Vec<_>>(),
                    _ => unreachable!(),
                });
                let data = TensorData::new(ids.collect::<Vec<_>>(), [batch, count]);
                Input::Tokens(Tensor::<2, Int>::from_data(data, &device))
            }
            infer::Input::Values(x) => {
                let width = x.len() / count;
                let numbers = all.iter().flat_map(|s| match s.part(0, count) {
                    infer::Input::Values(x) => x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
                    _ => unreachable!(),
                });
                let data = TensorData::new(numbers.collect::<Vec<_>>(), [batch, count, width]);
                Input::Values(Tensor::from_data(data, (&device, DType::F64)))
            }
        }
    }
}

/// The Burn model's answer in f64.
fn answer(model: &Model, sequences: &[&Sequence], count: usize) -> Vec<f64> {
    let prepared = model.prepare(count);
    let lengths = vec![count; sequences.len()];
    let input = Sequence::tensor(sequences, count);
    values(&model.forward(input, &lengths, &prepared, Mode::Eval).logits)
}

fn assert_near(what: &str, got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1e-3f64, |a, x| a.max(x.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs() / scale;
        assert!(error <= tolerance, "{what}: [{i}] is {got}, not {want} ({error:e})");
    }
}

fn check(config: &ModelConfig, io: &ModelIo, seed: u64) {
    let what = format!("{config:?} {io:?}");
    let (burn, bytes) = model(config, io, seed);
    let burn = burn.cast(FloatDType::F64);
    let model = infer::Model::from_bytes(&bytes).unwrap();
    let sequence = Sequence::new(io, seed);
    if let OutputKind::Pair { .. } = io.output {
        let second = Sequence::new(io, seed + 1);
        let got = model.forward_pair(sequence.part(0, L), second.part(0, L)).unwrap();
        assert_near(&what, &got, &answer(&burn, &[&sequence, &second], L), 2e-5);
        assert!(model.state().is_err() && model.forward(sequence.part(0, L)).is_err(), "{what}");
        return;
    }
    let outputs = io.output.outputs();
    let want = answer(&burn, &[&sequence], L);
    assert_near(&what, &model.forward(sequence.part(0, L)).unwrap(), &want, 2e-5);
    if config.bidirectional || config.mixer.settings().ssm().is_some_and(|ssm| ssm.kernel_len != 0)
    {
        let error = model.state().unwrap_err().to_string();
        assert!(error.contains("cannot run as a stream"), "{error}");
        return;
    }
    // The answer at every position is that for the sequence up to there.
    let per_position = matches!(io.output, OutputKind::Position { .. });
    let prefix = |t: usize| {
        let all = answer(&burn, &[&sequence], t);
        all[all.len() - outputs..].to_vec()
    };
    let prefixes: Vec<f64> = match per_position {
        true => want,
        false => (1..=L).flat_map(prefix).collect(),
    };
    let mut state = model.state().unwrap();
    let mut steps = vec![0.0; L * outputs];
    for (t, out) in steps.chunks_exact_mut(outputs).enumerate() {
        model.step(&mut state, sequence.part(t, 1), out).unwrap();
    }
    assert_near(&what, &steps, &prefixes, 2e-5);
    // Blocks of any size, and several streams at once, are the same to the last bit.
    let mut blocks = model.state().unwrap();
    let mut all = vec![0.0; L * outputs];
    for (start, count) in [(0, 1), (1, 17), (18, 0), (18, 22)] {
        let out = &mut all[start * outputs..(start + count) * outputs];
        model.block_step(&mut blocks, sequence.part(start, count), out).unwrap();
    }
    assert_eq!(all, steps, "{what}");
    assert_eq!(blocks, state, "{what}");
    // So is what follows a state that was written down.
    let (mut state, mut out) = (model.state().unwrap(), vec![0.0; L * outputs]);
    let (first, rest) = out.split_at_mut(18 * outputs);
    model.block_step(&mut state, sequence.part(0, 18), first).unwrap();
    let bytes = state.to_bytes(&model).unwrap();
    let mut read = infer::State::from_bytes(&model, &bytes).unwrap();
    model.block_step(&mut read, sequence.part(18, L - 18), rest).unwrap();
    assert_eq!(out, steps, "{what}");
    assert!(infer::State::from_bytes(&model, &bytes[..bytes.len() - 8]).is_err(), "{what}");
}

/// Every setting with every other one would be too many: two of each pair of settings.
#[test]
fn every_kind_of_model() {
    let variants = [Variant::Softmax, Variant::Exp, Variant::ExpNoScale];
    let norms = [NormKind::Batch, NormKind::Layer, NormKind::LayerScalar];
    let outputs = [
        OutputKind::Sequence { outputs: 5 },
        OutputKind::Position { outputs: 4 },
        OutputKind::Pair { outputs: 2 },
    ];
    let mut seed = 0;
    for variant in variants {
        for norm in norms {
            for prenorm in [false, true] {
                for output in outputs {
                    seed += 1;
                    let bit = |i: u64| seed >> i & 1 == 1;
                    let mixer = DssConfig {
                        n: 6,
                        variant,
                        delta: if bit(1) { Delta::Tied } else { Delta::Separate },
                        lambda_init: if bit(2) {
                            LambdaInit::Random
                        } else {
                            LambdaInit::SkewHippo
                        },
                        glu: bit(3),
                        ..DssConfig::default()
                    };
                    let config = ModelConfig {
                        layers: 2,
                        h: if bit(0) { 5 } else { 16 },
                        mixer: mixer.into(),
                        norm,
                        prenorm,
                        pool: if bit(4) { Pool::Last } else { Pool::Mean },
                        ..ModelConfig::default()
                    };
                    let input = match bit(1) {
                        true => InputKind::Tokens { vocab: VOCAB },
                        false => InputKind::Values { channels: CHANNELS },
                    };
                    check(&config, &ModelIo { input, output, len: L }, seed);
                }
            }
        }
    }
}

#[test]
fn s4_and_s4d() {
    let outputs = [OutputKind::Sequence { outputs: 5 }, OutputKind::Position { outputs: 4 }];
    let s4d = |discretisation| {
        S4dConfig { n: 8, glu: true, discretisation, ..S4dConfig::default() }.into()
    };
    let kinds: [MixerConfig; 3] = [
        S4Config { n: 8, glu: true, ..S4Config::default() }.into(),
        s4d(Discretisation::Zoh),
        s4d(Discretisation::Bilinear),
    ];
    for (seed, mixer) in (100_u64..).zip(kinds) {
        for output in outputs {
            for bidirectional in [false, true] {
                let prenorm = seed.is_multiple_of(2);
                let small = ModelConfig { layers: 2, h: 6, prenorm, ..ModelConfig::default() };
                let config = ModelConfig { mixer: mixer.clone(), bidirectional, ..small };
                let input = InputKind::Values { channels: CHANNELS };
                check(&config, &ModelIo { input, output, len: L }, seed);
            }
        }
    }
}

#[test]
fn looking_ahead_cut_kernels_and_both() {
    let output = OutputKind::Sequence { outputs: 3 };
    let io = ModelIo { input: InputKind::Values { channels: 1 }, output, len: L };
    for (bidirectional, kernel_len) in [(true, 0), (false, 9), (true, 9)] {
        for norm in [NormKind::Batch, NormKind::Layer] {
            let mixer = DssConfig { n: 4, kernel_len, glu: true, ..DssConfig::default() }.into();
            let small = ModelConfig { layers: 2, h: 6, norm, ..ModelConfig::default() };
            let config = ModelConfig { bidirectional, mixer, ..small };
            check(&config, &io, 77);
        }
    }
}

/// Feed-forward parts, positions, an extra first position, a hidden layer in the head and another ε.
#[test]
fn optional_parts_of_a_model() {
    let input = InputKind::Values { channels: CHANNELS };
    let sequence = OutputKind::Sequence { outputs: 5 };
    let mut seed = 200;
    for norm in [NormKind::Batch, NormKind::Layer] {
        for prenorm in [false, true] {
            for (positions, gelu, pool, output) in [
                (Positions::None, Gelu::Erf, Pool::Mean, OutputKind::Position { outputs: 4 }),
                (Positions::Fixed, Gelu::Tanh, Pool::Last, sequence),
                (Positions::Learned, Gelu::Erf, Pool::Mean, sequence),
                (Positions::Learned, Gelu::Tanh, Pool::Cls, sequence),
            ] {
                seed += 1;
                let config = ModelConfig {
                    layers: 2,
                    h: 6,
                    mixer: DssConfig { n: 4, ..DssConfig::default() }.into(),
                    bidirectional: pool == Pool::Cls,
                    norm,
                    norm_eps: 0.05,
                    prenorm,
                    ff: 9,
                    gelu,
                    positions,
                    pool,
                    head_hidden: if seed % 2 == 0 { 7 } else { 0 },
                    ..ModelConfig::default()
                };
                check(&config, &ModelIo { input, output, len: L }, seed);
            }
        }
    }
}

/// Recurrent nets, moving averages and several Λ, one position at a time and whole.
#[test]
fn recurrent_nets() {
    let outputs = [OutputKind::Sequence { outputs: 5 }, OutputKind::Position { outputs: 4 }];
    let systems = [
        DssConfig { n: 4, ssms: 2, lambda_init: LambdaInit::Random, ..DssConfig::default() }.into(),
        S4dConfig { n: 4, ssms: 6, ssm_gelu: Gelu::Tanh, ..S4dConfig::default() }.into(),
        S4Config { n: 4, ssms: 2, ..S4Config::default() }.into(),
        S4Config { n: 4, ssms: 6, ssm_gelu: Gelu::Tanh, ..S4Config::default() }.into(),
    ];
    for (seed, mixer) in (300_u64..).zip(recurrent_mixers().into_iter().chain(systems)) {
        let output = outputs[seed as usize % 2];
        let prenorm = seed.is_multiple_of(3);
        let small = ModelConfig { layers: 2, h: 6, prenorm, ..ModelConfig::default() };
        let input = InputKind::Values { channels: CHANNELS };
        check(&ModelConfig { mixer, ..small }, &ModelIo { input, output, len: L }, seed);
    }
}

/// Attention without a softmax, causal and not, and Fourier mixing.
#[test]
fn kernelised_attention_and_fnet() {
    let outputs = [OutputKind::Sequence { outputs: 5 }, OutputKind::Position { outputs: 4 }];
    let favor = PerformerConfig {
        heads: 3,
        kernel: PerformerKernel::Favor,
        features: 11,
        ..PerformerConfig::default()
    };
    let kinds: [MixerConfig; 6] = [
        LinearAttentionConfig { heads: 2, width: 10, bias: true }.into(),
        LinearAttentionConfig { heads: 3, ..LinearAttentionConfig::default() }.into(),
        PerformerConfig { heads: 2, ..PerformerConfig::default() }.into(),
        favor.into(),
        PerformerConfig { project: false, ..favor }.into(),
        FnetConfig {}.into(),
    ];
    for (seed, mixer) in (400_u64..).zip(kinds) {
        for bidirectional in [false, true] {
            let output = outputs[seed as usize % 2];
            let small =
                ModelConfig { layers: 2, h: 6, ff: 8, prenorm: true, ..ModelConfig::default() };
            let norm = NormKind::Layer;
            let config = ModelConfig { mixer: mixer.clone(), bidirectional, norm, ..small };
            let input = InputKind::Values { channels: CHANNELS };
            let io = ModelIo { input, output, len: L };
            if config.validate_for(&io).is_ok() {
                check(&config, &io, seed);
            } else {
                assert_eq!((mixer.kind(), bidirectional), ("fnet", false));
            }
        }
    }
}

/// A model read at another rate is the Burn model at that rate.
#[test]
fn another_rate() {
    let output = OutputKind::Position { outputs: 3 };
    let io = ModelIo { input: InputKind::Values { channels: 1 }, output, len: 2 * L };
    let dss = [Variant::Softmax, Variant::Exp, Variant::ExpNoScale];
    let dss = dss.map(|variant| DssConfig { n: 4, variant, ..DssConfig::default() }.into());
    let s4 = S4Config { n: 4, ..S4Config::default() }.into();
    let s4d = S4dConfig { n: 4, ..S4dConfig::default() }.into();
    let s5 = S5Config { n: 4, ..S5Config::default() }.into();
    let lipschitz = LipschitzRnnConfig::default().into();
    let ode = OdeRnnConfig { width: 4, field_layers: 1, ..OdeRnnConfig::default() }.into();
    for mixer in dss.into_iter().chain([s4, s4d, s5, lipschitz, ode]) {
        let config = ModelConfig { layers: 2, h: 6, mixer, ..ModelConfig::default() };
        let (burn, bytes) = model(&config, &io, 5);
        let burn = burn.at_rate(2.0).unwrap().cast(FloatDType::F64);
        let model = infer::Model::from_bytes(&bytes).unwrap().at_rate(2.0).unwrap();
        let sequence = Sequence::new(&io, 5);
        let want = answer(&burn, &[&sequence], L);
        assert_near("rate", &model.forward(sequence.part(0, L)).unwrap(), &want, 2e-5);
        let mut got = vec![0.0; want.len()];
        model.block_step(&mut model.state().unwrap(), sequence.part(0, L), &mut got).unwrap();
        assert_near("rate", &got, &want, 2e-5);
    }
}

/// A spoken word, 16,000 samples: the answer at every one of them is that of the training-time forward, which a trained
/// model of this kind gives for one prefix at a time; and the whole is the same by convolution, by steps and in blocks.
#[test]
fn sixteen_thousand_steps_of_speech() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../dss-cli/tests/data");
    if !data.is_dir() {
        let _ = writeln!(std::io::stderr(), "skipped: the word is part of the package dss-cli");
        return;
    }
    let (burn, meta) = checkpoint::load(data.join("words.safetensors"), &Device::flex()).unwrap();
    let model = infer::Model::load(data.join("words.safetensors")).unwrap();
    let wav = std::fs::read(data.join("word.wav")).unwrap();
    let samples = wav[44..].chunks_exact(2).map(|x| i16::from_le_bytes([x[0], x[1]]));
    let encoder: serde_json::Value = serde_json::from_str(&meta.extra["encoder"]).unwrap();
    let number = |key: &str| encoder[key][0].as_f64().unwrap() as f32;
    let (mean, divisor) = (number("mean"), number("divisor"));
    let x: Vec<f32> = samples.map(|s| (f32::from(s) / 32768.0 - mean) / divisor).collect();
    let (l, outputs) = (x.len(), model.outputs());
    assert_eq!(l, 16000);

    // The training-time forward: the activations at every position, their running mean, the head.
    let device = Device::flex();
    let input = Input::Values(Tensor::from_data(TensorData::new(x.clone(), [1, l, 1]), &device));
    let (hidden, _) = burn.hidden(input, &[l], &burn.prepare(l), Mode::Eval);
    let hidden = values(&hidden);
    let h = hidden.len() / l;
    let tensors: std::collections::HashMap<_, _> = burn.named_tensors().into_iter().collect();
    let numbers = |name: &str| tensors[name].clone().convert::<f64>().try_to_vec::<f64>().unwrap();
    let (weight, bias) = (numbers("head.weight"), numbers("head.bias"));
    let mut sum = vec![0.0; h];
    let mut want = Vec::new();
    for (t, row) in hidden.chunks_exact(h).enumerate() {
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        let mean: Vec<f64> = sum.iter().map(|x| x / (t + 1) as f64).collect();
        let logit = |o: usize| {
            let row = weight[o * h..][..h].iter().zip(&mean);
            bias[o] + row.map(|(w, x)| w * x).sum::<f64>()
        };
        want.extend((0..outputs).map(logit));
    }

    let mut state = model.state().unwrap();
    let mut steps = vec![0.0; l * outputs];
    for (x, out) in x.chunks_exact(1).zip(steps.chunks_exact_mut(outputs)) {
        model.step(&mut state, infer::Input::Values(x), out).unwrap();
    }
    assert_near("steps", &steps, &want, 1e-4);
    let mut blocks = vec![0.0; l * outputs];
    let mut state = model.state().unwrap();
    for (x, out) in x.chunks(160).zip(blocks.chunks_mut(160 * outputs)) {
        model.block_step(&mut state, infer::Input::Values(x), out).unwrap();
    }
    assert_eq!(blocks, steps);
    let whole = model.forward(infer::Input::Values(&x)).unwrap();
    assert_near("whole", &whole, &want[want.len() - outputs..], 1e-4);
    let worst = steps.iter().zip(&want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    let scale = want.iter().fold(0.0f64, |a, x| a.max(x.abs()));
    println!("largest difference {:.1e} of the largest logit", worst / scale);
}
