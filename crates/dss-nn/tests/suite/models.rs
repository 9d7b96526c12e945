//! Whole models: seeds, initial laws, dropout, shared kernels, forms, settings.

use std::collections::BTreeMap;

use crate::common::configs::{self, dss, kernel_len, mixers, s4, s4d};
use crate::common::random::Random;
use crate::common::{assert_close, device, grads, values};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use dss_nn::config::{
    DssConfig, Form, InputKind, LambdaInit, ModelConfig, ModelIo, NormKind, OutputKind, Pool,
    Positions, Variant,
};
use dss_nn::{DropoutKey, Error, Input, Mixer, Mode, Model, PreparedModel};

const IO: ModelIo = ModelIo {
    input: InputKind::Values { channels: 2 },
    output: OutputKind::Position { outputs: 3 },
    len: 30,
};

fn small() -> ModelConfig {
    configs::small(8, dss(4))
}

fn input(seed: u64) -> Input {
    Input::Values(Random::new(seed, burn::tensor::DType::F32).tensor([3, 30, 2]))
}

fn train(step: u64) -> Mode {
    Mode::Train { dropout: DropoutKey { seed: 1, step, micro: 0 } }
}

#[test]
fn a_seed_is_a_model() {
    for mixer in mixers(4, 0) {
        let config = ModelConfig { mixer: mixer.clone(), ..small() };
        let new = |config, seed| Model::new(config, &IO, seed, &Device::flex()).unwrap();
        let numbers = |seed| new(&config, seed).named_tensors();
        assert_eq!(numbers(1), numbers(1));
        let (a, b) = (numbers(1), numbers(2));
        for ((name, a), (_, b)) in a.iter().zip(&b) {
            let fixed = name.contains("norm")
                || name.contains("lambda")
                || name.ends_with("mixer.p")
                || name.ends_with("mixer.b");
            assert_eq!(a == b, fixed, "{mixer:?} {name}");
        }
        // A parameter's numbers do not depend on what else there is.
        let deeper = ModelConfig { layers: 4, prenorm: true, ..config.clone() };
        let deeper: BTreeMap<_, _> = new(&deeper, 1).named_tensors().into_iter().collect();
        assert!(a.iter().all(|(name, numbers)| &deeper[name] == numbers));
    }
}

fn lambda_of(model: &Model) -> Vec<f64> {
    let Mixer::Dss(layer) = &model.layers[0].mixer else { panic!("not DSS") };
    values(&layer.lambda.val())
}

#[test]
fn initial_laws() {
    let io = ModelIo { input: InputKind::Tokens { vocab: 50 }, ..IO };
    let new = |mixer: DssConfig| {
        let config = ModelConfig { layers: 1, ..configs::small(200, mixer) };
        Model::new(&config, &io, 4, &Device::flex()).unwrap()
    };
    let model = new(dss(64));
    let tensors: BTreeMap<_, _> = model.named_tensors().into_iter().collect();
    let of = |name: &str| -> Vec<f64> { tensors[name].iter::<f32>().map(f64::from).collect() };
    for name in ["encoder.weight", "layers.0.mixer.w", "layers.0.mixer.d"] {
        let x = of(name);
        let variance = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        assert!((variance - 1.0).abs() < 6.0 / (x.len() as f64).sqrt(), "{name}: {variance}");
    }
    let bound = 1.0 / 200f64.sqrt();
    for name in ["layers.0.mixer.out.weight", "layers.0.mixer.out.bias", "head.weight"] {
        let largest = of(name).iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(largest <= bound * 1.000001 && largest > 0.9 * bound, "{name}: {largest}");
    }
    let range = 0.001f64.ln() - 1e-6..=0.1f64.ln() + 1e-6;
    assert!(of("layers.0.mixer.delta_log").iter().all(|x| range.contains(x)));
    assert!(of("layers.0.mixer.lambda").chunks(2).all(|z| z[0] == -0.5 && z[1] > 0.0));
    let lambda = lambda_of(&new(DssConfig { variant: Variant::Exp, ..dss(64) }));
    assert!(lambda.chunks(2).all(|z| (z[0] - 0.5f64.ln()).abs() < 1e-6));
    let lambda = lambda_of(&new(DssConfig { lambda_init: LambdaInit::Random, ..dss(64) }));
    assert!(lambda.iter().step_by(2).any(|x| *x > 0.0));
}

#[test]
fn dropout_is_a_function_of_its_key() {
    let config = ModelConfig { dropout: 0.3, ..small() };
    let model = Model::new(&config, &IO, 1, &device()).unwrap();
    let prepared = model.prepare(30);
    let run = |mode| values(&model.forward(input(1), &[30; 3], &prepared, mode).logits);
    assert_eq!(run(train(1)), run(train(1)));
    assert_ne!(run(train(1)), run(train(2)));
    assert_ne!(run(train(1)), run(Mode::Eval));
}

/// Two micro-batches that share their kernels: the gradients are those of both passes with kernels of their own.
#[test]
fn shared_kernels_accumulate() {
    let config = ModelConfig { norm: NormKind::Layer, ..small() };
    let model = Model::new(&config, &IO, 1, &device()).unwrap();
    let loss = |seed: u64, prepared: &PreparedModel| {
        model.forward(input(seed), &[30, 20, 7], prepared, train(1)).logits.square().sum()
    };
    let own = |seed| loss(seed, &model.prepare(30));
    let want = grads(&model, &(own(1) + own(2)).backward());

    let prepared = model.prepare(30);
    let mut sums: Vec<Option<Tensor<3>>> = vec![None; 2];
    let mut got: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut add = |more: BTreeMap<String, Vec<f64>>| {
        for (name, more) in more {
            let sum = got.entry(name).or_insert_with(|| vec![0.0; more.len()]);
            sum.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        }
    };
    for seed in [1, 2] {
        let leaves = prepared.leaves();
        let back = loss(seed, &leaves).backward();
        for (sum, more) in sums.iter_mut().zip(leaves.grads(&back)) {
            let more = more.expect("a gradient of every kernel");
            *sum = Some(match sum.take() {
                Some(sum) => sum + more,
                None => more,
            });
        }
        add(grads(&model, &back));
    }
    let sums = sums.into_iter().map(Option::unwrap).collect();
    let surrogate = prepared.surrogate(sums).expect("kernels");
    add(grads(&model, &surrogate.backward()));
    assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
    for (name, want) in want {
        assert_close(&name, &got[&name], &want, 1e-4);
    }
}

/// Kernels are the same whatever the length of the batch, so the shorter ones are the beginning of the longer ones.
#[test]
fn shorter_kernels_are_cut_from_longer_ones() {
    let mixers = [0, 12].into_iter().flat_map(|kernel_len| {
        let random = DssConfig { kernel_len, lambda_init: LambdaInit::Random, ..dss(4) };
        [random.into()].into_iter().chain(mixers(4, kernel_len))
    });
    for mixer in mixers {
        let config = ModelConfig { mixer, ..small() };
        let model = Model::new(&config, &IO, 1, &Device::flex()).unwrap();
        for l in [1, 11, 29] {
            let (own, cut) = (model.prepare(l), model.cut(&model.prepare(30), l));
            assert_eq!(cut.sequence_len(), l);
            assert_eq!(cut.kernels().count(), 2);
            for (own, cut) in own.kernels().zip(cut.kernels()) {
                assert_eq!(own.dims(), cut.dims());
                assert_close("K", &values(cut), &values(own), 1e-5);
            }
        }
    }
}

#[test]
fn outputs_have_their_shapes() {
    for (output, shape) in [
        (OutputKind::Sequence { outputs: 5 }, [4, 5]),
        (OutputKind::Position { outputs: 5 }, [4 * 30, 5]),
        (OutputKind::Pair { outputs: 5 }, [2, 5]),
    ] {
        let io = ModelIo { output, ..IO };
        let model = Model::new(&small(), &io, 1, &Device::flex()).unwrap();
        let x = Tensor::zeros([4, 30, 2], &Device::flex());
        let output = model.forward(Input::Values(x), &[30; 4], &model.prepare(30), Mode::Eval);
        assert_eq!(output.logits.dims(), shape);
    }
}

/// Without autodiff, and with it switched on later.
#[test]
fn training_can_be_switched_on() {
    let model = Model::new(&small(), &IO, 1, &Device::flex()).unwrap().train();
    let loss = model.forward(input(1), &[30; 3], &model.prepare(30), train(1)).logits.sum();
    let got = grads(&model, &loss.backward());
    let trained = model.parameters().into_iter().filter(|p| p.trained).count();
    assert_eq!(got.len(), trained);
}

#[test]
fn settings_out_of_range_are_named() {
    let bad = [
        (ModelConfig { layers: 0, ..small() }, "layers"),
        (ModelConfig { h: 0, ..small() }, "h must"),
        (configs::small(8, dss(600)), "512"),
        (ModelConfig { dropout: 1.0, ..small() }, "dropout"),
        (ModelConfig { dropout: f64::NAN, ..small() }, "dropout"),
        (ModelConfig { norm_eps: 0.0, ..small() }, "norm_eps"),
        (configs::small(8, DssConfig { delta_min: 1.0, ..dss(4) }), "delta_min"),
        (ModelConfig { norm: NormKind::LayerScalar, form: Form::Fused, ..small() }, "composed"),
        (configs::small(8, s4(5)), "even"),
        (configs::small(8, s4d(2000)), "1024"),
    ];
    let bad = bad.map(|(config, word)| (config, IO, word));
    let cls = ModelConfig { pool: Pool::Cls, bidirectional: true, ..small() };
    let no_last_norm = ModelConfig { prenorm: false, last_norm: false, ..small() };
    let sequence = ModelIo { output: OutputKind::Sequence { outputs: 3 }, ..IO };
    let of_ends = [
        (configs::small(8, s4(4)), ModelIo { len: usize::MAX, ..IO }, "kernel_len"),
        (small(), ModelIo { len: 0, ..IO }, "length"),
        (cls, IO, "cls"),
        (ModelConfig { pool: Pool::Cls, ..small() }, sequence, "bidirectional"),
        (no_last_norm, IO, "last_norm"),
    ];
    for (config, io, word) in bad.into_iter().chain(of_ends) {
        let error = Model::new(&config, &io, 0, &Device::flex()).unwrap_err();
        let setting = matches!(error, Error::Format(dss_format::Error::Setting { .. }));
        assert!(setting && error.to_string().contains(word), "{error}");
    }
}

#[test]
fn settings_as_text() {
    let mixer = DssConfig { variant: Variant::ExpNoScale, ..dss(4) }.into();
    let config = ModelConfig { mixer, form: Form::Composed, ..small() };
    let text = serde_json::to_string(&config).unwrap();
    assert!(text.contains("\"exp-no-scale\"") && text.contains("\"skew-hippo\""), "{text}");
    assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), config);
    let partial: ModelConfig = serde_json::from_str("{\"h\": 3}").unwrap();
    assert_eq!(partial, ModelConfig { h: 3, ..ModelConfig::default() });
    assert!(serde_json::from_str::<ModelConfig>("{\"hh\": 3}").is_err());
    let io = serde_json::to_string(&IO).unwrap();
    assert_eq!(serde_json::from_str::<ModelIo>(&io).unwrap(), IO);
}

/// At half the rate a tap covers two of the old ones. Exp-no-scale has no integral over a tap: twice the first of them.
#[test]
fn a_model_runs_at_another_rate() {
    for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
        let config = configs::small(8, DssConfig { variant, kernel_len: 20, ..dss(4) });
        let model = Model::new(&config, &IO, 3, &Device::flex()).unwrap();
        let kernel = |model: &Model, l| values(&model.layers[1].mixer.get().kernel(l).unwrap());
        let full = kernel(&model, 30);
        let half = model.clone().at_rate(2.0).unwrap();
        assert_eq!((half.io().len, kernel_len(half.config())), (15, 10));
        let expected: Vec<f64> = full
            .chunks(2)
            .map(|two| match variant {
                Variant::ExpNoScale => 2.0 * two[0],
                _ => two[0] + two[1],
            })
            .collect();
        assert_close(&format!("{variant:?}"), &kernel(&half, 15), &expected, 1e-5);
        let back = half.at_rate(0.5).unwrap();
        assert_close(&format!("{variant:?} and back"), &kernel(&back, 30), &full, 1e-5);
    }
    let model = Model::new(&small(), &IO, 3, &Device::flex()).unwrap();
    for wrong in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(model.clone().at_rate(wrong).unwrap_err().to_string().contains("0.001 to 1000"));
    }
    // These are about the steps of training.
    let learned = ModelConfig { positions: Positions::Learned, ..small() };
    let fixed = ModelConfig { positions: Positions::Fixed, ..small() };
    let cls = ModelConfig { pool: Pool::Cls, bidirectional: true, ..small() };
    for (config, word) in [(learned, "positions"), (fixed, "positions"), (cls, "cls")] {
        let io = ModelIo { output: OutputKind::Sequence { outputs: 3 }, ..IO };
        let model = Model::new(&config, &io, 3, &Device::flex()).unwrap();
        assert!(model.at_rate(2.0).unwrap_err().to_string().contains(word));
    }
}
