//! Softmax attention and the Transformer of the Long Range Arena: golden files, forms, steps.

use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};
use dss_nn::config::{
    AttentionConfig, Form, Gelu, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool,
    Positions,
};
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::gradients::assert_gradients;
use crate::common::layers::check_golden;
use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, device, grads, values};

fn layer(config: AttentionConfig, bidirectional: bool, form: Form) -> ModelConfig {
    ModelConfig { h: 16, mixer: config.into(), bidirectional, form, ..ModelConfig::default() }
}

#[test]
fn golden_attention() {
    let golden = Golden::read("attention").unwrap();
    let settings = AttentionConfig { heads: golden.usize("heads"), bias: true, width: 0 };
    for form in FORMS {
        for (prefix, causal, masked) in [
            ("", false, false),
            ("masked.", false, true),
            ("causal.", true, false),
            ("causal_masked.", true, true),
        ] {
            let config = ModelConfig { h: golden.usize("H"), ..layer(settings, !causal, form) };
            check_golden(&golden, prefix, &config, masked, str::to_owned);
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
        let gradients = (y * golden.tensor("g", [batch, outputs])).sum().backward();
        let found = grads(&model, &gradients).into_iter();
        let found: Vec<_> = found.map(|(name, gradient)| (golden_name(&name), gradient)).collect();
        assert_gradients(&golden, "", &found);
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
