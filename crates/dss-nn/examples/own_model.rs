//! The DSS layer inside a model of your own, trained with Burn's optimiser: tell low tones from high ones.
//!
//! `cargo run --release -p dss-nn --example own_model`

use std::f32::consts::TAU;

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use dss_nn::config::{DssConfig, ModelConfig, Variant};
use dss_nn::{Mixer, Result};

/// B: tones per step.
const BATCH: usize = 32;
/// L: samples per tone.
const LENGTH: usize = 200;
/// H: channels.
const CHANNELS: usize = 16;
const STEPS: usize = 100;

/// Any Burn module may have a [`Mixer`] as a field; this one surrounds it with a residual connection.
#[derive(Module, Debug)]
struct Classifier {
    input: Linear,
    mixer: Mixer,
    output: Linear,
}

impl Classifier {
    fn new(device: &Device) -> Result<Self> {
        let dss = DssConfig { n: 16, variant: Variant::Exp, ..DssConfig::default() };
        let config = ModelConfig { h: CHANNELS, mixer: dss.into(), ..ModelConfig::default() };
        Ok(Self {
            input: LinearConfig::new(1, CHANNELS).init(device),
            mixer: Mixer::new(&config, LENGTH, 0, device)?, // sequences of up to LENGTH, seed 0
            output: LinearConfig::new(CHANNELS, 2).init(device),
        })
    }

    /// u: `[B, L, 1]` -> logits: `[B, 2]`.
    fn forward(&self, u: Tensor<3>) -> Tensor<2> {
        let x = self.input.forward(u); // [B, L, H]
        let x = x.clone() + self.mixer.forward(x);
        self.output.forward(x.mean_dim(1).squeeze_dim::<2>(1))
    }
}

fn main() -> Result<()> {
    let device = Device::flex().autodiff();
    device.seed(0); // Burn's own layers draw their weights from the device.
    let mut model = Classifier::new(&device)?;
    // No weight decay, which would change the decay and the time scales of the modes.
    let mut optimiser = AdamConfig::new().init();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    for step in 0..STEPS {
        let (tones, classes) = batch_of_tones(step, &device);
        let loss = cross_entropy.forward(model.forward(tones), classes);
        if step.is_multiple_of(10) {
            println!("step {step:3}  loss {:.4}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.01, model, gradients);
    }
    let (tones, classes) = batch_of_tones(STEPS, &device);
    let loss = cross_entropy.forward(model.forward(tones), classes);
    println!("new tones  loss {:.4}", loss.into_scalar::<f32>());
    Ok(())
}

/// Batch number `batch`: sine waves `[B, L, 1]`, alternately low (class 0) and high (class 1), each with its own pitch
/// and phase.
fn batch_of_tones(batch: usize, device: &Device) -> (Tensor<3>, Tensor<1, Int>) {
    let mut samples = Vec::with_capacity(BATCH * LENGTH);
    let mut classes = Vec::with_capacity(BATCH);
    for i in 0..BATCH {
        let number = (batch * BATCH + i) as f32;
        let class = i % 2;
        let lowest = [0.1, 0.3][class];
        let pitch = lowest + 0.1 * (0.618_034 * number).fract();
        let phase = TAU * (0.754_878 * number).fract();
        samples.extend((0..LENGTH).map(|t| (pitch * t as f32 + phase).sin()));
        classes.push(class as i32);
    }
    let samples = TensorData::new(samples, [BATCH, LENGTH, 1]);
    let classes = TensorData::new(classes, [BATCH]);
    (Tensor::from_data(samples, device), Tensor::from_data(classes, device))
}
