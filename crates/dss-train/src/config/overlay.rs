//! Single settings that are laid over a configuration: typed with `--set`, planned by `dss repro`, kept in `grid.toml`.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// A key and its value, written `model.h=128`; the section may be left out where only one section has the key.
///
/// Which keys exist depends on the task, so that is checked where the setting is laid over a configuration.
///
/// ```
/// use dss_train::config::Setting;
///
/// let typed: Setting = "train.max_steps=5900".parse().unwrap();
/// assert_eq!(typed, Setting::new("train.max_steps", 5900));
/// assert_eq!((typed.key(), typed.name()), ("train.max_steps", "max_steps"));
/// assert_eq!(Setting::new("train.schedule", "cosine").to_string(), "train.schedule=cosine");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting {
    key: String,
    value: Value,
    /// The value as it was typed: a key that takes a string gets `2024` or `1_000` unchanged.
    text: String,
}

impl Setting {
    /// A setting made by the program.
    pub fn new(key: impl Into<String>, value: impl Into<Value>) -> Self {
        let value = value.into();
        let text = match &value {
            Value::String(text) if text.trim() == text && toml_value(text).is_none() => {
                text.clone()
            }
            other => other.to_string(),
        };
        Self { key: key.into(), value, text }
    }

    /// A setting as it is typed: the value is TOML, and anything that is not TOML is a string.
    pub fn typed(key: &str, text: &str) -> Self {
        let (key, text) = (key.trim().to_owned(), text.trim().to_owned());
        let value = toml_value(&text).unwrap_or_else(|| Value::String(text.clone()));
        Self { key, value, text }
    }

    /// The key, with its section if it was written.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The key without its section.
    pub fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or(&self.key)
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.text)
    }
}

impl FromStr for Setting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as lr=0.01")?;
        Ok(Self::typed(key, value))
    }
}

impl TryFrom<String> for Setting {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.to_string()
    }
}

/// Settings in the order in which they are laid over a configuration: the last one of a key wins.
///
/// ```
/// use dss_train::Config;
/// use dss_train::config::Overlay;
///
/// # fn main() -> dss_train::Result<()> {
/// let overlay = Overlay::default().with("model.h", 32).with("lr", 0.005);
/// let config = Config::resolve("delay", None, &[], &overlay)?;
/// assert_eq!((config.model.h, config.train.lr), (32, 0.005));
/// assert_eq!(overlay.to_string(), "model.h=32 lr=0.005");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Overlay(Vec<Setting>);

impl Overlay {
    /// One more setting, over the others.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.push(Setting::new(key, value));
        self
    }

    /// One more setting, over the others.
    pub fn push(&mut self, setting: Setting) {
        self.0.push(setting);
    }
}

impl Deref for Overlay {
    type Target = [Setting];

    fn deref(&self) -> &[Setting] {
        &self.0
    }
}

impl FromIterator<Setting> for Overlay {
    fn from_iter<I: IntoIterator<Item = Setting>>(settings: I) -> Self {
        Self(settings.into_iter().collect())
    }
}

impl Extend<Setting> for Overlay {
    fn extend<I: IntoIterator<Item = Setting>>(&mut self, settings: I) {
        self.0.extend(settings);
    }
}

impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, setting) in self.0.iter().enumerate() {
            write!(f, "{}{setting}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// A value in TOML's syntax, if it is one.
fn toml_value(text: &str) -> Option<Value> {
    let mut table: Table = format!("x = {text}").parse().ok()?;
    let value = table.remove("x")?;
    table.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_text() {
        for setting in [
            Setting::new("lr", 0.01),
            Setting::new("train.schedule", "cosine"),
            Setting::new("task.path", "2024"),
            Setting::new("task.path", " a file "),
            Setting::new("task.path", "true"),
            Setting::new("glu", true),
        ] {
            let again: Setting = setting.to_string().parse().unwrap();
            assert_eq!(again.value(), setting.value(), "{setting}");
        }
        assert_eq!("path = 1_000".parse::<Setting>().unwrap().text(), "1_000");
        assert!("lr".parse::<Setting>().is_err());
        let overlay = Overlay::default().with("h", 3).with("path", "x y");
        let file = serde_json::to_string(&overlay).unwrap();
        assert_eq!(file, r#"["h=3","path=x y"]"#);
        assert_eq!(serde_json::from_str::<Overlay>(&file).unwrap(), overlay);
    }
}
