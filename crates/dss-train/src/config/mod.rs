//! The configuration of a run, [`Config`], and how it is put together.
//!
//! A configuration is merged from layers, each overriding the one before: the defaults of the types, a built-in preset,
//! a model and ablations, TOML files, and single keys (`--set` of the command line).
//!
//! ```
//! use dss_train::Config;
//! use dss_train::config::Setting;
//!
//! # fn main() -> dss_train::Result<()> {
//! let sets = [Setting::new("model.h", 32), Setting::new("lr", 0.005)];
//! let config = Config::resolve("delay", Some("laptop"), &[], &sets)?;
//! assert_eq!((config.model.h, config.train.lr), (32, 0.005));
//!
//! let error = Config::resolve("delay", None, &[], &[Setting::new("layer", 3)]).unwrap_err();
//! assert_eq!(error.to_string(), "--set layer=3: unknown key `layer`; did you mean `model.layers`?");
//! # Ok(())
//! # }
//! ```

mod annotate;
mod error;
mod overlay;
mod place;
mod presets;
#[cfg(test)]
mod published;
mod request;
mod resolve;
mod section;
mod types;
mod validate;
mod value;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dss_data::{Task, TaskConfig};
use dss_nn::ModelConfig;
use serde::{Deserialize, Serialize};
use toml::Table;

pub use error::ConfigError;
pub use overlay::{Overlay, Setting};
pub use place::Sources;
pub use presets::{ABLATIONS, DEFAULT_PRESET, MODELS, NamedOverlay, PRESETS, Preset, presets_of};
#[cfg(feature = "clap")]
pub use request::clap_values;
pub use request::{Request, with_model};
pub use section::Section;
pub use types::{Objective, Schedule, TrainConfig};

use crate::pretext::pretext;
use resolve::{Document, Layers};

/// Everything that decides the outcome of a run: `config.toml` of the run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The data.
    pub task: TaskConfig,
    /// The network.
    pub model: ModelConfig,
    /// The training.
    pub train: TrainConfig,
}

impl Config {
    /// The defaults of a task, a preset (by default [`DEFAULT_PRESET`]), files in their order, then single keys; see
    /// [`Request`] for more.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: a task, preset, section or key that does not exist, or a value that it cannot have.
    pub fn resolve(
        task: &str,
        preset: Option<&str>,
        files: &[PathBuf],
        sets: &[Setting],
    ) -> crate::Result<Self> {
        let preset = preset.map(str::to_owned);
        let (files, sets) = (files.to_vec(), sets.to_vec());
        Ok(Request { task: task.to_owned(), preset, files, sets, ..Request::default() }
            .resolve()?
            .0)
    }

    /// A whole configuration, as [`to_annotated_toml`](Self::to_annotated_toml) writes it; keys that are missing have
    /// their defaults. `place` is its name in messages.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn from_toml(text: &str, place: &str) -> crate::Result<Self> {
        let document = Document::File { name: place, text };
        let mut layers = Layers::new(&resolve::task_named_in(&document)?)?;
        layers.document(&document)?;
        Ok(layers.finish()?)
    }

    /// The same configuration with files and single keys laid over it.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn changed(&self, files: &[PathBuf], sets: &[Setting]) -> crate::Result<Self> {
        let mut layers = Layers::over(self)?;
        layers.files_and_settings(files, sets)?;
        Ok(layers.finish()?)
    }

    /// Every number is in its range: for a configuration that was put together by hand.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: a value that its key cannot have.
    pub fn validate(&self) -> crate::Result<()> {
        Ok(validate::validate(self, &Default::default())?)
    }

    /// The data, with the answers that `train.objective` asks for; `tell` hears how far it is.
    ///
    /// # Errors
    ///
    /// Data that is missing or cannot be read.
    pub fn load_task(&self, data_dir: Option<&Path>, tell: &dyn Fn(&str)) -> crate::Result<Task> {
        let task = self.task.load(data_dir, tell)?;
        Ok(match self.train.objective {
            Objective::Task => task,
            Objective::Pretrain => pretext(task, self.model.bidirectional),
        })
    }

    /// Every setting under its dotted key.
    pub fn flat(&self) -> BTreeMap<String, serde_json::Value> {
        fn walk(
            prefix: &str,
            value: serde_json::Value,
            out: &mut BTreeMap<String, serde_json::Value>,
        ) {
            match value {
                serde_json::Value::Object(map) => {
                    for (key, value) in map {
                        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                        walk(&key, value, out);
                    }
                }
                value => {
                    out.insert(prefix.to_owned(), value);
                }
            }
        }
        let mut out = BTreeMap::new();
        walk("", serde_json::to_value(self).expect("a configuration is plain data"), &mut out);
        out
    }

    /// The configuration of a run directory.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve); also when the directory has no `config.toml`.
    pub fn from_run(dir: &Path) -> crate::Result<Self> {
        let path = dir.join("config.toml");
        Self::from_toml(&read(&path)?, &path.display().to_string())
    }
}

impl Config {
    /// The sections in the order of [`Section::ALL`].
    fn tables(&self) -> Result<[Table; 4], ConfigError> {
        let [model, mixer] = model_tables(&self.model)?;
        Ok([table(&self.task)?, model, mixer, table(&self.train)?])
    }
}

fn table(section: &impl Serialize) -> Result<Table, ConfigError> {
    Table::try_from(section).map_err(|e| ConfigError::Invalid { place: None, what: e.to_string() })
}

/// `[model]` and `[model.mixer]`.
fn model_tables(model: &ModelConfig) -> Result<[Table; 2], ConfigError> {
    let (mut model, mixer) = (table(model)?, table(&model.mixer)?);
    model.remove("mixer");
    Ok([model, mixer])
}

fn find_preset(task: &str, name: &str) -> Result<&'static Preset, ConfigError> {
    presets_of(task).find(|p| p.name == name).ok_or_else(|| ConfigError::Preset {
        task: task.to_owned(),
        preset: name.to_owned(),
        known: presets_of(task).map(|p| p.name).collect::<Vec<_>>().join(", "),
    })
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
