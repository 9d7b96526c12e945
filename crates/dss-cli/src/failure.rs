//! What is said when something fails, and the exit code.

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
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// The run failed.
    pub fn failed(error: impl Into<Report>) -> Self {
        Self { report: error.into(), hint: None, code: FAILED }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { report: Report::msg(message.into()), hint: None, code: USAGE }
    }

    /// Adds what to do.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Says it on standard error.
    pub fn report(self) -> ExitCode {
        // Nobody reads standard output any more: no reason to complain.
        if self.is_broken_pipe() {
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

    fn is_broken_pipe(&self) -> bool {
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
        let usage = matches!(error, Error::Config(_) | Error::Grid { .. })
            || matches!(error, Error::Data(dss_data::Error::Setting { .. }));
        let code = if usage { USAGE } else { FAILED };
        if let Error::Data(dss_data::Error::Missing { hint, .. }) = &error {
            let message = error.to_string();
            let message = message.strip_suffix(hint.as_str()).unwrap_or(&message).trim_end();
            return Self {
                report: Report::msg(message.to_owned()),
                hint: Some(hint.clone()),
                code,
            };
        }
        let hint = hint(&error).map(str::to_owned);
        Self { report: Report::new(error), hint, code }
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
fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Config(ConfigError::Task { .. } | ConfigError::Preset { .. }) => {
            Some("`dss config list` shows all tasks and presets")
        }
        Error::Config(ConfigError::Read { .. }) => Some("name an existing TOML file"),
        Error::Config(_) | Error::Data(dss_data::Error::Setting { .. }) => {
            Some("`dss config show TASK` lists every key with its value and meaning")
        }
        _ => None,
    }
}
