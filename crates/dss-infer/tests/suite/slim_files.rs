//! Slim files: half the size, nearly the same answers, and back.

use crate::common::{Spec, noise};
use dss_infer::{Input, Model, ModelFile, Precision};

#[test]
fn half_precision_is_half_the_size_and_close() {
    let spec = Spec::sequence(2, 64, 16, 400);
    let bytes = spec.bytes();
    let file = ModelFile::from_bytes(&bytes).unwrap();
    let slim = file.to_bytes(Precision::F16).unwrap();
    assert!(slim.len() < bytes.len() * 6 / 10, "{} of {}", slim.len(), bytes.len());
    assert!(file.f16_error() < 5e-4, "{}", file.f16_error());
    let x = noise(400, 1);
    let [full, half] = [&bytes, &slim]
        .map(|bytes| Model::from_bytes(bytes).unwrap().forward(Input::Values(&x)).unwrap());
    let scale = full.iter().fold(0.0f32, |a, x| a.max(x.abs()));
    for (full, half) in full.iter().zip(&half) {
        assert!((full - half).abs() < 5e-3 * scale, "{full} {half}");
    }
}

#[test]
fn full_precision_comes_back_as_it_was() {
    let file = ModelFile::from_bytes(&Spec::sequence(2, 32, 16, 400).bytes()).unwrap();
    let again = ModelFile::from_bytes(&file.to_bytes(Precision::Full).unwrap()).unwrap();
    assert_eq!(file, again);
    // What was rounded once stays so.
    let slim = ModelFile::from_bytes(&file.to_bytes(Precision::F16).unwrap()).unwrap();
    let back = ModelFile::from_bytes(&slim.to_bytes(Precision::Full).unwrap()).unwrap();
    assert_eq!(slim, back);
    assert_eq!(back.f16_error(), 0.0);
}

#[test]
fn numbers_beyond_half_precision_are_refused() {
    let large = Spec::sequence(2, 32, 16, 400).bytes_with(|name, _, values| {
        if name == "layers.1.mixer.w" {
            values[5] = 70000.0;
        }
    });
    let file = ModelFile::from_bytes(&large).unwrap();
    assert!(file.to_bytes(Precision::Full).is_ok());
    let error = file.to_bytes(Precision::F16).unwrap_err().to_string();
    assert!(error.contains("layers.1.mixer.w has the number 70000"), "{error}");
}
