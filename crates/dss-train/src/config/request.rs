//! A request for a configuration: a task, and everything that overrides its defaults.

use std::path::PathBuf;

use dss_nn::{ModelConfig, checkpoint};
use toml::Value;

use super::place::Sources;
use super::presets::{ABLATIONS, DEFAULT_PRESET, MODELS, NamedOverlay, OverlayRule, PUBLISHED};
use super::resolve::{Document, Layers};
use super::section::Section;
use super::{Config, ConfigError, Setting, find_preset};
use crate::run_dir::RunDir;

/// The layers of a configuration, each overriding the one before. With the feature `clap` it is also what `dss` parses.
///
/// ```
/// use dss_train::config::Request;
///
/// # fn main() -> dss_train::Result<()> {
/// let request = Request {
///     task: "path-x".into(),
///     preset: Some("paper".into()),
///     model: Some("s4".into()),
///     ..Request::default()
/// };
/// let (config, sources) = request.resolve()?;
/// assert_eq!(config.train.batch, 32);
/// assert_eq!(sources.source("train.batch"), "paper's table");
/// assert_eq!(sources.source("model.mixer.kind"), "--model s4");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Request {
    /// The task; see `dss config list`
    #[cfg_attr(feature = "clap", arg(value_parser = clap_values::tasks()))]
    pub task: String,
    /// Built-in settings [default: laptop]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = clap_values::presets()))]
    pub preset: Option<String>,
    /// The model; overrides the preset [default: that of the preset; dss-softmax in all built-in ones]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = clap_values::overlays(MODELS)))]
    pub model: Option<String>,
    /// An ablation, applied to preset and model; may be given several times
    #[cfg_attr(
        feature = "clap",
        arg(long = "ablation", value_name = "NAME", value_parser = clap_values::overlays(ABLATIONS))
    )]
    pub ablations: Vec<String>,
    /// A run directory or checkpoint to start from: its weights, and its `model` settings instead of those above
    #[cfg_attr(feature = "clap", arg(long, value_name = "PATH"))]
    pub from: Option<PathBuf>,
    /// A TOML file that overrides all of the above; may be given several times
    #[cfg_attr(feature = "clap", arg(long = "config", value_name = "FILE"))]
    pub files: Vec<PathBuf>,
    /// A single setting, which overrides all others, such as model.h=128 or lr=0.01; may be given several times
    #[cfg_attr(
        feature = "clap",
        arg(long = "set", value_name = "KEY=VALUE", value_parser = clap_values::settings(), hide_possible_values = true)
    )]
    pub sets: Vec<Setting>,
}

/// Names that options take.
#[cfg(feature = "clap")]
pub mod clap_values {
    use std::collections::BTreeMap;

    use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
    use dss_data::TaskConfig;
    use dss_nn::MixerConfig;

    use super::NamedOverlay;
    use crate::config::section::TASK_NAME;
    use crate::config::{PRESETS, Section, Setting};

    /// The names of all tasks.
    pub fn tasks() -> PossibleValuesParser {
        PossibleValuesParser::new(TaskConfig::NAMES.iter().copied())
    }

    /// The names of models or ablations, with what they are.
    pub fn overlays(overlays: &'static [NamedOverlay]) -> PossibleValuesParser {
        let value = |overlay: &NamedOverlay| PossibleValue::new(overlay.name).help(overlay.about());
        PossibleValuesParser::new(overlays.iter().map(value))
    }

    /// Any name; a shell suggests those of all presets.
    pub fn presets() -> impl TypedValueParser<Value = String> {
        let mut names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        names.sort_unstable();
        names.dedup();
        let suggestions = names.into_iter().map(PossibleValue::new).collect();
        Suggesting { parser: StringValueParser::new(), suggestions }
    }

    /// Any setting; a shell suggests the keys of all tasks and mixers.
    pub fn settings() -> impl TypedValueParser<Value = Setting> {
        let mut keys = BTreeMap::new();
        for task in TaskConfig::NAMES {
            for mixer in MixerConfig::KINDS {
                for section in Section::ALL {
                    let docs = section.key_docs(task, mixer).into_iter();
                    keys.extend(docs.map(|(key, doc)| (format!("{section}.{key}"), doc)));
                }
            }
        }
        keys.remove(&TASK_NAME.to_string());
        let suggestion = |(key, doc)| PossibleValue::new(format!("{key}=")).help(doc);
        let parser = |text: &str| text.parse::<Setting>();
        Suggesting { parser, suggestions: keys.into_iter().map(suggestion).collect() }
    }

    /// Parses values; the suggestions are for shell completion.
    #[derive(Clone)]
    struct Suggesting<P> {
        parser: P,
        suggestions: Vec<PossibleValue>,
    }

    impl<P: TypedValueParser> TypedValueParser for Suggesting<P> {
        type Value = P::Value;

        fn parse_ref(
            &self,
            command: &clap::Command,
            arg: Option<&clap::Arg>,
            value: &std::ffi::OsStr,
        ) -> Result<P::Value, clap::Error> {
            self.parser.parse_ref(command, arg, value)
        }

        fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
            Some(Box::new(self.suggestions.iter().cloned()))
        }
    }
}

impl Request {
    /// The configuration, and where each of its values comes from.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: a task, preset, model, ablation, section or key that does not exist, a value that it cannot
    /// have, or an ablation that does not apply to the model.
    pub fn resolve(&self) -> crate::Result<(Config, Sources)> {
        let mut layers = Layers::new(&self.task)?;
        let preset = find_preset(&self.task, self.preset.as_deref().unwrap_or(DEFAULT_PRESET))?;
        let model = self.model.as_deref().map(|name| find("model", MODELS, name)).transpose()?;
        let ablations = self.ablations.iter().map(|name| find("ablation", ABLATIONS, name));
        let ablations = ablations.collect::<Result<Vec<_>, _>>()?;
        let overlay = model.map(NamedOverlay::document);
        // The presets of the paper are those of DSS.
        let published = PUBLISHED.iter().filter(|published| {
            preset.name == "paper"
                && model.is_some_and(|model| published.models.contains(&model.name))
        });
        let published = published.map(|published| published.document(&self.task));
        for document in [preset.document()].into_iter().chain(overlay).chain(published) {
            layers.document(&Document::BuiltIn(document))?;
        }
        for ablation in &ablations {
            check_ablation(ablation, &layers)?;
            layers.document(&Document::BuiltIn(ablation.document()))?;
        }
        for rule in model.into_iter().flat_map(|model| model.rules) {
            match rule {
                OverlayRule::LearningRateOfC => {
                    layers.copy(Section::Train, "lr", "lr_w", "S4's code: as lr")?;
                }
            }
        }
        let looks_ahead = layers.value(Section::Model, "bidirectional");
        if self.task == "lm" && looks_ahead == Some(&Value::Boolean(true)) {
            layers.rule(
                Section::Model,
                "bidirectional",
                false.into(),
                "lm: must not look ahead",
            )?;
        }
        if let Some(from) = &self.from {
            layers.start_from(&checkpoint::load_meta(RunDir::checkpoint_at(from))?.model, from)?;
        }
        layers.files_and_settings(&self.files, &self.sets)?;
        // Files and settings may have changed the mixer.
        ablations.iter().try_for_each(|ablation| check_ablation(ablation, &layers))?;
        Ok((layers.finish()?, Sources::new(layers.places())))
    }
}

/// An ablation applies to some mixers only.
fn check_ablation(ablation: &NamedOverlay, layers: &Layers) -> Result<(), ConfigError> {
    let mixer = layers.value(Section::Mixer, "kind").and_then(Value::as_str).unwrap_or_default();
    if ablation.mixers.contains(&mixer) {
        return Ok(());
    }
    let what = format!(
        "{} applies to mixer {} only, but the mixer is {mixer}",
        ablation.place(),
        ablation.mixers.join(" or ")
    );
    Err(ConfigError::Invalid { place: None, what })
}

fn find(
    kind: &'static str,
    among: &'static [NamedOverlay],
    name: &str,
) -> Result<&'static NamedOverlay, ConfigError> {
    among.iter().find(|overlay| overlay.name == name).ok_or_else(|| ConfigError::Overlay {
        kind,
        name: name.to_owned(),
        known: among.iter().map(|overlay| overlay.name).collect::<Vec<_>>().join(", "),
    })
}

/// `model` as one of [`MODELS`], with these settings of `[model]` and `[model.mixer]`.
///
/// # Errors
///
/// [`ConfigError`]: no such model, one that the sizes do not fit, or a setting that is none of a model's.
pub fn with_model(model: &ModelConfig, name: &str, sets: &[Setting]) -> crate::Result<ModelConfig> {
    let mut layers = Layers::over_model(model)?;
    layers.document(&Document::BuiltIn(find("model", MODELS, name)?.document()))?;
    layers.files_and_settings(&[], sets)?;
    Ok(layers.finish_model()?)
}
