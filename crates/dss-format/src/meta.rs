//! The description of a model in its file: everything but the tensors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::ModelConfig;
use crate::encoder::{Encoder, EncoderError};
use crate::error::{Error, Result};
use crate::io::ModelIo;

/// The format this version writes, and the only one it reads.
pub const FORMAT: &str = "dss-1";

/// A model's description: a JSON object in the metadata of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointMeta {
    /// [`FORMAT`].
    pub format: String,
    /// The model.
    pub model: ModelConfig,
    /// Its input, its output and its training length.
    pub io: ModelIo,
    /// The task's settings; null if there is none.
    #[serde(default)]
    pub task: serde_json::Value,
    /// Names of the classes; empty if there are none.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Which data it was trained on.
    #[serde(default)]
    pub split_hash: String,
    /// The seed of the run.
    #[serde(default)]
    pub seed: u64,
    /// Optimiser steps taken.
    #[serde(default)]
    pub step: u64,
    /// Anything else, such as how files become input.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
}

impl CheckpointMeta {
    /// Of a model without a task.
    pub fn new(model: &ModelConfig, io: &ModelIo) -> Self {
        Self {
            format: FORMAT.into(),
            model: model.clone(),
            io: *io,
            task: serde_json::Value::Null,
            labels: Vec::new(),
            split_hash: String::new(),
            seed: 0,
            step: 0,
            extra: BTreeMap::new(),
        }
    }

    /// The name of the task that the model was trained on.
    pub fn task_name(&self) -> Option<&str> {
        self.task.get("name")?.as_str()
    }

    /// How files become the model's input, with what the model knows of its classes.
    pub fn encoder(&self) -> std::result::Result<Encoder, EncoderError> {
        let mut encoder = Encoder::from_extra(&self.extra)?;
        if let Encoder::Files(files) = &mut encoder {
            files.classes.clone_from(&self.labels);
        }
        Ok(encoder)
    }

    /// Reads and checks a description.
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Format {
            format: String,
        }
        let invalid =
            |e: serde_json::Error| Error::file(format!("its description is not valid: {e}"));
        let Format { format } = serde_json::from_str(text).map_err(invalid)?;
        if format != FORMAT {
            return Err(Error::file(format!(
                "its format is `{format}`, but this version reads `{FORMAT}` only"
            )));
        }
        let meta: Self = serde_json::from_str(text).map_err(invalid)?;
        meta.validate()?;
        Ok(meta)
    }

    fn validate(&self) -> Result<()> {
        self.model.validate_for(&self.io)?;
        let (outputs, labels) = (self.io.output.outputs(), self.labels.len());
        if labels != 0 && labels != outputs {
            return Err(Error::file(format!(
                "it has {outputs} outputs, but the number of its labels is {labels}"
            )));
        }
        Ok(())
    }
}
