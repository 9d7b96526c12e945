//! What is asked for: a task, and what is laid over its defaults.

use std::path::PathBuf;

use dss_nn::ModelConfig;
use toml::{Table, Value};

use super::place::Sources;
use super::presets::{ABLATIONS, DEFAULT_PRESET, MODELS, NamedOverlay, S4_FAMILY, TABLE};
use super::resolve::{Document, Layers, mixer_table};
use super::section::Section;
use super::{Config, ConfigError, Setting, find_preset, value};

/// The layers of a configuration, each over the one before. With the feature `clap` it is also what `dss` parses.
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
    /// A set of values that comes with the program [default: laptop]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub preset: Option<String>,
    /// Layer type; overrides the preset [default: that of the preset, dss-softmax in all that come with the program]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = clap_values::overlays(MODELS)))]
    pub model: Option<String>,
    /// An ablation, over preset and model; may be given several times
    #[cfg_attr(
        feature = "clap",
        arg(long = "ablation", value_name = "NAME", value_parser = clap_values::overlays(ABLATIONS))
    )]
    pub ablations: Vec<String>,
    /// A TOML file over all of these; may be given several times
    #[cfg_attr(feature = "clap", arg(long = "config", value_name = "FILE"))]
    pub files: Vec<PathBuf>,
    /// A single setting over all others, such as model.h=128 or lr=0.01; may be given several times
    #[cfg_attr(feature = "clap", arg(long = "set", value_name = "KEY=VALUE"))]
    pub sets: Vec<Setting>,
}

/// Names that options take.
#[cfg(feature = "clap")]
pub mod clap_values {
    use clap::builder::{PossibleValue, PossibleValuesParser};
    use dss_data::TaskConfig;

    use super::NamedOverlay;

    /// The names of all tasks.
    pub fn tasks() -> PossibleValuesParser {
        PossibleValuesParser::new(TaskConfig::NAMES.iter().copied())
    }

    /// The names of models or ablations, with what they are.
    pub fn overlays(overlays: &'static [NamedOverlay]) -> PossibleValuesParser {
        let value = |overlay: &NamedOverlay| PossibleValue::new(overlay.name).help(overlay.about());
        PossibleValuesParser::new(overlays.iter().map(value))
    }
}

impl Request {
    /// The configuration, and where each of its values comes from.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: a task, preset, model, ablation, section or key that does not exist, a value that it cannot
    /// have, or an ablation that the model does not know.
    pub fn resolve(&self) -> crate::Result<(Config, Sources)> {
        let mut layers = Layers::new(&self.task)?;
        let preset = find_preset(&self.task, self.preset.as_deref().unwrap_or(DEFAULT_PRESET))?;
        let model = self.model.as_deref().map(|name| find("model", MODELS, name)).transpose()?;
        let ablations = self.ablations.iter().map(|name| find("ablation", ABLATIONS, name));
        let ablations = ablations.collect::<Result<Vec<_>, _>>()?;
        // The presets of the paper contain its exceptions for DSS.
        let row = TABLE.iter().find(|row| row.name == self.task && preset.name == "paper");
        let row = row.filter(|row| model.is_some_and(|model| model.mixers == row.mixers));
        let overlays = model.into_iter().chain(row).map(NamedOverlay::document);
        for document in [preset.document()].into_iter().chain(overlays) {
            layers.document(&Document::BuiltIn(document))?;
        }
        for ablation in &ablations {
            check_ablation(ablation, &layers)?;
            layers.document(&Document::BuiltIn(ablation.document()))?;
        }
        if model.is_some_and(|model| model.mixers == S4_FAMILY) {
            // C is a parameter like others in the code of S4.
            layers.copy(Section::Train, "lr", "lr_w", "S4's code: as lr")?;
        }
        layers.files_and_settings(&self.files, &self.sets)?;
        // Files and settings may have changed the mixer.
        ablations.iter().try_for_each(|ablation| check_ablation(ablation, &layers))?;
        Ok((layers.finish()?, Sources::new(layers.places())))
    }
}

/// An ablation is about some mixers only.
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

/// `model` with the state space of one of [`MODELS`].
///
/// # Errors
///
/// [`ConfigError`]: no such model, or one that the sizes do not fit.
pub fn with_model(model: &ModelConfig, name: &str) -> crate::Result<ModelConfig> {
    let overlay = find("model", MODELS, name)?;
    let invalid = |what: String| ConfigError::Invalid { place: Some(overlay.place()), what };
    let table = |text: &str| text.parse::<Table>().map_err(|e| invalid(e.to_string()));
    let (mut document, empty) = (table(overlay.text)?, Table::new());
    let settings = document.get_mut("model").and_then(Value::as_table_mut);
    let mut settings = settings.map(std::mem::take).unwrap_or_default();
    let chosen = settings.remove("mixer");
    let chosen = chosen.as_ref().and_then(Value::as_table).unwrap_or(&empty);
    let kind = chosen.get("kind").and_then(Value::as_str).unwrap_or(model.mixer.kind());
    let plain = |e: toml::ser::Error| invalid(e.to_string());
    let mut mixer = mixer_table(&Table::try_from(&model.mixer).map_err(plain)?, kind)
        .ok_or_else(|| invalid(format!("there is no mixer {kind}")))?;
    mixer.extend(chosen.clone());
    let mut all = Table::try_from(model).map_err(plain)?;
    all.extend(settings);
    all.insert("mixer".to_owned(), mixer.into());
    let model =
        ModelConfig::deserialize(value::deserializer(&all)).map_err(|e| invalid(e.reason))?;
    model.validate(1).map_err(dss_nn::Error::from)?;
    Ok(model)
}
