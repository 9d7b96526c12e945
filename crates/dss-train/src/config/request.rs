//! What is asked for: a task, and what is laid over its defaults.

use std::path::PathBuf;

use dss_nn::ModelConfig;
use dss_data::TaskConfig;
use toml::Value;

use super::presets::{ABLATIONS, DEFAULT_PRESET, MODELS, Overlay, TABLE};
use super::resolve::Layers;
use super::sources::Document;
use super::{Config, ConfigError, Sources, TrainConfig, find_preset};

/// The layers of a configuration, each over the one before.
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
/// assert_eq!(sources.of("train.batch"), "paper's table");
/// assert_eq!(sources.of("model.mixer"), "--model s4");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The task.
    pub task: String,
    /// One of the task's presets; [`DEFAULT_PRESET`] if none is named.
    pub preset: Option<String>,
    /// One of [`MODELS`]; that of the preset if none is named.
    pub model: Option<String>,
    /// Some of [`ABLATIONS`].
    pub ablations: Vec<String>,
    /// TOML files.
    pub files: Vec<PathBuf>,
    /// Single keys and their values.
    pub sets: Vec<(String, String)>,
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
        let mut documents = vec![Document {
            place: preset.place(),
            text: preset.text,
            source: "our choice".to_owned(),
        }];
        let model = self.model.as_deref().map(|name| find("model", MODELS, name)).transpose()?;
        let others = model.filter(|model| model.name.starts_with("s4"));
        // The paper's table has exceptions for DSS, which its presets contain.
        let row = TABLE.iter().find(|row| row.name == self.task && preset.name == "paper");
        let ablations = self.ablations.iter().map(|name| find("ablation", ABLATIONS, name));
        let ablations = ablations.collect::<Result<Vec<_>, _>>()?;
        let overlays = model.into_iter().chain(others.and(row)).chain(ablations.iter().copied());
        documents.extend(overlays.map(|overlay| Document {
            place: overlay.place(),
            text: overlay.text,
            source: overlay.place(),
        }));
        for document in &documents {
            layers.document(document.text, &document.place)?;
        }
        if others.is_some() {
            // C is a parameter like others in the code of S4.
            layers.copy("train", "lr", "lr_w", "S4's code: as lr")?;
        }
        layers.files_and_keys(&self.files, &self.sets)?;
        // All ablations but that of the kernel's length are of DSS.
        let of_dss = ablations.iter().find(|ablation| ablation.name != "kernel-128");
        let mixer = layers.value("model", "mixer").and_then(Value::as_str);
        if let (Some(ablation), Some(mixer @ ("s4" | "s4d"))) = (of_dss, mixer) {
            let what = format!("{} is one of DSS, but the model is {mixer}", ablation.place());
            return Err(ConfigError::Invalid { what }.into());
        }
        Ok((layers.finish()?, Sources::new(&documents, layers.places())))
    }
}

fn find(
    kind: &'static str,
    among: &'static [Overlay],
    name: &str,
) -> Result<&'static Overlay, ConfigError> {
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
    let task = TaskConfig::default_for("delay").expect("a task that needs no data");
    let config = Config { task, model: model.clone(), train: TrainConfig::default() };
    let mut layers = Layers::over(&config)?;
    layers.document(overlay.text, &overlay.place())?;
    Ok(layers.finish()?.model)
}
