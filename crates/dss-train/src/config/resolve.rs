//! Layers of settings, each overriding the one before: defaults, preset, files, single keys.
//!
//! A key is looked up when its layer is added, so that an error can say where it was written; values are given types when
//! all layers are in place.

use std::path::{Path, PathBuf};

use dss_data::TaskConfig;
use dss_format::flat::{self, FlatPlace};
use dss_nn::{MixerConfig, ModelConfig};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::error::{ConfigError, nearest};
use super::place::{KeyPlaces, Place};
use super::presets::BuiltIn;
use super::section::{Key, MIXER_KIND, Section, TASK_NAME};
use super::value::{self, WrongValue};
use super::{Config, Setting, TrainConfig, validate};

type Result<T> = std::result::Result<T, ConfigError>;

/// A TOML document and its name in messages.
pub(super) enum Document<'a> {
    /// One that comes with the program.
    BuiltIn(BuiltIn),
    /// A file.
    File {
        /// Its path.
        name: &'a str,
        /// Its content.
        text: &'a str,
    },
}

impl Document<'_> {
    fn name(&self) -> &str {
        match self {
            Self::BuiltIn(document) => &document.name,
            Self::File { name, .. } => name,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::BuiltIn(document) => document.text,
            Self::File { text, .. } => text,
        }
    }

    /// Its keys: those of the table that counts, if that is only one.
    fn root(&self) -> Result<DeTable<'_>> {
        let root = parse(self)?;
        let Self::BuiltIn(BuiltIn { part: Some(part), .. }) = self else { return Ok(root) };
        let table = root.into_iter().find(|(name, _)| name.get_ref() == part.as_str());
        Ok(match table.map(|(_, table)| table.into_inner()) {
            Some(DeValue::Table(table)) => table,
            _ => DeTable::new(),
        })
    }

    /// Where an offset of its text is.
    fn place(&self, offset: usize) -> Place {
        let line = line(self.text(), offset);
        match self {
            Self::BuiltIn(document) => Place::BuiltIn {
                name: document.name.clone(),
                line,
                source: document.source(line).to_owned(),
            },
            Self::File { name, .. } => Place::File { name: (*name).to_owned(), line },
        }
    }
}

/// The layers so far.
pub(super) struct Layers {
    /// The name of the task; empty for a model on its own.
    task: &'static str,
    /// The sections that can be set; documents may have the others.
    sections: &'static [Section],
    /// Every section with all its keys.
    tables: [Table; 4],
    places: KeyPlaces,
}

impl Layers {
    /// The defaults of a task.
    pub fn new(task: &str) -> Result<Self> {
        Self::over(&Config {
            task: default_task(task)?,
            model: ModelConfig::default(),
            train: TrainConfig::default(),
        })
    }

    /// A whole configuration.
    pub fn over(config: &Config) -> Result<Self> {
        let mut tables = config.tables()?;
        tables[Section::Task as usize].remove(TASK_NAME.name);
        let (task, sections) = (config.task.name(), &Section::ALL);
        Ok(Self { task, sections, tables, places: KeyPlaces::new() })
    }

    /// A model without a task and a training.
    pub fn over_model(model: &ModelConfig) -> Result<Self> {
        let [model, mixer] = super::model_tables(model)?;
        let sections = &[Section::Model, Section::Mixer];
        let tables = [Table::new(), model, mixer, Table::new()];
        Ok(Self { task: "", sections, tables, places: KeyPlaces::new() })
    }

    /// TOML files, then single settings.
    pub fn files_and_settings(&mut self, files: &[PathBuf], sets: &[Setting]) -> Result<()> {
        for file in files {
            let (name, text) = (file.display().to_string(), super::read(file)?);
            self.document(&Document::File { name: &name, text: &text })?;
        }
        sets.iter().try_for_each(|setting| self.single(setting))
    }

    /// Adds all keys of a TOML document.
    pub fn document(&mut self, document: &Document<'_>) -> Result<()> {
        let root = document.root()?;
        if let Some(name) = task_name(&root) {
            // First of all: the keys of another task are unknown here.
            let place = document.place(name.span().start);
            self.same_task(&plain(name.clone(), &place)?, &place)?;
        }
        for (name, value) in root {
            let place = document.place(name.span().start);
            let name = name.get_ref().as_ref();
            let Some(section) = Section::named(name) else {
                return Err(self.unknown_section(&place, name, value.get_ref()));
            };
            let DeValue::Table(entries) = value.into_inner() else {
                let reason = format!("`{name}` is a section: write [{name}] and its keys below");
                return Err(ConfigError::Syntax { place: place.to_string(), reason });
            };
            if !self.sections.contains(&section) {
                continue;
            }
            let mut settings = Vec::new();
            for (key, value) in entries {
                let place = document.place(key.span().start);
                match (section, key.get_ref().as_ref(), value.get_ref()) {
                    (Section::Model, "mixer", DeValue::Table(_)) => {
                        let DeValue::Table(entries) = value.into_inner() else { continue };
                        for (key, value) in entries {
                            let place = document.place(key.span().start);
                            let value = plain(value, &place)?;
                            settings.push((Section::Mixer, key.into_inner(), value, place));
                        }
                    }
                    _ => {
                        let value = plain(value, &place)?;
                        settings.push((section, key.into_inner(), value, place));
                    }
                }
            }
            // The kind of mixer first: the other keys depend on it.
            settings.sort_by_key(|(section, key, ..)| {
                !matches!(
                    (section, key.as_ref()),
                    (Section::Mixer, "kind") | (Section::Model, "mixer")
                )
            });
            for (section, key, value, place) in settings {
                if self.is_unused(section, &key, &value) {
                    continue;
                }
                self.set(section, &key, value, place)?;
            }
        }
        Ok(())
    }

    /// A single setting.
    pub fn single(&mut self, setting: &Setting) -> Result<()> {
        let place = Place::Set(setting.clone());
        let (section, name) = self.find(setting.key(), &place)?;
        if !self.sections.contains(&section) {
            let sections: Vec<_> = self.sections.iter().map(|s| format!("[{s}]")).collect();
            let what = format!("expected a setting of {}", sections.join(" or "));
            return Err(ConfigError::Invalid { place: Some(place.to_string()), what });
        }
        let value = match self.value(section, name) {
            // `path=2024` means the string "2024".
            Some(Value::String(_)) if !setting.value().is_str() => setting.text().into(),
            _ => setting.value().clone(),
        };
        self.set(section, name, value, place)
    }

    /// Key `to` gets the value of `from`.
    pub fn copy(
        &mut self,
        section: Section,
        from: &str,
        to: &str,
        why: &'static str,
    ) -> Result<()> {
        match self.value(section, from).cloned() {
            Some(value) => self.rule(section, to, value, why),
            None => Ok(()),
        }
    }

    /// A value that follows from others.
    pub fn rule(
        &mut self,
        section: Section,
        key: &str,
        value: Value,
        why: &'static str,
    ) -> Result<()> {
        self.set(section, key, value, Place::Rule(why))
    }

    /// The model of the checkpoint at `from`, which the training starts from.
    pub fn start_from(&mut self, model: &ModelConfig, from: &Path) -> Result<()> {
        let place = Place::Rule("--from");
        let [model, mixer] = super::model_tables(model)?;
        for (section, table) in [(Section::Model, model), (Section::Mixer, mixer)] {
            self.tables[section as usize] = table;
            let keys = section.key_docs(self.task, self.mixer()).into_iter();
            let keys = keys.map(|(name, _)| (Key { section, name }, place.clone()));
            self.places.extend(keys.collect::<Vec<_>>());
        }
        self.set(Section::Train, "from", from.display().to_string().into(), place)
    }

    /// What a key has so far.
    pub fn value(&self, section: Section, name: &str) -> Option<&Value> {
        self.tables[section as usize].get(name)
    }

    /// Where each key was set last.
    pub fn places(&self) -> &KeyPlaces {
        &self.places
    }

    /// The sections as types.
    pub fn finish(&self) -> Result<Config> {
        let [task, _, _, train] = &self.tables;
        let config = Config {
            task: default_task(self.task)?
                .with_table(value::deserializer(task))
                .map_err(|error| self.wrong(Section::Task, error))?,
            model: self.model()?,
            train: TrainConfig::deserialize(value::deserializer(train))
                .map_err(|error| self.wrong(Section::Train, error))?,
        };
        validate::validate(&config, &self.places)?;
        Ok(config)
    }

    /// The model as a type, for sequences of any length.
    pub fn finish_model(&self) -> Result<ModelConfig> {
        let model = self.model()?;
        let invalid = |error| validate::invalid_model(&error, &self.places);
        model.validate(1).map_err(invalid).map(|()| model)
    }

    fn model(&self) -> Result<ModelConfig> {
        let [_, model, mixer, _] = &self.tables;
        let mut mixer = mixer.clone();
        mixer.remove(MIXER_KIND.name);
        Ok(ModelConfig {
            mixer: MixerConfig::from_table(self.mixer(), value::deserializer(&mixer))
                .map_err(|error| self.wrong(Section::Mixer, error))?,
            ..ModelConfig::deserialize(value::deserializer(model))
                .map_err(|error| self.wrong(Section::Model, error))?
        })
    }

    /// A dotted key, or a bare one that only one section has.
    fn find<'a>(&self, dotted: &'a str, place: &Place) -> Result<(Section, &'a str)> {
        if let Some((section, name)) = dotted.rsplit_once('.') {
            return match Section::named(section) {
                Some(section) => Ok((section, name)),
                None => Err(self.unknown_key(place, dotted)),
            };
        }
        let (task, mixer) = (self.task, self.mixer());
        let known = |section: &Section| section.key(task, mixer, dotted).is_some();
        let mut homes = Section::ALL.into_iter().filter(known);
        match (homes.next(), homes.next()) {
            (Some(section), None) => Ok((section, dotted)),
            (Some(first), Some(second)) => Err(ConfigError::Ambiguous {
                place: place.to_string(),
                key: dotted.to_owned(),
                candidates: format!("`{first}.{dotted}` or `{second}.{dotted}`"),
            }),
            _ if dotted == "mixer" => Ok((MIXER_KIND.section, MIXER_KIND.name)),
            _ if flat::place(dotted, mixer, None).is_some() => Ok((Section::Model, dotted)),
            _ => Err(self.unknown_key(place, dotted)),
        }
    }

    /// The kind of the mixer.
    fn mixer(&self) -> &str {
        let kind = self.value(MIXER_KIND.section, MIXER_KIND.name).and_then(Value::as_str);
        kind.unwrap_or_default()
    }

    /// One of the keys of a section; a mixer's settings may also be written in `[model]`.
    fn key(&self, section: Section, name: &str) -> Option<Key> {
        section.key(self.task, self.mixer(), name).or_else(|| match (section, name) {
            (Section::Model, "mixer") => Some(MIXER_KIND),
            (Section::Model, _) => match flat::place(name, self.mixer(), None)? {
                FlatPlace::Mixer(inner) => self.key(Section::Mixer, inner),
                FlatPlace::OtherMixer(_) | FlatPlace::Unused => None,
            },
            _ => None,
        })
    }

    /// Whether a key of a document is a setting of another mixer that the document has not chosen: files of version 0.1
    /// have all of them.
    fn is_unused(&self, section: Section, name: &str, value: &Value) -> bool {
        let flat = flat::place(name, self.mixer(), value.as_str());
        section == Section::Model && flat == Some(FlatPlace::Unused)
    }

    fn set(&mut self, section: Section, name: &str, value: Value, place: Place) -> Result<()> {
        let Some(key) = self.key(section, name) else {
            if matches!(place, Place::File { .. })
                && section == Section::Task
                && TaskConfig::is_obsolete(self.task, name)
            {
                return Ok(());
            }
            return Err(match flat::place(name, self.mixer(), None) {
                Some(FlatPlace::OtherMixer(other)) if section == Section::Model => {
                    let what = format!(
                        "{name} is a setting of mixer = \"{other}\", but the mixer is {}",
                        self.mixer()
                    );
                    ConfigError::Invalid { place: Some(place.to_string()), what }
                }
                _ => self.unknown_key(&place, &format!("{section}.{name}")),
            });
        };
        if key == TASK_NAME {
            return self.same_task(&value, &place);
        }
        if key == MIXER_KIND {
            self.change_mixer(&value, &place)?;
        }
        self.tables[key.section as usize].insert(key.name.to_owned(), value);
        self.places.insert(key, place);
        Ok(())
    }

    fn change_mixer(&mut self, kind: &Value, place: &Place) -> Result<()> {
        let table = &mut self.tables[Section::Mixer as usize];
        *table = kind.as_str().and_then(|kind| mixer_table(table, kind)).ok_or_else(|| {
            ConfigError::Value {
                place: place.to_string(),
                key: MIXER_KIND.to_string(),
                value: kind.to_string(),
                reason: format!("expected one of {}", MixerConfig::KINDS.join(", ")),
            }
        })?;
        Ok(())
    }

    fn same_task(&self, value: &Value, place: &Place) -> Result<()> {
        match value.as_str() {
            Some(name) if name == self.task => Ok(()),
            found => Err(ConfigError::OtherTask {
                place: place.to_string(),
                found: found.map_or_else(|| value.to_string(), str::to_owned),
                expected: self.task.to_owned(),
            }),
        }
    }

    /// A value of the wrong type, with the place where it was set.
    fn wrong(&self, section: Section, WrongValue { key, reason }: WrongValue) -> ConfigError {
        let key = key.and_then(|name| self.key(section, &name));
        let Some((key, place)) = key.and_then(|key| Some((key, self.places.get(&key)?))) else {
            return ConfigError::Invalid { place: None, what: format!("[{section}] {reason}") };
        };
        ConfigError::Value {
            place: place.to_string(),
            key: key.to_string(),
            value: self.value(section, key.name).map(Value::to_string).unwrap_or_default(),
            reason,
        }
    }

    fn unknown_section(&self, place: &Place, name: &str, value: &DeValue<'_>) -> ConfigError {
        // A key that was written above all sections.
        if !matches!(value, DeValue::Table(_)) {
            return self.unknown_key(place, name);
        }
        let nearest = nearest(name, Section::ALL.map(Section::name)).map(|n| n.1.to_owned());
        ConfigError::Section { place: place.to_string(), section: name.to_owned(), nearest }
    }

    fn unknown_key(&self, place: &Place, dotted: &str) -> ConfigError {
        let task = self.task;
        let (section, name) = dotted.rsplit_once('.').unwrap_or(("", dotted));
        let among = |section: Section| {
            let keys = section.key_docs(task, self.mixer()).into_iter().map(|doc| doc.0);
            let (score, key) = nearest(name, keys)?;
            Some((score, format!("{section}.{key}")))
        };
        // Its own section first, if there is one and the key resembles one of its keys well.
        let own = Section::named(section).and_then(among).filter(|(score, _)| *score > 0.85);
        let anywhere = || {
            let best = Section::ALL.into_iter().filter_map(among);
            best.max_by(|a, b| a.0.total_cmp(&b.0))
        };
        ConfigError::Key {
            place: place.to_string(),
            key: dotted.to_owned(),
            nearest: own.or_else(anywhere).map(|n| n.1),
        }
    }
}

fn default_task(name: &str) -> Result<TaskConfig> {
    TaskConfig::default_for(name).ok_or_else(|| ConfigError::Task {
        task: name.to_owned(),
        nearest: nearest(name, TaskConfig::NAMES.iter().copied()).map(|n| n.1.to_owned()),
    })
}

/// The settings of a mixer of this kind; what `old` has chosen stays where the new one has the same setting. `None`:
/// there is no such mixer.
fn mixer_table(old: &Table, kind: &str) -> Option<Table> {
    let defaults = |kind: &str| Table::try_from(MixerConfig::default_for(kind)?).ok();
    let old_kind = old.get(MIXER_KIND.name).and_then(Value::as_str).unwrap_or_default();
    if old_kind == kind {
        return Some(old.clone());
    }
    let (mut new, before) = (defaults(kind)?, defaults(old_kind).unwrap_or_default());
    // `lambda_init` means something else for every mixer, as its text says.
    let shared = MixerConfig::field_docs(old_kind)
        .filter(|shared| MixerConfig::field_docs(kind).any(|own| own == *shared));
    for (key, _) in shared {
        if let Some(value) = old.get(key).filter(|value| before.get(key) != Some(*value)) {
            new.insert(key.to_owned(), value.clone());
        }
    }
    Some(new)
}

/// The value of `name` under `[task]`.
fn task_name<'t, 'a>(root: &'t DeTable<'a>) -> Option<&'t Spanned<DeValue<'a>>> {
    let (_, section) = root.iter().find(|(key, _)| key.get_ref() == "task")?;
    let DeValue::Table(entries) = section.get_ref() else { return None };
    entries.iter().find(|(key, _)| key.get_ref() == "name").map(|(_, value)| value)
}

/// The task that a document names.
pub(super) fn task_named_in(document: &Document<'_>) -> Result<String> {
    let name = match task_name(&parse(document)?).map(Spanned::get_ref) {
        Some(DeValue::String(name)) => Some(name.to_string()),
        _ => None,
    };
    name.ok_or_else(|| ConfigError::Syntax {
        place: document.name().to_owned(),
        reason: "it names no task: expected `name = \"...\"` under [task]".to_owned(),
    })
}

fn parse<'a>(document: &'a Document<'_>) -> Result<DeTable<'a>> {
    DeTable::parse(document.text()).map(Spanned::into_inner).map_err(|error| {
        let place = error.span().map(|span| document.place(span.start).to_string());
        let place = place.unwrap_or_else(|| document.name().to_owned());
        ConfigError::Syntax { place, reason: error.message().to_owned() }
    })
}

/// The line of an offset, counted from 1.
fn line(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

fn plain(value: Spanned<DeValue<'_>>, place: &Place) -> Result<Value> {
    Value::deserialize(value.into_deserializer()).map_err(|e| ConfigError::Syntax {
        place: place.to_string(),
        reason: e.message().to_owned(),
    })
}
