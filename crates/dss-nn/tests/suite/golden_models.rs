//! Whole models in both forms against golden ones, f64: activations, logits, loss, every gradient, statistics.

use std::collections::BTreeMap;

use crate::common::configs::{dss, s4};
use crate::common::{FORMS, Golden, assert_close, device, grads, names, values};
use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, FloatDType, Int, Tensor, TensorData};
use dss_nn::config::{
    DssConfig, Form, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool,
};
use dss_nn::{DropoutKey, Input, Mode, Model};

const TOLERANCE: f64 = 1e-10;

#[test]
fn token_models() {
    check("model_dss_softmax_bn_post_tok");
    check("model_dss_softmax_bn_pre_tok_last");
}

#[test]
fn value_models() {
    check("model_dss_exp_ln_pre_img");
    check("model_dss_exp_no_scale_bn_pre_img");
    check("model_dss_softmax_ln_post_img");
}

#[test]
fn s4_model() {
    check("model_s4_bn_post_tok");
}

#[test]
fn pair_model() {
    check("model_dss_softmax_retrieval");
}

fn check(name: &str) {
    let golden = Golden::read(name).unwrap();
    for form in FORMS {
        let (config, io) = settings(&golden, form);
        if form == Form::Fused && config.norm == NormKind::LayerScalar {
            assert!(
                Model::new(&config, &io, 0, &device()).is_err(),
                "no fused form of the scalar norm"
            );
            continue;
        }
        check_form(&golden, &config, &io);
    }
}

fn settings(golden: &Golden, form: Form) -> (ModelConfig, ModelIo) {
    let outputs = golden.usize("classes");
    let kernel = "sd.model.layers.0.layer.kernel";
    let config = ModelConfig {
        layers: golden.usize("n_layers"),
        h: golden.usize("d_model"),
        mixer: match golden.meta("layer") {
            Some("s4") => s4(2 * golden.shape(&format!("{kernel}.kernel.C"))[2]).into(),
            _ => {
                let dss = dss(golden.shape(&format!("{kernel}.W"))[2]);
                DssConfig { variant: golden.variant(), ..dss }.into()
            }
        },
        norm: match golden.meta("norm") {
            Some("batch") => NormKind::Batch,
            _ => NormKind::LayerScalar,
        },
        prenorm: golden.flag("prenorm"),
        pool: if golden.meta("pool") == Some("last") { Pool::Last } else { Pool::Mean },
        form,
        ..ModelConfig::default()
    };
    let input = match golden.meta("vocab") {
        Some(vocab) => InputKind::Tokens { vocab: vocab.parse().unwrap() },
        None => InputKind::Values { channels: golden.usize("d_input") },
    };
    let output = if golden.flag("retrieval") {
        OutputKind::Pair { outputs }
    } else {
        OutputKind::Sequence { outputs }
    };
    (config, ModelIo { input, output, len: golden.usize("L") })
}

fn load(golden: &Golden, config: &ModelConfig, io: &ModelIo) -> Model {
    let model = Model::new(config, io, 0, &device()).unwrap().cast(FloatDType::F64);
    let mut values = names::ours(golden, "sd.");
    let shaped = model.parameters().into_iter().map(|p| {
        let values = values.remove(&p.name).unwrap_or_else(|| panic!("no {}", p.name));
        (p.name, TensorData::new(values, p.shape))
    });
    let tensors: BTreeMap<_, _> = shaped.collect();
    assert!(values.is_empty(), "not used: {:?}", values.keys());
    model.load_named(tensors).unwrap()
}

fn check_form(golden: &Golden, config: &ModelConfig, io: &ModelIo) {
    let model = load(golden, config, io);
    let (batch, l) = (golden.shape("x")[0], io.len);
    let ints = |x: &[f64]| x.iter().map(|&x| x as i64).collect::<Vec<_>>();
    let input = match io.input {
        InputKind::Tokens { .. } => {
            let ids = TensorData::new(ints(golden.get("x")), [batch, l]);
            Input::Tokens(Tensor::from_data(ids, &device()))
        }
        InputKind::Values { channels } => Input::Values(golden.tensor("x", [batch, l, channels])),
    };
    let lengths: Vec<usize> = if golden.has("lengths") {
        golden.get("lengths").iter().map(|&x| x as usize).collect()
    } else {
        vec![l; batch]
    };
    let what = |x: &str| format!("{} {:?} {x}", golden.name, config.form);
    let close = |x: &str, got: &[f64], want: &[f64]| assert_close(&what(x), got, want, TOLERANCE);

    let prepared = model.prepare(l);
    let (hidden, stats) = model.hidden(input.clone(), &lengths, &prepared, Mode::Eval);
    assert!(stats.is_empty());
    close("hidden", &values(&hidden), golden.get("hidden_eval"));
    let output = model.forward(input.clone(), &lengths, &prepared, Mode::Eval);
    close("evaluation", &values(&output.logits), golden.get("logits_eval"));

    let mode = Mode::Train { dropout: DropoutKey { seed: 0, step: 0, micro: 0 } };
    let output = model.forward(input, &lengths, &prepared, mode);
    close("training", &values(&output.logits), golden.get("logits_train"));
    let targets = golden.get("target");
    let targets =
        Tensor::<2, Int>::from_data(TensorData::new(ints(targets), [targets.len(), 1]), &device());
    let loss = -log_softmax(output.logits, 1).gather(1, targets).mean();
    close("loss", &values(&loss), golden.get("loss_train"));

    let mut got = grads(&model, &loss.backward());
    let wanted = names::ours(golden, "grad.");
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let scale = wanted.values().map(|x| largest(x)).fold(0.0, f64::max);
    for (name, want) in wanted {
        let got = got.remove(&name).unwrap_or_else(|| panic!("no gradient of {name}"));
        // A bias in front of a BatchNorm has no effect: its gradient is 0, and what the file has is rounding.
        if largest(&want) < 1e-14 * scale {
            assert!(largest(&got) < 1e-14 * scale, "{} must be 0", what(&name));
        } else {
            close(&name, &got, &want);
        }
    }
    assert!(got.is_empty(), "more gradients than there should be: {:?}", got.keys());

    let model = model.update_stats(&output.stats);
    let after = names::ours(golden, "after_fwd.");
    let batch_norms = if config.norm == NormKind::Batch {
        config.layers + usize::from(config.prenorm)
    } else {
        0
    };
    assert_eq!(after.len(), 2 * batch_norms);
    let tensors: BTreeMap<_, _> = model.named_tensors().into_iter().collect();
    for (name, want) in after {
        let data = &tensors[&name];
        assert_eq!(data.dtype(), DType::F64);
        close(&name, data.as_slice::<f64>().unwrap(), &want);
    }
}
