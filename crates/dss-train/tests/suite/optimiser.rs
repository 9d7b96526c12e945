//! The optimiser's state survives a file bit for bit; clipping and the bound on Δ do what they say.

use crate::common::{TempDir, small_listops};
use burn::tensor::{DType, Device};
use dss_data::{Batch, Loader, Padding};
use dss_nn::{Model, ParamGroup};
use dss_train::optimiser::{AdamW, Gradients, Rates};
use dss_train::{Config, bridge};

const RATES: Rates =
    Rates { lambda: 1e-3, delta: 1e-3, w: 1e-3, other: 0.01, weight_decay: 0.01, ..Rates::AT_REST };

fn setting() -> (Config, Model, Vec<Batch>) {
    let config = small_listops(1);
    let task = config.task.load(None, &|_| {}).unwrap();
    let device = Device::flex().autodiff();
    let model = Model::new(&config.model, &bridge::io(&task.spec), 3, &device).unwrap();
    let order = (0..32).collect();
    let loader = Loader::new(task.train, task.spec, order, 8, true, Padding::Longest, 0);
    (config, model, loader.map(Result::unwrap).collect())
}

fn gradients(model: &Model, batch: &Batch, step: u64) -> Gradients {
    let batch = std::slice::from_ref(batch);
    dss_train::gradients(model, batch, 1, step, DType::F32).unwrap().gradients
}

fn bytes(model: &Model) -> Vec<(String, Vec<u8>)> {
    model.named_tensors().into_iter().map(|(name, data)| (name, data.as_bytes().to_vec())).collect()
}

#[test]
fn a_saved_state_continues_bit_for_bit() {
    let temp = TempDir::new("optimiser");
    let path = temp.join("optimiser.safetensors");
    let (_, mut model, batches) = setting();
    let mut whole = AdamW::default();
    for (step, batch) in batches[..2].iter().enumerate() {
        (model, _) =
            whole.step(model.clone(), &gradients(&model, batch, step as u64), 1.0, &RATES, 0.0);
    }
    whole.save(&path).unwrap();
    let first = std::fs::read(&path).unwrap();
    let mut loaded = AdamW::load(&path, &Device::flex().autodiff()).unwrap();
    loaded.check(&path, &model.parameters()).unwrap();
    loaded.save(&path).unwrap();
    assert_eq!(first, std::fs::read(&path).unwrap());
    assert_eq!((whole.steps(), loaded.steps()), (2, 2));
    let mut other = model.clone();
    for (step, batch) in batches[2..].iter().enumerate() {
        (model, _) =
            whole.step(model.clone(), &gradients(&model, batch, step as u64), 1.0, &RATES, 0.0);
        (other, _) =
            loaded.step(other.clone(), &gradients(&other, batch, step as u64), 1.0, &RATES, 0.0);
    }
    assert_eq!(bytes(&model), bytes(&other));
}

#[test]
fn a_state_of_another_model_is_refused() {
    let temp = TempDir::new("optimiser-other");
    let path = temp.join("optimiser.safetensors");
    let (config, model, batches) = setting();
    let mut adamw = AdamW::default();
    adamw.step(model.clone(), &gradients(&model, &batches[0], 0), 1.0, &RATES, 0.0);
    let wider = dss_nn::ModelConfig { h: 20, ..config.model };
    let wider = Model::new(&wider, model.io(), 3, &Device::flex()).unwrap();
    let error = adamw.check(&path, &wider.parameters()).unwrap_err().to_string();
    assert!(error.contains("entries"), "{error}");
}

#[test]
fn the_norm_is_that_of_all_gradients_together() {
    let (_, model, batches) = setting();
    let gradients = gradients(&model, &batches[0], 0);
    let mut sum = 0.0;
    for p in model.parameters() {
        if let Some(gradient) = gradients.get(&p.name) {
            sum += bridge::host(gradient).iter().map(|x| x * x).sum::<f64>();
        }
    }
    assert!((gradients.norm() - sum.sqrt()).abs() < 1e-12 * sum.sqrt());
    assert!(gradients.first_bad().is_none());
}

/// The first step is −η·g/(|g| + ε), the second is worked out from the definition.
#[test]
fn beta2_and_eps_count() {
    let (_, model, batches) = setting();
    let gradients = gradients(&model, &batches[0], 0);
    let rates = Rates { other: 0.01, beta2: 0.5, eps: 0.125, ..Rates::AT_REST };
    let mut adamw = AdamW::default();
    let mut stepped = model.clone();
    for scale in [1.0, 3.0] {
        stepped = adamw.step(stepped, &gradients, scale, &rates, 0.0).0;
    }
    let g = bridge::host(gradients.get("head.weight").unwrap());
    let weight = |model: &Model| {
        let mut tensors = model.named_tensors().into_iter();
        let found = tensors.find(|(name, _)| name == "head.weight").unwrap().1;
        found.iter::<f64>().collect::<Vec<_>>()
    };
    for ((before, after), g) in weight(&model).into_iter().zip(weight(&stepped)).zip(g) {
        let first = g / (g.abs() + 0.125);
        // m = 0.9·0.1·g + 0.1·3g over 1 − 0.9², v = 0.5·0.5·g² + 0.5·9g² over 1 − 0.5².
        let second = (0.39 / 0.19) * g / ((4.75f64 / 0.75).sqrt() * g.abs() + 0.125);
        let expected = before - 0.01 * (first + second);
        assert!((after - expected).abs() < 1e-6, "{after}, not {expected}");
    }
}

#[test]
fn groups_have_their_own_rates_and_delta_its_bound() {
    let (_, model, batches) = setting();
    let gradients = gradients(&model, &batches[0], 0);
    let rates = Rates { delta: 100.0, weight_decay: 0.5, ..Rates::AT_REST };
    let (stepped, update) = AdamW::default().step(model.clone(), &gradients, 1.0, &rates, 10.0);
    let mut bounded = 0;
    let tensors = model.named_tensors().into_iter().zip(stepped.named_tensors());
    for (((name, before), (_, after)), p) in tensors.zip(model.parameters()) {
        assert_eq!(name, p.name);
        if p.group == ParamGroup::Delta {
            assert!(after.iter::<f64>().all(|x| x.abs() <= 10.0), "{name}");
            bounded += after.iter::<f64>().filter(|x| x.abs() == 10.0).count();
        } else {
            assert_eq!(before.as_bytes(), after.as_bytes(), "{name}");
        }
    }
    assert!(bounded > 0);
    assert_eq!(update.bounded.iter().map(|(_, count)| count).sum::<usize>(), bounded);
}
