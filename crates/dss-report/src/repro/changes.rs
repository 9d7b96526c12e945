//! In words: how the settings of a task differ from the paper's.

use dss_nn::MixerConfig;
use dss_train::Schedule;
use dss_train::config::{Config, Section};
use serde_json::Value;

/// Settings that say where or how often, not what.
const SILENT: [&str; 11] = [
    "task.name",
    "task.dir",
    "task.path",
    "train.seed",
    "train.max_steps",
    "train.epochs",
    "train.eval_every",
    "train.eval_batch",
    "train.checkpoint_seconds",
    "train.early_stop",
    "train.plateau_factor",
];

/// The words for a setting; `#` is its value.
const WORDS: [(&str, &str); 24] = [
    ("task.train", "# training examples"),
    ("task.val", "# validation examples"),
    ("task.test", "# test examples"),
    ("task.len", "sequences of # positions"),
    ("task.min_length", "expressions of more than # symbols"),
    ("task.max_length", "expressions of fewer than # symbols"),
    ("task.split", "the split `#`"),
    ("model.layers", "depth #"),
    ("model.h", "H = #"),
    ("model.mixer.n", "N = #"),
    ("model.norm", "# norm"),
    ("model.dropout", "dropout #"),
    ("model.mixer.delta_min", "Δ from #"),
    ("model.mixer.delta_max", "Δ up to #"),
    ("model.pool", "pooling `#`"),
    ("train.batch", "batches of #"),
    ("train.lr", "learning rate #"),
    ("train.lr_lambda", "learning rate of Λ #"),
    ("train.lr_delta", "learning rate of Δ #"),
    ("train.lr_w", "learning rate of W #"),
    ("train.weight_decay", "weight decay #"),
    ("train.schedule", "the schedule `#`"),
    ("train.warmup_steps", "# steps of warm-up"),
    ("train.patience", "patience #"),
];

/// Counts that mean "all there are" if they are 0.
const COUNTS: [&str; 3] = ["task.train", "task.val", "task.test"];

/// What differs: the data first, then the model, then the training.
pub(super) fn between(here: &Config, paper: &Config) -> Vec<String> {
    let schedule = here.train.schedule;
    let (here, paper) = (here.flat(), paper.flat());
    let mut found: Vec<(usize, String)> = Vec::new();
    for (key, value) in &here {
        if SILENT.contains(&key.as_str()) || paper.get(key) == Some(value) {
            continue;
        }
        // Patience is of the plateau schedule only.
        if key == "train.patience" && schedule != Schedule::Plateau {
            continue;
        }
        // 0: as long as the longest one.
        if key == "task.len" && value.as_u64() == Some(0) {
            continue;
        }
        let then = paper.get(key);
        let text = match (value, WORDS.iter().find(|(name, _)| name == key)) {
            (Value::Bool(now), _) => {
                let (_, name) = key.split_once('.').unwrap_or(("", key));
                let (yes, no) = if *now { ("with", "without") } else { ("without", "with") };
                format!("{yes} `{name}` instead of {no}")
            }
            (_, Some((_, words))) => {
                let then = then.map_or_else(|| "none".to_owned(), |then| show(key, then));
                format!("{} instead of {then}", words.replace('#', &show(key, value)))
            }
            (_, None) => {
                let then = then.map_or_else(|| "nothing".to_owned(), |then| show(key, then));
                format!("`{key}` {} instead of {then}", show(key, value))
            }
        };
        found.push((place(key), text));
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, text)| text).collect()
}

/// Where a key comes in the documents.
fn place(key: &str) -> usize {
    let position = |section: Section, name: &str| {
        let keys = section.key_docs("", MixerConfig::default().kind());
        keys.iter().position(|doc| doc.0 == name).unwrap_or(99)
    };
    match key.rsplit_once('.') {
        Some(("model", name)) => 1000 + position(Section::Model, name),
        Some(("model.mixer", name)) => 1100 + position(Section::Mixer, name),
        Some(("train", name)) => 2000 + position(Section::Train, name),
        _ => WORDS.iter().position(|(name, _)| *name == key).unwrap_or(999),
    }
}

fn show(key: &str, value: &Value) -> String {
    match value {
        Value::Number(n) if n.as_u64() == Some(0) && COUNTS.contains(&key) => "all".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dss_data::TaskConfig;

    use super::*;

    #[test]
    fn every_key_exists() {
        let mut known = BTreeSet::new();
        for task in TaskConfig::NAMES {
            for section in Section::ALL {
                let docs = section.key_docs(task, MixerConfig::default().kind()).into_iter();
                known.extend(docs.map(|(key, _)| format!("{section}.{key}")));
            }
        }
        for key in WORDS.iter().map(|(key, _)| key).chain(&SILENT).chain(&COUNTS) {
            assert!(known.contains(*key), "{key}");
        }
    }

    #[test]
    fn differences_read_as_a_list() {
        let listops = |preset| Config::resolve("listops", Some(preset), &[], &[]).unwrap();
        let found = between(&listops("causal"), &listops("paper"));
        let text = found.join("; ");
        assert!(text.starts_with("20000 training examples instead of 96000; "), "{text}");
        for part in [
            "expressions of fewer than 200 symbols instead of 2000",
            "depth 4 instead of 6",
            "the schedule `cosine` instead of plateau",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        for silent in ["patience", "seed", "0 positions"] {
            assert!(!text.contains(silent), "{silent} in {text}");
        }
        assert_eq!(between(&listops("paper"), &listops("paper")), [""; 0]);
        let image = |preset| Config::resolve("image", Some(preset), &[], &[]).unwrap();
        let text = between(&image("laptop"), &image("paper")).join("; ");
        assert!(text.contains("with `bidirectional` instead of without"), "{text}");
    }
}
