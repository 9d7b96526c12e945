//! A long stream in windows, with what they leave behind carried over.

use crate::common::configs::{s4d, small};
use crate::common::random::Random;
use crate::common::{assert_close, device, grads, values};
use burn::tensor::DType;
use dss_nn::config::{
    Delta, DssConfig, Form, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Positions,
    Variant,
};
use dss_nn::{Carry, Input, Mode, Model};

const WINDOW: usize = 20;
const IO: ModelIo = ModelIo {
    input: InputKind::Values { channels: 2 },
    output: OutputKind::Position { outputs: 3 },
    len: WINDOW,
};

fn mixer(variant: Variant, prenorm: bool) -> DssConfig {
    let delta = if prenorm { Delta::Separate } else { Delta::Tied };
    // Slow modes: they reach from window to window.
    let (delta_min, delta_max) = (0.001, 0.01);
    DssConfig { n: 4, variant, delta, delta_min, delta_max, glu: prenorm, ..DssConfig::default() }
}

fn config(variant: Variant, norm: NormKind, prenorm: bool) -> ModelConfig {
    ModelConfig { norm, prenorm, ..small(8, mixer(variant, prenorm)) }
}

#[test]
fn windows_make_the_whole() {
    let windows = 4;
    let x = Random::new(1, DType::F64).tensor([3, windows * WINDOW, 2]);
    for variant in [Variant::Exp, Variant::ExpNoScale] {
        for form in [Form::Fused, Form::Composed] {
            for (norm, prenorm) in [(NormKind::Layer, true), (NormKind::Batch, false)] {
                let config = ModelConfig { form, ..config(variant, norm, prenorm) };
                let model = Model::new(&config, &IO, 3, &device()).unwrap().cast(DType::F64.into());
                let l = windows * WINDOW;
                let whole =
                    model.forward(Input::Values(x.clone()), &[l; 3], &model.prepare(l), Mode::Eval);
                let whole = whole.logits.reshape([3, l, 3]);
                let prepared = model.prepare(WINDOW);
                let mut carry = Carry::new(&model, 3).unwrap();
                let mut alone = 0.0f64;
                for i in 0..windows {
                    let part = Input::Values(x.clone().narrow(1, i * WINDOW, WINDOW));
                    let fresh = model.forward(part.clone(), &[WINDOW; 3], &prepared, Mode::Eval);
                    let y = model.forward_carried(part, &prepared, Mode::Eval, &mut carry).logits;
                    let want = values(&whole.clone().narrow(1, i * WINDOW, WINDOW));
                    let what = format!("{variant:?} {form:?} {norm:?} window {i}");
                    assert_close(&what, &values(&y), &want, 1e-10);
                    let differs = values(&fresh.logits).into_iter().zip(want);
                    alone = differs.fold(alone, |max, (a, b)| max.max((a - b).abs()));
                    // As from a file.
                    carry = Carry::new(&model, 3).unwrap().with_data(carry.to_data()).unwrap();
                }
                assert!(alone > 1e-2, "the past must matter: {alone}");
            }
        }
    }
}

#[test]
fn fused_is_composed_in_all_gradients() {
    let mut random = Random::new(2, DType::F64);
    let [first, second] = [0, 1].map(|_| Input::Values(random.tensor([3, WINDOW, 2])));
    let weight = random.tensor([3 * WINDOW, 3]);
    let run = |form| {
        let config = ModelConfig { form, ..config(Variant::Exp, NormKind::Layer, true) };
        let model = Model::new(&config, &IO, 3, &device()).unwrap().cast(DType::F64.into());
        let prepared = model.prepare(WINDOW);
        let mut carry = Carry::new(&model, 3).unwrap();
        model.forward_carried(first.clone(), &prepared, Mode::Eval, &mut carry);
        let y = model.forward_carried(second.clone(), &prepared, Mode::Eval, &mut carry).logits;
        let gradients = (y * weight.clone()).sum().backward();
        grads(&model, &gradients)
    };
    let (fused, composed) = (run(Form::Fused), run(Form::Composed));
    assert!(fused.contains_key("layers.1.mixer.w"));
    assert!(fused.keys().eq(composed.keys()));
    for (name, fused) in fused {
        assert_close(&name, &fused, &composed[&name], 1e-9);
    }
}

#[test]
fn models_that_cannot_be_carried_are_refused() {
    let plain = config(Variant::Exp, NormKind::Layer, true);
    let softmax = mixer(Variant::Softmax, true);
    let cut = DssConfig { kernel_len: 7, ..mixer(Variant::Exp, true) };
    for (word, config) in [
        ("variant", ModelConfig { mixer: softmax.into(), ..plain.clone() }),
        ("mixer", ModelConfig { mixer: s4d(4).into(), ..plain.clone() }),
        ("bidirectional", ModelConfig { bidirectional: true, ..plain.clone() }),
        ("kernel_len", ModelConfig { mixer: cut.into(), ..plain.clone() }),
        ("positions", ModelConfig { positions: Positions::Fixed, ..plain.clone() }),
    ] {
        let model = Model::new(&config, &IO, 3, &device()).unwrap();
        let error = Carry::new(&model, 2).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let model = Model::new(&plain, &IO, 3, &device()).unwrap();
    let other = Carry::new(&model, 2).unwrap().to_data();
    assert!(Carry::new(&model, 3).unwrap().with_data(other).is_err());
}
