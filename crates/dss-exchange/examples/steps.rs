//! Writes what a stream of a model computes, and the same model as an ONNX step, for comparison elsewhere:
//!
//! ```sh
//! cargo run -p dss-exchange --example steps -- MODEL STEPS OUT [CONFIG]
//! ```
//!
//! OUT.safetensors has the input `x` (`[STEPS]` or `[STEPS, channels]`), the answer after every step `y` `[STEPS, O]` and
//! the answer of the convolution `whole`; OUT.model.safetensors is the model, OUT.onnx its step. MODEL is a model file
//! or another program's checkpoint, with its configuration CONFIG.

use std::error::Error;
use std::fs;

use dss_exchange::{ImportOptions, Settings, export::onnx, import, is_model_file};
use dss_infer::{Input, InputKind, Model, ModelFile, Precision};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, steps, out, config @ ..] = &args[..] else {
        return Err("usage: steps MODEL STEPS OUT [CONFIG]".into());
    };
    let (bytes, steps): (_, usize) = (fs::read(model)?, steps.parse()?);
    let file = if is_model_file(&bytes) {
        ModelFile::from_bytes(&bytes)?
    } else {
        let settings = config.first().map(|path| -> Result<_, Box<dyn Error>> {
            Ok(Settings::from_yaml(&fs::read_to_string(path)?)?)
        });
        let options = ImportOptions { settings: settings.transpose()?, ..Default::default() };
        import(&bytes, &options)?.file
    };
    fs::write(format!("{out}.onnx"), onnx::to_onnx(&file)?)?;
    fs::write(format!("{out}.model.safetensors"), file.to_bytes(Precision::Full)?)?;

    let model = Model::from_file(file)?;
    let steps = model.max_len().map_or(steps, |end| end.min(steps));
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as u32
    };
    let (mut state, outputs) = (model.state()?, model.outputs());
    let mut y = vec![0.0; steps * outputs];
    let whole;
    let (kind, shape, x): (_, _, Vec<u8>) = match model.meta().io.input {
        InputKind::Tokens { vocab } => {
            let tokens: Vec<u32> = (0..steps).map(|_| random() % vocab as u32).collect();
            for (token, y) in tokens.iter().zip(y.chunks_exact_mut(outputs)) {
                model.step(&mut state, Input::Tokens(&[*token]), y)?;
            }
            whole = model.forward(Input::Tokens(&tokens))?;
            (Dtype::U32, vec![steps], tokens.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        InputKind::Values { channels } => {
            let values: Vec<f32> =
                (0..steps * channels).map(|_| random() as f32 / (1 << 23) as f32 - 1.0).collect();
            for (values, y) in values.chunks_exact(channels).zip(y.chunks_exact_mut(outputs)) {
                model.step(&mut state, Input::Values(values), y)?;
            }
            whole = model.forward(Input::Values(&values))?;
            (
                Dtype::F32,
                vec![steps, channels],
                values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            )
        }
    };
    let raw = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let (y, last) = (raw(&y), raw(&whole));
    let views = [
        ("x", TensorView::new(kind, shape, &x)?),
        ("y", TensorView::new(Dtype::F32, vec![steps, outputs], &y)?),
        ("whole", TensorView::new(Dtype::F32, vec![whole.len() / outputs, outputs], &last)?),
    ];
    fs::write(format!("{out}.safetensors"), safetensors::serialize(views, None)?)?;
    Ok(())
}
