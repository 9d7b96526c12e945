//! Values in their ranges.

use dss_data::TaskConfig;
use dss_nn::config::{InputKind, ModelIo, OutputKind};

use super::place::{KeyPlaces, Place, blamed};
use super::section::MIXER_KIND;
use super::{Config, ConfigError, Objective, Section, TrainConfig};

/// A key of `[train]`, its value, whether that is allowed, and the allowed values.
type Rule = (&'static str, String, bool, &'static str);

fn rules(t: &TrainConfig) -> Vec<Rule> {
    let count = |key, value: usize| (key, value.to_string(), value >= 1, "at least 1");
    let rate = |key, value: f64| {
        (key, value.to_string(), value >= 0.0 && value.is_finite(), "a number of at least 0")
    };
    vec![
        count("batch", t.batch),
        count("accumulate", t.accumulate),
        (
            "shards",
            format!("{} (train.batch = {})", t.shards, t.batch),
            t.shards >= 1 && t.batch.is_multiple_of(t.shards),
            "a divisor of train.batch",
        ),
        count("epochs", t.epochs),
        ("lr", t.lr.to_string(), t.lr > 0.0 && t.lr.is_finite(), "a number greater than 0"),
        rate("weight_decay", t.weight_decay),
        rate("lr_lambda", t.lr_lambda),
        rate("lr_delta", t.lr_delta),
        rate("lr_w", t.lr_w),
        (
            "plateau_factor",
            t.plateau_factor.to_string(),
            0.0 < t.plateau_factor && t.plateau_factor < 1.0,
            "greater than 0 and below 1",
        ),
        rate("min_lr", t.min_lr),
        ("beta2", t.beta2.to_string(), (0.0..1.0).contains(&t.beta2), "at least 0 and below 1"),
        ("eps", t.eps.to_string(), t.eps > 0.0 && t.eps <= 1.0, "greater than 0 and at most 1"),
        rate("clip", t.clip),
        rate("delta_log_bound", t.delta_log_bound),
        (
            "depth_factor",
            t.depth_factor.to_string(),
            0.0 < t.depth_factor && t.depth_factor <= 1.0,
            "greater than 0 and at most 1",
        ),
        (
            "average",
            t.average.to_string(),
            (0.0..1.0).contains(&t.average),
            "at least 0 and below 1",
        ),
    ]
}

/// Every number is in its range; `places` says where a key was set.
pub(super) fn validate(config: &Config, places: &KeyPlaces) -> Result<(), ConfigError> {
    let place = |section: Section, key: &str| match blamed(places, &[&format!("{section}.{key}")]) {
        Some(place) => place.to_string(),
        None => "default".to_owned(),
    };
    if let Some((key, value, _, allowed)) = rules(&config.train).into_iter().find(|r| !r.2) {
        let place = place(Section::Train, key);
        return Err(ConfigError::Range { place, key: format!("train.{key}"), value, allowed });
    }
    let is_lm = matches!(config.task, TaskConfig::Lm(_));
    if is_lm && config.model.bidirectional {
        return Err(ConfigError::Range {
            place: place(Section::Model, "bidirectional"),
            key: "model.bidirectional".to_owned(),
            value: "true".to_owned(),
            allowed: "false for a language model, which must not look ahead",
        });
    }
    if config.train.objective == Objective::Pretrain && is_lm {
        return Err(ConfigError::Range {
            place: place(Section::Train, "objective"),
            key: "train.objective".to_owned(),
            value: "pretrain".to_owned(),
            allowed: "task for a language model, which predicts its inputs anyway",
        });
    }
    if config.train.freeze > config.model.layers {
        return Err(ConfigError::Range {
            place: place(Section::Train, "freeze"),
            key: "train.freeze".to_owned(),
            value: config.train.freeze.to_string(),
            allowed: "at most model.layers",
        });
    }
    if config.train.carry {
        carry(config).map_err(|what| ConfigError::Invalid {
            place: Some(place(Section::Train, "carry")),
            what: format!("train.carry: {what}"),
        })?;
    }
    // Where L is not known yet, it is checked again with the data.
    let len = config.task.known_len().unwrap_or(1);
    let every_position =
        config.train.objective == Objective::Pretrain || config.task.asks_at_every_position();
    let valid = config.model.validate(len).and_then(|()| {
        let (input, output) = (InputKind::Tokens { vocab: 1 }, OutputKind::Position { outputs: 1 });
        let io = ModelIo { input, output, len };
        if every_position { config.model.validate_for(&io) } else { Ok(()) }
    });
    valid.map_err(|error| {
        if is_lm && error.keys() == ["model.bidirectional"] {
            return ConfigError::Range {
                place: place(Section::Mixer, "kind"),
                key: MIXER_KIND.to_string(),
                value: config.model.mixer.kind().to_owned(),
                allowed: "a causal one for a language model, such as that of dss-softmax, s4, gru or transformer",
            };
        }
        invalid_model(&error, places)
    })
}

/// An error about settings of `[model]`, with the place where one of them was set.
pub(super) fn invalid_model(error: &dss_format::Error, places: &KeyPlaces) -> ConfigError {
    let place = blamed(places, error.keys()).map(Place::to_string);
    ConfigError::Invalid { place, what: format!("[model] {error}") }
}

/// Whether states can be carried from step to step.
fn carry(config: &Config) -> Result<(), String> {
    if !matches!(config.task, TaskConfig::Lm(_)) {
        return Err("only the task lm has streams; set train.carry to false".into());
    }
    if config.train.accumulate != 1 {
        return Err("set train.accumulate to 1".into());
    }
    if config.train.shards != 1 {
        return Err("set train.shards to 1".into());
    }
    config.model.check_carry().map_err(|error| error.to_string())
}
