//! One line about every key, in the order in which they are written. The tables also say which keys exist.

use dss_data::TaskConfig;
use dss_data::config::KeyDoc;

/// The sections of a configuration, and what they are about.
pub const SECTIONS: [KeyDoc; 3] = [
    ("task", "The data: which task, and how its examples are made."),
    ("model", "The network."),
    ("train", "The training."),
];

/// The keys of `[model]`.
pub const MODEL: [KeyDoc; 21] = [
    ("layers", "blocks"),
    ("h", "H: channels"),
    ("n", "N: states per channel, at most 512 with skew-hippo; even in s4 and s4d"),
    ("mixer", "state space: dss, s4 or s4d"),
    ("variant", "kernel of dss: softmax, exp or exp-no-scale"),
    (
        "delta",
        "of dss: separate: two Δ per channel, for Re Λ and Im Λ; tied: one, as s4 and s4d have",
    ),
    ("delta_min", "least Δ at initialisation"),
    ("delta_max", "greatest Δ at initialisation"),
    ("lambda_init", "how Λ of dss starts: skew-hippo or random"),
    ("s4d_init", "how Λ of s4d starts: legs, lin or inv"),
    ("discretisation", "of s4d: zoh (zero-order hold) or bilinear"),
    ("kernel_len", "taps of the convolution kernel; 0: as many as the sequence has"),
    ("bidirectional", "a second kernel looks ahead"),
    ("glu", "the output projection has 2H outputs, half of which gate the others"),
    ("norm", "batch, layer or layer-scalar"),
    ("prenorm", "true: x + f(norm(x)); false: norm(x + f(x))"),
    ("last_gain", "γ at the start of the last norm of a prenorm stack"),
    ("dropout", "chance that a channel of a sequence is dropped, in [0, 1)"),
    ("mask_padding", "keep padding out of BatchNorm's statistics"),
    ("pool", "how a sequence becomes one vector: mean over its true length, or last position"),
    ("form", "implementation: fused (CPU), composed (any device), or auto"),
];

/// The keys of `[train]`.
pub const TRAIN: [KeyDoc; 22] = [
    ("batch", "sequences per micro-batch"),
    ("accumulate", "micro-batches per optimiser step"),
    ("epochs", "passes over the training set"),
    ("max_steps", "stop after this many optimiser steps; 0: no limit"),
    ("lr", "learning rate of everything but Λ, Δ and W"),
    ("weight_decay", "AdamW's decay of the same parameters; Λ, Δ and W have none"),
    ("lr_lambda", "learning rate of Λ, and of P and B in s4"),
    ("lr_delta", "learning rate of Δ_log"),
    ("lr_w", "learning rate of W, and of C in s4 and s4d"),
    ("schedule", "plateau, constant or cosine"),
    ("plateau_factor", "plateau: the learning rates are multiplied by this"),
    ("patience", "plateau: after this many evaluations without a better validation score"),
    ("warmup_steps", "steps over which the learning rates rise from 0; 0: none"),
    ("min_lr", "no schedule goes below this learning rate"),
    ("clip", "largest global norm of the gradient; 0: no clipping"),
    ("early_stop", "stop after this many epochs without a better validation score; 0: never"),
    ("seed", "seed of the initial weights, the order of the examples and dropout"),
    ("eval_batch", "sequences per batch of an evaluation; 0: as `batch`"),
    ("eval_every", "optimiser steps between evaluations; 0: one per epoch"),
    ("delta_log_bound", "bound on |Δ_log|; 0: none"),
    (
        "carry",
        "lm: batch streams through the text, the layers' states carried from step to step (variant exp)",
    ),
    (
        "checkpoint_seconds",
        "seconds between saved states; evaluations and ends of epochs save too; 0: only they do",
    ),
];

/// The keys of a section; for `[task]` those of the task, after `name`.
pub(super) fn keys(section: &str, task: &str) -> &'static [KeyDoc] {
    match section {
        "task" => TaskConfig::key_docs(task).unwrap_or_default(),
        "model" => &MODEL,
        "train" => &TRAIN,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn agree(docs: &[KeyDoc], value: &impl serde::Serialize, what: &str) {
        let value = serde_json::to_value(value).unwrap();
        let keys = value.as_object().unwrap().keys().map(String::as_str);
        let fields: BTreeSet<&str> = keys.filter(|&k| k != "name").collect();
        let documented: BTreeSet<&str> = docs.iter().map(|d| d.0).collect();
        assert_eq!(fields, documented, "{what}");
        assert_eq!(documented.len(), docs.len(), "{what}: a key stands twice");
        for (key, doc) in docs {
            assert!(!doc.is_empty() && !doc.contains('\n'), "{what}.{key}");
        }
    }

    #[test]
    fn every_field_has_one_line() {
        agree(&MODEL, &dss_nn::ModelConfig::default(), "model");
        agree(&TRAIN, &crate::TrainConfig::default(), "train");
        for name in TaskConfig::NAMES {
            let docs = TaskConfig::key_docs(name).expect(name);
            agree(docs, &TaskConfig::default_for(name).expect(name), name);
        }
    }
}
