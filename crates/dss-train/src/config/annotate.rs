//! A configuration as TOML with a comment at every key.

use std::fmt::Write;

use toml::{Table, Value};

use super::docs::{SECTIONS, keys};
use super::{Config, Sources};

/// Comments start in this column, or two columns after a longer line.
const COLUMN: usize = 28;

impl Config {
    /// Every key with its value and a comment that says what it means; parses back to the same configuration.
    pub fn to_annotated_toml(&self) -> String {
        self.annotated(|_| None)
    }

    /// The same; each comment ends with where the value comes from.
    pub fn to_sourced_toml(&self, sources: &Sources) -> String {
        self.annotated(|key| Some(sources.of(key)))
    }

    fn annotated<'a>(&self, source: impl Fn(&str) -> Option<&'a str>) -> String {
        let task = self.task.name();
        let mut out = String::new();
        for (section, about) in SECTIONS {
            let table = match section {
                "task" => Table::try_from(&self.task),
                "model" => Table::try_from(&self.model),
                _ => Table::try_from(&self.train),
            }
            .unwrap_or_default();
            if !out.is_empty() {
                out.push('\n');
            }
            let _ = writeln!(out, "# {about}\n[{section}]");
            if section == "task" {
                line(&mut out, &format!("name = {}", Value::from(task)), "which task");
            }
            for (key, doc) in keys(section, task) {
                let setting = match table.get(*key) {
                    Some(value) => format!("{key} = {value}"),
                    None => format!("# {key} ="),
                };
                match source(&format!("{section}.{key}")) {
                    Some(source) => line(&mut out, &setting, &format!("{doc} [{source}]")),
                    None => line(&mut out, &setting, doc),
                }
            }
        }
        out
    }
}

fn line(out: &mut String, setting: &str, doc: &str) {
    let width = setting.chars().count();
    let pad = COLUMN.saturating_sub(width).max(2);
    let _ = writeln!(out, "{setting}{:pad$}# {doc}", "");
}
