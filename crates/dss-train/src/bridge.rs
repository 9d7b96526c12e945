//! From the data's side to the model's: shapes of tasks, tensors of batches.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use dss_data::{Batch, BatchInput, TargetKind, TaskSpec};
use dss_nn::config::{InputKind, ModelIo, OutputKind};

use crate::error::{Error, Result};

/// The two ends of a model for a task.
pub fn io(spec: &TaskSpec) -> ModelIo {
    let input = match spec.input {
        dss_data::InputKind::Tokens { vocab } => InputKind::Tokens { vocab },
        dss_data::InputKind::Values { channels } => InputKind::Values { channels },
    };
    let (outputs, by_position) = match &spec.target {
        TargetKind::Class { labels } => (labels.len(), false),
        TargetKind::Values { outputs } => (*outputs, false),
        TargetKind::PositionClasses { labels } => (labels.len(), true),
        TargetKind::PositionValues { outputs } => (*outputs, true),
        TargetKind::NextToken { symbols } => (symbols.len(), true),
    };
    let output = match (spec.pair, by_position) {
        (true, _) => OutputKind::Pair { outputs },
        (false, true) => OutputKind::Position { outputs },
        (false, false) => OutputKind::Sequence { outputs },
    };
    ModelIo { input, output, len: spec.len }
}

/// The names of a task's classes; none for regression.
pub fn labels(spec: &TaskSpec) -> &[String] {
    match &spec.target {
        TargetKind::Class { labels } | TargetKind::PositionClasses { labels } => labels,
        TargetKind::NextToken { symbols } => symbols,
        TargetKind::Values { .. } | TargetKind::PositionValues { .. } => &[],
    }
}

/// Whether a model with the ends `io` can be asked what `spec` asks; the length may differ.
pub fn check_fit(io: &ModelIo, spec: &TaskSpec) -> Result<()> {
    let asked = self::io(spec);
    if io.input != asked.input {
        let [reads, has] = [io.input, asked.input].map(|input| match input {
            InputKind::Tokens { vocab } => format!("tokens from a vocabulary of {vocab}"),
            InputKind::Values { channels: 1 } => "one number per position".to_owned(),
            InputKind::Values { channels } => format!("{channels} numbers per position"),
        });
        return Err(Error::Mismatch(format!("the model reads {reads}, but the data have {has}")));
    }
    if io.output != asked.output {
        let [gives, wants] = [io.output, asked.output].map(|output| match output {
            OutputKind::Sequence { outputs } => format!("{outputs} outputs per sequence"),
            OutputKind::Position { outputs } => format!("{outputs} outputs per position"),
            OutputKind::Pair { outputs } => format!("{outputs} outputs per pair of sequences"),
        });
        return Err(Error::Mismatch(format!("the model has {gives}, but the data need {wants}")));
    }
    Ok(())
}

/// The sequences of a batch as a model's input, on `device`; numbers as `dtype`.
pub fn input(batch: &Batch, device: &Device, dtype: DType) -> dss_nn::Input {
    match &batch.input {
        BatchInput::Tokens(ids) => {
            let data = TensorData::new(ids.clone(), [batch.rows, batch.l]);
            dss_nn::Input::Tokens(Tensor::<2, Int>::from_data(data, device))
        }
        BatchInput::Values { data, channels } => {
            let data = TensorData::new(data.clone(), [batch.rows, batch.l, *channels]);
            dss_nn::Input::Values(Tensor::<3>::from_data(data, (device, dtype)))
        }
    }
}

/// The values of a tensor on the host, in f64.
pub fn host<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    let data = tensor.to_data();
    match data.as_slice::<f32>() {
        Ok(values) => values.iter().copied().map(f64::from).collect(),
        Err(_) => data.iter::<f64>().collect(),
    }
}
