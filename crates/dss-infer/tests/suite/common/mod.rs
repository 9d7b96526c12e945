//! Model files of any kind, with numbers that look trained.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

/// What a test model is.
#[derive(Clone)]
pub struct Spec {
    /// The settings, over the defaults of the format.
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
            seed: 1,
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

    fn size(&self, key: &str, default: usize) -> usize {
        self.model.get(key).and_then(Value::as_u64).map_or(default, |x| x as usize)
    }

    fn flag(&self, key: &str) -> bool {
        self.model.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn text(&self, key: &str, default: &'static str) -> &str {
        self.model.get(key).and_then(Value::as_str).unwrap_or(default)
    }

    /// The names and shapes that the file must have.
    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (layers, h, n) = (self.size("layers", 6), self.size("h", 128), self.size("n", 64));
        let mut all = Vec::new();
        let mut add = |name: String, shape: &[usize]| all.push((name, shape.to_vec()));
        let io = |end: &str, key: &str| self.io[end][key].as_u64().map(|x| x as usize);
        match io("input", "vocab") {
            Some(vocab) => add("encoder.weight".into(), &[vocab, h]),
            None => {
                add("encoder.weight".into(), &[h, io("input", "channels").unwrap()]);
                add("encoder.bias".into(), &[h]);
            }
        }
        let norm_size = if self.text("norm", "batch") == "layer-scalar" { 1 } else { h };
        let mut norms = vec![];
        let channels = if self.flag("bidirectional") { 2 } else { 1 };
        let outputs = if self.flag("glu") { 2 * h } else { h };
        for i in 0..layers {
            let mixer = format!("layers.{i}.mixer");
            match self.text("mixer", "dss") {
                "dss" => {
                    add(format!("{mixer}.lambda"), &[n, 2]);
                    let separate = self.text("delta", "separate") == "separate";
                    let shape: &[usize] = if separate { &[h, 2] } else { &[h] };
                    add(format!("{mixer}.delta_log"), shape);
                    add(format!("{mixer}.w"), &[channels, h, n, 2]);
                }
                kind => {
                    add(format!("{mixer}.lambda_re"), &[n / 2]);
                    add(format!("{mixer}.lambda_im"), &[n / 2]);
                    add(format!("{mixer}.c"), &[channels, h, n / 2, 2]);
                    add(format!("{mixer}.delta_log"), &[h]);
                    if kind == "s4" {
                        add(format!("{mixer}.p"), &[n / 2, 2]);
                        add(format!("{mixer}.b"), &[n / 2, 2]);
                    }
                }
            }
            add(format!("{mixer}.d"), &[h]);
            add(format!("{mixer}.out.weight"), &[outputs, h]);
            add(format!("{mixer}.out.bias"), &[outputs]);
            norms.push(format!("layers.{i}.norm"));
        }
        if self.flag("prenorm") {
            norms.push("norm".into());
        }
        for norm in norms {
            add(format!("{norm}.gamma"), &[norm_size]);
            add(format!("{norm}.beta"), &[norm_size]);
            if self.text("norm", "batch") == "batch" {
                add(format!("{norm}.running_mean"), &[h]);
                add(format!("{norm}.running_var"), &[h]);
            }
        }
        add("head.weight".into(), &[io("output", "outputs").unwrap(), h]);
        add("head.bias".into(), &[io("output", "outputs").unwrap()]);
        all
    }

    /// The file's bytes; `change` may alter any tensor.
    pub fn bytes_with(&self, change: impl Fn(&str, &mut Vec<usize>, &mut Vec<f32>)) -> Vec<u8> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut uniform = move || (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
        let mut data = Vec::new();
        for (name, mut shape) in self.shapes() {
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
