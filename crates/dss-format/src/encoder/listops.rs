//! ListOps expressions, in lines of their own or in the rows of the official files: `Source<TAB>Target` with a header
//! (Long Range Arena), or `label<TAB>source` without one (the original ListOps).

use serde::{Deserialize, Serialize};

use super::Vocabulary;

/// How ListOps expressions become tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListopsEncoder {
    /// Symbols and ids.
    pub vocabulary: Vocabulary,
    /// Length L of the model.
    pub len: usize,
}

/// The header of the Long Range Arena's files.
pub const HEADER: &str = "Source\tTarget";

/// Source and label of a row: the field that is one digit is the label, the second one if both are.
pub fn source_and_label(line: &str) -> Option<(&str, u8)> {
    let digit = |field: &str| match field.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(digit - b'0'),
        _ => None,
    };
    let (a, b) = line.split_once('\t')?;
    digit(b).map(|label| (a, label)).or_else(|| digit(a).map(|label| (b, label)))
}

/// The expression in a line, a label beside it left out; empty for a header.
pub fn expression(line: &str) -> &str {
    match source_and_label(line) {
        Some((source, _)) => source,
        None if line == HEADER => "",
        None => line,
    }
}
