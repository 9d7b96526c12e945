//! The engine against dss-infer itself, with the models that come with the page.
#![allow(missing_docs)]

use std::path::PathBuf;

use dss_infer::generate::Sampling;
use dss_infer::{Input, Model};
use dss_web::{Axis, Engine};

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../dss-cli/page").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn speech() -> (Engine, Model) {
    let bytes = file("models/speech.safetensors");
    (Engine::load(&bytes, 1.0).unwrap(), Model::from_bytes(&bytes).unwrap())
}

/// The samples of a 16-bit WAV file with a header of 44 bytes.
fn clip(name: &str) -> Vec<f32> {
    let bytes = file(&format!("clips/{name}.wav"));
    bytes[44..]
        .chunks_exact(2)
        .map(|x| f32::from(i16::from_le_bytes([x[0], x[1]])) / 32768.0)
        .collect()
}

fn description(engine: &Engine) -> serde_json::Value {
    serde_json::from_str(&engine.describe().unwrap()).unwrap()
}

/// What the model says about whole samples, by convolution.
fn by_convolution(model: &Model, samples: &[f32]) -> Vec<f32> {
    let encoder: serde_json::Value = serde_json::from_str(&model.meta().extra["encoder"]).unwrap();
    let [mean, divisor] = ["mean", "divisor"].map(|key| encoder[key][0].as_f64().unwrap() as f32);
    let input: Vec<f32> = samples.iter().map(|x| (x - mean) / divisor).collect();
    let logits = model.forward(Input::Values(&input)).unwrap();
    let weights: Vec<f32> = logits.iter().map(|x| x.exp()).collect();
    let total: f32 = weights.iter().sum();
    weights.iter().map(|x| x / total).collect()
}

#[track_caller]
fn close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-4, "{got} {want}");
    }
}

#[test]
fn models_are_small_and_say_what_they_are_for() {
    for (name, usage) in [("speech", "sound"), ("text", "text")] {
        let bytes = file(&format!("models/{name}.safetensors"));
        assert!(bytes.len() <= 2_000_000, "{name}: {} bytes", bytes.len());
        let told = description(&Engine::load(&bytes, 1.0).unwrap());
        assert_eq!(told["use"], usage, "{told}");
    }
    let told = description(&speech().0);
    assert_eq!(told["rate"], told["trainedRate"]);
    assert_eq!(told["labels"][0], "yes");
}

#[test]
fn a_clip_in_blocks_is_the_whole_clip() {
    let (mut engine, model) = speech();
    let samples = &clip("yes")[..model.meta().io.len.min(16_000)];
    let want = by_convolution(&model, samples);
    for block in [samples.len(), 160, 77] {
        engine.listen(0, 0).unwrap();
        let parts = samples.chunks(block).map(|part| engine.push(part).unwrap().to_vec());
        close(&parts.last().unwrap(), &want);
    }
}

#[test]
fn a_window_hears_its_own_samples_only() {
    let (mut engine, model) = speech();
    let samples: Vec<f32> = ["yes", "no", "stop"].into_iter().flat_map(clip).collect();
    let (window, hop) = (4000, 1000);
    engine.listen(window, hop).unwrap();
    let mut position = 0;
    for part in samples[..11_000].chunks(250) {
        let got = engine.push(part).unwrap().to_vec();
        position += part.len();
        // The oldest look ends within a hop.
        let begin = position.next_multiple_of(hop).saturating_sub(window);
        close(&got, &by_convolution(&model, &samples[begin..position]));
    }
    // All at once ends the same.
    engine.listen(window, hop).unwrap();
    let got = engine.push(&samples[..11_000]).unwrap();
    close(got, &by_convolution(&model, &samples[7000..11_000]));
}

#[test]
fn half_the_rate_is_twice_the_step() {
    let bytes = file("models/speech.safetensors");
    let (at_full, at_half) = (speech().0, Engine::load(&bytes, 2.0).unwrap());
    let (full, half) = (description(&at_full), description(&at_half));
    assert_eq!(half["rate"].as_f64().unwrap() * 2.0, full["rate"].as_f64().unwrap());
    assert_eq!(half["len"].as_u64().unwrap() * 2, full["len"].as_u64().unwrap());
}

#[test]
fn text_is_that_of_the_library() {
    let bytes = file("models/text.safetensors");
    let (mut engine, model) =
        (Engine::load(&bytes, 1.0).unwrap(), Model::from_bytes(&bytes).unwrap());
    let sampling = Sampling { temperature: 0.8, top_k: 20, top_p: 0.95, seed: 7 };
    let prompt: String = model.labels()[30..36].concat();
    engine.begin(&prompt, sampling).unwrap();
    let mut got = Vec::new();
    engine.write(40, &mut got).unwrap();
    engine.write(60, &mut got).unwrap();
    let mut generator = model.generator(&[30, 31, 32, 33, 34, 35], sampling).unwrap();
    let want: String = (0..100)
        .map(|_| model.labels()[generator.next_token(&model).unwrap() as usize].clone())
        .collect();
    assert_eq!(String::from_utf8(got).unwrap(), want);
}

#[test]
fn pictures_are_scaled_and_sorted() {
    let (engine, model) = speech();
    let h = model.meta().model.h;
    for axis in [Axis::Linear, Axis::Log] {
        let picture = engine.kernels(0, 300, axis).unwrap();
        assert_eq!(picture.len(), h * 300);
        let mut last = 0;
        for row in picture.chunks_exact(300) {
            assert!(row.iter().all(|x| x.abs() <= 1.0));
            let largest = row.iter().position(|x| x.abs() == 1.0).expect("a largest tap");
            assert!(largest >= last);
            last = largest;
        }
    }
    // As many columns as taps are the taps.
    let len = model.meta().io.len;
    let taps = engine.kernels(0, len, Axis::Linear).unwrap();
    let kernels = model.kernel(0, len).unwrap();
    let scaled = |k: &[f32]| {
        let most = k.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        k.iter().map(|x| x / most).collect::<Vec<_>>()
    };
    let mut want: Vec<Vec<f32>> = kernels.chunks_exact(len).map(scaled).collect();
    let mut got: Vec<Vec<f32>> = taps.chunks_exact(len).map(<[f32]>::to_vec).collect();
    for rows in [&mut want, &mut got] {
        rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    }
    assert_eq!(got, want);
}

#[test]
fn impossible_requests_are_errors() {
    let (mut engine, _) = speech();
    let error = |result: Result<(), String>| result.unwrap_err();
    assert!(error(Engine::load(b"no model", 1.0).map(drop)).contains("not a model"));
    let cut = &file("models/speech.safetensors")[..5000];
    assert!(error(Engine::load(cut, 1.0).map(drop)).contains("not a model"));
    assert!(error(engine.push(&[0.0]).map(drop)).contains("listen first"));
    assert!(error(engine.listen(1000, 0)).contains("window"));
    assert!(error(engine.begin("x", Sampling::default())).contains("does not write text"));
    assert!(error(engine.kernels(99, 10, Axis::Linear).map(drop)).contains("no layer 99"));
    engine.listen(0, 0).unwrap();
    assert!(error(engine.push(&[f32::NAN]).map(drop)).contains("finite"));
    let mut writer = Engine::load(&file("models/text.safetensors"), 1.0).unwrap();
    assert!(error(writer.begin("", Sampling::default())).contains("at least one token"));
    assert!(error(writer.begin("漢", Sampling::default())).contains("does not occur"));
}
