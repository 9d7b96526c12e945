//! Model files of any kind, with numbers that look trained.

use dss_format::{ModelConfig, ModelIo};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

/// What a test model is.
#[derive(Clone)]
pub struct Spec {
    /// The settings, over the defaults of the format; those of the mixer flat, as version 0.1 wrote them.
    pub model: Value,
    pub io: Value,
    pub seed: u64,
    /// Some modes of a softmax have Re λ > 0.
    pub growing: bool,
}

impl Spec {
    /// Numbers in, one answer per sequence out.
    pub fn sequence(layers: usize, h: usize, n: usize, len: usize) -> Self {
        Self {
            model: json!({"layers": layers, "h": h, "n": n}),
            io: json!({
                "input": {"kind": "values", "channels": 1},
                "output": {"kind": "sequence", "outputs": 5},
                "len": len,
            }),
            seed: 4,
            growing: false,
        }
    }

    /// Tokens in, the next token out.
    pub fn tokens(layers: usize, h: usize, n: usize, vocab: usize) -> Self {
        let io = json!({
            "input": {"kind": "tokens", "vocab": vocab},
            "output": {"kind": "position", "outputs": vocab},
            "len": 64,
        });
        Self { io, ..Self::sequence(layers, h, n, 64) }
    }

    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.model[key] = value.into();
        self
    }

    pub fn config(&self) -> ModelConfig {
        serde_json::from_value(self.model.clone()).unwrap()
    }

    /// The file's bytes; `change` may alter any tensor.
    pub fn bytes_with(&self, change: impl Fn(&str, &mut Vec<usize>, &mut Vec<f32>)) -> Vec<u8> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut uniform = move || (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
        let mut data = Vec::new();
        let io: ModelIo = serde_json::from_value(self.io.clone()).unwrap();
        for tensor in self.config().tensors(&io) {
            let (name, mut shape) = (tensor.name, tensor.shape);
            let part = name.rsplit('.').next().unwrap();
            let mut number = |i: usize| match part {
                "lambda" if i.is_multiple_of(2) => {
                    let growing = self.growing && i.is_multiple_of(6);
                    if growing { 0.2 * uniform() } else { -0.5 - 0.1 * uniform() }
                }
                "lambda" => 3.0 * (i / 2) as f32,
                "lambda_re" => -0.7,
                "lambda_im" => 3.0 * i as f32,
                "delta_log" => -6.9 + 4.6 * uniform(),
                "p" | "b" => 1.0 + uniform(),
                "running_var" | "gamma" => 0.5 + uniform(),
                "w" | "c" => 2.0 * uniform() - 1.0,
                _ => (2.0 * uniform() - 1.0) / (*shape.last().unwrap() as f32).sqrt(),
            };
            let mut values = (0..shape.iter().product()).map(&mut number).collect();
            change(&name, &mut shape, &mut values);
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            data.push((name, shape, bytes));
        }
        let views = data.iter().map(|(name, shape, bytes)| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
        });
        let meta = json!({
            "format": "dss-1", "model": self.model, "io": self.io, "task": null, "labels": [],
            "split_hash": "", "seed": 0, "step": 0, "extra": {},
        });
        safetensors::serialize(views, Some([("dss".to_string(), meta.to_string())].into())).unwrap()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(|_, _, _| {})
    }

    pub fn model(&self) -> dss_infer::Model {
        dss_infer::Model::from_bytes(&self.bytes()).unwrap()
    }
}

/// Numbers in [-1, 1).
pub fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}
