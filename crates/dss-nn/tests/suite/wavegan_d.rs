//! WaveGAN-D: golden values and gradients of both forms, phases, checkpoints, `dss-infer`, and settings that it refuses.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use dss_infer as infer;
use dss_nn::config::{
    InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool, Positions, WaveganDConfig,
    WaveganVariant,
};
use dss_nn::stage::phase_shuffle;
use dss_nn::{DropoutKey, Head, Input, Mixer, Mode, Model, Readout};

use crate::common::configs::small;
use crate::common::gradients::assert_gradients;
use crate::common::random::Random;
use crate::common::saved::{inferred, runner, saved};
use crate::common::{Golden, assert_close, device, grad, grads, values};

const ORIGINAL: WaveganDConfig =
    WaveganDConfig { variant: WaveganVariant::Original, convs: 1, shuffle: 0 };

fn ported(convs: usize) -> WaveganDConfig {
    WaveganDConfig { variant: WaveganVariant::Ported, convs, shuffle: 0 }
}

fn config(layers: usize, h: usize, mixer: WaveganDConfig) -> ModelConfig {
    ModelConfig { layers, bidirectional: true, ..small(h, mixer) }
}

fn io(len: usize, outputs: usize) -> ModelIo {
    let (input, output) = (InputKind::Values { channels: 1 }, OutputKind::Sequence { outputs });
    ModelIo { input, output, len }
}

fn key(step: u64) -> Mode {
    Mode::Train { dropout: DropoutKey { seed: 1, step, micro: 0 } }
}

/// The golden name of a tensor.
fn golden_name(name: &str, original: bool) -> String {
    let name = name.replace("head.", "out.");
    match original {
        true => name.replace("stages.", "conv.").replace(".down.conv", ""),
        false => name.replace("stages.", "block.").replace("running_", ""),
    }
}

/// The golden model.
fn model(golden: &Golden, mixer: WaveganDConfig) -> Model {
    let config = ModelConfig { norm_eps: 1e-5, ..config(5, golden.usize("dim"), mixer) };
    let model = Model::new(&config, &io(golden.usize("L"), golden.usize("classes")), 0, &device());
    let model = model.unwrap().cast(FloatDType::F64);
    let original = mixer.variant == WaveganVariant::Original;
    let tensors = model.parameters().into_iter().map(|parameter| {
        let numbers = golden.get(&golden_name(&parameter.name, original)).to_vec();
        (parameter.name, TensorData::new(numbers, parameter.shape))
    });
    let tensors: BTreeMap<_, _> = tensors.collect();
    model.load_named(tensors).unwrap()
}

/// Compares logits and all gradients.
fn compare(golden: &Golden, case: &str, model: &Model, u: &Tensor<3>, logits: Tensor<2>) {
    let original = golden.name == "wavegan_d";
    let what = format!("{} {case}", golden.name);
    assert_close(&what, &values(&logits), golden.get(&format!("{case}y")), 1e-11);
    let g = golden.tensor("g", logits.dims());
    let gradients = (logits * g).sum().backward();
    let mut found: Vec<_> = grads(model, &gradients)
        .into_iter()
        .map(|(name, x)| (golden_name(&name, original), x))
        .collect();
    found.push(("u".into(), grad(u, &gradients)));
    assert_gradients(golden, case, &found);
}

#[test]
fn golden_ported_form() {
    let Some(golden) = Golden::read("wavegan_d_ported") else { return };
    let (batch, l) = (golden.usize("B"), golden.usize("L"));
    let model = model(&golden, ported(golden.usize("layers")));
    for (case, mode) in [("eval.", Mode::Eval), ("train.", key(0))] {
        let u = golden.tensor("u", [batch, l, 1]).require_grad();
        let input = Input::Values(u.clone());
        let output = model.forward(input, &vec![l; batch], &model.prepare(l), mode);
        assert_eq!(output.stats.len(), if mode == Mode::Eval { 0 } else { 10 });
        compare(&golden, case, &model, &u, output.logits);
    }
}

#[test]
fn golden_original_form() {
    let Some(golden) = Golden::read("wavegan_d") else { return };
    let (batch, l) = (golden.usize("B"), golden.usize("L"));
    let model = model(&golden, ORIGINAL);
    let u = golden.tensor("u", [batch, l, 1]).require_grad();
    let input = Input::Values(u.clone());
    let output = model.forward(input, &vec![l; batch], &model.prepare(l), Mode::Eval);
    compare(&golden, "", &model, &u, output.logits);

    let u = golden.tensor("u", [batch, l, 1]).require_grad();
    let mut x = u.clone();
    for (i, stage) in model.stages.iter().enumerate() {
        x = stage.forward(x, Mode::Eval, i).0;
        if let Some(&phase) = golden.get("phases").get(i) {
            x = phase_shuffle(x, phase as i64);
        }
    }
    let Head::Sequence(Readout::Linear(head)) = &model.head else { panic!("another head") };
    let features = x.dims()[1] * x.dims()[2];
    compare(&golden, "shuffled.", &model, &u, head.forward(x.reshape([batch, features])));
}

#[test]
fn parameters_are_as_many_as_published() {
    for (mixer, published) in [(ported(2), 26_286_310), (ORIGINAL, 17_575_434)] {
        let tensors = config(5, 64, mixer).tensors(&io(16_000, 10)).into_iter();
        let trained = tensors.filter(|tensor| tensor.trained);
        assert_eq!(trained.map(|tensor| tensor.elements().unwrap()).sum::<usize>(), published);
    }
}

/// One step of a training moves the phases, another one moves them elsewhere, and evaluation has none.
#[test]
fn phases_are_drawn_from_the_key() {
    let mixer = WaveganDConfig { shuffle: 2, ..ORIGINAL };
    let l = 200;
    let model = Model::new(&config(3, 2, mixer), &io(l, 3), 0, &Device::flex()).unwrap();
    let x = Random::new(1, DType::F32).numbers(l);
    let answer = |mode| {
        let input = TensorData::new(x.clone(), [1, l, 1]);
        let input = Input::Values(Tensor::from_data(input, &Device::flex()));
        values(&model.forward(input, &[l], &model.prepare(l), mode).logits)
    };
    assert_eq!(answer(key(1)), answer(key(1)));
    assert_eq!(answer(Mode::Eval), answer(Mode::Eval));
    let drawn: Vec<_> = (0..8).map(|step| answer(key(step))).collect();
    assert!(drawn.iter().any(|y| *y != drawn[0]) && drawn.iter().any(|y| *y != answer(Mode::Eval)));
}

#[test]
fn checkpoints_inference_and_statistics() {
    for (mixer, norm) in [
        (ported(2), NormKind::Batch),
        (ported(1), NormKind::Layer),
        (ported(3), NormKind::Batch),
        (ORIGINAL, NormKind::Batch),
    ] {
        for tokens in [false, true] {
            let (l, batch) = (50, 3);
            let config = ModelConfig { norm, ..config(3, 2, mixer) };
            let input = match tokens {
                true => InputKind::Tokens { vocab: 5 },
                false => InputKind::Values { channels: 2 },
            };
            let io = ModelIo { input, ..io(l, 3) };
            let mut model = Model::new(&config, &io, 3, &Device::flex()).unwrap();
            let x = Random::new(1, DType::F32).numbers(batch * l * 2);
            let ids: Vec<u32> = x.iter().map(|x| (x.abs() * 100.0) as u32 % 5).collect();
            let input = |count: usize, l: usize| match tokens {
                true => {
                    let ids: Vec<i64> = ids[..count * l].iter().map(|&id| id.into()).collect();
                    let ids = TensorData::new(ids, [count, l]);
                    Input::Tokens(Tensor::<2, Int>::from_data(ids, &Device::flex()))
                }
                false => {
                    let x = TensorData::new(x[..count * l * 2].to_vec(), [count, l, 2]);
                    Input::Values(Tensor::from_data(x, &Device::flex()))
                }
            };
            let prepared = model.prepare(l);
            let seen = model.forward(input(batch, l), &[l, 20, 1], &prepared, key(0)).stats;
            let norms = match (mixer.variant, norm) {
                (WaveganVariant::Ported, NormKind::Batch) => 3 * mixer.convs,
                _ => 0,
            };
            assert_eq!(seen.len(), norms);
            model = model.update_stats(&seen);
            let name = format!("{} {norm:?} {tokens}", mixer.convs);
            let (read, _) = saved(&model, |path| dss_nn::load(path, &Device::flex()).unwrap());
            let runner = runner(&model);
            for l in [l, 17, 1] {
                let want = model.forward(input(1, l), &[l], &model.prepare(l), Mode::Eval).logits;
                let again = read.forward(input(1, l), &[l], &read.prepare(l), Mode::Eval).logits;
                assert_eq!(values(&again), values(&want));
                let found = match tokens {
                    true => {
                        let found = runner.forward(infer::Input::Tokens(&ids[..l])).unwrap();
                        found.into_iter().map(f64::from).collect()
                    }
                    false => inferred(&runner, &x[..2 * l]),
                };
                assert_close(&format!("{name} {l}"), &found, &values(&want), 3e-5);
            }
            let most = if norms > 0 || norm == NormKind::Layer { 64 } else { 50 };
            assert!(model.check_len(most).is_ok() && model.check_len(0).is_err());
            assert!(model.check_len(most + 1).unwrap_err().to_string().contains("shorten"));
            let why = runner.state().unwrap_err().to_string();
            assert!(why.contains("WaveGAN-D") && why.contains("cannot run as a stream"), "{why}");
        }
    }
}

/// A pair of sequences has the head of pairs, on all that the stages leave.
#[test]
fn pairs_are_compared() {
    let config = config(2, 2, ported(2));
    let io = ModelIo { output: OutputKind::Pair { outputs: 3 }, ..io(40, 3) };
    let model = Model::new(&config, &io, 3, &Device::flex()).unwrap();
    let x = Random::new(1, DType::F32).numbers(80);
    let input = Tensor::from_data(TensorData::new(x.clone(), [2, 40, 1]), &Device::flex());
    let want =
        model.forward(Input::Values(input), &[40, 40], &model.prepare(40), Mode::Eval).logits;
    assert_eq!(want.dims(), [1, 3]);
    let runner = runner(&model);
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let [a, b] = [&x[..40], &x[40..]].map(infer::Input::Values);
    let found: Vec<f64> = runner.forward_pair(a, b).unwrap().into_iter().map(f64::from).collect();
    assert_close("pair", &found, &values(&want), 3e-5);
}

#[test]
fn what_only_blocks_have_is_refused() {
    let good = config(2, 2, ported(2));
    assert!(good.validate_for(&io(40, 3)).is_ok());
    assert!(Mixer::new(&good, 40, 0, &Device::flex()).unwrap_err().to_string().contains("Model"));
    let with = |change: &dyn Fn(&mut ModelConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config.validate_for(&io(40, 3)).unwrap_err().to_string()
    };
    for (error, part) in [
        (with(&|c| c.ff = 3), "set ff to 0"),
        (with(&|c| c.prenorm = true), "set prenorm to false"),
        (with(&|c| c.dropout = 0.1), "set dropout to 0"),
        (with(&|c| c.mask_padding = true), "set mask_padding to false"),
        (with(&|c| c.positions = Positions::Fixed), "set positions to \"none\""),
        (with(&|c| c.pool = Pool::Last), "set pool to \"mean\""),
        (with(&|c| c.head_hidden = 4), "set head_hidden to 0"),
        (with(&|c| c.bidirectional = false), "set bidirectional to true"),
        (with(&|c| c.layers = 17), "try 16"),
        (with(&|c| c.mixer = WaveganDConfig { convs: 2, ..ORIGINAL }.into()), "try 1"),
        (with(&|c| c.mixer = WaveganDConfig { shuffle: 1, ..ported(2) }.into()), "shuffle to 0"),
        (with(&|c| c.mixer = WaveganDConfig { shuffle: 99, ..ORIGINAL }.into()), "try 16"),
        (with(&|c| c.mixer = ported(0).into()), "convs must be at least 1"),
    ] {
        assert!(error.contains(part), "{error}");
    }
    let per_position = ModelIo { output: OutputKind::Position { outputs: 3 }, ..io(40, 3) };
    let error = good.validate_for(&per_position).unwrap_err().to_string();
    assert!(error.contains("whole sequences"), "{error}");
}
