//! A configuration as TOML with a comment at every key.

use std::fmt::Write;

use toml::{Table, Value};

use super::Config;
use super::docs::{SECTIONS, keys};

/// Comments start in this column, or two columns after a longer line.
const COLUMN: usize = 28;

impl Config {
    /// Every key with its value and a comment that says what it means; parses back to the same configuration.
    pub fn to_annotated_toml(&self) -> String {
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
                line(&mut out, &setting, doc);
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
