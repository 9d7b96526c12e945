//! Models by way of their files.

use std::path::Path;

use dss_infer as infer;
use dss_nn::Model;

/// What `read` makes of the file of a model.
pub fn saved<T>(model: &Model, read: impl FnOnce(&Path) -> T) -> T {
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(format!("dss-nn-{process}-{thread:?}.safetensors"));
    dss_nn::save(&path, model, &model.meta()).unwrap();
    let found = read(&path);
    std::fs::remove_file(&path).unwrap();
    found
}

/// The model as `dss-infer` runs it.
pub fn runner(model: &Model) -> infer::Model {
    saved(model, |path| infer::Model::load(path).unwrap())
}

/// What it says about a sequence of numbers.
pub fn inferred(runner: &infer::Model, x: &[f64]) -> Vec<f64> {
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    runner.forward(infer::Input::Values(&x)).unwrap().into_iter().map(f64::from).collect()
}
