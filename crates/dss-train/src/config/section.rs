//! The sections of a configuration and their keys.

use std::fmt;

use dss_data::TaskConfig;
use dss_data::config::{KeyDoc, help_line, key_docs};
use dss_nn::{MixerConfig, ModelConfig};

use super::TrainConfig;

/// A section of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// `[task]`
    Task,
    /// `[model]`
    Model,
    /// `[model.mixer]`
    Mixer,
    /// `[train]`
    Train,
}

impl Section {
    /// All sections, in the order in which they are written.
    pub const ALL: [Self; 4] = [Self::Task, Self::Model, Self::Mixer, Self::Train];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Model => "model",
            Self::Mixer => "model.mixer",
            Self::Train => "train",
        }
    }

    /// Its subject.
    pub fn about(self) -> &'static str {
        match self {
            Self::Task => "The data: which task, and how its examples are made.",
            Self::Model => "The network.",
            Self::Mixer => "The mixer: the part of a layer that works along the sequence.",
            Self::Train => "The training.",
        }
    }

    /// Its keys with their help lines, in the order in which they are written; those of `[task]` depend on the task,
    /// those of `[model.mixer]` on the mixer.
    pub fn key_docs(self, task: &str, mixer: &str) -> Vec<KeyDoc> {
        match self {
            Self::Task => {
                let own = TaskConfig::key_docs(task).unwrap_or_default();
                std::iter::once(("name", "Which task".to_owned())).chain(own).collect()
            }
            Self::Model => {
                key_docs::<ModelConfig>().into_iter().filter(|doc| doc.0 != "mixer").collect()
            }
            Self::Mixer => {
                let own = MixerConfig::field_docs(mixer).map(|(key, doc)| (key, help_line(doc)));
                let kinds = format!("Which mixer: {}", MixerConfig::KINDS.join(", "));
                std::iter::once((MIXER_KIND.name, kinds)).chain(own).collect()
            }
            Self::Train => key_docs::<TrainConfig>(),
        }
    }

    /// The section with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.name() == name)
    }

    /// One of its keys.
    pub(super) fn key(self, task: &str, mixer: &str, name: &str) -> Option<Key> {
        let name =
            self.key_docs(task, mixer).into_iter().map(|doc| doc.0).find(|key| *key == name)?;
        Some(Key { section: self, name })
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A key that exists, written `model.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub section: Section,
    pub name: &'static str,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.name)
    }
}

/// Which task it is: not a setting that could be changed.
pub(super) const TASK_NAME: Key = Key { section: Section::Task, name: "name" };

/// Which mixer it is: decides what the other keys of its section are.
pub(super) const MIXER_KIND: Key = Key { section: Section::Mixer, name: "kind" };

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_of_a_section_is_a_field_with_one_line() {
        for task in TaskConfig::NAMES {
            let config = crate::Config::resolve(task, None, &[], &[]).unwrap();
            let tables = config.tables().unwrap();
            for (section, table) in Section::ALL.into_iter().zip(tables) {
                let docs = section.key_docs(task, config.model.mixer.kind());
                let fields: BTreeSet<&str> = table.keys().map(String::as_str).collect();
                assert_eq!(fields, docs.iter().map(|doc| doc.0).collect(), "{task} [{section}]");
                for (key, doc) in docs {
                    assert!(!doc.is_empty() && !doc.contains('\n'), "{section}.{key}: {doc}");
                }
            }
        }
    }
}
