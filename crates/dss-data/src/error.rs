//! Errors, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong with data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, ...
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file was read but does not contain what it should.
    #[error("{}{place}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in the file, such as `, line 3, column 2`; may be empty.
        place: String,
        /// Expected and found content, and what to do.
        what: String,
    },
    /// The data of a task are missing.
    #[error("{what} not found; looked in {}", list(looked))]
    Missing {
        /// The files that were wanted.
        what: String,
        /// Every folder that was searched.
        looked: Vec<PathBuf>,
        /// What to do.
        hint: String,
    },
    /// A setting of the `[task]` table is invalid.
    #[error("task.{key} = {value}: {what}")]
    Setting {
        /// The key in the `[task]` table.
        key: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        what: String,
    },
}

impl Error {
    /// What to do about it, if that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Missing { hint, .. } => Some(hint),
            _ => None,
        }
    }

    /// The message and the hint, for places that show only one text.
    pub fn message_and_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}. {hint}"),
            None => self.to_string(),
        }
    }

    /// The same error with the name under which the user knows the file.
    pub fn with_file_name(mut self, name: &str) -> Self {
        if let Self::Io { path, .. } | Self::Content { path, .. } = &mut self {
            *path = name.into();
        }
        self
    }

    /// Says that the data folder does not exist, where data were looked for in it.
    pub(crate) fn with_missing_folder(mut self, folder: &Path) -> Self {
        let note = format!("{} does not exist", folder.display());
        match &mut self {
            Self::Missing { hint, .. } => *hint = format!("{note}. {hint}"),
            Self::Setting { key: "path" | "dir" | "reviews", what, .. } => {
                *what = format!("{what} ({note})");
            }
            _ => {}
        }
        self
    }

    /// For `map_err`: an I/O failure of `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// A fault of the file as a whole.
    pub(crate) fn content(path: &Path, what: impl Into<String>) -> Self {
        Self::Content { path: path.to_owned(), place: String::new(), what: what.into() }
    }

    /// A fault in a line (counted from 1).
    pub(crate) fn line(path: &Path, line: u64, what: impl Into<String>) -> Self {
        let place = format!(", line {line}");
        Self::Content { path: path.to_owned(), place, what: what.into() }
    }

    /// A text that is not UTF-8.
    pub(crate) fn not_utf8(path: &Path, line: u64) -> Self {
        Self::line(path, line, "not UTF-8 text; convert the file to UTF-8")
    }

    /// A fault in one cell of a table (line and column counted from 1).
    pub(crate) fn cell(path: &Path, line: u64, column: usize, what: impl Into<String>) -> Self {
        let place = format!(", line {line}, column {column}");
        Self::Content { path: path.to_owned(), place, what: what.into() }
    }

    /// A bad setting.
    pub(crate) fn setting(
        key: &'static str,
        value: impl ToString,
        what: impl Into<String>,
    ) -> Self {
        Self::Setting { key, value: value.to_string(), what: what.into() }
    }
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "no folder: none was given".into();
    }
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}
