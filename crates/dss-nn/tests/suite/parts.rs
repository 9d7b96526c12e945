//! The parts of a model around the mixer: feed-forward part, positions, cls pooling, the head's hidden layer, ε.

use crate::common::configs::{dss, mixers, small};
use crate::common::random::Random;
use crate::common::{FORMS, assert_close, device, grads, values};
use burn::module::Param;
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_nn::config::{
    Form, Gelu, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool, Positions,
};
use dss_nn::{DropoutKey, Head, Input, Mode, Model, Readout};

const L: usize = 11;
const LENGTHS: [usize; 4] = [11, 7, 1, 10];

fn io(output: OutputKind) -> ModelIo {
    ModelIo { input: InputKind::Values { channels: 2 }, output, len: L }
}

fn sequence() -> ModelIo {
    io(OutputKind::Sequence { outputs: 3 })
}

fn input() -> Input {
    Input::Values(Random::new(5, DType::F64).tensor([4, L, 2]))
}

fn precise(config: &ModelConfig, io: &ModelIo) -> Model {
    Model::new(config, io, 3, &device()).unwrap().cast(FloatDType::F64)
}

fn logits(model: &Model, mode: Mode) -> Tensor<2> {
    model.forward(input(), &LENGTHS, &model.prepare(L), mode).logits
}

/// Every part with every other, for one mixer.
fn configs() -> Vec<ModelConfig> {
    let mut all = Vec::new();
    for (positions, gelu) in [
        (Positions::None, Gelu::Erf),
        (Positions::Fixed, Gelu::Tanh),
        (Positions::Learned, Gelu::Erf),
    ] {
        for norm in [NormKind::Batch, NormKind::Layer] {
            for bits in 0..16 {
                let bit = |i: usize| bits >> i & 1 == 1;
                all.push(ModelConfig {
                    positions,
                    gelu,
                    norm,
                    ff: if bit(0) { 5 } else { 0 },
                    head_hidden: if bit(1) { 9 } else { 0 },
                    pool: if bit(2) { Pool::Cls } else { Pool::Last },
                    prenorm: bit(3),
                    bidirectional: true,
                    norm_eps: 1e-3,
                    dropout: 0.2,
                    mask_padding: true,
                    ..small(6, dss(4))
                });
            }
        }
    }
    all.extend(mixers(4, 0).map(|mixer| ModelConfig { mixer, ..all[all.len() - 1].clone() }));
    all
}

/// Shapes; a gradient for every parameter; and the two forms agree in values and all gradients.
#[test]
fn both_forms_agree_and_every_parameter_learns() {
    let train = Mode::Train { dropout: DropoutKey { seed: 1, step: 2, micro: 0 } };
    let weight = Random::new(6, DType::F64).tensor([4, 3]);
    for config in configs() {
        let run = |form, mode| {
            let model = precise(&ModelConfig { form, ..config.clone() }, &sequence());
            let y = logits(&model, mode);
            assert_eq!(y.dims(), [4, 3]);
            let gradients = grads(&model, &(y.clone() * weight.clone()).sum().backward());
            let trained = model.parameters().into_iter().filter(|p| p.trained).count();
            assert_eq!(gradients.len(), trained, "{config:?}");
            (values(&y), gradients)
        };
        for mode in [Mode::Eval, train] {
            let (want, want_gradients) = run(Form::Composed, mode);
            let (got, gradients) = run(Form::Auto, mode);
            assert_close(&format!("{config:?}"), &got, &want, 1e-10);
            let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let scale = want_gradients.values().map(|g| largest(g)).fold(0.0, f64::max);
            for (name, want) in want_gradients {
                let error = want.iter().zip(&gradients[&name]).map(|(a, b)| (a - b).abs());
                let error = error.fold(0.0, f64::max);
                // A bias in front of a norm has a gradient of 0 but for rounding.
                assert!(error <= 1e-10 * largest(&want).max(1e-4 * scale), "{name} {config:?}");
            }
        }
    }
}

#[test]
fn outputs_have_their_shapes() {
    let config = ModelConfig { ff: 5, positions: Positions::Learned, ..small(6, dss(4)) };
    let cls = ModelConfig { pool: Pool::Cls, bidirectional: true, ..config.clone() };
    let hidden = ModelConfig { head_hidden: 7, ..config };
    let (sequence, position, pair) = (
        OutputKind::Sequence { outputs: 3 },
        OutputKind::Position { outputs: 3 },
        OutputKind::Pair { outputs: 3 },
    );
    for (config, output, shape) in [
        (&cls, sequence, [4, 3]),
        (&cls, pair, [2, 3]),
        (&hidden, sequence, [4, 3]),
        (&hidden, position, [4 * L, 3]),
    ] {
        let model = precise(config, &io(output));
        assert_eq!(logits(&model, Mode::Eval).dims(), shape, "{config:?}");
    }
}

/// The learned table with the fixed numbers is the fixed one: PE[t, 2i] = sin(t·10000^(−2i/H)), PE[t, 2i + 1] = cos.
#[test]
fn fixed_positions_are_sines_and_cosines() {
    let h = 6;
    let table = |positions: usize| -> Vec<f64> {
        let at = |t: usize, i: usize| {
            let angle = t as f64 / 10000f64.powf((2 * (i / 2)) as f64 / h as f64);
            if i.is_multiple_of(2) { angle.sin() } else { angle.cos() }
        };
        (0..positions).flat_map(|t| (0..h).map(move |i| at(t, i))).collect()
    };
    for pool in [Pool::Mean, Pool::Cls] {
        let config = ModelConfig { pool, bidirectional: true, ..small(h, dss(4)) };
        let with = |positions| precise(&ModelConfig { positions, ..config.clone() }, &sequence());
        let fixed = values(&logits(&with(Positions::Fixed), Mode::Eval));
        let mut learned = with(Positions::Learned);
        assert_ne!(values(&logits(&learned, Mode::Eval)), fixed);
        let rows = config.positions_for(L);
        let table = TensorData::new(table(rows), [rows, h]);
        let table = Tensor::from_data(table, (&device(), DType::F64));
        learned.positions = Some(Param::from_tensor(table));
        assert_close(&format!("{pool:?}"), &values(&logits(&learned, Mode::Eval)), &fixed, 1e-12);
    }
}

#[test]
fn learned_positions_end_with_the_training_length() {
    let config = ModelConfig { positions: Positions::Learned, ..small(6, dss(4)) };
    let model = Model::new(&config, &sequence(), 3, &Device::flex()).unwrap();
    assert!(model.check_len(L).is_ok() && model.check_len(1).is_ok());
    assert!(model.check_len(L + 1).unwrap_err().to_string().contains("learned positions"));
    let fixed = ModelConfig { positions: Positions::Fixed, ..config };
    let fixed = Model::new(&fixed, &sequence(), 3, &Device::flex()).unwrap();
    assert!(fixed.check_len(L + 1).is_ok());
}

/// Without blocks' influence the extra position is all that the head sees.
#[test]
fn the_head_reads_the_extra_first_position() {
    for form in FORMS {
        let pool = Pool::Cls;
        let config = ModelConfig { pool, bidirectional: true, form, ..small(6, dss(4)) };
        let model = precise(&config, &sequence());
        let prepared = model.prepare(L);
        let (hidden, _) = model.hidden(input(), &LENGTHS, &prepared, Mode::Eval);
        assert_eq!(hidden.dims(), [4, L + 1, 6]);
        let Head::Sequence(Readout::Linear(linear)) = &model.head else { panic!("not linear") };
        let want = linear.forward(hidden.narrow(1, 0, 1).squeeze_dim(1));
        assert_close("cls", &values(&logits(&model, Mode::Eval)), &values(&want), 1e-12);
    }
}

#[test]
fn a_hidden_layer_in_the_head() {
    for form in FORMS {
        let config = ModelConfig { head_hidden: 7, pool: Pool::Last, form, ..small(6, dss(4)) };
        let model = precise(&config, &sequence());
        let (x, _) = model.hidden(input(), &LENGTHS, &model.prepare(L), Mode::Eval);
        let last = LENGTHS.iter().enumerate();
        let last = last.map(|(b, &len)| x.clone().slice([b..b + 1, len - 1..len]).squeeze_dim(1));
        let Head::Sequence(Readout::Hidden(layers)) = &model.head else {
            panic!("no hidden layer")
        };
        let hidden = relu(layers.hidden.forward(Tensor::cat(last.collect(), 0)));
        let want = values(&layers.out.forward(hidden));
        assert_close("head", &values(&logits(&model, Mode::Eval)), &want, 1e-12);
    }
}

/// A new BatchNorm in evaluation divides by √(1 + ε).
#[test]
fn epsilon_is_that_of_the_settings() {
    for form in FORMS {
        let hidden = |norm_eps: f64| {
            let config = ModelConfig { layers: 1, norm_eps, form, ..small(6, dss(4)) };
            let model = precise(&config, &sequence());
            let (x, _) = model.hidden(input(), &LENGTHS, &model.prepare(L), Mode::Eval);
            values(&(x * (1.0 + norm_eps).sqrt()))
        };
        assert_close(&format!("{form:?}"), &hidden(0.75), &hidden(1e-5), 1e-12);
    }
}
