//! Softmax attention and the Transformer of the Long Range Arena: golden files, forms, padding, steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, FloatDType, Gradients, Int, Tensor, TensorData};
use dss_nn::config::{
    AttentionConfig, Form, Gelu, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool,
    Positions,
};
use dss_nn::mixer::Pass;
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, assert_gradient, device, tensor, values};

fn layer(config: AttentionConfig, bidirectional: bool, form: Form) -> ModelConfig {
    ModelConfig { h: 16, mixer: config.into(), bidirectional, form, ..ModelConfig::default() }
}

#[test]
fn golden_attention() {
    let golden = Golden::read("attention").unwrap();
    let (batch, l, h) = (2, golden.usize("L"), golden.usize("H"));
    let lengths: Vec<usize> = golden.get("lengths").iter().map(|&x| x as usize).collect();
    for form in FORMS {
        for (prefix, causal, masked) in [
            ("", false, false),
            ("masked.", false, true),
            ("causal.", true, false),
            ("causal_masked.", true, true),
        ] {
            let settings = AttentionConfig { heads: golden.usize("heads"), bias: true, width: 0 };
            let config = layer(settings, !causal, form);
            let Mixer::Attention(mut layer) = Mixer::new(&config, l, 0, &device()).unwrap() else {
                panic!("not attention")
            };
            for (name, map) in [
                ("q", &mut layer.q),
                ("k", &mut layer.k),
                ("v", &mut layer.v),
                ("out", &mut layer.out),
            ] {
                let weight = golden.tensor(&format!("{name}.weight"), [h, h]).require_grad();
                let bias = golden.tensor(&format!("{name}.bias"), [h]).require_grad();
                map.weight = Param::from_tensor(weight);
                map.bias = Some(Param::from_tensor(bias));
            }
            let u = golden.tensor("u", [batch, l, h]).require_grad();
            let pass =
                Pass { lengths: masked.then(|| Arc::from(lengths.as_slice())), ..Pass::default() };
            let mixer = Mixer::Attention(layer.clone());
            let prepared = mixer.get().prepare(l).unwrap();
            let y = mixer.get().mix(u.clone(), &prepared, &pass);
            let seen: Vec<f64> = (0..batch * l * h)
                .map(|i| f64::from(!masked || i / h % l < lengths[i / (h * l)]))
                .collect();
            let y = y * tensor(&seen, [batch, l, h]);
            let what = |name: &str| format!("{form:?} {prefix}{name}");
            assert_close(&what("y"), &values(&y), golden.get(&format!("{prefix}y")), 1e-11);
            let grads = (y * golden.tensor("g", [batch, l, h])).sum().backward();
            let wanted = |name: &str| golden.get(&format!("{prefix}grad.{name}"));
            let largest = golden
                .names()
                .filter(|name| name.starts_with(&format!("{prefix}grad.")))
                .flat_map(|name| golden.get(name))
                .fold(0.0f64, |m, x| m.max(x.abs()));
            let of = |x: Option<Vec<f64>>| x.expect("a gradient");
            assert_gradient(
                &what("u"),
                &of(u.grad(&grads).map(|g| values(&g))),
                wanted("u"),
                largest,
            );
            for (name, map) in
                [("q", &layer.q), ("k", &layer.k), ("v", &layer.v), ("out", &layer.out)]
            {
                let weight = of(map.weight.val().grad(&grads).map(|g| values(&g)));
                let name_of = |part: &str| format!("{name}.{part}");
                assert_gradient(
                    &what(&name_of("weight")),
                    &weight,
                    wanted(&name_of("weight")),
                    largest,
                );
                let bias = map.bias.as_ref().unwrap().val().grad(&grads).map(|g| values(&g));
                assert_gradient(
                    &what(&name_of("bias")),
                    &of(bias),
                    wanted(&name_of("bias")),
                    largest,
                );
            }
        }
    }
}

/// The name in the golden file of one of our tensors.
fn golden_name(name: &str) -> String {
    let name = name.replace("layers.", "block.").replace(".mixer.", ".");
    let name = name.replace(".ff_norm.", ".norm2.").replace(".ff.hidden.", ".ff1.");
    let name = name.replace(".ff.out.", ".ff2.").replace("encoder.weight", "embedding");
    if name.starts_with("block.") { name.replace(".norm.", ".norm1.") } else { name }
}

fn gradients(model: &Model, grads: &Gradients) -> BTreeMap<String, Vec<f64>> {
    struct Visit<'a>(&'a Gradients, Vec<Vec<f64>>);
    impl ModuleVisitor for Visit<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push(values(&param.val().grad(self.0).expect("a gradient of every parameter")));
        }
    }
    let mut visit = Visit(grads, Vec::new());
    model.visit(&mut visit);
    model.parameters().into_iter().map(|p| p.name).zip(visit.1).collect()
}

fn golden_config(golden: &Golden, form: Form) -> (ModelConfig, ModelIo) {
    let io = ModelIo {
        input: InputKind::Tokens { vocab: golden.usize("vocab") },
        output: OutputKind::Sequence { outputs: golden.usize("classes") },
        len: golden.usize("L"),
    };
    let (heads, width) = (golden.usize("heads"), golden.usize("qkv"));
    let config = ModelConfig {
        layers: golden.usize("layers"),
        h: golden.usize("H"),
        mixer: AttentionConfig { heads, width, bias: false }.into(),
        bidirectional: true,
        norm: NormKind::Layer,
        norm_eps: 1e-6,
        prenorm: true,
        ff: golden.usize("ff"),
        gelu: Gelu::Tanh,
        positions: Positions::Fixed,
        pool: Pool::Cls,
        head_hidden: golden.usize("ff"),
        form,
        ..ModelConfig::default()
    };
    (config, io)
}

/// The model in f64 with the file's numbers, and 0 where a name of a block contains one of `zeroed`.
fn golden_model(golden: &Golden, config: &ModelConfig, io: &ModelIo, zeroed: &[&str]) -> Model {
    let model = Model::new(config, io, 0, &device()).unwrap().cast(FloatDType::F64);
    let tensors = model.parameters().into_iter().map(|p| {
        let mut values = golden.get(&golden_name(&p.name)).to_vec();
        if p.name.starts_with("layers.") && zeroed.iter().any(|part| p.name.contains(part)) {
            values.fill(0.0);
        }
        (p.name, TensorData::new(values, p.shape))
    });
    let tensors = tensors.collect();
    model.load_named(tensors).unwrap()
}

fn golden_tokens(golden: &Golden) -> Tensor<2, Int> {
    let tokens: Vec<i64> = golden.get("tokens").iter().map(|&x| x as i64).collect();
    Tensor::from_data(TensorData::new(tokens, [golden.usize("B"), golden.usize("L")]), &device())
}

#[test]
fn golden_transformer() {
    let golden = Golden::read("model_transformer_lra").unwrap();
    let (batch, l) = (golden.usize("B"), golden.usize("L"));
    let lengths: Vec<usize> = golden.get("lengths").iter().map(|&x| x as usize).collect();
    for form in FORMS {
        let (config, io) = golden_config(&golden, form);
        let model = golden_model(&golden, &config, &io, &[]);
        let input = Input::Tokens(golden_tokens(&golden));
        let y = model.forward(input, &lengths, &model.prepare(l), Mode::Eval).logits;
        assert_close(&format!("{form:?} y"), &values(&y), golden.get("y"), 1e-11);
        let outputs = golden.usize("classes");
        let grads = (y * golden.tensor("g", [batch, outputs])).sum().backward();
        let found = gradients(&model, &grads);
        let wanted = |name: &str| golden.get(&format!("grad.{}", golden_name(name)));
        let all = found.keys().flat_map(|name| wanted(name));
        let largest = all.fold(0.0f64, |m, x| m.max(x.abs()));
        for (name, got) in &found {
            assert_gradient(&format!("{form:?} {name}"), got, wanted(name), largest);
        }
        let of_file = golden.names().filter(|name| name.starts_with("grad.")).count();
        assert_eq!(found.len(), of_file, "gradients");
    }
}

/// What the first block of the golden model gets and gives, at the true positions: a model of that block alone, without a
/// last norm; where its two parts add 0 it gives what it gets.
#[test]
fn golden_parts_of_transformer() {
    let golden = Golden::read("model_transformer_lra").unwrap();
    let (batch, l, h) = (golden.usize("B"), golden.usize("L"), golden.usize("H"));
    let lengths: Vec<usize> = golden.get("lengths").iter().map(|&x| x as usize).collect();
    for form in FORMS {
        let (config, io) = golden_config(&golden, form);
        let config = ModelConfig { layers: 1, last_norm: false, ..config };
        for (part, zeroed) in [("part.block.0", &[][..]), ("part.embedded", &[".out."])] {
            let model = golden_model(&golden, &config, &io, zeroed);
            let tokens = Input::Tokens(golden_tokens(&golden));
            let (x, _) = model.hidden(tokens, &lengths, &model.prepare(l), Mode::Eval);
            // With the learned vector in front.
            let true_positions = (0..batch * (l + 1)).map(|i| i % (l + 1) <= lengths[i / (l + 1)]);
            let places: Vec<usize> =
                true_positions.enumerate().filter(|(_, counts)| *counts).map(|(i, _)| i).collect();
            let at = |x: &[f64]| -> Vec<f64> {
                places.iter().flat_map(|i| &x[i * h..][..h]).copied().collect()
            };
            assert_close(
                &format!("{form:?} {part}"),
                &at(&values(&x)),
                &at(golden.get(part)),
                1e-11,
            );
        }
    }
}

/// Sequences never depend on their batch or on padding, causal or not, in both forms.
#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: 40,
    };
    let x = Random::new(1, burn::tensor::DType::F64).numbers(40 * 2);
    for form in FORMS {
        for (bidirectional, pool) in [(true, Pool::Cls), (true, Pool::Mean), (false, Pool::Last)] {
            let config = ModelConfig {
                layers: 2,
                norm: NormKind::Layer,
                ff: 12,
                positions: Positions::Learned,
                pool,
                ..layer(AttentionConfig::default(), bidirectional, form)
            };
            let model = Model::new(&config, &io, 3, &Device::flex()).unwrap();
            let answer = |l: usize, lengths: &[usize]| {
                let all: Vec<f64> = lengths.iter().flat_map(|_| x[..2 * l].to_vec()).collect();
                let all = TensorData::new(all, [lengths.len(), l, 2]);
                let input = Input::Values(Tensor::from_data(all, &Device::flex()));
                let y = model.forward(input, lengths, &model.prepare(l), Mode::Eval).logits;
                values(&y.narrow(0, 0, 1))
            };
            let alone = answer(17, &[17]);
            for (l, lengths) in [(40, vec![17]), (30, vec![17, 30, 1])] {
                assert_close(&format!("{config:?} {l}"), &answer(l, &lengths), &alone, 1e-5);
            }
        }
    }
}

#[test]
fn causal_attention_steps() {
    let (b, l) = (2, 30);
    let config = layer(AttentionConfig { heads: 2, width: 8, bias: true }, false, Form::Auto);
    let mixer = Mixer::new(&config, l, 4, &Device::flex()).unwrap();
    let u = Random::new(1, burn::tensor::DType::F32).numbers(b * l * 16);
    let u = Tensor::<3>::from_data(TensorData::new(u, [b, l, 16]), &Device::flex());
    let whole = mixer.forward(u.clone());
    let mut state = mixer.get().state(b).unwrap();
    for t in 0..l {
        let mut fork = state.clone();
        let u = u.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
        let y = mixer.get().step(&mut state, u.clone()).unwrap();
        assert_eq!(values(&y), values(&mixer.get().step(&mut fork, u).unwrap()));
        let want = whole.clone().narrow(1, t, 1);
        assert_close(&format!("t = {t}"), &values(&y), &values(&want), 1e-5);
    }
    let config = ModelConfig { bidirectional: true, ..config };
    let mixer = Mixer::new(&config, l, 4, &Device::flex()).unwrap();
    assert!(mixer.get().state(1).unwrap_err().to_string().contains("bidirectional"));
}

#[test]
fn settings_that_do_not_fit_are_named() {
    for (config, word) in [
        (AttentionConfig { heads: 0, ..Default::default() }, "heads"),
        (AttentionConfig { heads: 5, ..Default::default() }, "try 4"),
        (AttentionConfig { heads: 3, width: 8, ..Default::default() }, "width 8"),
    ] {
        let config = layer(config, true, Form::Auto);
        let error = Mixer::new(&config, 10, 0, &Device::flex()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let config = layer(AttentionConfig::default(), false, Form::Auto);
    let mixer = Mixer::new(&config, 10, 0, &Device::flex()).unwrap();
    assert!(mixer.get().at_step(2.0).unwrap_err().to_string().contains("rate"));
    assert!(mixer.get().check_len(0).is_err() && mixer.get().check_len(1 << 20).is_ok());
    let cls = ModelConfig { pool: Pool::Cls, ..config };
    assert!(cls.validate(10).unwrap_err().to_string().contains("bidirectional"));
}
