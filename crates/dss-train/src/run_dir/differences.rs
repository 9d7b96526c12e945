//! Which settings of two configurations differ.

use serde_json::Value;

use crate::config::Config;

/// Settings that may change when a run is resumed: where the data is (its hash is checked), and what does not change
/// the steps.
pub(crate) const FREE: [&str; 6] = [
    "task.path",
    "task.dir",
    "train.checkpoint_seconds",
    "train.early_stop",
    "train.eval_batch",
    "train.tensorboard",
];

/// `key: old -> new` of every setting that may not change when a run is resumed.
///
/// `train.epochs` and `train.min_steps` may grow; so may `train.max_steps`, where 0 means no limit; those of `FREE` may
/// change.
pub fn between(old: &Config, new: &Config) -> Vec<String> {
    let limit = |steps: u64| if steps == 0 { u64::MAX } else { steps };
    let longer = new.train.epochs >= old.train.epochs
        && new.train.min_steps >= old.train.min_steps
        && limit(new.train.max_steps) >= limit(old.train.max_steps);
    let (old, new) = (old.flat(), new.flat());
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    keys.into_iter()
        .filter(|key| old.get(*key) != new.get(*key) && !FREE.contains(&key.as_str()))
        .filter(|key| {
            !(longer
                && ["train.epochs", "train.max_steps", "train.min_steps"].contains(&key.as_str()))
        })
        .map(|key| format!("{key}: {} -> {}", show(old.get(key)), show(new.get(key))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting;

    #[test]
    fn only_the_length_of_a_run_may_grow() {
        let old = Config::resolve("delay", None, &[], &[Setting::new("max_steps", 50)]).unwrap();
        let mut new = old.clone();
        assert!(between(&old, &new).is_empty());
        new.train.max_steps = 0;
        new.train.epochs += 3;
        assert!(between(&old, &new).is_empty());
        assert_eq!(between(&new, &old).len(), 2, "it may not shrink");
        new.train.lr = 0.5;
        new.model.h += 1;
        let keys = between(&old, &new);
        assert_eq!(keys.len(), 2, "{keys:?}");
        assert!(keys[0].starts_with("model.h: ") && keys[1].ends_with(" -> 0.5"), "{keys:?}");
    }

    #[test]
    fn data_may_move_and_free_settings_change() {
        let sets = |values: [&str; 4]| {
            let keys = ["dir", "checkpoint_seconds", "early_stop", "eval_batch"];
            let pairs = keys.into_iter().zip(values);
            pairs.map(|(key, value)| Setting::typed(key, value)).collect::<Vec<_>>()
        };
        let resolve = |values| Config::resolve("listops", None, &[], &sets(values)).unwrap();
        let (old, new) = (resolve(["b", "1", "2", "3"]), resolve(["d", "4", "5", "6"]));
        assert_eq!(between(&old, &new), [""; 0]);
        let known = old.flat();
        for key in FREE.iter().filter(|key| **key != "task.path") {
            assert!(known.contains_key(*key), "{key}");
        }
    }
}
