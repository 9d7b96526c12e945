//! The configuration of a model as another program wrote it: Hydra's `config.yaml`, or what a Lightning file has under
//! `hyper_parameters`.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::pickle::{Pickle, Value};

/// The longest file that is read.
const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting, and the most values of a configuration.
const MAX_DEPTH: usize = 32;
const MAX_VALUES: usize = 100_000;

/// Settings by name, in a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings(Json);

impl Settings {
    /// Reads YAML.
    ///
    /// # Errors
    /// If it is not YAML, not a table, or has aliases.
    pub fn from_yaml(text: &str) -> Result<Self> {
        if text.len() > MAX_BYTES {
            return Err(Error::file(format!("it has more than {MAX_BYTES} bytes")));
        }
        let mut open: Vec<Open> = Vec::new();
        let mut root = None;
        for event in Parser::new_from_str(text) {
            let (event, _) = event.map_err(|e| Error::file(format!("not valid YAML: {e}")))?;
            let value = match event {
                Event::Scalar(text, style, ..) => scalar(&text, style),
                Event::SequenceStart(..) => {
                    open.push(Open::List(Vec::new()));
                    if open.len() > MAX_DEPTH {
                        return Err(Error::file("its settings are nested too deeply"));
                    }
                    continue;
                }
                Event::MappingStart(..) => {
                    open.push(Open::Table(Map::new(), None));
                    if open.len() > MAX_DEPTH {
                        return Err(Error::file("its settings are nested too deeply"));
                    }
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                    Some(Open::List(items)) => Json::Array(items),
                    Some(Open::Table(table, _)) => Json::Object(table),
                    None => return Err(Error::file("not valid YAML")),
                },
                Event::Alias(_) => {
                    return Err(Error::file("it has YAML aliases (*name), which are not read"));
                }
                _ => continue,
            };
            match open.last_mut() {
                None => root = root.or(Some(value)),
                Some(Open::List(items)) => items.push(value),
                Some(Open::Table(table, key)) => match key.take() {
                    Some(key) => {
                        table.insert(key, value);
                    }
                    None => {
                        *key = Some(value.as_str().map_or(value.to_string(), ToOwned::to_owned));
                    }
                },
            }
        }
        match root {
            Some(root @ Json::Object(_)) => Ok(Self(root)),
            _ => Err(Error::file("it is not a table of settings")),
        }
    }

    /// Whether it has the settings of a model, or at least of its layers.
    pub(crate) fn describes_a_model(&self) -> bool {
        ["model", "layer"].iter().any(|key| self.at(&[key]).is_some_and(Json::is_object))
    }

    /// Of a pickled dictionary, plain or of OmegaConf; `None` if it is something else.
    pub(crate) fn from_pickle(pickle: &Pickle<'_>, value: Value) -> Option<Self> {
        let json = plain(pickle, value, 0, &mut 0)?;
        json.is_object().then_some(Self(json))
    }

    /// The setting at a path such as `model.layer.version`; `None` if it is not there.
    ///
    /// # Errors
    /// If it is an interpolation `${..}` that cannot be resolved.
    pub(crate) fn get(&self, path: &str) -> Result<Option<Json>> {
        let keys: Vec<&str> = path.split('.').collect();
        match self.at(&keys) {
            Some(Json::String(text)) if text.starts_with("${") => self.resolve(text, &keys, path),
            found => Ok(found.cloned()),
        }
    }

    fn at(&self, keys: &[&str]) -> Option<&Json> {
        keys.iter().try_fold(&self.0, |value, key| value.get(key))
    }

    /// `${a.b}`, `${..b}` (one table up for every dot after the first), `${oc.select:a.b,default}`.
    fn resolve(&self, text: &str, place: &[&str], path: &str) -> Result<Option<Json>> {
        let unresolved = || {
            Error::Unknown(format!(
                "{path} is {text} in the configuration, which cannot be resolved here"
            ))
        };
        let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let inner = inner.ok_or_else(unresolved)?;
        let (wanted, default) = match inner.strip_prefix("oc.select:") {
            Some(rest) => match rest.split_once(',') {
                Some((wanted, default)) => (wanted, Some(scalar(default, ScalarStyle::Plain))),
                None => (rest, Some(Json::Null)),
            },
            None => (inner, None),
        };
        let dots = wanted.len() - wanted.trim_start_matches('.').len();
        let mut keys: Vec<&str> = match dots {
            0 => Vec::new(),
            _ => place[..place.len().saturating_sub(dots)].to_vec(),
        };
        keys.extend(wanted.trim_start_matches('.').split('.'));
        match (self.at(&keys), default) {
            (Some(Json::String(text)), _) if text.starts_with("${") => Err(unresolved()),
            (Some(found), _) => Ok(Some(found.clone())),
            (None, Some(default)) => Ok(Some(default)),
            (None, None) => Err(unresolved()),
        }
    }
}

enum Open {
    List(Vec<Json>),
    /// With the key that waits for its value.
    Table(Map<String, Json>, Option<String>),
}

fn scalar(text: &str, style: ScalarStyle) -> Json {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text.trim() {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => text.into(),
        },
    }
}

/// A pickled value as plain data. OmegaConf's containers have theirs in `_content`, its leaves in `_val`.
fn plain(pickle: &Pickle<'_>, value: Value, depth: usize, count: &mut usize) -> Option<Json> {
    *count += 1;
    if depth > MAX_DEPTH || *count > MAX_VALUES {
        return None;
    }
    let mut inner = |value| plain(pickle, value, depth + 1, count);
    match value {
        Value::None => Some(Json::Null),
        Value::Bool(value) => Some(value.into()),
        Value::Int(value) => Some(value.into()),
        Value::Float(value) => Some(value.into()),
        Value::Text(_) => pickle.text(value).map(Into::into),
        Value::List(_) | Value::Tuple(_) => {
            pickle.items(value)?.iter().map(|item| inner(*item)).collect()
        }
        _ => {
            let state = pickle.state(value);
            let content = state.and_then(|state| {
                pickle.get(state, "_content").or_else(|| pickle.get(state, "_val"))
            });
            if let Some(content) = content {
                return inner(content);
            }
            let mut table = Map::new();
            for (key, value) in pickle.pairs(value)? {
                if let (Some(key), Some(value)) = (pickle.text(*key), inner(*value)) {
                    table.insert(key.to_owned(), value);
                }
            }
            Some(Json::Object(table))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hydra_files() {
        let text = "\
model:
  dropout: 0.1
  layer: {_name_: dss, dropout: '${..dropout}', l_max: '${oc.select:dataset.__l_max,1}'}
  pool: null
other: ${eval:'1+1'}
list: [a, 2]
deep:
  er: ${model.dropout}
";
        let settings = Settings::from_yaml(text).unwrap();
        let get = |path| settings.get(path).unwrap();
        assert_eq!(get("model.layer._name_"), Some("dss".into()));
        assert_eq!(get("model.layer.dropout"), Some(0.1.into()));
        assert_eq!(get("model.layer.l_max"), Some(1.into()));
        assert_eq!(get("model.pool"), Some(Json::Null));
        assert_eq!(get("deep.er"), Some(0.1.into()));
        assert_eq!(get("model.none"), None);
        assert!(settings.get("other").unwrap_err().to_string().contains("other"));
    }

    #[test]
    fn what_is_not_a_table_of_settings() {
        for text in ["", "a", "- a", "a: *b", "a: [", "{a: 1"] {
            assert!(Settings::from_yaml(text).is_err(), "{text}");
        }
        assert!(Settings::from_yaml(&"[".repeat(1000)).is_err());
    }
}
