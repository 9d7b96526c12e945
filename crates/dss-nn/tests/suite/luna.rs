//! Luna: golden values and gradients of the two attentions and of the whole layer, the second stream, `dss-infer`.

use std::collections::BTreeMap;

use burn::module::Param;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_nn::config::{
    InputKind, LunaConfig, ModelConfig, ModelIo, NormKind, OutputKind, Pool, Positions,
};
use dss_nn::mixer::LunaLayer;
use dss_nn::{Block, Input, Linear, Mixer, Mode, Model};

use crate::common::configs::small;
use crate::common::gradients::assert_gradients;
use crate::common::random::Random;
use crate::common::saved::{inferred, runner};
use crate::common::{Golden, assert_close, device, grad, tensor, values};

const MAPS: [&str; 7] = ["q", "k", "v", "out", "pq", "pk", "pv"];

fn maps(layer: &mut LunaLayer) -> [&mut Linear; 7] {
    let LunaLayer { q, k, v, out, pq, pk, pv, .. } = layer;
    [q, k, v, out, pq, pk, pv]
}

fn parameter<const D: usize>(golden: &Golden, name: String, shape: [usize; D]) -> Param<Tensor<D>> {
    Param::from_tensor(golden.tensor(&name, shape).require_grad())
}

fn linear(golden: &Golden, name: &str, inputs: usize, outputs: usize) -> Linear {
    Linear {
        weight: parameter(golden, format!("{name}.weight"), [outputs, inputs]),
        bias: parameter(golden, format!("{name}.bias"), [outputs]),
    }
}

/// A block with the golden numbers.
fn block(golden: &Golden) -> Block {
    let [heads, packed, h, ff] = ["heads", "packed", "H", "ff"].map(|key| golden.usize(key));
    let config = ModelConfig {
        bidirectional: true,
        norm: NormKind::Layer,
        ff,
        ..small(h, LunaConfig { heads, packed })
    };
    let mut block = Block::new(&config, golden.usize("L"), 0, &device()).unwrap();
    let Mixer::Luna(layer) = &mut block.mixer else { panic!("not Luna") };
    for (name, map) in MAPS.into_iter().zip(maps(layer)) {
        *map = linear(golden, name, h, h);
    }
    let norms = [
        ("norm_p", &mut layer.p_norm),
        ("norm_x", &mut block.norm),
        ("norm_ff", block.ff_norm.as_mut().unwrap()),
    ];
    for (name, norm) in norms {
        norm.gamma = parameter(golden, format!("{name}.gamma"), [h]);
        norm.beta = parameter(golden, format!("{name}.beta"), [h]);
    }
    let maps = block.ff.as_mut().unwrap();
    (maps.hidden, maps.out) = (linear(golden, "ff1", h, ff), linear(golden, "ff2", ff, h));
    block
}

fn lengths(golden: &Golden, name: &str) -> Vec<usize> {
    golden.get(name).iter().map(|&l| l as usize).collect()
}

/// x with 0 at and beyond the lengths, where nothing is defined.
fn masked(x: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
    let ([batch, l, h], Some(lengths)) = (x.dims(), lengths) else { return x };
    let mask = lengths
        .iter()
        .flat_map(|&len| (0..l * h).map(move |i| if i / h < len { 1.0 } else { 0.0 }));
    x * tensor(&mask.collect::<Vec<f64>>(), [batch, l, h])
}

/// The golden lengths of p are as many positions as its sequences have, where these are fewer.
#[test]
fn golden_values_and_gradients() {
    let golden = Golden::read("luna").unwrap();
    let [batch, l, h, packed] = ["B", "L", "H", "packed"].map(|key| golden.usize(key));
    let [true_l, true_p] = ["lengths", "p_lengths"].map(|name| lengths(&golden, name));
    assert!(true_l.iter().zip(&true_p).all(|(&l, &p)| p == l.min(packed)), "{true_l:?} {true_p:?}");
    for (case, whole, hidden) in [
        ("attention", false, false),
        ("attention_masked", false, true),
        ("layer", true, false),
        ("layer_masked", true, true),
    ] {
        let mut block = block(&golden);
        let u = golden.tensor("u", [batch, l, h]).require_grad();
        let p = golden.tensor("p", [batch, packed, h]).require_grad();
        let given = if hidden { true_l.clone() } else { vec![l; batch] };
        let (y, p_out) = if whole {
            let mut side = Some(p.clone());
            let prepared = block.mixer.get().prepare(l).unwrap();
            let (y, stats) =
                block.forward_beside(&mut side, None, u.clone(), &prepared, &given, Mode::Eval, 0);
            assert!(stats.is_empty());
            (y, side.unwrap())
        } else {
            let Mixer::Luna(layer) = &block.mixer else { panic!("not Luna") };
            layer.attend(u.clone(), p.clone(), hidden.then(|| given.clone().into()))
        };
        let y = masked(y, hidden.then_some(&true_l));
        let p_out = masked(p_out, hidden.then_some(&true_p));
        assert_close(case, &values(&y), golden.get(&format!("{case}.y")), 1e-11);
        assert_close(case, &values(&p_out), golden.get(&format!("{case}.p_out")), 1e-11);
        let g = [golden.tensor("g.y", [batch, l, h]), golden.tensor("g.p_out", [batch, packed, h])];
        let [g_y, g_p] = g;
        let gradients = ((y * g_y).sum() + (p_out * g_p).sum()).backward();
        let mut found = BTreeMap::new();
        let Mixer::Luna(layer) = &mut block.mixer else { panic!("not Luna") };
        for (name, map) in MAPS.into_iter().zip(maps(layer)) {
            found.insert(format!("{name}.weight"), grad(&map.weight.val(), &gradients));
            found.insert(format!("{name}.bias"), grad(&map.bias.val(), &gradients));
        }
        if whole {
            let ff = block.ff.as_ref().unwrap();
            for (name, map) in [("ff1", &ff.hidden), ("ff2", &ff.out)] {
                found.insert(format!("{name}.weight"), grad(&map.weight.val(), &gradients));
                found.insert(format!("{name}.bias"), grad(&map.bias.val(), &gradients));
            }
            let norms = [
                ("norm_p", &layer.p_norm),
                ("norm_x", &block.norm),
                ("norm_ff", block.ff_norm.as_ref().unwrap()),
            ];
            for (name, norm) in norms {
                found.insert(format!("{name}.gamma"), grad(&norm.gamma.val(), &gradients));
                found.insert(format!("{name}.beta"), grad(&norm.beta.val(), &gradients));
            }
        }
        found.insert("u".into(), grad(&u, &gradients));
        found.insert("p".into(), grad(&p, &gradients));
        let found: Vec<_> = found.into_iter().collect();
        assert_gradients(&golden, &format!("{case}."), &found);
    }
}

fn model(packed: usize, positions: Positions, pool: Pool) -> Model {
    let config = ModelConfig {
        bidirectional: true,
        norm: NormKind::Layer,
        ff: 7,
        positions,
        pool,
        ..small(6, LunaConfig { heads: 2, packed })
    };
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: 30,
    };
    Model::new(&config, &io, 3, &Device::flex()).unwrap()
}

fn answer(model: &Model, x: &[f64], l: usize) -> Vec<f64> {
    let data = TensorData::new(x[..2 * l].to_vec(), [1, l, 2]);
    let input = Input::Values(Tensor::from_data(data, (&Device::flex(), DType::F64)));
    values(&model.forward(input, &[l], &model.prepare(l), Mode::Eval).logits)
}

#[test]
fn inference_agrees_and_cannot_stream() {
    let x = Random::new(1, DType::F32).numbers(60);
    for (packed, positions, pool) in [
        (4, Positions::Fixed, Pool::Mean),
        (9, Positions::None, Pool::Last),
        (20, Positions::Learned, Pool::Cls),
    ] {
        let model = model(packed, positions, pool);
        let runner = runner(&model);
        let precise = model.clone().cast(FloatDType::F64);
        for l in [30, 5, 1] {
            let what = format!("{packed} {positions:?} {pool:?} {l}");
            let found = inferred(&runner, &x[..2 * l]);
            assert_close(&what, &found, &answer(&precise, &x, l), 3e-5);
        }
        let why = model.layers[0].mixer.get().state(1).unwrap_err().to_string();
        assert!(why.contains("second stream") && why.contains("whole sequences only"), "{why}");
        assert!(runner.state().unwrap_err().to_string().contains("cannot run as a stream"));
    }
}

/// p passes through all layers: the first layer's norm of p changes the answer of a model of two layers.
#[test]
fn the_second_stream_reaches_the_next_layer() {
    let x = Random::new(1, DType::F32).numbers(60);
    let mut model = model(4, Positions::None, Pool::Mean).cast(FloatDType::F64);
    let before = answer(&model, &x, 30);
    let doubled = |model: &mut Model, i: usize| {
        let Mixer::Luna(layer) = &mut model.layers[i].mixer else { panic!("not Luna") };
        let gamma = layer.p_norm.gamma.val();
        layer.p_norm.gamma = Param::from_tensor(gamma * 2.0);
    };
    doubled(&mut model, 1);
    assert_eq!(answer(&model, &x, 30), before, "nothing reads p after the last layer");
    doubled(&mut model, 0);
    assert_ne!(answer(&model, &x, 30), before);
}
