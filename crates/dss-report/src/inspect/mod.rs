//! What a trained model has learned (§4.2 of the paper): its modes, its time scales, its kernels, as numbers, pictures
//! and files.
//!
//! [`Inspection::load`] reads a checkpoint; [`Inspection::report`] has the numbers, [`mod@pictures`] the pictures, and
//! [`export`] writes kernels and parameters for a notebook.

pub mod bank;
pub mod causality;
pub mod deltas;
pub mod export;
pub mod pictures;
pub mod portraits;
pub mod statistics;

use std::path::Path;

use burn::tensor::{Device, FloatDType};
use dss_nn::checkpoint::{self, CheckpointMeta};
use dss_nn::config::MixerContext;
use dss_nn::{Model, ModelConfig, Modes};
use dss_train::{memory, predict};
use serde::Serialize;

use crate::draw::Scene;
use crate::error::{Error, Result};
use bank::{KernelBank, Peaks, peaks};
use causality::Causality;
use deltas::{Deltas, deltas};
use portraits::{LayerPortrait, PortraitReport};
use statistics::Spread;

/// A model and everything about it that is looked at.
#[derive(Debug)]
pub struct Inspection {
    /// The model, in f64.
    pub model: Model,
    /// What the checkpoint says of itself.
    pub meta: CheckpointMeta,
    /// Positions per second, where time is what a sequence runs over.
    pub rate: Option<f64>,
    /// The layers that are state spaces, from the input to the output.
    pub layers: Vec<SsmLayer>,
    /// What other layers show of themselves.
    pub portraits: Vec<LayerPortrait>,
}

/// One layer.
#[derive(Clone, Debug)]
pub struct SsmLayer {
    /// Its Λ and Δ.
    pub modes: Modes,
    /// Its kernels at the training length.
    pub kernels: KernelBank,
}

/// The numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The task's name; empty if the checkpoint has none.
    pub task: String,
    /// Optimiser steps taken.
    pub step: u64,
    /// What the model is.
    pub model: ModelConfig,
    /// L: the training length.
    pub len: usize,
    /// Positions per second.
    pub rate: Option<f64>,
    /// Layer by layer.
    pub layers: Vec<LayerReport>,
    /// Of the kernels of all layers together: the paper's table.
    pub peaks: Peaks,
    /// What layers that are not state spaces show, in short.
    pub portraits: Vec<PortraitReport>,
    /// Whether longer sequences than those of training are possible.
    pub past_end: PastEnd,
    /// Whether the future is seen.
    pub causality: Causality,
}

/// The numbers of one layer.
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    /// Stored modes.
    pub modes: usize,
    /// Modes with Re λ > 0.
    pub growing: usize,
    /// Re λ.
    pub lambda_re: Spread,
    /// Half-lives of the other modes in all channels, in steps; infinite ones are null.
    pub half_life_steps: Option<Spread>,
    /// The same in seconds, where the task has a rate.
    pub half_life_seconds: Option<Spread>,
    /// Δ for the real part of Λ, or for both if they are tied.
    pub delta_re: Deltas,
    /// Δ for the imaginary part of Λ.
    pub delta_im: Option<Deltas>,
    /// Where the kernels peak.
    pub peaks: Peaks,
}

/// Whether a model may be run past its training length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PastEnd {
    /// Whether it may.
    pub allowed: bool,
    /// What happens there, or why not.
    pub why: String,
}

impl Inspection {
    /// Reads a checkpoint and makes its kernels at the training length.
    ///
    /// # Errors
    /// If the file is not a checkpoint, or there is not enough memory.
    pub fn load(path: &Path, device: &Device) -> Result<Self> {
        // Before anything of the promised length is made: kernels, their f64 copies, and activations.
        let meta = checkpoint::load_meta(path)?;
        let (h, len) = (meta.model.h, meta.io.len);
        let c = MixerContext::new(&meta.model, len).kernels();
        let copies = meta.model.layers.saturating_mul(c).saturating_mul(3).saturating_add(24);
        let needed = [h, len, copies, 8].into_iter().fold(1u64, |a, b| a.saturating_mul(b as u64));
        if let Some(available) = memory::available().filter(|&available| needed > available) {
            let (needed_mb, available_mb) = (needed.div_ceil(1_000_000), available / 1_000_000);
            return Err(Error::Kernels { path: path.into(), len, needed_mb, available_mb });
        }
        let (model, meta) = checkpoint::load(path, device)?;
        Ok(Self::new(model, meta))
    }

    /// Of a model at hand.
    pub fn new(model: Model, meta: CheckpointMeta) -> Self {
        let model = model.cast(FloatDType::F64);
        let len = model.config().positions_for(meta.io.len);
        let layers = model.layers.iter().filter_map(|block| {
            let mixer = block.mixer.get();
            Some(SsmLayer {
                modes: mixer.modes()?,
                kernels: KernelBank::from_tensor(&mixer.kernel(len)?),
            })
        });
        let layers = layers.collect();
        let portraits = portraits::portraits(&model);
        let rate = predict::encoder(&meta).ok().and_then(|encoder| encoder.rate());
        Self { model, meta, rate, layers, portraits }
    }

    /// The numbers. The check of causality runs the model a few times.
    ///
    /// # Errors
    /// If a layer has no modes or channels.
    pub fn report(&self) -> Result<Report> {
        let empty = || {
            dss_train::Error::Mismatch("a layer of the model has no modes or no channels".into())
        };
        let mut layers = Vec::new();
        for SsmLayer { modes, kernels } in &self.layers {
            let re: Vec<f64> = modes.lambda.iter().map(|z| z[0]).collect();
            let half_life_steps = Spread::new(&modes.half_lives());
            let (delta_re, delta_im) = deltas(modes);
            layers.push(LayerReport {
                modes: modes.lambda.len(),
                growing: modes.growing(),
                lambda_re: Spread::new(&re).ok_or_else(empty)?,
                half_life_steps,
                half_life_seconds: self
                    .rate
                    .and_then(|rate| half_life_steps.map(|s| s.divided_by(rate))),
                delta_re: delta_re.ok_or_else(empty)?,
                delta_im,
                peaks: peaks(kernels.rows()),
            });
        }
        let len = self.meta.io.len;
        Ok(Report {
            task: self.task().to_owned(),
            step: self.meta.step,
            model: self.meta.model.clone(),
            len,
            rate: self.rate,
            layers,
            peaks: self.peaks(),
            portraits: self.portraits.iter().map(LayerPortrait::report).collect(),
            past_end: self.past_end(),
            causality: Causality::measure(&self.model, len),
        })
    }

    /// Where the kernels of all layers together peak.
    pub fn peaks(&self) -> Peaks {
        peaks(self.layers.iter().flat_map(|layer| layer.kernels.rows()))
    }

    /// The name of the task, or nothing.
    pub fn task(&self) -> &str {
        self.meta.task_name().unwrap_or_default()
    }

    fn past_end(&self) -> PastEnd {
        match self.model.check_len(self.meta.io.len.saturating_add(1)) {
            Err(error) => PastEnd { allowed: false, why: error.to_string() },
            Ok(()) => {
                let mixer = self.model.layers.first().map(|block| block.mixer.get().past_end());
                let why = mixer.unwrap_or_else(|| "sequences are padded to one length".into());
                PastEnd { allowed: true, why }
            }
        }
    }
}

/// All pictures of a model.
pub fn pictures(inspection: &Inspection) -> Vec<Scene> {
    pictures::all(inspection)
}

#[cfg(test)]
mod tests;
