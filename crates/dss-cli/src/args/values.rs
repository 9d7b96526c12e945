//! What several options take: names from a list, pairs, numbers in a range.

use clap::builder::{PossibleValue, PossibleValuesParser};
use dss_data::TaskConfig;
use dss_train::config::NamedOverlay;
use dss_train::threads::MAX_THREADS;

pub(super) fn tasks() -> PossibleValuesParser {
    PossibleValuesParser::new(TaskConfig::NAMES.iter().copied())
}

pub(super) fn overlays(overlays: &'static [NamedOverlay]) -> PossibleValuesParser {
    PossibleValuesParser::new(overlays.iter().map(|o| PossibleValue::new(o.name).help(o.about())))
}

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
