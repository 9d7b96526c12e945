//! The recurrent step as an ONNX graph (opset 17): one position in, the state in and out, real arithmetic only.
//!
//! | input | shape | |
//! |-------|-------|-|
//! | `x` | i64 `[B]`, or f32 `[B, channels]` | the next position of B streams |
//! | `state` | f32 `[2·layers, B, H, N]` | real and imaginary parts of each layer; zeros at first |
//! | `pool` | f32 `[B, H + 1]` | of a model that reads the mean: sum and count; zeros at first |
//!
//! The outputs are `y` `[B, O]`, the answer for everything so far, `next_state` and `next_pool`.
//!
//! As in `dss_kernels::Recurrence`, Ā is the sum of two f32 numbers: one alone is wrong by up to 6e-8 per step, always in
//! the same direction.

use dss_format::mixer::ssm::SsmSettings;
use dss_format::{
    Gelu, InputKind, MixerConfig, ModelConfig, ModelFile, NormKind, OutputKind, Pool, Positions,
};

use super::modes::{self, Modes};
use super::protobuf::Message;
use super::reader::Arrays;
use crate::error::{Error, Result};

const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;
const FLOAT: i64 = 1;
const INT64: i64 = 7;
/// The greatest growth e^x of a mode with Re λ > 0 that f32 holds with room to spare.
const MAX_GROWTH: f64 = 60.0;

/// The model as an ONNX file.
///
/// # Errors
/// With the reason, if it cannot run position by position or its mixer is not DSS or S4D.
pub fn to_onnx(file: &ModelFile) -> Result<Vec<u8>> {
    let (meta, arrays) = (file.meta(), Arrays::new(file));
    let (config, io) = (&meta.model, &meta.io);
    check(config, io.output)?;
    let mut graph = Graph::default();
    let h = config.h;
    let (input, mut x) = match io.input {
        InputKind::Tokens { vocab } => {
            let table = graph.floats("encoder.weight", &[vocab, h], &arrays.get("encoder.weight"));
            (value_info("x", INT64, &[Dim::Batch]), graph.node("Gather", &[&table, "x"], &[]))
        }
        InputKind::Values { channels } => {
            let x = graph.linear(&arrays, "encoder", "x", channels, h);
            (value_info("x", FLOAT, &[Dim::Batch, Dim::Size(channels)]), x)
        }
    };
    let (mut states, mut n, mut growth) = (Vec::new(), 0, 0f64);
    for i in 0..config.layers {
        let layer = format!("layers.{i}");
        let modes = match &config.mixer {
            MixerConfig::Dss(dss) => {
                let len = dss.shared().taps(io.len);
                modes::dss(dss, &arrays, &layer, h, len)
            }
            MixerConfig::S4d(s4d) => modes::s4d(s4d, &arrays, &layer, h),
            _ => unreachable!("the mixer was checked"),
        };
        (n, growth) = (modes.n, growth.max(modes.growth));
        let ssm = config.mixer.settings().ssm().expect("the mixer was checked");
        let before = graph.norm_if(config.prenorm, config, &arrays, &layer, "norm", &x);
        let [v, re, im] = graph.mixer(&arrays, &layer, i, &modes, &before, h, &ssm);
        states.extend([re, im]);
        let sum = graph.node("Add", &[&x, &v], &[]);
        x = graph.norm_if(!config.prenorm, config, &arrays, &layer, "norm", &sum);
        if config.ff > 0 {
            let before = graph.norm_if(config.prenorm, config, &arrays, &layer, "ff_norm", &x);
            let hidden =
                graph.linear(&arrays, &format!("{layer}.ff.hidden"), &before, h, config.ff);
            let hidden = graph.gelu(&hidden, config.gelu);
            let v = graph.linear(&arrays, &format!("{layer}.ff.out"), &hidden, config.ff, h);
            let sum = graph.node("Add", &[&x, &v], &[]);
            x = graph.norm_if(!config.prenorm, config, &arrays, &layer, "ff_norm", &sum);
        }
    }
    if growth > MAX_GROWTH {
        return Err(no(format!(
            "modes with Re λ > 0 grow by e^{growth:.0} up to the training length, beyond what f32 holds"
        )));
    }
    if config.has_last_norm() {
        x = graph.norm(config, &arrays, "norm", &x);
    }
    let refs: Vec<&str> = states.iter().map(String::as_str).collect();
    graph.named("Concat", &refs, "next_state", &[Attribute::Int("axis", 0)]);
    let state_shape = [Dim::Size(2 * config.layers), Dim::Batch, Dim::Size(h), Dim::Size(n)];
    let mut inputs = vec![input, value_info("state", FLOAT, &state_shape)];
    let mut outputs = vec![
        value_info("y", FLOAT, &[Dim::Batch, Dim::Size(io.output.outputs())]),
        value_info("next_state", FLOAT, &state_shape),
    ];
    if matches!(io.output, OutputKind::Sequence { .. }) && config.pool == Pool::Mean {
        x = graph.mean(&x, h);
        let shape = [Dim::Batch, Dim::Size(h + 1)];
        inputs.push(value_info("pool", FLOAT, &shape));
        outputs.push(value_info("next_pool", FLOAT, &shape));
    }
    graph.head(config, &arrays, &x, io.output.outputs());

    let mut message = Message::default();
    for node in graph.nodes {
        message = message.message(1, &node);
    }
    message = message.text(2, "dss_step");
    for tensor in graph.tensors {
        message = message.message(5, &tensor);
    }
    for (field, all) in [(11, inputs), (12, outputs)] {
        for info in all {
            message = message.message(field, &info);
        }
    }
    let mut properties = vec![("labels", serde_json::to_string(&meta.labels).unwrap_or_default())];
    if growth > 0.0 {
        properties.push(("max_steps", io.len.to_string()));
    }
    let mut model = Message::default()
        .int(1, IR_VERSION)
        .text(2, "dss")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, &message)
        .message(8, &Message::default().text(1, "").int(2, OPSET));
    for (key, value) in properties {
        model = model.message(14, &Message::default().text(1, key).text(2, &value));
    }
    Ok(model.into_bytes())
}

fn no(what: impl Into<String>) -> Error {
    Error::Export { format: "an ONNX step", what: what.into() }
}

/// The model runs position by position, and everything in it is known here.
fn check(config: &ModelConfig, output: OutputKind) -> Result<()> {
    if matches!(output, OutputKind::Pair { .. }) {
        return Err(no("it compares two sequences"));
    }
    if config.bidirectional {
        return Err(no("it looks ahead (bidirectional)"));
    }
    if config.pool == Pool::Cls {
        return Err(no("it answers by a position that sees the whole sequence (pool = \"cls\")"));
    }
    if config.positions != Positions::None {
        return Err(no("its positions have vectors (positions)"));
    }
    let ssm = match &config.mixer {
        MixerConfig::Dss(dss) => dss.shared(),
        MixerConfig::S4d(s4d) => s4d.shared(),
        other => {
            return Err(no(format!("its mixer is {}; only dss and s4d are written", other.kind())));
        }
    };
    if ssm.kernel_len > 0 {
        return Err(no("its kernels are cut (kernel_len)"));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Dim {
    Batch,
    Size(usize),
}

fn value_info(name: &str, kind: i64, shape: &[Dim]) -> Message {
    let mut dims = Message::default();
    for dim in shape {
        let dim = match dim {
            Dim::Batch => Message::default().text(2, "B"),
            Dim::Size(size) => Message::default().int(1, *size as i64),
        };
        dims = dims.message(1, &dim);
    }
    let tensor = Message::default().int(1, kind).message(2, &dims);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

enum Attribute {
    Int(&'static str, i64),
    Float(&'static str, f32),
    Ints(&'static str, &'static [i64]),
}

/// Nodes in their order, and constants.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    tensors: Vec<Message>,
    names: usize,
}

impl Graph {
    /// A node with one output of this name.
    fn named(&mut self, op: &str, inputs: &[&str], output: &str, attributes: &[Attribute]) {
        self.several(op, inputs, &[output], attributes);
    }

    fn several(&mut self, op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Attribute]) {
        let mut node = Message::default();
        for input in inputs {
            node = node.text(1, input);
        }
        for output in outputs {
            node = node.text(2, output);
        }
        node = node.text(3, &format!("node{}", self.nodes.len())).text(4, op);
        for attribute in attributes {
            let message = Message::default();
            node = node.message(
                5,
                &match attribute {
                    Attribute::Int(name, value) => message.text(1, name).int(3, *value).int(20, 2),
                    Attribute::Float(name, value) => {
                        message.text(1, name).float(2, *value).int(20, 1)
                    }
                    Attribute::Ints(name, values) => {
                        let start = message.text(1, name);
                        values.iter().fold(start, |all, value| all.int(8, *value)).int(20, 7)
                    }
                },
            );
        }
        self.nodes.push(node);
    }

    /// A node; its output gets a name of its own, which is returned.
    fn node(&mut self, op: &str, inputs: &[&str], attributes: &[Attribute]) -> String {
        self.names += 1;
        let output = format!("t{}", self.names);
        self.named(op, inputs, &output, attributes);
        output
    }

    fn tensor(&mut self, name: &str, kind: i64, shape: &[usize], raw: &[u8]) -> String {
        let mut tensor = Message::default();
        for size in shape {
            tensor = tensor.int(1, *size as i64);
        }
        self.tensors.push(tensor.int(2, kind).text(8, name).bytes(9, raw));
        name.to_owned()
    }

    fn floats(&mut self, name: &str, shape: &[usize], numbers: &[f64]) -> String {
        let raw: Vec<u8> = numbers.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
        self.tensor(name, FLOAT, shape, &raw)
    }

    fn number(&mut self, value: f64) -> String {
        self.names += 1;
        let name = format!("c{}", self.names);
        self.floats(&name, &[], &[value])
    }

    fn integers(&mut self, shape: &[usize], values: &[i64]) -> String {
        self.names += 1;
        let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(&format!("c{}", self.names), INT64, shape, &raw)
    }

    /// x `[B, inputs]` -> `[B, outputs]`.
    fn linear(
        &mut self,
        arrays: &Arrays<'_>,
        name: &str,
        x: &str,
        inputs: usize,
        outputs: usize,
    ) -> String {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        self.floats(&weight, &[outputs, inputs], &arrays.get(&weight));
        self.floats(&bias, &[outputs], &arrays.get(&bias));
        self.node("Gemm", &[x, &weight, &bias], &[Attribute::Int("transB", 1)])
    }

    fn norm_if(
        &mut self,
        wanted: bool,
        config: &ModelConfig,
        arrays: &Arrays<'_>,
        layer: &str,
        name: &str,
        x: &str,
    ) -> String {
        if wanted { self.norm(config, arrays, &format!("{layer}.{name}"), x) } else { x.to_owned() }
    }

    fn norm(&mut self, config: &ModelConfig, arrays: &Arrays<'_>, name: &str, x: &str) -> String {
        let get = |part: &str| arrays.get(&format!("{name}.{part}"));
        let (gamma, beta, h) = (get("gamma"), get("beta"), config.h);
        match config.norm {
            NormKind::Batch => {
                let (mean, var) = (get("running_mean"), get("running_var"));
                let scale: Vec<f64> =
                    gamma.iter().zip(&var).map(|(g, v)| g / (v + config.norm_eps).sqrt()).collect();
                let moved = beta.iter().zip(&mean).zip(&scale).map(|((b, m), s)| b - m * s);
                let moved: Vec<f64> = moved.collect();
                let scale = self.floats(&format!("{name}.scale"), &[h], &scale);
                let shift = self.floats(&format!("{name}.shift"), &[h], &moved);
                let x = self.node("Mul", &[x, &scale], &[]);
                self.node("Add", &[&x, &shift], &[])
            }
            NormKind::Layer => {
                let gamma = self.floats(&format!("{name}.gamma"), &[h], &gamma);
                let beta = self.floats(&format!("{name}.beta"), &[h], &beta);
                let eps = Attribute::Float("epsilon", config.norm_eps as f32);
                let axis = Attribute::Int("axis", -1);
                self.node("LayerNormalization", &[x, &gamma, &beta], &[axis, eps])
            }
            NormKind::LayerScalar => {
                let last = || [Attribute::Ints("axes", &[-1])];
                let mean = self.node("ReduceMean", &[x], &last());
                let centred = self.node("Sub", &[x, &mean], &[]);
                let squares = self.node("Mul", &[&centred, &centred], &[]);
                let variance = self.node("ReduceMean", &[&squares], &last());
                let deviation = self.node("Sqrt", &[&variance], &[]);
                let (gamma, beta) = (self.number(gamma[0]), self.number(beta[0]));
                let moved = self.node("Add", &[&centred, &beta], &[]);
                let divided = self.node("Div", &[&moved, &deviation], &[]);
                self.node("Mul", &[&divided, &gamma], &[])
            }
        }
    }

    fn gelu(&mut self, x: &str, form: Gelu) -> String {
        let half_x = {
            let half = self.number(0.5);
            self.node("Mul", &[x, &half], &[])
        };
        let one = self.number(1.0);
        let bent = match form {
            Gelu::Erf => {
                let root = self.number(std::f64::consts::FRAC_1_SQRT_2);
                let scaled = self.node("Mul", &[x, &root], &[]);
                self.node("Erf", &[&scaled], &[])
            }
            Gelu::Tanh => {
                let (cubic, root) =
                    (self.number(0.044715), self.number((2.0 / std::f64::consts::PI).sqrt()));
                let square = self.node("Mul", &[x, x], &[]);
                let square = self.node("Mul", &[&square, &cubic], &[]);
                let square = self.node("Add", &[&square, &one], &[]);
                let inner = self.node("Mul", &[x, &square], &[]);
                let inner = self.node("Mul", &[&inner, &root], &[]);
                self.node("Tanh", &[&inner], &[])
            }
        };
        let bent = self.node("Add", &[&bent, &one], &[]);
        self.node("Mul", &[&half_x, &bent], &[])
    }

    /// The output of layer i's mixer for u `[B, H]`, and both parts of its next state, `[1, B, H, N]`.
    #[expect(clippy::too_many_arguments, reason = "one call")]
    fn mixer(
        &mut self,
        arrays: &Arrays<'_>,
        layer: &str,
        i: usize,
        modes: &Modes,
        u: &str,
        h: usize,
        ssm: &SsmSettings,
    ) -> [String; 3] {
        let shape = [h, modes.n];
        let mut part = |name: &str, numbers: Vec<f64>| {
            self.floats(&format!("{layer}.{name}"), &shape, &numbers)
        };
        let high = |x: f64| f64::from(x as f32);
        let re: Vec<f64> = modes.a.iter().map(|a| a.re).collect();
        let im: Vec<f64> = modes.a.iter().map(|a| a.im).collect();
        let a_re = part("a_re", re.clone());
        let a_im = part("a_im", im.clone());
        let a_re_low = part("a_re_low", re.iter().map(|x| x - high(*x)).collect());
        let a_im_low = part("a_im_low", im.iter().map(|x| x - high(*x)).collect());
        let c_re = part("c_re", modes.c.iter().map(|c| c.re).collect());
        let c_im = part("c_im", modes.c.iter().map(|c| c.im).collect());
        let take = |graph: &mut Self, index: usize| {
            let index = graph.integers(&[], &[index as i64]);
            graph.node("Gather", &["state", &index], &[Attribute::Int("axis", 0)])
        };
        let (s_re, s_im) = (take(self, 2 * i), take(self, 2 * i + 1));
        // a·s + lost·s, each p·q ± r·s.
        let product = |graph: &mut Self, op: &str, [p, q, r, s]: [&str; 4]| {
            let (first, second) =
                (graph.node("Mul", &[p, q], &[]), graph.node("Mul", &[r, s], &[]));
            graph.node(op, &[&first, &second], &[])
        };
        let last = self.integers(&[1], &[2]);
        let wide = self.node("Unsqueeze", &[u, &last], &[]);
        let high_re = product(self, "Sub", [&a_re, &s_re, &a_im, &s_im]);
        let low_re = product(self, "Sub", [&a_re_low, &s_re, &a_im_low, &s_im]);
        let high_im = product(self, "Add", [&a_re, &s_im, &a_im, &s_re]);
        let low_im = product(self, "Add", [&a_re_low, &s_im, &a_im_low, &s_re]);
        let next_re = self.node("Add", &[&high_re, &low_re], &[]);
        let next_re = self.node("Add", &[&next_re, &wide], &[]);
        let next_im = self.node("Add", &[&high_im, &low_im], &[]);
        let terms = product(self, "Sub", [&c_re, &next_re, &c_im, &next_im]);
        let sum = self.node("ReduceSum", &[&terms, &last], &[Attribute::Int("keepdims", 0)]);
        let name = format!("{layer}.mixer.d");
        let d = self.floats(&name, &[h], &arrays.get(&name));
        let through = self.node("Mul", &[u, &d], &[]);
        let v = self.node("Add", &[&sum, &through], &[]);
        let v = self.gelu(&v, ssm.gelu);
        let outputs = if ssm.glu { 2 * h } else { h };
        let mut v = self.linear(arrays, &format!("{layer}.mixer.out"), &v, h, outputs);
        if ssm.glu {
            let (value, gate) = (format!("{layer}.value"), format!("{layer}.gate"));
            self.several("Split", &[&v], &[&value, &gate], &[Attribute::Int("axis", 1)]);
            let gate = self.node("Sigmoid", &[&gate], &[]);
            v = self.node("Mul", &[&value, &gate], &[]);
        }
        let first = self.integers(&[1], &[0]);
        let re = self.node("Unsqueeze", &[&next_re, &first], &[]);
        let im = self.node("Unsqueeze", &[&next_im, &first], &[]);
        [v, re, im]
    }

    /// The mean of x `[B, H]` and everything before.
    fn mean(&mut self, x: &str, h: usize) -> String {
        let one = self.number(1.0);
        let sizes = self.integers(&[2], &[h as i64, 1]);
        let axis = || [Attribute::Int("axis", 1)];
        self.several("Split", &["pool", &sizes], &["sum_before", "count_before"], &axis());
        let sum = self.node("Add", &["sum_before", x], &[]);
        let count = self.node("Add", &["count_before", &one], &[]);
        self.named("Concat", &[&sum, &count], "next_pool", &axis());
        self.node("Div", &[&sum, &count], &[])
    }

    fn head(&mut self, config: &ModelConfig, arrays: &Arrays<'_>, x: &str, outputs: usize) {
        let (mut x, mut name, mut inputs) = (x.to_owned(), "head", config.h);
        if config.head_hidden > 0 {
            inputs = config.head_hidden;
            let hidden = self.linear(arrays, "head.hidden", &x, config.h, inputs);
            (x, name) = (self.node("Relu", &[&hidden], &[]), "head.out");
        }
        let y = self.linear(arrays, name, &x, inputs, outputs);
        self.named("Identity", &[&y], "y", &[]);
    }
}
