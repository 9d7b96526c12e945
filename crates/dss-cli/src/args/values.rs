//! Parsers of option values: numbers in a range, values of an enum.

use std::fmt;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use dss_train::threads::MAX_THREADS;
use serde::Serialize;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};

pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        _ => Err(format!("expected a whole number from 1 to {MAX_THREADS}")),
    }
}

pub(super) fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n >= 1 => Ok(n),
        _ => Err("expected a whole number of at least 1".to_owned()),
    }
}

/// Some values of a library's enum, by their serde names, with the help of each.
pub(super) fn named<T>(values: &[(T, &'static str)]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let names =
        values.iter().map(|(value, help)| PossibleValue::new(serde_name(value)).help(*help));
    PossibleValuesParser::new(names).map(|name| {
        let name = IntoDeserializer::<Error>::into_deserializer(name.as_str());
        T::deserialize(name).expect("serde reads what it writes")
    })
}

/// The serde name of a value of an enum.
pub fn serde_name(value: &impl Serialize) -> String {
    fmt::from_fn(|f| value.serialize(f)).to_string()
}

/// The name of a value of an enum on the command line.
pub fn clap_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
