//! Export and import of models.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use dss_exchange::{DeltaTransform, Pooling};
use dss_format::mixer::{Discretisation, Variant};

use super::values::{named, positive};

/// `dss export`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss export runs/speech-laptop-0 --to speech.safetensors
  dss export runs/lm-laptop-0 --to lm.safetensors --f16
  dss export runs/listops-laptop-0 --to torch --out listops.safetensors
  dss export runs/speech-laptop-0 --to onnx --out speech.onnx

--f16 stores large weights in half precision, which halves the file. Eigenvalues and step sizes stay in single precision, \
since a long memory multiplies their errors. A model card, a page of Markdown, is written beside the file (.md).

--to torch writes safetensors with the names of the authors' programs (ag1988/dss, or example.py with s4d.py) and, beside \
it, the model part of their config.yaml. --to onnx writes the recurrent step: one position and the state in, the answer \
and the next state out. docs/import-export.md describes both.")]
pub struct ExportArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// The file to write, or a format for other programs: torch or onnx
    #[arg(long, value_name = "FILE|torch|onnx")]
    pub to: PathBuf,
    /// The file to write with --to torch or --to onnx [default: the run's name with .torch.safetensors or .onnx]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Weights in half precision
    #[arg(long)]
    pub f16: bool,
}

/// `dss import`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss import speech.safetensors --to checkpoint.safetensors
  dss import last.ckpt --out model.safetensors
  dss import weights.pt --config other/config.yaml --out model.safetensors
  dss import weights.pt --variant exp --pool last --len 2048 --out model.safetensors

Reads model files of `dss export`, and checkpoints of ag1988/dss, of the S4 repository (s4d.py, and its S4D and S4 \
layers) and of annotated-s4: .pt and .pth of torch.save, Lightning's .ckpt, safetensors, flax's .msgpack. Nothing in \
them is executed. Settings that the tensors do not show come from the options, then from --config, then from the file \
itself, then from NAME.config.yaml, config.yaml or .hydra/config.yaml beside FILE or up to two folders above it. The \
configuration that is used, and every assumption, are printed to standard error. The checkpoint has all weights in \
single precision, as training and the library `dss-nn` expect them.")]
pub struct ImportArgs {
    /// The model file or checkpoint
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The checkpoint to write
    #[arg(long, visible_alias = "out", value_name = "CHECKPOINT")]
    pub to: PathBuf,
    #[command(flatten)]
    pub foreign: ForeignArgs,
}

/// What the checkpoint of another program may not say.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checkpoints of other programs")]
pub struct ForeignArgs {
    /// The configuration of its training (Hydra's config.yaml) [default: the one in the checkpoint, or near it]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Length L of its sequences: the softmax is normalised over it
    #[arg(long, value_name = "L", value_parser = positive)]
    pub len: Option<usize>,
    /// DSS kernel
    #[arg(long, value_parser = named(VARIANTS))]
    pub variant: Option<Variant>,
    /// What the head reads
    #[arg(long, value_parser = named(POOLINGS))]
    pub pool: Option<Pooling>,
    /// Length at which its kernels are cut (max_kernel_length)
    #[arg(long, value_name = "N", value_parser = positive)]
    pub kernel_len: Option<usize>,
    /// Whether its norms come before the layers (example.py only; other checkpoints show it)
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub prenorm: Option<bool>,
    /// Discretisation of the S4 repository's S4D (disc)
    #[arg(long, value_parser = named(DISCRETISATIONS))]
    pub discretisation: Option<Discretisation>,
    /// How the S4 repository's layers store Δ (dt_transform)
    #[arg(long, value_parser = named(DELTA_TRANSFORMS))]
    pub dt: Option<DeltaTransform>,
}

const VARIANTS: &[(Variant, &str)] = &[
    (Variant::Softmax, "Rows normalised by their sum"),
    (Variant::Exp, "Zero-order hold"),
    (Variant::ExpNoScale, "Zero-order hold without the scaling factor"),
];

const POOLINGS: &[(Pooling, &str)] = &[
    (Pooling::Mean, "The mean over all positions"),
    (Pooling::Last, "The last position"),
    (Pooling::None, "Every position: one answer for each"),
];

const DISCRETISATIONS: &[(Discretisation, &str)] = &[
    (Discretisation::Zoh, "Zero-order hold"),
    (Discretisation::Bilinear, "Bilinear (Tustin's) rule"),
];

const DELTA_TRANSFORMS: &[(DeltaTransform, &str)] =
    &[(DeltaTransform::Exp, "Δ = exp(x)"), (DeltaTransform::Softplus, "Δ = log(1 + exp(x))")];

impl ForeignArgs {
    /// The first option that was given.
    pub fn first(&self) -> Option<&'static str> {
        let given = [
            (self.config.is_some(), "--config"),
            (self.len.is_some(), "--len"),
            (self.variant.is_some(), "--variant"),
            (self.pool.is_some(), "--pool"),
            (self.kernel_len.is_some(), "--kernel-len"),
            (self.prenorm.is_some(), "--prenorm"),
            (self.discretisation.is_some(), "--discretisation"),
            (self.dt.is_some(), "--dt"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}
