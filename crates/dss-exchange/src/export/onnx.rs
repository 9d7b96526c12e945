//! The recurrent step as an ONNX graph (opset 17): one position in, the state in and out, real arithmetic only.
//!
//! | input | shape | |
//! |-------|-------|-|
//! | `x` | i64 `[B]`, or f32 `[B, channels]` | the next position of B streams |
//! | `state` | `[parts·layers, B, ..]` | what the mixers remember (`steps.rs`); zeros at first |
//! | `position` | f64 `[B]` | of a model with modes that grow: positions so far; zeros at first |
//! | `pool` | f32 `[B, H + 1]` | of a model that reads the mean: sum and count; zeros at first |
//!
//! The outputs are `y` `[B, O]`, the answer for everything so far, `next_state`, `next_position` and `next_pool`.

use dss_format::{InputKind, ModelConfig, ModelFile, ModelIo, OutputKind, Pool, Positions};

use super::graph::{Attribute, DOUBLE, Dim, FLOAT, Graph, INT64, value_info};
use super::protobuf::Message;
use super::reader::Arrays;
use super::steps::{StateForm, WRITTEN};
use crate::error::{Error, Result};

const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;

/// The model as an ONNX file.
///
/// # Errors
/// With the reason, if it cannot run position by position or its mixer is not one that is written.
pub fn to_onnx(file: &ModelFile) -> Result<Vec<u8>> {
    let (meta, arrays) = (file.meta(), Arrays::new(file));
    let (config, io) = (&meta.model, &meta.io);
    let form = check(config, io)?;
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
    let (mut states, mut grows) = (Vec::new(), false);
    for i in 0..config.layers {
        let layer = format!("layers.{i}");
        let before = graph.norm_if(config.prenorm, config, &arrays, &layer, "norm", &x);
        let state: Vec<String> =
            (0..form.parts).map(|part| graph.part_of_state(form.parts * i + part)).collect();
        let step = graph.mixer(&arrays, &layer, config, io.len, &before, &state)?;
        states.extend(step.next);
        grows |= step.grows;
        let v = step.v;
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
    if config.has_last_norm() {
        x = graph.norm(config, &arrays, "norm", &x);
    }
    graph.next_state(&states);
    let sizes = form.shape.iter().copied().map(Dim::Size);
    let state_shape: Vec<Dim> =
        [Dim::Size(form.parts * config.layers), Dim::Batch].into_iter().chain(sizes).collect();
    let mut inputs = vec![input, value_info("state", form.kind, &state_shape)];
    let mut outputs = vec![
        value_info("y", FLOAT, &[Dim::Batch, Dim::Size(io.output.outputs())]),
        value_info("next_state", form.kind, &state_shape),
    ];
    if grows {
        let one = graph.doubles("one", &[], &[1.0]);
        graph.named("Add", &["position", &one], "next_position", &[]);
        inputs.push(value_info("position", DOUBLE, &[Dim::Batch]));
        outputs.push(value_info("next_position", DOUBLE, &[Dim::Batch]));
    }
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
    // Growing modes end at the training length, cut kernels where they are cut.
    let cut = config.mixer.settings().ssm().map(|ssm| ssm.kernel_len).filter(|len| *len > 0);
    let growing = grows.then_some(io.len);
    if let Some(end) = cut.into_iter().chain(growing).min() {
        properties.push(("max_steps", end.to_string()));
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

/// How the model's state looks, if it runs position by position and everything in it is known here.
fn check(config: &ModelConfig, io: &ModelIo) -> Result<StateForm> {
    if matches!(io.output, OutputKind::Pair { .. }) {
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
    let Some(form) = StateForm::of(&config.mixer, config.h) else {
        let kind = config.mixer.kind();
        return Err(no(format!("its mixer is {kind}; {WRITTEN} are written")));
    };
    if config.mixer.settings().ssm().is_some_and(|ssm| (1..io.len).contains(&ssm.kernel_len)) {
        return Err(no("its kernels are cut (kernel_len)"));
    }
    Ok(form)
}

impl Graph {
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
