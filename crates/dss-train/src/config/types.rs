//! The settings of a training run: the `[train]` table of a config file.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// How long, how fast and with which batches a model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Sequences per micro-batch.
    pub batch: usize,
    /// Micro-batches per optimiser step; gradients are averaged over batch × accumulate sequences.
    pub accumulate: usize,
    /// Passes over the training set.
    pub epochs: usize,
    /// Stop after this many optimiser steps; 0 = no limit.
    pub max_steps: u64,
    /// Learning rate of all parameters except Λ, Δ and W.
    pub lr: f64,
    /// AdamW weight decay of all parameters except Λ, Δ and W.
    pub weight_decay: f64,
    /// Learning rate of Λ, and of P and B in S4.
    pub lr_lambda: f64,
    /// Learning rate of Δ_log.
    pub lr_delta: f64,
    /// Learning rate of W, and of C in S4 and S4D.
    pub lr_w: f64,
    /// Learning rate schedule: plateau, constant or cosine.
    pub schedule: Schedule,
    /// plateau: factor applied to the learning rates at each decay.
    pub plateau_factor: f64,
    /// plateau: evaluations without a better validation score before a decay.
    pub patience: usize,
    /// Steps over which the learning rates rise linearly from 0; 0 = no warm-up.
    pub warmup_steps: u64,
    /// Smallest learning rate that a schedule may reach.
    pub min_lr: f64,
    /// Largest global norm of the gradient; 0 = no clipping.
    pub clip: f64,
    /// Stop after this many epochs without a better validation score; 0 = never.
    pub early_stop: usize,
    /// Random seed of the initial weights, the order of the examples and dropout.
    pub seed: u64,
    /// Sequences per evaluation batch; 0 = same as batch.
    pub eval_batch: usize,
    /// Optimiser steps between evaluations; 0 = once per epoch.
    pub eval_every: u64,
    /// Largest |Δ_log|; 0 = unbounded.
    pub delta_log_bound: f64,
    /// lm: read the text in order and carry the state of the layers from step to step (variant exp only).
    pub carry: bool,
    /// Seconds between saved states; evaluations and epoch ends always save; 0 = only those.
    pub checkpoint_seconds: u64,
}

impl TrainConfig {
    /// Optimiser steps of one pass over `examples`: as many as fit; what is left over waits for the next one's order.
    pub fn steps_per_epoch(&self, examples: usize) -> u64 {
        (examples / self.batch.saturating_mul(self.accumulate).max(1)).max(1) as u64
    }

    /// Optimiser steps of a whole run.
    pub fn total_steps(&self, steps_per_epoch: u64) -> u64 {
        let all = (self.epochs as u64).saturating_mul(steps_per_epoch);
        if self.max_steps > 0 { all.min(self.max_steps) } else { all }
    }

    /// Sequences per batch of an evaluation.
    pub fn evaluation_batch(&self) -> usize {
        if self.eval_batch == 0 { self.batch } else { self.eval_batch }
    }
}

/// What happens to the learning rates over time (after the warm-up).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Times `plateau_factor` whenever the validation score has not risen for `patience` evaluations.
    Plateau,
    /// They stay.
    Constant,
    /// Half a cosine from `lr` to `min_lr` over the whole run.
    Cosine,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            batch: 50,
            accumulate: 1,
            epochs: 50,
            max_steps: 0,
            lr: 0.01,
            weight_decay: 0.01,
            lr_lambda: 1e-3,
            lr_delta: 1e-3,
            lr_w: 1e-3,
            schedule: Schedule::Plateau,
            plateau_factor: 0.2,
            patience: 5,
            warmup_steps: 0,
            min_lr: 0.0,
            clip: 0.0,
            early_stop: 0,
            seed: 0,
            eval_batch: 0,
            eval_every: 0,
            delta_log_bound: 10.0,
            carry: false,
            checkpoint_seconds: 60,
        }
    }
}
