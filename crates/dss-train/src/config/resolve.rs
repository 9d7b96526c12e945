//! Layers of settings, one over the other: defaults, preset, files, single keys.
//!
//! Each key that is set is checked at once, so that a complaint can say where it stood.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dss_data::TaskConfig;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use toml::de::{DeString, DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::docs::{SECTIONS, keys};
use super::error::{ConfigError, nearest};
use super::{Config, Setting, TrainConfig};

type Result<T> = std::result::Result<T, ConfigError>;

/// The layers so far.
pub(super) struct Layers {
    task: &'static str,
    /// Every section with all its keys.
    sections: BTreeMap<&'static str, Table>,
    /// Where a key was set last.
    places: BTreeMap<String, String>,
}

impl Layers {
    /// The defaults of a task.
    pub fn new(task: &str) -> Result<Self> {
        let unknown = || ConfigError::Task {
            task: task.to_owned(),
            nearest: nearest(task, TaskConfig::NAMES.iter().copied()).map(|n| n.1.to_owned()),
        };
        Self::over(&Config {
            task: TaskConfig::default_for(task).ok_or_else(unknown)?,
            model: dss_nn::ModelConfig::default(),
            train: TrainConfig::default(),
        })
    }

    /// A whole configuration.
    pub fn over(config: &Config) -> Result<Self> {
        let sections = BTreeMap::from([
            ("task", table(&config.task)?),
            ("model", table(&config.model)?),
            ("train", table(&config.train)?),
        ]);
        Ok(Self { task: config.task.name(), sections, places: BTreeMap::new() })
    }

    /// TOML files, then keys of the command line.
    pub fn files_and_keys(&mut self, files: &[PathBuf], sets: &[Setting]) -> Result<()> {
        for file in files {
            self.document(&super::read(file)?, &file.display().to_string())?;
        }
        sets.iter().try_for_each(|setting| self.single(setting))
    }

    /// All keys of a TOML document; `place` is its name.
    pub fn document(&mut self, text: &str, place: &str) -> Result<()> {
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let root = parse(text, place)?;
        if let Some((key, value)) = task_name(&root) {
            // First of all: the keys of another task are unknown here.
            let place = format!("{place}, line {}", line(key.span().start));
            self.same_task(&plain(value.clone(), &place)?, &place)?;
        }
        for (section, value) in root {
            let place = format!("{place}, line {}", line(section.span().start));
            let name = section.get_ref().as_ref();
            let Some((section, _)) = SECTIONS.iter().find(|s| s.0 == name) else {
                return Err(self.unknown_section(place, name, value.get_ref()));
            };
            let DeValue::Table(entries) = value.into_inner() else {
                let reason = format!("`{name}` is a section: write [{name}] and its keys below");
                return Err(ConfigError::Syntax { place, reason });
            };
            for (key, value) in entries {
                let place = format!("{}, line {}", doc_name(&place), line(key.span().start));
                let value = plain(value, &place)?;
                self.set(section, key.get_ref(), value, &place)?;
            }
        }
        Ok(())
    }

    /// A single setting.
    pub fn single(&mut self, setting: &Setting) -> Result<()> {
        let place = format!("--set {setting}");
        let (section, key) = self.find(setting.key(), &place)?;
        // `path=2024` may mean the string "2024".
        let string = Value::String(setting.text().to_owned());
        self.set(section, key, setting.value().clone(), &place)
            .or_else(|error| self.set(section, key, string, &place).map_err(|_| error))
    }

    /// Key `to` gets the value of `from`.
    pub fn copy(&mut self, section: &'static str, from: &str, to: &str, place: &str) -> Result<()> {
        match self.value(section, from).cloned() {
            Some(value) => self.set(section, to, value, place),
            None => Ok(()),
        }
    }

    /// What a key has now.
    pub fn value(&self, section: &str, key: &str) -> Option<&Value> {
        self.sections.get(section)?.get(key)
    }

    /// Where each key was set last; keys that have their default are not among them.
    pub fn places(&self) -> &BTreeMap<String, String> {
        &self.places
    }

    /// The sections as types.
    pub fn finish(&self) -> Result<Config> {
        let config = Config {
            task: self.typed("task")?,
            model: self.typed("model")?,
            train: self.typed("train")?,
        };
        super::validate::validate(&config, &self.places)?;
        Ok(config)
    }

    /// A dotted key, or a bare one that only one section has.
    fn find<'a>(&self, dotted: &'a str, place: &str) -> Result<(&'static str, &'a str)> {
        if let Some((section, key)) = dotted.split_once('.') {
            return match SECTIONS.iter().find(|s| s.0 == section) {
                Some((section, _)) => Ok((section, key)),
                None => Err(self.unknown_key(place, dotted)),
            };
        }
        let mut homes = SECTIONS
            .iter()
            .map(|s| s.0)
            .filter(|s| keys(s, self.task).iter().any(|doc| doc.0 == dotted));
        match (homes.next(), homes.next()) {
            (Some(section), None) => Ok((section, dotted)),
            (Some(first), Some(second)) => Err(ConfigError::Ambiguous {
                place: place.to_owned(),
                key: dotted.to_owned(),
                candidates: format!("`{first}.{dotted}` or `{second}.{dotted}`"),
            }),
            _ => Err(self.unknown_key(place, dotted)),
        }
    }

    fn set(&mut self, section: &'static str, key: &str, value: Value, place: &str) -> Result<()> {
        let dotted = format!("{section}.{key}");
        if dotted == "task.name" {
            return self.same_task(&value, place);
        }
        if !keys(section, self.task).iter().any(|doc| doc.0 == key) {
            return Err(self.unknown_key(place, &dotted));
        }
        let shown = value.to_string();
        let table = self.sections.entry(section).or_default();
        let before = table.insert(key.to_owned(), value);
        if let Err(reason) = self.check(section) {
            let table = self.sections.entry(section).or_default();
            match before {
                Some(value) => table.insert(key.to_owned(), value),
                None => table.remove(key),
            };
            return Err(ConfigError::Value {
                place: place.to_owned(),
                key: dotted,
                value: shown,
                reason,
            });
        }
        self.places.insert(dotted, place.to_owned());
        Ok(())
    }

    fn same_task(&self, value: &Value, place: &str) -> Result<()> {
        match value.as_str() {
            Some(name) if name == self.task => Ok(()),
            found => Err(ConfigError::OtherTask {
                place: place.to_owned(),
                found: found.map_or_else(|| value.to_string(), str::to_owned),
                expected: self.task.to_owned(),
            }),
        }
    }

    /// Whether a section still has the right types.
    fn check(&self, section: &str) -> std::result::Result<(), String> {
        match section {
            "task" => self.read::<TaskConfig>(section).map(drop),
            "model" => self.read::<dss_nn::ModelConfig>(section).map(drop),
            _ => self.read::<TrainConfig>(section).map(drop),
        }
    }

    fn typed<T: DeserializeOwned>(&self, section: &str) -> Result<T> {
        self.read(section)
            .map_err(|reason| ConfigError::Invalid { what: format!("[{section}]: {reason}") })
    }

    fn read<T: DeserializeOwned>(&self, section: &str) -> std::result::Result<T, String> {
        let table = self.sections.get(section).cloned().unwrap_or_default();
        table.try_into().map_err(|e: toml::de::Error| in_words(e.message()))
    }

    fn unknown_section(&self, place: String, name: &str, value: &DeValue<'_>) -> ConfigError {
        // A key that was written above all sections.
        if !matches!(value, DeValue::Table(_)) {
            return self.unknown_key(&place, name);
        }
        let nearest = nearest(name, SECTIONS.iter().map(|s| s.0)).map(|n| n.1.to_owned());
        ConfigError::Section { place, section: name.to_owned(), nearest }
    }

    fn unknown_key(&self, place: &str, dotted: &str) -> ConfigError {
        let (section, key) = dotted.split_once('.').unwrap_or(("", dotted));
        let among = |section: &'static str| {
            let (score, key) = nearest(key, keys(section, self.task).iter().map(|doc| doc.0))?;
            Some((score, format!("{section}.{key}")))
        };
        // Its own section first, if there is one and the key resembles one of its keys well.
        let own = SECTIONS.iter().find(|s| s.0 == section).and_then(|s| among(s.0));
        let own = own.filter(|(score, _)| *score > 0.85);
        let anywhere = || {
            let best = SECTIONS.iter().filter_map(|s| among(s.0));
            best.max_by(|a, b| a.0.total_cmp(&b.0))
        };
        ConfigError::Key {
            place: place.to_owned(),
            key: dotted.to_owned(),
            nearest: own.or_else(anywhere).map(|n| n.1),
        }
    }
}

/// `name` under `[task]`.
fn task_name<'t, 'a>(
    root: &'t DeTable<'a>,
) -> Option<(&'t Spanned<DeString<'a>>, &'t Spanned<DeValue<'a>>)> {
    let (_, section) = root.iter().find(|(key, _)| key.get_ref() == "task")?;
    let DeValue::Table(entries) = section.get_ref() else { return None };
    entries.iter().find(|(key, _)| key.get_ref() == "name")
}

/// The task that a document names.
pub(super) fn task_of(text: &str, place: &str) -> Result<String> {
    let table: Table = text.parse().map_err(|e| syntax(&e, text, place))?;
    let name = table.get("task").and_then(|t| t.get("name")).and_then(Value::as_str);
    name.map(str::to_owned).ok_or_else(|| ConfigError::Syntax {
        place: place.to_owned(),
        reason: "it names no task: expected `name = \"...\"` under [task]".to_owned(),
    })
}

fn parse<'a>(text: &'a str, place: &str) -> Result<DeTable<'a>> {
    DeTable::parse(text).map(|table| table.into_inner()).map_err(|e| syntax(&e, text, place))
}

fn syntax(error: &toml::de::Error, text: &str, place: &str) -> ConfigError {
    let line = error.span().map(|s| text[..s.start].matches('\n').count() + 1);
    let place = line.map_or_else(|| place.to_owned(), |line| format!("{place}, line {line}"));
    ConfigError::Syntax { place, reason: error.message().to_owned() }
}

/// `my.toml, line 3` without the line.
fn doc_name(place: &str) -> &str {
    place.rsplit_once(", line ").map_or(place, |p| p.0)
}

fn plain(value: Spanned<DeValue<'_>>, place: &str) -> Result<Value> {
    Value::deserialize(value.into_deserializer()).map_err(|e| ConfigError::Syntax {
        place: place.to_owned(),
        reason: e.message().to_owned(),
    })
}

/// What a parser says, without the names of Rust's types.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("expected usize", "expected a whole number of at least 0"),
        ("expected u64", "expected a whole number of at least 0"),
        ("expected u32", "expected a whole number of at least 0"),
        ("expected f64", "expected a number"),
    ];
    WORDS.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn table(value: &impl serde::Serialize) -> Result<Table> {
    Table::try_from(value).map_err(|e| ConfigError::Invalid { what: e.to_string() })
}
