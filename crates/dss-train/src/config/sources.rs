//! Where the values of a configuration come from.

use std::collections::BTreeMap;

/// The source of every key: a preset's own remark, an option, a file, or the default.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<String, String>);

/// A document that comes with the program.
pub(super) struct Document {
    /// Its name in messages.
    pub place: String,
    pub text: &'static str,
    /// The source of values that have no remark.
    pub source: String,
}

impl Sources {
    /// `places`: where each key was set, such as `preset paper, line 3`.
    pub(super) fn new(documents: &[Document], places: &BTreeMap<String, String>) -> Self {
        let of = |document: &Document, place: &str| {
            let line = place.strip_prefix(&document.place)?.strip_prefix(", line ")?;
            Some(remark(document.text, line).unwrap_or(&document.source).to_owned())
        };
        let source = |place: &String| {
            let own = documents.iter().find_map(|document| of(document, place));
            own.unwrap_or_else(|| match place.starts_with("--set") {
                true => "--set".to_owned(),
                false => place.clone(),
            })
        };
        Self(places.iter().map(|(key, place)| (key.clone(), source(place))).collect())
    }

    /// The source of a key such as `model.h`.
    pub fn of(&self, key: &str) -> &str {
        self.0.get(key).map_or("default", String::as_str)
    }
}

/// The comment at the end of a line.
fn remark<'a>(text: &'a str, line: &str) -> Option<&'a str> {
    let text = text.lines().nth(line.parse::<usize>().ok()? - 1)?;
    text.split_once('#').map(|(_, remark)| remark.trim())
}
