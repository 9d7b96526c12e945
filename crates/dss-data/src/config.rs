//! Which task, and its settings: the `[task]` table of a configuration file.

use std::path::Path;

use documented::DocumentedFields;
use dss_format::encoder::speech::FRAMES;
use serde::{Deserialize, Deserializer, Serialize};

use crate::adding::AddingConfig;
use crate::delay::DelayConfig;
use crate::files::FilesConfig;
use crate::forecast::ForecastConfig;
use crate::image::ImageConfig;
use crate::listops::ListopsConfig;
use crate::lm::LmConfig;
use crate::mnist::MnistConfig;
use crate::pathfinder::PathfinderConfig;
use crate::retrieval::RetrievalConfig;
use crate::speech::SpeechConfig;
use crate::text::TextConfig;
use crate::{Result, Task, io};

/// A key of a section and its help line.
pub type KeyDoc = (&'static str, String);

/// The keys of a section, in the order of the fields. The help line of a key is the first paragraph of the field's
/// doc comment.
pub fn key_docs<T: DocumentedFields>() -> Vec<KeyDoc> {
    T::FIELD_NAMES.iter().zip(T::FIELD_DOCS).map(|(key, doc)| (*key, help_line(doc))).collect()
}

/// The first paragraph of a doc comment as one line without its full stop.
pub fn help_line(doc: &str) -> String {
    let paragraph = doc.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    line.strip_suffix('.').unwrap_or(&line).to_owned()
}

/// The settings of one kind of task: what each task file implements. The doc comments of its fields are what
/// `dss config show` prints.
///
/// What a task shares with others is in its line of `tasks!`: the `file` or `folders` with its data, the `counts` of
/// examples for training, validation and test, the `length` L, and the key that `skips` faulty files.
pub trait TaskSource: Default + DocumentedFields {
    /// Makes or reads the data. `name` is the task's name, `data_dir` the folder given with `--data`.
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task>;
}

macro_rules! tasks {
    ($(
        #[doc = $about:literal]
        $name:literal => $variant:ident($config:ty:
            $(file($file:ident))? $(folders($($folder:ident),+))? $(counts($($count:ident),+))?
            $(length($length:ident))? $(skips($skips:ident))?
        ),
    )*) => {
        /// A task and its settings; in TOML the key `name` says which task it is.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "name")]
        pub enum TaskConfig {
            $(#[doc = $about] #[serde(rename = $name)] $variant($config),)*
        }

        #[allow(unused_variables, reason = "no task has all of these settings")]
        impl TaskConfig {
            /// The same task, the paths of its data absolute: they then hold wherever the program is started.
            pub fn located(&self, data_dir: Option<&Path>) -> Self {
                let mut task = self.clone();
                match &mut task {
                    $(Self::$variant(config) => {
                        // A task that reads a file also takes it from `--data`.
                        $(if config.$file.is_empty() && let Some(file) = data_dir && file.is_file() {
                            config.$file = file.to_string_lossy().into_owned();
                        })?
                        $(io::locate(&mut config.$file, data_dir);)?
                        $($(io::locate(&mut config.$folder, data_dir);)+)?
                    })*
                }
                task
            }

            /// The same task, faulty files left out if it can do that.
            pub fn skipping_bad(&self) -> Self {
                let mut task = self.clone();
                match &mut task { $(Self::$variant(config) => { $(config.$skips = true;)? })* }
                task
            }

            /// Where the settings say that the data are.
            pub fn place(&self) -> Option<&str> {
                let places: &[&String] = match self {
                    $(Self::$variant(config) => &[$(&config.$file)? $($(&config.$folder),+)?],)*
                };
                places.first().map(|place| place.as_str()).filter(|place| !place.is_empty())
            }

            /// Examples for training, validation and test that the settings ask for, 0 = all; `None` if they say
            /// nothing.
            pub fn counts(&self) -> Option<[usize; 3]> {
                let counts: &[usize] = match self {
                    $(Self::$variant(config) => &[$($(config.$count),+)?],)*
                };
                counts.try_into().ok()
            }

            /// The length L that the settings ask for, 0 = as long as needed; `None` if they say nothing.
            pub fn length(&self) -> Option<usize> {
                let lengths: &[usize] = match self {
                    $(Self::$variant(config) => &[$(config.$length)?],)*
                };
                lengths.first().copied()
            }
        }

        impl TaskConfig {
            /// The names of all tasks.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The name of this task.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Makes or reads the data. `data_dir` is the folder with downloaded data sets; `progress` is told
            /// what is going on, for work that takes longer than a moment.
            pub fn load(&self, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
                let task = match self {
                    $(Self::$variant(config) => config.load($name, data_dir, progress),)*
                };
                task.map_err(|error| match data_dir {
                    Some(folder) if !folder.exists() => error.with_missing_folder(folder),
                    _ => error,
                })
            }

            /// Every key of a task (but `name`) with its help line.
            pub fn key_docs(name: &str) -> Option<Vec<KeyDoc>> {
                let mut docs = match name { $($name => key_docs::<$config>(),)* _ => return None };
                docs.retain(|(key, _)| !Self::is_obsolete(name, key));
                Some(docs)
            }

            /// The same task with the settings of a table, which has no key `name`.
            ///
            /// `Deserialize` has to copy a table to look for its `name`, so that errors do not know their keys.
            pub fn with_table<'de, D: Deserializer<'de>>(
                &self,
                table: D,
            ) -> std::result::Result<Self, D::Error> {
                match self { $(Self::$variant(_) => <$config>::deserialize(table).map(Self::$variant),)* }
            }

            /// What a task is, in one line.
            pub fn about(name: &str) -> Option<&'static str> {
                match name { $($name => Some($about.trim_ascii()),)* _ => None }
            }

            /// A task with its default settings.
            pub fn default_for(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant(<$config>::default())),)* _ => None }
            }
        }
    };
}

/// Tasks and keys of version 0.1 that files may still have, and that have no effect.
const OBSOLETE: [(&str, &str); 1] = [("listops", "cache")];

impl TaskConfig {
    /// Whether files may still have this key of a task although it has no effect any more.
    pub fn is_obsolete(task: &str, key: &str) -> bool {
        OBSOLETE.contains(&(task, key))
    }

    /// The length L as far as it is known before the data are read.
    pub fn known_len(&self) -> Option<usize> {
        self.length().filter(|len| *len > 0).or(match self {
            Self::Smnist(_) | Self::Pmnist(_) => Some(28 * 28),
            Self::Pathfinder(_) | Self::Image(_) => Some(32 * 32),
            Self::PathX(_) => Some(128 * 128),
            // A second.
            Self::Speech(config) => Some(config.rate as usize),
            Self::SpeechMfcc(_) => Some(FRAMES),
            _ => None,
        })
    }

    /// Whether an answer is asked for at every position, as far as that is known before the data are read.
    pub fn asks_at_every_position(&self) -> bool {
        matches!(self, Self::Lm(_) | Self::Delay(_) | Self::Forecast(_))
    }
}

tasks! {
    /// Nested list operations (Long Range Arena), generated or from the official files.
    "listops" => Listops(ListopsConfig: folders(dir) counts(train, val, test) length(len)),
    /// Film reviews, positive or negative (IMDB), as characters.
    "text" => Text(TextConfig: folders(dir) counts(train, val, test) length(len) skips(skip_bad)),
    /// Whether two documents belong together (AAN citations, or reviews of one film), as characters.
    "retrieval" => Retrieval(RetrievalConfig: folders(dir, reviews) counts(train, val, test) length(len) skips(skip_bad)),
    /// MNIST digits as 784 pixels, row by row.
    "smnist" => Smnist(MnistConfig: folders(dir) counts(train, val, test)),
    /// MNIST digits as 784 pixels in bit-reversed order.
    "pmnist" => Pmnist(MnistConfig: folders(dir) counts(train, val, test)),
    /// Whether two marked ends are on one path (Long Range Arena), 32 × 32 pixels, generated or from files.
    "pathfinder" => Pathfinder(PathfinderConfig: folders(dir) counts(train, val, test) skips(skip_bad)),
    /// Pathfinder with 128 × 128 pixels, a sequence of 16,384.
    "path-x" => PathX(PathfinderConfig: folders(dir) counts(train, val, test) skips(skip_bad)),
    /// CIFAR-10 in grey as 1024 pixels, row by row (Long Range Arena).
    "image" => Image(ImageConfig: folders(dir) counts(train, val, test) skips(skip_bad)),
    /// Speech Commands: the word of a clip, from its 16,000 samples.
    "speech" => Speech(SpeechConfig: folders(dir) counts(train, val, test) skips(skip_bad)),
    /// Speech Commands: the word of a clip, from 20 MFCC features of 161 frames.
    "speech-mfcc" => SpeechMfcc(SpeechConfig: folders(dir) counts(train, val, test) skips(skip_bad)),
    /// Which character (or byte) comes next, of any text.
    "lm" => Lm(LmConfig: file(path) length(len)),
    /// The next values of a column of a table.
    "forecast" => Forecast(ForecastConfig: file(path) counts(train, val, test)),
    /// Repeat each symbol d steps later.
    "delay" => Delay(DelayConfig: counts(train, val, test) length(length)),
    /// Add the two marked numbers of a sequence.
    "adding" => Adding(AddingConfig: counts(train, val, test) length(length)),
    /// Your own labelled sequences.
    "files" => Files(FilesConfig: file(path)),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_is_described() {
        for &name in TaskConfig::NAMES {
            let config = TaskConfig::default_for(name).unwrap();
            assert_eq!(config.name(), name);
            let json = serde_json::to_value(&config).unwrap();
            let mut fields: BTreeSet<&str> =
                json.as_object().unwrap().keys().map(String::as_str).collect();
            assert!(fields.remove("name"));
            let docs = TaskConfig::key_docs(name).unwrap();
            assert_eq!(fields, docs.iter().map(|(key, _)| *key).collect(), "{name}");
            assert_eq!(fields.len(), docs.len(), "{name}: a key is described twice");
            for (key, doc) in docs {
                assert!(!doc.is_empty() && !doc.contains(['\n', '[']), "{name}.{key}: {doc}");
            }
        }
        assert!(TaskConfig::key_docs("nothing").is_none());
        assert_eq!(TaskConfig::about("files"), Some("Your own labelled sequences."));
        assert!(TaskConfig::default_for("nothing").is_none());
    }

    /// The typed settings are those of the keys.
    #[test]
    fn accessors_follow_the_keys() {
        for &name in TaskConfig::NAMES {
            let config = TaskConfig::default_for(name).unwrap();
            let json = serde_json::to_value(&config).unwrap();
            let has = |key: &str| json.get(key).is_some();
            let counts = ["train", "val", "test"].map(|key| json.get(key)?.as_u64());
            let counts = counts.map(|count| count.map(|n| n as usize));
            let expected = match counts {
                [Some(train), Some(val), Some(test)] => Some([train, val, test]),
                _ => None,
            };
            assert_eq!(config.counts(), expected, "{name}");
            assert_eq!(config.length().is_some(), has("len") || has("length"), "{name}");
            let skips = serde_json::to_value(config.skipping_bad()).unwrap();
            assert_eq!(skips.get("skip_bad").is_some_and(|skips| skips == true), has("skip_bad"));
            for key in ["dir", "path"].into_iter().filter(|key| has(key)) {
                let mut settings = json.clone();
                settings[key] = "there".into();
                let config: TaskConfig = serde_json::from_value(settings).unwrap();
                assert_eq!(config.place(), Some("there"), "{name}");
            }
        }
    }

    #[test]
    fn located_paths_are_absolute() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.csv"), "").unwrap();
        let files = |path: &str| {
            TaskConfig::Files(FilesConfig { path: path.to_owned(), ..FilesConfig::default() })
        };
        let inside = folder.path().join("mine.csv");
        assert_eq!(files("mine.csv").located(Some(folder.path())), files(inside.to_str().unwrap()));
        let here = std::path::absolute("Cargo.toml").unwrap();
        assert_eq!(files("Cargo.toml").located(None), files(here.to_str().unwrap()));
        for &name in TaskConfig::NAMES {
            let plain = TaskConfig::default_for(name).unwrap();
            assert_eq!(plain.located(Some(folder.path())), plain, "an empty path stays empty");
        }
    }

    #[test]
    fn missing_keys_are_defaults_and_unknown_keys_are_errors() {
        for &name in TaskConfig::NAMES {
            let short: TaskConfig =
                serde_json::from_value(serde_json::json!({ "name": name })).unwrap();
            assert_eq!(short, TaskConfig::default_for(name).unwrap());
            let wrong = serde_json::json!({ "name": name, "sede": 1 });
            let error = serde_json::from_value::<TaskConfig>(wrong).unwrap_err().to_string();
            assert!(error.contains("sede"), "{error}");
        }
    }
}
