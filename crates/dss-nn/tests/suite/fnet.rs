//! FNet: its golden file, forms, padding, the adjoint.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use dss_nn::config::{
    FnetConfig, Form, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool,
};
use dss_nn::mixer::Pass;
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, device, tensor, values};

fn config(h: usize, form: Form) -> ModelConfig {
    let mixer = FnetConfig {}.into();
    ModelConfig { h, mixer, bidirectional: true, form, ..ModelConfig::default() }
}

fn mix(mixer: &Mixer, u: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
    let prepared = mixer.get().prepare(u.dims()[1]).unwrap();
    mixer.get().mix(u, &prepared, &Pass { lengths: lengths.map(Arc::from), ..Pass::default() })
}

#[test]
fn golden_fnet() {
    let Some(golden) = Golden::read("fnet") else { return };
    let shape = [golden.usize("B"), golden.usize("L"), golden.usize("H")];
    let lengths: Vec<usize> = golden.get("lengths").iter().map(|&x| x as usize).collect();
    for form in FORMS {
        let mixer = Mixer::new(&config(shape[2], form), shape[1], 0, &device()).unwrap();
        for (prefix, lengths) in [("", None), ("masked.", Some(lengths.as_slice()))] {
            let u = golden.tensor("u", shape).require_grad();
            let y = mix(&mixer, u.clone(), lengths);
            let what = |part: &str| format!("{form:?} {prefix}{part}");
            assert_close(&what("y"), &values(&y), golden.get(&format!("{prefix}y")), 1e-11);
            let grads = (y * golden.tensor("g", shape)).sum().backward();
            let du = values(&u.grad(&grads).expect("a gradient"));
            assert_close(&what("grad.u"), &du, golden.get(&format!("{prefix}grad.u")), 1e-10);
        }
    }
}

/// du = Re(F·dy·F): the gradient is the map itself, also of sequences shorter than the transform.
#[test]
fn the_adjoint_is_the_map_itself() {
    let (b, l, h) = (2, 20, 6);
    for form in FORMS {
        let mixer = Mixer::new(&config(h, form), 35, 0, &device()).unwrap();
        let numbers = Random::new(1, DType::F64).numbers(2 * b * l * h);
        let [u, g] = [0, 1].map(|i| tensor(&numbers[i * b * l * h..][..b * l * h], [b, l, h]));
        for lengths in [None, Some(&[20, 13][..])] {
            let u = u.clone().require_grad();
            let grads = (mix(&mixer, u.clone(), lengths) * g.clone()).sum().backward();
            let du = values(&u.grad(&grads).expect("a gradient"));
            assert_close("du", &du, &values(&mix(&mixer, g.clone(), lengths)), 1e-12);
        }
    }
}

#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: 40,
    };
    let x = Random::new(1, DType::F64).numbers(40 * 2);
    for form in FORMS {
        for pool in [Pool::Cls, Pool::Mean, Pool::Last] {
            let layers =
                ModelConfig { layers: 2, norm: NormKind::Layer, pool, ff: 12, ..config(16, form) };
            let model = Model::new(&layers, &io, 3, &Device::flex()).unwrap();
            let answer = |l: usize, lengths: &[usize]| {
                let all: Vec<f64> = lengths.iter().flat_map(|_| x[..2 * l].to_vec()).collect();
                let all = TensorData::new(all, [lengths.len(), l, 2]);
                let input = Input::Values(Tensor::from_data(all, &Device::flex()));
                let y = model.forward(input, lengths, &model.prepare(l), Mode::Eval).logits;
                values(&y.narrow(0, 0, 1))
            };
            let alone = answer(17, &[17]);
            for (l, lengths) in [(40, vec![17]), (30, vec![17, 30, 1])] {
                assert_close(&format!("{form:?} {pool:?} {l}"), &answer(l, &lengths), &alone, 1e-5);
            }
        }
    }
}

#[test]
fn what_it_cannot_do_is_named() {
    let causal = ModelConfig { bidirectional: false, ..config(4, Form::Auto) };
    let error = Mixer::new(&causal, 10, 0, &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("fnet") && error.contains("set bidirectional to true"), "{error}");
    let mixer = Mixer::new(&config(4, Form::Auto), 10, 0, &Device::flex()).unwrap();
    assert!(mixer.get().state(1).unwrap_err().to_string().contains("FNet"));
    assert!(mixer.get().at_step(2.0).unwrap_err().to_string().contains("rate"));
    let error = mixer.get().check_len(11).unwrap_err().to_string();
    assert!(error.contains("up to 10"), "{error}");
    assert!(mixer.get().check_len(0).is_err() && mixer.get().check_len(10).is_ok());
}
