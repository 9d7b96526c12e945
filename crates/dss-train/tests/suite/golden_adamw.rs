//! Ten AdamW steps against PyTorch's, in f64: every loss and every tensor afterwards.
//!
//! The files hold two-layer classifiers computed in PyTorch (float64) from the paper's formulas: inputs, the state
//! dict before (`sd.*`), ten losses and the state dict after ten steps of `torch.optim.AdamW` with lr 0.01 and decay
//! 0.01, Λ and W with lr 0.001, log Δ with 0.001 (0.02 in the token file), all three without decay.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use dss_data::BatchTarget;
use dss_nn::config::{
    DssConfig, Form, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool, Variant,
};
use dss_nn::{DropoutKey, Input, Mode, Model};
use dss_train::optimiser::{AdamW, Gradients, Rates};
use dss_train::{bridge, loss};
use safetensors::{Dtype, SafeTensors};

const TOLERANCE: f64 = 1e-10;

type Tensors = BTreeMap<String, Vec<f64>>;

/// All tensors of a golden file of dss-nn; integers as numbers. A package is without these files: None.
fn read(name: &str) -> Option<Tensors> {
    let nn = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dss-nn");
    if !nn.is_dir() {
        // Not by eprintln!, which tests show only when they fail.
        let _ = writeln!(std::io::stderr(), "skipped: {name} is not part of this package");
        return None;
    }
    let bytes = std::fs::read(nn.join("tests/golden").join(name)).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let read = |(name, view): (&str, safetensors::tensor::TensorView<'_>)| {
        let words = view.data().chunks_exact(8).map(|word| word.try_into().unwrap());
        let values = match view.dtype() {
            Dtype::F64 => words.map(f64::from_le_bytes).collect(),
            Dtype::I64 => words.map(|word| i64::from_le_bytes(word) as f64).collect(),
            other => panic!("{name}: {other:?}"),
        };
        (name.to_owned(), values)
    };
    Some(file.iter().map(read).collect())
}

/// The tensors under `prefix` by the model's names; the two halves of an exp variant's Λ become one.
fn named(file: &Tensors, prefix: &str) -> Tensors {
    let renames = [
        ("model.layers", "layers"),
        ("model.norm", "norm"),
        ("layer.kernel.log_dt", "mixer.delta_log"),
        ("layer.kernel.Lambda_log_neg_re", "mixer.lambda"),
        ("layer.kernel.Lambda", "mixer.lambda"),
        ("layer.kernel.W", "mixer.w"),
        ("layer.output_linear", "mixer.out"),
        ("layer.D", "mixer.d"),
        ("norm.norm.weight", "norm.gamma"),
        ("norm.norm.bias", "norm.beta"),
        ("norm.norm.running", "norm.running"),
        ("norm.norm.s", "norm.gamma"),
        ("norm.norm.m", "norm.beta"),
        ("decoder.output_transform", "head"),
    ];
    let mut out = Tensors::new();
    for (full, values) in file {
        let Some(name) = full.strip_prefix(prefix) else { continue };
        if name.ends_with("Lambda_im") || name.ends_with("num_batches_tracked") {
            continue;
        }
        let ours = renames.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to));
        let values = match full.strip_suffix("log_neg_re") {
            Some(stem) => {
                let imaginary = &file[&format!("{stem}im")];
                values.iter().zip(imaginary).flat_map(|(re, im)| [*re, *im]).collect()
            }
            None => values.clone(),
        };
        out.insert(ours, values);
    }
    out
}

struct Case {
    file: &'static str,
    input: InputKind,
    variant: Variant,
    norm: NormKind,
    prenorm: bool,
    pool: Pool,
    lr_delta: f64,
}

const L: usize = 64;
const CLASSES: usize = 5;

fn model(case: &Case, file: &Tensors, form: Form) -> Model {
    let config = ModelConfig {
        layers: 2,
        h: 16,
        mixer: DssConfig { n: 16, variant: case.variant, ..DssConfig::default() }.into(),
        norm: case.norm,
        prenorm: case.prenorm,
        pool: case.pool,
        form,
        ..ModelConfig::default()
    };
    let io =
        ModelIo { input: case.input, output: OutputKind::Sequence { outputs: CLASSES }, len: L };
    let model = Model::new(&config, &io, 0, &Device::flex().autodiff()).unwrap();
    let model = model.cast(FloatDType::F64);
    let mut values = named(file, "sd.");
    let tensors = model.parameters().into_iter().map(|p| {
        let values = values.remove(&p.name).unwrap_or_else(|| panic!("no {}", p.name));
        (p.name, TensorData::new(values, p.shape))
    });
    model.clone().load_named(tensors.collect()).unwrap()
}

fn check(case: &Case, form: Form) {
    let Some(file) = read(case.file) else { return };
    let mut model = model(case, &file, form);
    let device = model.device();
    let batch = file["target"].len();
    let input = match case.input {
        InputKind::Tokens { .. } => {
            let ids: Vec<i32> = file["x"].iter().map(|x| *x as i32).collect();
            let ids = TensorData::new(ids, [batch, L]);
            Input::Tokens(Tensor::<2, Int>::from_data(ids, &device))
        }
        InputKind::Values { channels } => {
            let data = TensorData::new(file["x"].clone(), [batch, L, channels]);
            Input::Values(Tensor::from_data(data, (&device, DType::F64)))
        }
    };
    let lengths: Vec<usize> = match file.get("lengths") {
        Some(lengths) => lengths.iter().map(|x| *x as usize).collect(),
        None => vec![L; batch],
    };
    let target = BatchTarget::Class(file["target"].iter().map(|x| *x as i32).collect());
    let rates = Rates {
        lambda: 1e-3,
        delta: case.lr_delta,
        w: 1e-3,
        other: 0.01,
        weight_decay: 0.01,
        ..Rates::AT_REST
    };
    let mut optimiser = AdamW::default();
    let what = |x: &str| format!("{} {form:?}: {x}", case.file);
    for (step, expected) in file["adamw.losses"].iter().enumerate() {
        let prepared = model.prepare(L);
        let dropout = DropoutKey { seed: 0, step: 0, micro: 0 };
        let output = model.forward(input.clone(), &lengths, &prepared, Mode::Train { dropout });
        let found = loss::assess(&bridge::host(&output.logits), CLASSES, &target, batch as u64);
        let loss = found.tally.mean_loss();
        let off = (loss - expected).abs();
        assert!(off < TOLERANCE * expected, "{} off by {off:e}", what(&format!("loss {step}")));
        let cotangent = TensorData::new(found.gradient, [batch, CLASSES]);
        let cotangent = Tensor::<2>::from_data(cotangent, (&device, DType::F64));
        let mut backward = (output.logits * cotangent).sum().backward();
        let mut gradients = Gradients::default();
        gradients.add(&model, &mut backward);
        (model, _) = optimiser.step(model, &gradients, 1.0, &rates, 0.0);
        model = model.update_stats(&output.stats);
    }
    assert_eq!(optimiser.steps(), 10);
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let first = named(&file, "grad.");
    let mut after = named(&file, "adamw.after.");
    for (name, data) in model.named_tensors() {
        let expected = after.remove(&name).unwrap_or_else(|| panic!("no {name}"));
        let scale = largest(&expected);
        // A bias in front of a BatchNorm has no effect. Its gradients are rounding, 1e-17 instead of 0, and ten steps
        // of lr·g/ε with ε = 1e-8 make up to 1e-9 of them. The running mean behind it has the same offset.
        let nothing = first.get(&name).is_some_and(|gradient| largest(gradient) < 1e-15)
            || name.ends_with("running_mean");
        let tolerance = if nothing { 1e-8 } else { TOLERANCE };
        let found = data.iter::<f64>();
        let off = found.zip(&expected).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(off <= tolerance * scale, "{} off by {off:e} of {scale:e}", what(&name));
    }
    assert!(after.is_empty(), "{:?}", after.keys());
}

#[test]
fn tokens_softmax_batch_norm() {
    let case = Case {
        file: "model_dss_softmax_bn_post_tok.safetensors",
        input: InputKind::Tokens { vocab: 11 },
        variant: Variant::Softmax,
        norm: NormKind::Batch,
        prenorm: false,
        pool: Pool::Mean,
        lr_delta: 0.02,
    };
    check(&case, Form::Composed);
    check(&case, Form::Fused);
}

/// The scalar LayerNorm of this file has no fused form; `auto` takes the fused kernels.
#[test]
fn numbers_exp_layer_norm() {
    let case = Case {
        file: "model_dss_exp_ln_pre_img.safetensors",
        input: InputKind::Values { channels: 1 },
        variant: Variant::Exp,
        norm: NormKind::LayerScalar,
        prenorm: true,
        pool: Pool::Last,
        lr_delta: 1e-3,
    };
    check(&case, Form::Composed);
    check(&case, Form::Auto);
}
