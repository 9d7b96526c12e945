//! Errors as the user sees them: the message, a hint, and the exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use dss_train::Error;
use dss_train::config::ConfigError;
use eyre::Report;

use crate::text;

/// The run failed.
const FAILED: u8 = 1;
/// Wrong usage; clap exits with the same code.
const USAGE: u8 = 2;

/// An error with its exit code and what to do about it.
#[derive(Debug)]
pub struct Failure {
    report: Report,
    hint: Option<Hint>,
    code: u8,
    /// Whether another process reports it.
    silent: bool,
}

/// What to do about an error.
#[derive(Debug)]
enum Hint {
    Text(String),
    /// Look at the keys of this task, or of any if it is not known.
    Keys(Option<String>),
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Keys(Some(task)) => {
                write!(f, "`dss config show {task}` lists every key with its value and meaning")
            }
            Self::Keys(None) => {
                f.write_str("`dss config list` shows all tasks, `dss config show` the keys of one")
            }
        }
    }
}

impl Failure {
    /// The run failed.
    pub fn failed(error: impl Into<Report>) -> Self {
        Self { report: error.into(), hint: None, code: FAILED, silent: false }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { report: Report::msg(message.into()), hint: None, code: USAGE, silent: false }
    }

    /// Adds what to do.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(Hint::Text(hint.into())), ..self }
    }

    /// Leaves it to another process to report it.
    pub fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// Adds the name of the task, for hints that mention it.
    pub fn about_task(mut self, name: &str) -> Self {
        if let Some(Hint::Keys(task)) = &mut self.hint {
            *task = Some(name.to_owned());
        }
        self
    }

    /// For `map_err`: an error about this task.
    pub fn for_task(name: &str) -> impl Fn(Error) -> Self {
        move |error| Self::from(error).about_task(name)
    }

    /// Prints the error to standard error.
    pub fn report(self) -> ExitCode {
        // `dss ... | head`: a reader that has seen enough is a normal end.
        if self.is_broken_pipe() {
            return ExitCode::SUCCESS;
        }
        if self.silent {
            return ExitCode::from(self.code);
        }
        let mut err = io::stderr().lock();
        // The messages of our libraries name their cause themselves.
        let _ = writeln!(err, "error: {}", text::printable(&self.report.to_string()));
        if let Some(hint) = self.hint {
            let _ = writeln!(err, "hint: {}", text::printable(&hint.to_string()));
        }
        ExitCode::from(self.code)
    }

    /// Whether nobody reads standard output any more.
    pub fn is_broken_pipe(&self) -> bool {
        let io = self.report.downcast_ref::<io::Error>();
        io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let usage = matches!(error, Error::Config(_))
            || matches!(error, Error::Data(dss_data::Error::Setting { .. }));
        let code = if usage { USAGE } else { FAILED };
        let hint = hint(&error);
        Self { report: Report::new(error), hint, code, silent: false }
    }
}

impl From<dss_report::Error> for Failure {
    fn from(error: dss_report::Error) -> Self {
        match error {
            dss_report::Error::Train(error) => error.into(),
            error @ dss_report::Error::Grid { .. } => {
                Self { report: Report::new(error), hint: None, code: USAGE, silent: false }
            }
            error => Self::failed(error),
        }
    }
}

impl From<dss_data::Error> for Failure {
    fn from(error: dss_data::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<dss_nn::Error> for Failure {
    fn from(error: dss_nn::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<dss_infer::Error> for Failure {
    fn from(error: dss_infer::Error) -> Self {
        Self::failed(error)
    }
}

/// What to do, for errors whose own message does not say it.
fn hint(error: &Error) -> Option<Hint> {
    let text = |text: &str| Some(Hint::Text(text.to_owned()));
    match error {
        Error::Config(ConfigError::Task { .. } | ConfigError::Preset { .. }) => {
            text("`dss config list` shows all tasks and presets")
        }
        Error::Config(ConfigError::Read { .. }) => text("name an existing TOML file"),
        Error::Config(_) | Error::Data(dss_data::Error::Setting { .. }) => Some(Hint::Keys(None)),
        Error::Data(error) => error.hint().and_then(text),
        _ => None,
    }
}
