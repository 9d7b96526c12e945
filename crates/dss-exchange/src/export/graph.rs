//! An ONNX graph that is being written: nodes, constants, and what a model has besides its mixers.

use dss_format::{Gelu, ModelConfig, NormKind};

use super::protobuf::Message;
use super::reader::Arrays;

/// ONNX's numbers of its types.
pub(super) const FLOAT: i64 = 1;
pub(super) const INT64: i64 = 7;
pub(super) const DOUBLE: i64 = 11;

/// A size in a shape.
#[derive(Clone, Copy)]
pub(super) enum Dim {
    Batch,
    Size(usize),
}

/// An input or output of the graph.
pub(super) fn value_info(name: &str, kind: i64, shape: &[Dim]) -> Message {
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

/// A setting of a node.
pub(super) enum Attribute {
    Int(&'static str, i64),
    Float(&'static str, f32),
    Ints(&'static str, &'static [i64]),
}

/// Nodes in their order, and constants.
#[derive(Default)]
pub(super) struct Graph {
    pub nodes: Vec<Message>,
    pub tensors: Vec<Message>,
    names: usize,
}

impl Graph {
    /// A node with one output of this name.
    pub(super) fn named(
        &mut self,
        op: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[Attribute],
    ) {
        self.several(op, inputs, &[output], attributes);
    }

    /// A node with several outputs.
    pub(super) fn several(
        &mut self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[Attribute],
    ) {
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
    pub(super) fn node(&mut self, op: &str, inputs: &[&str], attributes: &[Attribute]) -> String {
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

    /// A constant in f32.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], numbers: &[f64]) -> String {
        let raw: Vec<u8> = numbers.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
        self.tensor(name, FLOAT, shape, &raw)
    }

    /// A constant in f64.
    pub(super) fn doubles(&mut self, name: &str, shape: &[usize], numbers: &[f64]) -> String {
        let raw: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(name, DOUBLE, shape, &raw)
    }

    /// A single number in f32.
    pub(super) fn number(&mut self, value: f64) -> String {
        self.names += 1;
        let name = format!("c{}", self.names);
        self.floats(&name, &[], &[value])
    }

    /// A constant of whole numbers.
    pub(super) fn integers(&mut self, shape: &[usize], values: &[i64]) -> String {
        self.names += 1;
        let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(&format!("c{}", self.names), INT64, shape, &raw)
    }

    /// p·q ± r·s, with `op` Add or Sub.
    pub(super) fn products(&mut self, op: &str, [p, q, r, s]: [&str; 4]) -> String {
        let (first, second) = (self.node("Mul", &[p, q], &[]), self.node("Mul", &[r, s], &[]));
        self.node(op, &[&first, &second], &[])
    }

    /// x `[B, outputs]` in equal parts.
    pub(super) fn split<const N: usize>(&mut self, x: &str) -> [String; N] {
        let parts = std::array::from_fn(|_| {
            self.names += 1;
            format!("t{}", self.names)
        });
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.several("Split", &[x], &names, &[Attribute::Int("axis", 1)]);
        parts
    }

    /// x `[B, inputs]` -> `[B, outputs]`.
    pub(super) fn linear(
        &mut self,
        arrays: &Arrays<'_>,
        name: &str,
        x: &str,
        inputs: usize,
        outputs: usize,
    ) -> String {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        self.floats(&bias, &[outputs], &arrays.get(&bias));
        let map = self.floats(&weight, &[outputs, inputs], &arrays.get(&weight));
        self.node("Gemm", &[x, &map, &bias], &[Attribute::Int("transB", 1)])
    }

    /// The norm `layer`.`name`, where it is wanted.
    pub(super) fn norm_if(
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

    /// A norm of x `[B, H]`; BatchNorm with its running statistics.
    pub(super) fn norm(
        &mut self,
        config: &ModelConfig,
        arrays: &Arrays<'_>,
        name: &str,
        x: &str,
    ) -> String {
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

    /// GELU(x).
    pub(super) fn gelu(&mut self, x: &str, form: Gelu) -> String {
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
}
