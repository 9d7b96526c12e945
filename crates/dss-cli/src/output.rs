//! Results on standard output, everything else on standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Mutex;

use console::Term;
use indicatif::{ProgressBar, WeakProgressBar};
use serde_json::Value;

use crate::text;

/// Characters of a line where there is no terminal.
const COLUMNS: usize = 100;

/// The bar at the foot of the terminal, if there is one.
static BAR: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Writes bytes. A reader that has gone away is an ordinary error, so that nothing panics.
pub fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(lost)
}

/// The error of a write to standard output, which says so.
pub fn lost(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// Writes text and a line end; see [`text::printable`].
pub fn line(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", text::printable(text)).as_bytes())
}

/// Writes a line to standard error, above the progress bar; see [`text::printable`]. A log that cannot be written is no
/// reason to stop.
pub fn log_line(text: impl Display) {
    let text = text.to_string();
    let line = text::printable(&text);
    match bar().filter(|bar| !bar.is_hidden() && !bar.is_finished()) {
        Some(bar) => bar.println(line),
        None => drop(writeln!(io::stderr(), "{line}")),
    }
}

/// Lines are written above this bar from now on.
pub fn set_bar(bar: &ProgressBar) {
    *BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(bar.downgrade());
}

/// Removes the bar, before the process ends at once.
pub fn clear_bar() {
    bar().inspect(ProgressBar::finish_and_clear);
}

fn bar() -> Option<ProgressBar> {
    BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).as_ref()?.upgrade()
}

/// Characters of a line of standard output.
pub fn columns() -> usize {
    Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| columns.into())
}

/// Writes one JSON object on one line.
pub fn json(value: &Value) -> io::Result<()> {
    line(&value.to_string())
}
