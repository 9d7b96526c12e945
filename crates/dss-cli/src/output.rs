//! Results on standard output, everything else on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::Value;

use crate::text;

/// Writes bytes. A reader that has gone away is an error as any other, so that nothing panics.
pub fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|e| io::Error::new(e.kind(), format!("cannot write to standard output: {e}")))
}

/// Writes text and a line end; see [`text::printable`].
pub fn line(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", text::printable(text)).as_bytes())
}

/// Writes a line to standard error; see [`text::printable`]. A log that cannot be written is no reason to stop.
pub fn log_line(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", text::printable(&text.to_string()));
}

/// Writes one JSON object on one line.
pub fn json(value: &Value) -> io::Result<()> {
    line(&value.to_string())
}
