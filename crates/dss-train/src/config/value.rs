//! TOML values for serde, with errors in plain words that know which key they are about.
//!
//! `toml`'s own errors name Rust's types ("expected usize") and forget the key once the text has become a table.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};

use super::error::{did_you_mean, nearest};

/// A value that its key cannot have.
#[derive(Debug)]
pub(super) struct WrongValue {
    /// The key of the table.
    pub key: Option<String>,
    /// The expected value.
    pub reason: String,
}

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for WrongValue {}

impl de::Error for WrongValue {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self { key: None, reason: reason.to_string() }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}", in_words(expected)))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}", in_words(expected)))
    }

    fn unknown_variant(name: &str, expected: &'static [&'static str]) -> Self {
        // A character such as a tab may stand for a name.
        let names = expected.iter().filter(|name| name.starts_with(char::is_alphanumeric));
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        let names = match names.as_slice() {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            names => names.join(", "),
        };
        let meant = nearest(name, expected.iter().copied()).map(|(_, meant)| meant.to_owned());
        Self::custom(format_args!("expected {names}{}", did_you_mean(&meant)))
    }
}

/// What a type takes. Serde's `Expected` can only be printed; for numbers it prints the name of Rust's type.
fn in_words(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "usize" | "u64" => "a whole number of at least 0".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "f64" | "f32" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}

/// A table whose keys are named in errors.
pub(super) fn deserializer(table: &Table) -> impl Deserializer<'_, Error = WrongValue> {
    let entries = table.iter();
    MapDeserializer::new(
        entries.map(|(key, value)| (key.as_str(), Node { key: Some(key.as_str()), value })),
    )
}

/// A value, and its key if it is an entry of the table.
#[derive(Clone, Copy)]
struct Node<'a> {
    key: Option<&'a str>,
    value: &'a Value,
}

impl<'a> Node<'a> {
    fn inner(value: &'a Value) -> Self {
        Self { key: None, value }
    }

    fn named<T>(self, result: Result<T, WrongValue>) -> Result<T, WrongValue> {
        result
            .map_err(|error| WrongValue { key: self.key.map(str::to_owned).or(error.key), ..error })
    }
}

impl<'de> IntoDeserializer<'de, WrongValue> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = WrongValue;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongValue> {
        self.named(match self.value {
            Value::String(text) => visitor.visit_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(yes) => visitor.visit_bool(*yes),
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(values) => {
                visitor.visit_seq(SeqDeserializer::new(values.iter().map(Node::inner)))
            }
            Value::Table(table) => {
                let entries = table.iter().map(|(key, value)| (key.as_str(), Node::inner(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrongValue> {
        self.named(match self.value {
            Value::String(text) => {
                let variant: StrDeserializer<'_, WrongValue> = text.as_str().into_deserializer();
                variant.deserialize_enum(name, variants, visitor)
            }
            _ => Err(de::Error::unknown_variant("", variants)),
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongValue> {
        self.named(visitor.visit_some(Self { key: None, ..self }))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WrongValue> {
        self.named(visitor.visit_newtype_struct(Self { key: None, ..self }))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        #[serde(alias = ",")]
        First,
        SecondOne,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Settings {
        count: usize,
        rate: f64,
        kind: Kind,
        #[serde(default)]
        flag: Option<bool>,
        #[serde(default)]
        list: Vec<u32>,
    }

    fn read(text: &str) -> Result<Settings, WrongValue> {
        Settings::deserialize(deserializer(&text.parse().unwrap()))
    }

    #[test]
    fn values_are_read_by_type() {
        let read =
            read("count = 3\nrate = 1\nkind = 'second-one'\nflag = true\nlist = [1, 2]").unwrap();
        let (rate, kind, flag) = (1.0, Kind::SecondOne, Some(true));
        assert_eq!(read, Settings { count: 3, rate, kind, flag, list: vec![1, 2] });
    }

    #[test]
    fn errors_name_the_key_and_what_it_takes() {
        let good = [
            ("count", "3"),
            ("rate", "0.5"),
            ("kind", "'first'"),
            ("flag", "true"),
            ("list", "[1]"),
        ];
        for (key, wrong, reason) in [
            ("count", "-3", "expected a whole number of at least 0"),
            ("count", "'many'", "expected a whole number of at least 0"),
            ("rate", "'many'", "expected a number"),
            ("kind", "'third'", "expected `first` or `second-one`"),
            ("kind", "'frist'", "expected `first` or `second-one`; did you mean `first`?"),
            ("kind", "3", "expected `first` or `second-one`"),
            ("flag", "3", "expected true or false"),
            ("list", "[-1]", "expected a whole number from 0 to 4294967295"),
        ] {
            let line =
                |(k, v): (&str, &str)| format!("{k} = {}\n", if k == key { wrong } else { v });
            let error = read(&good.map(line).concat()).unwrap_err();
            assert_eq!((error.key.as_deref(), error.reason.as_str()), (Some(key), reason));
        }
    }
}
