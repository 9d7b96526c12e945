//! A configuration as TOML with a comment at every key.

use std::fmt::Write;

use super::{Config, Section, Sources};

/// Comments start in this column, or two columns after a longer line.
const COLUMN: usize = 28;

impl Config {
    /// Every key with its value and a comment that says what it means; parses back to the same configuration.
    pub fn to_annotated_toml(&self) -> String {
        self.annotated(|_| None)
    }

    /// The same; each comment ends with where the value comes from.
    pub fn to_sourced_toml(&self, sources: &Sources) -> String {
        self.annotated(|key| Some(sources.source(key)))
    }

    fn annotated<'a>(&self, source: impl Fn(&str) -> Option<&'a str>) -> String {
        let tables = self.tables().unwrap_or_default();
        let mut out = String::new();
        for (section, table) in Section::ALL.into_iter().zip(tables) {
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}# {}\n[{section}]", section.about());
            for (key, doc) in section.key_docs(self.task.name(), self.model.mixer.kind()) {
                let setting = match table.get(key) {
                    Some(value) => format!("{key} = {value}"),
                    None => format!("# {key} ="),
                };
                let source = source(&format!("{section}.{key}")).filter(|_| key != "name");
                let source = source.map(|source| format!(" [{source}]")).unwrap_or_default();
                line(&mut out, &setting, &format!("{doc}{source}"));
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
