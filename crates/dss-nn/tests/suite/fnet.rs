//! FNet: its golden file, forms, the adjoint.

use burn::tensor::{DType, Device};
use dss_nn::Mixer;
use dss_nn::config::{FnetConfig, Form, ModelConfig};

use crate::common::layers::mixed;
use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, device, tensor, values};

fn config(h: usize, form: Form) -> ModelConfig {
    let mixer = FnetConfig {}.into();
    ModelConfig { h, mixer, bidirectional: true, form, ..ModelConfig::default() }
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
            let y = mixed(&mixer, u.clone(), lengths);
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
            let grads = (mixed(&mixer, u.clone(), lengths) * g.clone()).sum().backward();
            let du = values(&u.grad(&grads).expect("a gradient"));
            assert_close("du", &du, &values(&mixed(&mixer, g.clone(), lengths)), 1e-12);
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
