//! Whose checkpoint it is: where in its names the parts of a model are.

use super::choices::Choices;
use super::tensors::Tensors;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};

/// The programs whose checkpoints are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// The DSS authors' training program.
    Dss,
    /// The training program of the S4 repository, after it became simpler.
    S4,
    /// `example.py` of the S4 repository, with its full layer.
    S4Example,
    /// `example.py` with `s4d.py`, the minimal layer.
    S4dExample,
}

/// The names of the parts.
pub(super) struct Names {
    pub program: Program,
    pub origin: &'static str,
    pub layers: usize,
    pub encoder: String,
    pub head: HeadNames,
    /// The norm after the last block, where a model can have one and the tensors have it.
    pub last_norm: Option<NormNames>,
}

pub(super) struct NormNames(pub String);

pub(super) enum HeadNames {
    Linear(String),
    Pair { hidden: String, out: String },
}

impl Names {
    pub(super) fn recognise(checkpoint: &Checkpoint<'_>) -> Result<Self> {
        let has = |name: &str| checkpoint.get(name).is_some();
        let begins = |prefix: &str| checkpoint.names().any(|name| name.starts_with(prefix));
        let program = if begins("s4_layers.") {
            let full = checkpoint
                .names()
                .any(|name| name.starts_with("s4_layers.") && name.contains(".layer.kernel."));
            if full { Program::S4Example } else { Program::S4dExample }
        } else if begins("model.layers.") {
            let s4 = checkpoint.names().any(|name| name.contains(".layer.layer.kernel."));
            if s4 { Program::S4 } else { Program::Dss }
        } else if checkpoint.names().next().is_none() {
            return Err(Error::model("it has no tensors"));
        } else {
            let first: Vec<&str> = checkpoint.names().take(4).collect();
            return Err(Error::model(format!(
                "its names ({}, ..) are not those of ag1988/dss (model.layers.0.layer.kernel.*), of the S4 repository \
                 (s4_layers.0.*, model.layers.0.layer.layer.kernel.*) or of annotated-s4 (layers_0.seq.*)",
                first.join(", ")
            )));
        };
        let origin = match program {
            Program::Dss => "ag1988/dss",
            Program::S4 => "state-spaces/s4",
            Program::S4Example => "state-spaces/s4 example.py, full layer",
            Program::S4dExample => "state-spaces/s4 example.py, s4d.py",
        };
        let (example, blocks) = match program {
            Program::Dss | Program::S4 => (false, "model.layers."),
            Program::S4Example | Program::S4dExample => (true, "s4_layers."),
        };
        let indices = checkpoint
            .names()
            .filter_map(|name| name.strip_prefix(blocks)?.split('.').next()?.parse::<usize>().ok());
        let layers = indices.max().and_then(|last| last.checked_add(1));
        let layers = layers.filter(|layers| *layers <= checkpoint.names().count());
        let layers = layers.ok_or_else(|| {
            Error::model(format!("its layers ({blocks}N.*) are not numbered from 0"))
        })?;
        let numbered = |part: &str| {
            let first = format!("{part}.0");
            if begins(&format!("{first}.")) && !has(&format!("{part}.weight")) {
                first
            } else {
                part.to_owned()
            }
        };
        let (encoder, decoder) = (numbered("encoder"), numbered("decoder"));
        let pair = format!("{decoder}.retrieval.classifier");
        let head = if begins(&format!("{pair}.")) {
            HeadNames::Pair { hidden: format!("{pair}.0"), out: format!("{pair}.2") }
        } else if example {
            HeadNames::Linear(decoder)
        } else {
            HeadNames::Linear(format!("{decoder}.output_transform"))
        };
        let last = "model.norm.norm";
        let last_norm = begins(&format!("{last}.")).then(|| NormNames(last.to_owned()));
        Ok(Self { program, origin, layers, encoder, head, last_norm })
    }

    /// Whether it comes from `example.py`.
    pub(super) fn is_example(&self) -> bool {
        matches!(self.program, Program::S4Example | Program::S4dExample)
    }

    /// Of block i, where the output projection is.
    pub(super) fn block(&self, i: usize) -> String {
        match self.program {
            Program::Dss | Program::S4 => format!("model.layers.{i}.layer"),
            Program::S4Example | Program::S4dExample => format!("s4_layers.{i}"),
        }
    }

    /// Of block i, where D and the kernel are.
    pub(super) fn system(&self, i: usize) -> String {
        let block = self.block(i);
        match self.program {
            Program::Dss | Program::S4dExample => block,
            Program::S4 | Program::S4Example => format!("{block}.layer"),
        }
    }

    pub(super) fn norm(&self, i: usize) -> NormNames {
        NormNames(match self.program {
            Program::Dss | Program::S4 => format!("model.layers.{i}.norm.norm"),
            Program::S4Example | Program::S4dExample => format!("norms.{i}"),
        })
    }

    /// Whether norms come before the mixers. The training programs have a last norm then; `example.py` never has one.
    pub(super) fn prenorm(
        &self,
        tensors: &Tensors<'_>,
        choices: &mut Choices,
        option: Option<bool>,
    ) -> Result<bool> {
        if self.is_example() {
            return choices.prenorm(option);
        }
        let seen = tensors.names().any(|name| name.starts_with("model.norm.norm."));
        choices.agrees("prenorm", option, seen, "model.norm.norm.*")?;
        Ok(seen)
    }

    /// Options that leave tensors behind.
    pub(super) fn refuse_tensors(&self, tensors: &Tensors<'_>) -> Result<()> {
        let with = |part: &str| tensors.names().find(|name| name.contains(part)).map(str::to_owned);
        let refused = [
            (
                ".Lambda_log_im",
                "version: exp-re-im",
                "our kernels are softmax, exp and exp-no-scale",
            ),
            (".residual.", "residual", "our blocks add what they read, without weights"),
            (
                ".retrieval.classifier.4.",
                "decoder.nli: false",
                "our head of pairs reads a, b, a − b and a·b",
            ),
            (".weight_g", "weight_norm", "our projections have plain weights"),
            (
                ".input_linear.",
                "bottleneck or gate",
                "our layers have no projection before the state space",
            ),
            (".output_gate.", "gate", "our layers have no such gate"),
        ];
        for (part, option, what) in refused {
            if let Some(name) = with(part) {
                return Err(Error::unsupported(option, format!("{what} (the tensor {name})")));
            }
        }
        Ok(())
    }
}
