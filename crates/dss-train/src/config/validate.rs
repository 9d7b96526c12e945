//! Values in their ranges.

use std::collections::BTreeMap;

use dss_data::TaskConfig;

use super::{Config, ConfigError, TrainConfig};

/// A key of `[train]`, what it is, whether that is right, and what would be.
type Rule = (&'static str, String, bool, &'static str);

fn rules(t: &TrainConfig) -> Vec<Rule> {
    let count = |key, value: usize| (key, value.to_string(), value >= 1, "at least 1");
    let rate = |key, value: f64| {
        (key, value.to_string(), value >= 0.0 && value.is_finite(), "a number of at least 0")
    };
    vec![
        count("train.batch", t.batch),
        count("train.accumulate", t.accumulate),
        count("train.epochs", t.epochs),
        ("train.lr", t.lr.to_string(), t.lr > 0.0 && t.lr.is_finite(), "a number greater than 0"),
        rate("train.weight_decay", t.weight_decay),
        rate("train.lr_lambda", t.lr_lambda),
        rate("train.lr_delta", t.lr_delta),
        rate("train.lr_w", t.lr_w),
        (
            "train.plateau_factor",
            t.plateau_factor.to_string(),
            0.0 < t.plateau_factor && t.plateau_factor < 1.0,
            "greater than 0 and below 1",
        ),
        rate("train.min_lr", t.min_lr),
        rate("train.clip", t.clip),
        rate("train.delta_log_bound", t.delta_log_bound),
    ]
}

/// Every number is in its range; `places` says where a key was set.
pub(super) fn validate(
    config: &Config,
    places: &BTreeMap<String, String>,
) -> Result<(), ConfigError> {
    if let Some((key, value, _, allowed)) = rules(&config.train).into_iter().find(|r| !r.2) {
        let place = places.get(key).cloned().unwrap_or_else(|| "default".to_owned());
        return Err(ConfigError::Range { place, key, value, allowed });
    }
    if matches!(config.task, TaskConfig::Lm(_)) && config.model.bidirectional {
        let key = "model.bidirectional";
        let place = places.get(key).cloned().unwrap_or_else(|| "default".to_owned());
        let allowed = "false for a language model, which must not look ahead";
        return Err(ConfigError::Range { place, key, value: "true".into(), allowed });
    }
    if config.train.carry {
        carry(config).map_err(|what| {
            let place = places.get("train.carry").cloned().unwrap_or_else(|| "default".to_owned());
            ConfigError::Invalid { what: format!("{place}: train.carry: {what}") }
        })?;
    }
    config.model.validate().map_err(|error| {
        let what = error.to_string();
        let place = model_place(&what, places).map(|place| format!("{place}: "));
        ConfigError::Invalid { what: format!("{}[model] {what}", place.unwrap_or_default()) }
    })
}

/// Whether states can be carried from step to step.
fn carry(config: &Config) -> Result<(), String> {
    if !matches!(config.task, TaskConfig::Lm(_)) {
        return Err("only the task lm has streams; set train.carry to false".into());
    }
    if config.train.accumulate != 1 {
        return Err("set train.accumulate to 1".into());
    }
    config.model.check_carry().map_err(|error| error.to_string())
}

/// Where a key that a complaint about `[model]` names was set: on the command line, in a file, or in the preset, the
/// first of these that is true of one of its keys.
fn model_place<'a>(what: &str, places: &'a BTreeMap<String, String>) -> Option<&'a String> {
    let words = what.split(|c: char| !c.is_alphanumeric() && c != '_');
    let found = words.filter_map(|word| places.get(&format!("model.{word}")));
    found.min_by_key(|place| (!place.starts_with("--set"), place.starts_with("preset ")))
}
