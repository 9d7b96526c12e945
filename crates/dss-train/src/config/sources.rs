//! Where the values of a configuration come from.

use std::collections::BTreeMap;

use super::Preset;

/// The source of every key: a preset's own remark, a file, the command line, or the default.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<String, String>);

impl Sources {
    /// `places`: where each key was set, such as `preset paper, line 3`.
    pub(super) fn new(preset: &Preset, places: &BTreeMap<String, String>) -> Self {
        let prefix = format!("{}, line ", preset.place());
        let source = |place: &String| match place.strip_prefix(&prefix) {
            Some(line) => remark(preset, line).unwrap_or("our choice").to_owned(),
            None if place.starts_with("--set") => "--set".to_owned(),
            None => place.clone(),
        };
        Self(places.iter().map(|(key, place)| (key.clone(), source(place))).collect())
    }

    /// The source of a key such as `model.h`.
    pub fn of(&self, key: &str) -> &str {
        self.0.get(key).map_or("default", String::as_str)
    }
}

/// The comment at the end of a line of a preset.
fn remark(preset: &Preset, line: &str) -> Option<&'static str> {
    let text = preset.text.lines().nth(line.parse::<usize>().ok()? - 1)?;
    text.split_once('#').map(|(_, remark)| remark.trim())
}
