//! The settings of a training run: the `[train]` table of a config file.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// How long, how fast and with which batches a model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// What is learned: task, or pretrain (its inputs: the next symbol; for bidirectional models, hidden symbols).
    pub objective: Objective,
    /// Run directory or checkpoint whose weights the model starts from; empty = random weights.
    pub from: String,
    /// Blocks, counted from the input, whose weights are frozen, along with the encoder's; 0 = everything is trained.
    pub freeze: usize,
    /// Factor on the learning rates for each block from the head down to the input; 1 = no change.
    pub depth_factor: f64,
    /// Sequences per micro-batch.
    pub batch: usize,
    /// Batches whose sequences are sorted by length together, to reduce padding; 0 = no sorting.
    pub bucket: usize,
    /// Micro-batches per optimiser step; gradients are averaged over batch × accumulate sequences.
    pub accumulate: usize,
    /// Parts of every micro-batch that are computed separately, so that up to as many processes can share the work;
    /// each has its own BatchNorm statistics; must divide batch.
    pub shards: usize,
    /// Passes over the training set.
    pub epochs: usize,
    /// Stop after this many optimiser steps; 0 = no limit.
    pub max_steps: u64,
    /// Minimum number of optimiser steps, for small training sets: if `epochs` passes make fewer, several passes count
    /// as one epoch, also for evaluations and early stopping; 0 = no minimum.
    pub min_steps: u64,
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
    /// Learning rate schedule: plateau, constant, cosine, linear or rsqrt.
    pub schedule: Schedule,
    /// plateau: factor applied to the learning rates at each decay.
    pub plateau_factor: f64,
    /// plateau: evaluations without a better validation score before the learning rates decay.
    pub patience: usize,
    /// Steps over which the learning rates rise linearly from 0; 0 = no warm-up.
    pub warmup_steps: u64,
    /// Smallest learning rate that a schedule may reach.
    pub min_lr: f64,
    /// AdamW's β₂, the decay of its mean of squared gradients.
    pub beta2: f64,
    /// AdamW's ε, added to the square root of that mean.
    pub eps: f64,
    /// Largest global norm of the gradient; 0 = no clipping.
    pub clip: f64,
    /// Stop after this many epochs without a better validation score (or an equal one with a lower loss); 0 = never.
    pub early_stop: usize,
    /// Random seed of the initial weights, the order of the examples and dropout.
    pub seed: u64,
    /// Sequences per evaluation batch; 0 = same as batch.
    pub eval_batch: usize,
    /// Optimiser steps between evaluations; 0 = once per epoch.
    pub eval_every: u64,
    /// Training batches from which BatchNorm's statistics are recomputed before an evaluation; 0 = use the running
    /// ones.
    pub recalibrate: usize,
    /// Decay per step of a running average of the weights, which is evaluated instead of them; 0 = no average.
    pub average: f64,
    /// Largest |Δ_log|; 0 = unbounded.
    pub delta_log_bound: f64,
    /// lm: read the text in order and carry the state of the layers from step to step (variant exp only).
    pub carry: bool,
    /// Seconds between saves of the state, besides those after each evaluation and epoch; 0 = only those.
    pub checkpoint_seconds: u64,
    /// Whether the metrics are also written as an event file for TensorBoard.
    pub tensorboard: bool,
}

impl TrainConfig {
    /// Optimiser steps of one pass over `examples`. Examples that do not fill a step are left out of the pass.
    pub fn steps_per_epoch(&self, examples: usize) -> u64 {
        (examples / self.batch.saturating_mul(self.accumulate).max(1)).max(1) as u64
    }

    /// Optimiser steps of a whole run.
    pub fn total_steps(&self, steps_per_epoch: u64) -> u64 {
        let all = (self.epochs as u64).saturating_mul(self.steps_per_round(steps_per_epoch));
        if self.max_steps > 0 { all.min(self.max_steps) } else { all }
    }

    /// Optimiser steps that count as one epoch for the length of the run, for evaluations and for early stopping: one
    /// pass, or several if `epochs` passes make fewer than `min_steps` steps.
    pub fn steps_per_round(&self, steps_per_epoch: u64) -> u64 {
        steps_per_epoch.max(self.min_steps.div_ceil(self.epochs.max(1) as u64))
    }

    /// Sequences of one forward and backward pass: a shard of a micro-batch.
    pub fn shard_batch(&self) -> usize {
        self.batch / self.shards.max(1)
    }

    /// Sequences per batch of an evaluation.
    pub fn evaluation_batch(&self) -> usize {
        if self.eval_batch == 0 { self.batch } else { self.eval_batch }
    }
}

/// What a model learns to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The targets of the task.
    Task,
    /// Its inputs, as [`pretext`](crate::pretext::pretext) hides them.
    Pretrain,
}

/// What happens to the learning rates over time (after the warm-up).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Multiplied by `plateau_factor` whenever the validation score has not risen for `patience` evaluations.
    Plateau,
    /// They stay the same.
    Constant,
    /// Half a cosine from `lr` to `min_lr` over the whole run.
    Cosine,
    /// A straight line from `lr` to `min_lr` over the whole run.
    Linear,
    /// `lr`·√(`warmup_steps`/step).
    Rsqrt,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            objective: Objective::Task,
            from: String::new(),
            freeze: 0,
            depth_factor: 1.0,
            batch: 50,
            bucket: 0,
            accumulate: 1,
            shards: 1,
            epochs: 50,
            max_steps: 0,
            min_steps: 0,
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
            beta2: 0.999,
            eps: 1e-8,
            clip: 0.0,
            early_stop: 0,
            seed: 0,
            eval_batch: 0,
            eval_every: 0,
            recalibrate: 0,
            average: 0.0,
            delta_log_bound: 10.0,
            carry: false,
            checkpoint_seconds: 60,
            tensorboard: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_of_steps_is_for_small_sets() {
        let train = TrainConfig { epochs: 20, min_steps: 1500, ..TrainConfig::default() };
        assert_eq!((train.steps_per_round(3), train.total_steps(3)), (75, 1500));
        assert_eq!((train.steps_per_round(100), train.total_steps(100)), (100, 2000));
        let short = TrainConfig { max_steps: 50, ..train };
        assert_eq!(short.total_steps(3), 50);
        let plain = TrainConfig { min_steps: 0, ..short };
        assert_eq!((plain.steps_per_round(3), plain.total_steps(1)), (3, 20));
    }
}
