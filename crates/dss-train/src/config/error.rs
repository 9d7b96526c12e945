//! Configuration errors; each message says where the mistake is and what is allowed.

use std::path::PathBuf;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such task.
    #[error("unknown task `{task}`{}", did_you_mean(nearest))]
    Task {
        /// As it was written.
        task: String,
        /// The known task it resembles most.
        nearest: Option<String>,
    },
    /// The task has no such preset.
    #[error("task `{task}` has no preset `{preset}`; it has: {known}")]
    Preset {
        /// The task.
        task: String,
        /// As it was written.
        preset: String,
        /// The presets of this task.
        known: String,
    },
    /// No such model or ablation.
    #[error("unknown {kind} `{name}`; there are: {known}")]
    Overlay {
        /// `model` or `ablation`.
        kind: &'static str,
        /// As it was written.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// No such section.
    #[error("{place}: unknown section [{section}]{}", did_you_mean(nearest))]
    Section {
        /// The file and line of its header, such as `my.toml, line 3`.
        place: String,
        /// As it was written.
        section: String,
        /// The known section it resembles most.
        nearest: Option<String>,
    },
    /// No such key.
    #[error("{place}: unknown key `{key}`{}", did_you_mean(nearest))]
    Key {
        /// The file and line, or the option, that sets it: `my.toml, line 5` or `--set layer=3`.
        place: String,
        /// As it was written.
        key: String,
        /// The known key it resembles most.
        nearest: Option<String>,
    },
    /// A key without its section that more than one section has.
    #[error("{place}: `{key}` could be {candidates}: write the section too")]
    Ambiguous {
        /// The option, such as `--set kernel=3`.
        place: String,
        /// As it was written.
        key: String,
        /// The keys it could mean.
        candidates: String,
    },
    /// A value of the wrong type.
    #[error("{place}: {key} = {value}: {reason}")]
    Value {
        /// The file and line, or the option, that sets it.
        place: String,
        /// With its section.
        key: String,
        /// As it was written.
        value: String,
        /// The expected value.
        reason: String,
    },
    /// A value out of its range.
    #[error("{place}: {key} = {value}, but it must be {allowed}")]
    Range {
        /// The file and line, or the option, that sets it; or `default`.
        place: String,
        /// With its section.
        key: String,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// Values out of range, or that do not go together.
    #[error("{}{what}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Invalid {
        /// The file and line, or the option, that sets one of them, if any does.
        place: Option<String>,
        /// Which, what they are and what they may be.
        what: String,
    },
    /// A file that names another task.
    #[error("{place}: this is a configuration of task `{found}`, not of `{expected}`")]
    OtherTask {
        /// The file and line, or the option, that names the task.
        place: String,
        /// The task it names.
        found: String,
        /// The task that was asked for.
        expected: String,
    },
    /// Not TOML.
    #[error("{place}: {reason}")]
    Syntax {
        /// The file, with the line of the fault if the parser tells.
        place: String,
        /// What the parser says.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

pub(super) fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Keys that have other names elsewhere.
const ALSO_CALLED: [(&str, &str); 13] = [
    ("learning_rate", "lr"),
    ("wd", "weight_decay"),
    ("num_layers", "layers"),
    ("n_layers", "layers"),
    ("depth", "layers"),
    ("d_model", "h"),
    ("hidden", "h"),
    ("d_state", "n"),
    ("grad_clip", "clip"),
    ("dt_min", "delta_min"),
    ("dt_max", "delta_max"),
    ("path", "dir"),
    ("dir", "path"),
];

/// Names that are less alike than this mean different things (`path` and `patience`: 0.80).
const ALIKE: f64 = 0.82;

/// The known name that resembles `name` most, unless none does.
pub(super) fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<(f64, &'a str)> {
    let name = name.to_lowercase().replace('-', "_");
    let meant = ALSO_CALLED.iter().find(|(other, _)| *other == name).map(|(_, key)| *key);
    let score = |k: &str| if meant == Some(k) { 1.0 } else { strsim::jaro_winkler(&name, k) };
    let scored = known.into_iter().map(|k| (score(k), k));
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > ALIKE)
}
