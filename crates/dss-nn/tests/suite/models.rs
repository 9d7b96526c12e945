//! Whole models: seeds, initial laws, dropout, shared kernels, forms, settings.

use std::collections::BTreeMap;

use crate::common::random::Random;
use crate::common::{assert_close, device, values};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use dss_nn::config::{
    Discretisation, Form, InputKind, Io, LambdaInit, MixerKind, ModelConfig, NormKind, OutputKind,
    S4dInit, Variant,
};
use dss_nn::{DropoutKey, Error, Input, Mode, Model, Ssm};

const MIXERS: [MixerKind; 3] = [MixerKind::Dss, MixerKind::S4, MixerKind::S4d];

const IO: Io = Io {
    input: InputKind::Values { channels: 2 },
    output: OutputKind::Position { outputs: 3 },
    len: 30,
};

fn small() -> ModelConfig {
    ModelConfig { layers: 2, h: 8, n: 4, ..ModelConfig::default() }
}

fn input(seed: u64) -> Input {
    Input::Values(Random::new(seed, burn::tensor::DType::F32).tensor([3, 30, 2]))
}

fn train(step: u64) -> Mode {
    Mode::Train { dropout: DropoutKey { seed: 1, step, micro: 0 } }
}

fn grads(model: &Model, grads: &Gradients) -> BTreeMap<String, Vec<f64>> {
    struct Visit<'a>(&'a Gradients, Vec<Option<Vec<f64>>>);
    impl ModuleVisitor for Visit<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push(param.val().grad(self.0).map(|g| values(&g)));
        }
    }
    let mut visit = Visit(grads, Vec::new());
    model.visit(&mut visit);
    let names = model.parameters().into_iter().map(|p| p.name);
    names.zip(visit.1).filter_map(|(name, g)| Some((name, g?))).collect()
}

#[test]
fn a_seed_is_a_model() {
    for mixer in MIXERS {
        let config = ModelConfig { mixer, ..small() };
        let numbers = |seed| config.init(&IO, seed, &Device::flex()).unwrap().named_tensors();
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
        let deeper = deeper.init(&IO, 1, &Device::flex()).unwrap().named_tensors();
        let deeper: BTreeMap<_, _> = deeper.into_iter().collect();
        assert!(a.iter().all(|(name, numbers)| &deeper[name] == numbers));
    }
}

fn lambda_of(model: &Model) -> Vec<f64> {
    let Ssm::Dss(ssm) = &model.layers[0].mixer.ssm else { panic!("not DSS") };
    values(&ssm.lambda.val())
}

#[test]
fn initial_laws() {
    let config = ModelConfig { layers: 1, h: 200, n: 64, ..ModelConfig::default() };
    let io = Io { input: InputKind::Tokens { vocab: 50 }, ..IO };
    let model = config.init(&io, 4, &Device::flex()).unwrap();
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
    let exp = ModelConfig { variant: Variant::Exp, ..config.clone() };
    let exp = exp.init(&io, 4, &Device::flex()).unwrap();
    let lambda = lambda_of(&exp);
    assert!(lambda.chunks(2).all(|z| (z[0] - 0.5f64.ln()).abs() < 1e-6));
    let random = ModelConfig { lambda_init: LambdaInit::Random, ..config };
    let random = random.init(&io, 4, &Device::flex()).unwrap();
    let lambda = lambda_of(&random);
    assert!(lambda.iter().step_by(2).any(|x| *x > 0.0));
}

#[test]
fn dropout_is_a_function_of_its_key() {
    let config = ModelConfig { dropout: 0.3, ..small() };
    let model = config.init(&IO, 1, &device()).unwrap();
    let kernels = model.kernels(30);
    let run = |mode| values(&model.forward(input(1), &[30; 3], &kernels, mode).logits);
    assert_eq!(run(train(1)), run(train(1)));
    assert_ne!(run(train(1)), run(train(2)));
    assert_ne!(run(train(1)), run(Mode::Eval));
}

/// Two micro-batches that share their kernels: the gradients are those of both passes with kernels of their own.
#[test]
fn shared_kernels_accumulate() {
    let model = ModelConfig { norm: NormKind::Layer, ..small() }.init(&IO, 1, &device()).unwrap();
    let loss = |seed: u64, kernels: &dss_nn::Kernels| {
        model.forward(input(seed), &[30, 20, 7], kernels, train(1)).logits.square().sum()
    };
    let own = |seed| loss(seed, &model.kernels(30));
    let want = grads(&model, &(own(1) + own(2)).backward());

    let kernels = model.kernels(30);
    let mut sums: Vec<Option<Tensor<3>>> = vec![None; 2];
    let mut got: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut add = |more: BTreeMap<String, Vec<f64>>| {
        for (name, more) in more {
            let sum = got.entry(name).or_insert_with(|| vec![0.0; more.len()]);
            sum.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        }
    };
    for seed in [1, 2] {
        let leaves = kernels.leaves();
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
    add(grads(&model, &kernels.surrogate(sums).backward()));
    assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
    for (name, want) in want {
        assert_close(&name, &got[&name], &want, 1e-4);
    }
}

/// Kernels are the same whatever the length of the batch, so the shorter ones are the beginning of the longer ones.
#[test]
fn shorter_kernels_are_cut_from_longer_ones() {
    let random = ModelConfig { lambda_init: LambdaInit::Random, ..small() };
    let others = [MixerKind::S4, MixerKind::S4d].map(|mixer| ModelConfig { mixer, ..small() });
    let configs = [random].into_iter().chain(others);
    for (config, kernel_len) in configs.flat_map(|config| [(config.clone(), 0), (config, 12)]) {
        let config = ModelConfig { kernel_len, ..config };
        let model = config.init(&IO, 1, &Device::flex()).unwrap();
        for l in [1, 11, 29] {
            let (own, cut) = (model.kernels(l), model.kernels(30).cut(l));
            assert_eq!(cut.sequence_len(), l);
            for (own, cut) in own.layers().iter().zip(cut.layers()) {
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
        let io = Io { output, ..IO };
        let model = small().init(&io, 1, &Device::flex()).unwrap();
        let x = Tensor::zeros([4, 30, 2], &Device::flex());
        let output = model.forward(Input::Values(x), &[30; 4], &model.kernels(30), Mode::Eval);
        assert_eq!(output.logits.dims(), shape);
    }
}

/// Without autodiff, and with it switched on later.
#[test]
fn training_can_be_switched_on() {
    let model = small().init(&IO, 1, &Device::flex()).unwrap().train();
    let loss = model.forward(input(1), &[30; 3], &model.kernels(30), train(1)).logits.sum();
    let got = grads(&model, &loss.backward());
    let trained = model.parameters().into_iter().filter(|p| p.trained).count();
    assert_eq!(got.len(), trained);
}

#[test]
fn settings_out_of_range_are_named() {
    let bad = [
        (ModelConfig { layers: 0, ..small() }, "layers"),
        (ModelConfig { h: 0, ..small() }, "h must"),
        (ModelConfig { n: 600, ..small() }, "512"),
        (ModelConfig { dropout: 1.0, ..small() }, "dropout"),
        (ModelConfig { dropout: f64::NAN, ..small() }, "dropout"),
        (ModelConfig { delta_min: 1.0, ..small() }, "delta_min"),
        (ModelConfig { norm: NormKind::LayerScalar, form: Form::Fused, ..small() }, "composed"),
        (ModelConfig { mixer: MixerKind::S4, n: 5, ..small() }, "even"),
        (ModelConfig { mixer: MixerKind::S4d, n: 2000, ..small() }, "1024"),
        (ModelConfig { mixer: MixerKind::S4, variant: Variant::Exp, ..small() }, "variant"),
        (
            ModelConfig { mixer: MixerKind::S4d, lambda_init: LambdaInit::Random, ..small() },
            "lambda_init",
        ),
        (ModelConfig { s4d_init: S4dInit::Lin, ..small() }, "s4d_init"),
        (
            ModelConfig {
                mixer: MixerKind::S4,
                discretisation: Discretisation::Bilinear,
                ..small()
            },
            "discretisation",
        ),
    ];
    for (config, word) in bad {
        let error = config.init(&IO, 0, &Device::flex()).unwrap_err();
        assert!(
            matches!(error, Error::Config { .. }) && error.to_string().contains(word),
            "{error}"
        );
    }
    let io = Io { len: usize::MAX, ..IO };
    let s4 = ModelConfig { mixer: MixerKind::S4, ..small() };
    assert!(s4.init(&io, 0, &Device::flex()).unwrap_err().to_string().contains("kernel_len"));
    let io = Io { len: 0, ..IO };
    assert!(small().init(&io, 0, &Device::flex()).unwrap_err().to_string().contains("length"));
}

#[test]
fn settings_as_text() {
    let config = ModelConfig { variant: Variant::ExpNoScale, form: Form::Composed, ..small() };
    let text = serde_json::to_string(&config).unwrap();
    assert!(text.contains("\"exp-no-scale\"") && text.contains("\"skew-hippo\""), "{text}");
    assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), config);
    let partial: ModelConfig = serde_json::from_str("{\"h\": 3}").unwrap();
    assert_eq!(partial, ModelConfig { h: 3, ..ModelConfig::default() });
    assert!(serde_json::from_str::<ModelConfig>("{\"hh\": 3}").is_err());
    let io = serde_json::to_string(&IO).unwrap();
    assert_eq!(serde_json::from_str::<Io>(&io).unwrap(), IO);
}

/// At half the rate a tap covers two of the old ones. Exp-no-scale has no integral over a tap: twice the first of them.
#[test]
fn a_model_runs_at_another_rate() {
    for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
        let config = ModelConfig { variant, kernel_len: 20, ..small() };
        let model = config.init(&IO, 3, &Device::flex()).unwrap();
        let kernel = |model: &Model, l| values(&model.layers[1].mixer.kernel(l));
        let full = kernel(&model, 30);
        let half = model.clone().at_rate(2.0).unwrap();
        assert_eq!((half.io().len, half.config().kernel_len), (15, 10));
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
    let model = small().init(&IO, 3, &Device::flex()).unwrap();
    for wrong in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(model.clone().at_rate(wrong).unwrap_err().to_string().contains("0.001 to 1000"));
    }
}
