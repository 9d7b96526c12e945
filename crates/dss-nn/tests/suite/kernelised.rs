//! Linear attention and Performer: golden files, forms, padding, causality, steps.

use std::sync::Arc;

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_kernels::kernelised::{FeatureMap, KernelisedConfig, KernelisedState};
use dss_nn::config::{
    Form, InputKind, LinearAttentionConfig, MixerConfig, ModelConfig, ModelIo, NormKind,
    OutputKind, PerformerConfig, PerformerKernel, Pool,
};
use dss_nn::mixer::Pass;
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::layers::{check_golden, loaded};
use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, device, values};

fn linear(bias: bool) -> MixerConfig {
    LinearAttentionConfig { heads: 2, width: 0, bias }.into()
}

fn relu(bias: bool) -> MixerConfig {
    PerformerConfig { heads: 2, bias, ..PerformerConfig::default() }.into()
}

fn favor(features: usize, project: bool, bias: bool) -> MixerConfig {
    let kernel = PerformerKernel::Favor;
    let performer = PerformerConfig { heads: 2, kernel, features, project, bias, width: 0 };
    performer.into()
}

fn layer(mixer: MixerConfig, bidirectional: bool, form: Form) -> ModelConfig {
    ModelConfig { h: 16, mixer, bidirectional, form, ..ModelConfig::default() }
}

/// The golden file's name of one of our tensors.
fn golden_name(ours: &str) -> String {
    ours.replace("features", "random.w")
}

/// Values and gradients of all cases in both forms.
fn check(name: &str, mixer: &MixerConfig) {
    let Some(golden) = Golden::read(name) else { return };
    for form in FORMS {
        for (prefix, causal, masked) in
            [("", false, false), ("masked.", false, true), ("causal.", true, false)]
        {
            if golden.has(&format!("{prefix}y")) {
                let config = layer(mixer.clone(), !causal, form);
                check_golden(&golden, prefix, &config, masked, golden_name);
            } else {
                assert!(causal, "every file has the other two cases");
            }
        }
    }
}

#[test]
fn golden_linear_attention() {
    check("linear_attention", &linear(true));
}

#[test]
fn golden_performer() {
    check("performer_relu", &relu(true));
    check("performer_softmax", &favor(20, true, true));
    check("performer_noproj", &favor(20, false, false));
}

/// Causal attention is its recurrence.
#[test]
fn golden_steps() {
    for (name, mixer) in [
        ("linear_attention", linear(true)),
        ("performer_relu", relu(true)),
        ("performer_softmax", favor(20, true, true)),
    ] {
        let Some(golden) = Golden::read(name) else { return };
        let (batch, l, h) = (golden.usize("B"), golden.usize("L"), golden.usize("H"));
        let mixer = Mixer::new(&layer(mixer, false, Form::Auto), l, 0, &device()).unwrap();
        let mixer = loaded(mixer, &|ours| golden.get(&golden_name(ours)).to_vec());
        let u = golden.tensor("u", [batch, l, h]);
        let mut state = mixer.get().state(batch).unwrap();
        let steps = (0..l).map(|t| {
            let u = u.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
            mixer.get().step(&mut state, u).unwrap()
        });
        let y: Tensor<3> = Tensor::stack(steps.collect(), 1);
        assert_close(name, &values(&y), golden.get("causal.y"), 1e-11);
    }
}

/// The sums S and z after the last position are the golden file's.
#[test]
fn golden_sums() {
    let Some(golden) = Golden::read("linear_attention") else { return };
    let (batch, l, h) = (golden.usize("B"), golden.usize("L"), golden.usize("H"));
    let (heads, head_dim) = (golden.usize("heads"), golden.usize("d_head"));
    let map = FeatureMap::EluPlusOne;
    let config =
        KernelisedConfig { batch: 1, len: 1, heads, head_dim, causal: true, map, eps: 1e-6 };
    let rows = |name: &str, b: usize| -> Vec<f64> {
        let u: Tensor<2> = golden.tensor("u", [batch * l, h]).narrow(0, b * l, l);
        let weight: Tensor<2> = golden.tensor(&format!("{name}.weight"), [h, h]);
        let bias: Tensor<2> = golden.tensor(&format!("{name}.bias"), [1, h]);
        values(&(u.matmul(weight.transpose()) + bias))
    };
    for b in 0..batch {
        let mut state = KernelisedState::new::<f64>(&config, &[]).unwrap();
        let [q, k, v] = ["q", "k", "v"].map(|name| rows(name, b));
        state.step(&q, &k, &v, &mut vec![0.0; l * h]).unwrap();
        let (s, z) = state.sums().split_at(heads * head_dim * head_dim);
        let own = |name: &str, size: usize| golden.get(name)[b * size..][..size].to_vec();
        assert_close("S", s, &own("causal.s", s.len()), 1e-11);
        assert_close("z", z, &own("causal.z", z.len()), 1e-11);
    }
}

fn all_mixers() -> [MixerConfig; 4] {
    [linear(false), relu(true), favor(9, true, false), favor(0, false, false)]
}

/// More positions than a chunk, with lengths, in f32: forms agree, values and gradients of u.
#[test]
fn forms_agree() {
    let (b, l) = (3, 150);
    let lengths = [150, 64, 65];
    for mixer in all_mixers() {
        for bidirectional in [false, true] {
            let run = |form: Form| {
                let config = layer(mixer.clone(), bidirectional, form);
                let mixer = Mixer::new(&config, l, 4, &device()).unwrap();
                let u = Random::new(1, DType::F32).numbers(b * l * 16);
                let u = TensorData::new(u, [b, l, 16]);
                let u = Tensor::<3>::from_data(u, (&device(), DType::F32)).require_grad();
                let pass = Pass { lengths: Some(Arc::from(lengths)), ..Pass::default() };
                let y = mixer.get().mix(u.clone(), &mixer.get().prepare(l).unwrap(), &pass);
                let weight: Tensor<3> = Tensor::from_data(
                    TensorData::new(Random::new(2, DType::F32).numbers(b * l * 16), [b, l, 16]),
                    (&device(), DType::F32),
                );
                let grads = (y.clone() * weight).sum().backward();
                (values(&y), values(&u.grad(&grads).expect("a gradient")))
            };
            let [(y, du), (want, wanted)] = [Form::Fused, Form::Composed].map(run);
            let what = format!("{mixer:?} {bidirectional}");
            assert_close(&what, &y, &want, 1e-5);
            assert_close(&what, &du, &wanted, 1e-3);
        }
    }
}

/// Sequences never depend on their batch or on padding, in both forms.
#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: 90,
    };
    let x = Random::new(1, DType::F64).numbers(90 * 2);
    for form in FORMS {
        for mixer in all_mixers() {
            for (bidirectional, pool) in
                [(true, Pool::Cls), (true, Pool::Mean), (false, Pool::Last)]
            {
                let config = ModelConfig {
                    layers: 2,
                    norm: NormKind::Layer,
                    pool,
                    ..layer(mixer.clone(), bidirectional, form)
                };
                let model = Model::new(&config, &io, 3, &Device::flex()).unwrap();
                let answer = |l: usize, lengths: &[usize]| {
                    // The others are another sequence, with larger numbers.
                    let scale = |i: usize| if i == 0 { 1.0 } else { -4.0 };
                    let all = (0..lengths.len())
                        .flat_map(|i| x[..2 * l].iter().map(move |x| scale(i) * x));
                    let all = TensorData::new(all.collect::<Vec<f64>>(), [lengths.len(), l, 2]);
                    let input = Input::Values(Tensor::from_data(all, &Device::flex()));
                    let y = model.forward(input, lengths, &model.prepare(l), Mode::Eval).logits;
                    values(&y.narrow(0, 0, 1))
                };
                let alone = answer(66, &[66]);
                for (l, lengths) in [(90, vec![66]), (80, vec![66, 80, 1])] {
                    let what = format!("{config:?} {l}");
                    assert_close(&what, &answer(l, &lengths), &alone, 1e-5);
                }
            }
        }
    }
}

/// A causal layer gives the same up to a position whatever follows it, and its steps are the whole.
#[test]
fn causal_layers_do_not_look_ahead() {
    let (b, l) = (2, 70);
    for form in FORMS {
        for mixer in all_mixers() {
            let what = format!("{mixer:?}");
            let mixer = Mixer::new(&layer(mixer, false, form), l, 4, &Device::flex()).unwrap();
            let u = Random::new(1, DType::F32).numbers(b * l * 16);
            let u = Tensor::<3>::from_data(TensorData::new(u, [b, l, 16]), &Device::flex());
            let whole = mixer.forward(u.clone());
            for t in [1, 63, 64, 65] {
                let changed = Tensor::cat(
                    vec![u.clone().narrow(1, 0, t), u.clone().narrow(1, t, l - t) * 3.0],
                    1,
                );
                let y = mixer.forward(changed).narrow(1, 0, t);
                assert_close(&what, &values(&y), &values(&whole.clone().narrow(1, 0, t)), 1e-6);
            }
            let mut state = mixer.get().state(b).unwrap();
            for t in 0..l {
                let mut fork = state.clone();
                let u = u.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
                let y = mixer.get().step(&mut state, u.clone()).unwrap();
                assert_eq!(values(&y), values(&mixer.get().step(&mut fork, u).unwrap()));
                let want = whole.clone().narrow(1, t, 1);
                assert_close(&format!("{what} t = {t}"), &values(&y), &values(&want), 1e-5);
            }
        }
    }
    let both_ways = layer(linear(false), true, Form::Auto);
    let mixer = Mixer::new(&both_ways, l, 4, &Device::flex()).unwrap();
    assert!(mixer.get().state(1).unwrap_err().to_string().contains("bidirectional"));
}

/// The directions of FAVOR+ go with the model into its file and into another precision, and get no gradient.
#[test]
fn directions_are_kept() {
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: 10,
    };
    let config = ModelConfig { layers: 2, ..layer(favor(9, true, false), true, Form::Auto) };
    let model = |seed| Model::new(&config, &io, seed, &device()).unwrap();
    let directions = |model: &Model| {
        let tensors = model.named_tensors().into_iter();
        let found = tensors.filter(|(name, _)| name.ends_with("features"));
        found
            .map(|(_, data)| data.convert::<f64>().try_into_vec::<f64>().unwrap())
            .collect::<Vec<_>>()
    };
    let own = directions(&model(0));
    assert_eq!(own.len(), 2);
    assert!(own[0] != own[1] && own != directions(&model(1)) && own == directions(&model(0)));
    let tensors = model(0).named_tensors().into_iter().collect();
    let loaded = model(1).load_named(tensors).unwrap();
    assert_eq!(directions(&loaded), own);
    assert_eq!(directions(&loaded.cast(FloatDType::F64)), own);
    let untrained = model(0).parameters().into_iter().filter(|p| !p.trained).map(|p| p.name);
    let untrained = untrained.filter(|name| !name.contains("running"));
    assert_eq!(
        untrained.collect::<Vec<_>>(),
        ["layers.0.mixer.features", "layers.1.mixer.features"]
    );
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let performer = PerformerConfig::default();
    for (mixer, word) in [
        (LinearAttentionConfig { heads: 0, ..Default::default() }.into(), "heads"),
        (LinearAttentionConfig { heads: 5, ..Default::default() }.into(), "try 4"),
        (PerformerConfig { heads: 3, width: 8, ..performer }.into(), "width 8"),
        (PerformerConfig { features: 7, ..performer }.into(), "set it to 0"),
        (PerformerConfig { project: false, bias: true, ..performer }.into(), "set bias to false"),
        (PerformerConfig { project: false, width: 8, ..performer }.into(), "h = 16"),
    ] {
        let config = layer(mixer, true, Form::Auto);
        let error = Mixer::new(&config, 10, 0, &Device::flex()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    for mixer in all_mixers() {
        let mixer = Mixer::new(&layer(mixer, false, Form::Auto), 10, 0, &Device::flex()).unwrap();
        assert!(mixer.get().at_step(2.0).unwrap_err().to_string().contains("rate"));
        assert!(mixer.get().check_len(0).is_err() && mixer.get().check_len(1 << 20).is_ok());
    }
}
