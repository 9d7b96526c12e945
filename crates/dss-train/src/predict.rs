//! Applying a trained model to new sequences.

use burn::module::Module;
use burn::tensor::DType;
use dss_data::{Encoder, Example, Input, Padding, Target, TargetKind, TaskSpec, collate};
use dss_nn::checkpoint::CheckpointMeta;
use dss_nn::config::{InputKind, ModelIo, OutputKind};
use dss_nn::{Mode, Model};

use crate::error::{Error, Result};
use crate::loss::softmax;
use crate::{bridge, memory};

/// How files become queries of this model: in the same way as in its training.
pub fn encoder(meta: &CheckpointMeta) -> Result<Encoder> {
    let encoder = meta.encoder();
    let encoder = encoder.map_err(|error| Error::Mismatch(error.to_string()))?;
    check_encoder(&encoder, meta)?;
    Ok(encoder)
}

/// An untrusted checkpoint may promise any size: nothing is allocated for it that the model, whose tensors are there,
/// could not read.
fn check_encoder(encoder: &Encoder, meta: &CheckpointMeta) -> Result<()> {
    let len = match encoder {
        Encoder::Listops(encoder) => encoder.len,
        Encoder::TokenRows { len, .. } | Encoder::ValueSteps { len, .. } => *len,
        Encoder::Files(encoder) => encoder.len,
        Encoder::Text(encoder) | Encoder::TextPairs(encoder) => encoder.len,
        Encoder::Lm(encoder) => encoder.len,
        Encoder::Forecast(encoder) => encoder.input.saturating_add(encoder.horizon),
        // These have sizes of their own.
        Encoder::Images(_) | Encoder::Pathfinder(_) | Encoder::Grey(_) | Encoder::Speech(_) => 0,
    };
    if len > meta.io.len {
        let most = meta.io.len;
        let what =
            format!("its encoder makes sequences of {len} positions, but the model reads {most}");
        return Err(Error::Mismatch(what));
    }
    Ok(())
}

/// A sequence to classify, or a pair of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The sequence.
    pub input: Input,
    /// The second sequence, for a model of pairs.
    pub second: Option<Input>,
}

/// The answer of a model to one query.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// One row per answer: a single one, or one per position. Probabilities of the classes (in the order of the
    /// checkpoint's labels) if it has labels, otherwise the predicted values.
    pub rows: Vec<Vec<f64>>,
}

impl Prediction {
    /// Of each row, the number of the likeliest class and its probability.
    pub fn classes(&self) -> impl Iterator<Item = (usize, f64)> {
        self.rows.iter().map(|row| {
            let best = row.iter().copied().enumerate();
            best.fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a })
        })
    }
}

/// Applies a model to `queries`, `batch` at a time.
///
/// # Errors
/// If a query is not what the model reads: another kind, empty, longer than the training length, an id outside of the
/// vocabulary, a second sequence too many or too few; or if an answer is not a finite number.
pub fn predict(
    model: &Model,
    meta: &CheckpointMeta,
    queries: &[Query],
    batch: usize,
) -> Result<Vec<Prediction>> {
    for (i, query) in queries.iter().enumerate() {
        check(&meta.io, query)
            .map_err(|what| Error::Mismatch(format!("input {}: {what}", i + 1)))?;
    }
    memory::check_forward(&meta.model, &meta.io, batch.min(queries.len()))?;
    let model = model.valid();
    let device = model.device();
    let spec = spec(meta);
    let prepared = model.prepare(spec.len);
    let mut predictions = Vec::with_capacity(queries.len());
    for chunk in queries.chunks(batch.max(1)) {
        let examples = chunk.iter().map(|query| Example {
            input: query.input.clone(),
            second: query.second.clone(),
            target: Target::Class(0),
        });
        let batch = collate(&spec, examples.collect(), Padding::Longest);
        let input = bridge::input(&batch, &device, DType::F32);
        let logits =
            model.forward(input, &batch.lengths, &model.cut(&prepared, batch.l), Mode::Eval).logits;
        let [rows, width] = logits.dims();
        let host = bridge::host(&logits);
        let answers = rows / batch.examples;
        for (i, outputs) in host.chunks(answers * width).enumerate() {
            let scored = if answers == 1 { 1 } else { batch.lengths[i] };
            let outputs = &outputs[..scored * width];
            if outputs.iter().any(|x| !x.is_finite()) {
                let what = "the model's answer is not finite; check that the input is scaled like the training data";
                return Err(Error::Mismatch(format!("input {}: {what}", predictions.len() + 1)));
            }
            let rows = outputs.chunks(width).map(|row| match meta.labels.is_empty() {
                true => row.to_vec(),
                false => softmax(row),
            });
            predictions.push(Prediction { rows: rows.collect() });
        }
    }
    Ok(predictions)
}

/// A task with the inputs of the model; its targets are ignored.
fn spec(meta: &CheckpointMeta) -> TaskSpec {
    TaskSpec {
        name: "predict".into(),
        input: match meta.io.input {
            InputKind::Tokens { vocab } => dss_data::InputKind::Tokens { vocab },
            InputKind::Values { channels } => dss_data::InputKind::Values { channels },
        },
        target: TargetKind::Class { labels: Vec::new() },
        len: meta.io.len,
        pair: matches!(meta.io.output, OutputKind::Pair { .. }),
    }
}

fn check(io: &ModelIo, query: &Query) -> std::result::Result<(), String> {
    let pair = matches!(io.output, OutputKind::Pair { .. });
    match (pair, query.second.is_some()) {
        (true, false) => return Err("the model compares two sequences, but got one".into()),
        (false, true) => return Err("the model reads one sequence, but got two".into()),
        _ => {}
    }
    for input in std::iter::once(&query.input).chain(&query.second) {
        let length = match (io.input, input) {
            (InputKind::Tokens { vocab }, Input::Tokens(ids)) => {
                if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
                    return Err(format!(
                        "token {id} is not below the model's vocabulary of {vocab}"
                    ));
                }
                ids.len()
            }
            (InputKind::Values { channels }, Input::Values(values)) => {
                if values.len() % channels != 0 {
                    let n = values.len();
                    return Err(format!("{n} numbers are not whole positions of {channels} each"));
                }
                values.len() / channels
            }
            (InputKind::Tokens { .. }, _) => {
                return Err("the model reads tokens, not numbers".into());
            }
            (InputKind::Values { .. }, _) => {
                return Err("the model reads numbers, not tokens".into());
            }
        };
        if length == 0 || length > io.len {
            let max = io.len;
            return Err(format!(
                "its length is {length}, but the model reads 1 to {max} positions"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dss_format::encoder::ENCODER;
    use dss_nn::ModelConfig;

    use super::*;

    #[test]
    fn an_encoder_that_promises_too_much_is_refused() {
        let output = OutputKind::Position { outputs: 1 };
        let io = ModelIo { input: InputKind::Values { channels: 1 }, output, len: 20 };
        let mut meta = CheckpointMeta::new(&ModelConfig::default(), &io);
        let mut read = |text: &str, labels: &[&str]| {
            meta.extra.insert(ENCODER.into(), text.into());
            meta.labels = labels.iter().map(|label| (*label).into()).collect();
            encoder(&meta).map_err(|error| error.to_string())
        };
        let forecast = |horizon: u64| {
            format!(
                r#"{{"kind":"forecast","column":{{"name":"a","index":0}},"input":16,"horizon":{horizon},
                "mean":0.0,"deviation":1.0,"relative":false}}"#
            )
        };
        read(&forecast(4), &[]).unwrap();
        for horizon in [5, 1 << 32, u64::MAX] {
            let error = read(&forecast(horizon), &[]).unwrap_err();
            assert!(error.contains("the model reads 20"), "{error}");
        }
        let text = r#"{"kind":"value-steps","channels":1,"len":4294967296}"#;
        assert!(read(text, &[]).unwrap_err().contains("4294967296 positions"));
        read(&forecast(4), &["a", "b"]).unwrap();
        // Labels are compared with the outputs when a description is read.
        let error = CheckpointMeta::from_json(&serde_json::to_string(&meta).unwrap()).unwrap_err();
        assert!(error.to_string().contains("the number of its labels is 2"), "{error}");
    }
}
