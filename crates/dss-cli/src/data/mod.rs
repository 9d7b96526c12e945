//! `dss data`

mod check;
#[cfg(feature = "download")]
mod get;
mod make;

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dss_data::catalogue;

use crate::args::{DataCommand, DataListArgs};
use crate::failure::Failure;
use crate::output;

pub fn run(command: DataCommand) -> Result<ExitCode, Failure> {
    match command {
        DataCommand::List(args) => list(args),
        #[cfg(feature = "download")]
        DataCommand::Get(args) => get::run(args),
        #[cfg(not(feature = "download"))]
        DataCommand::Get(_) => Err(Failure::usage("this program was built without downloads")
            .hint("build it with the feature `download`, which is on by default")),
        DataCommand::Make(args) => make::run(args),
        DataCommand::Check(args) => check::run(args),
    }
}

/// A few lines for every task.
fn list(args: DataListArgs) -> Result<ExitCode, Failure> {
    for status in catalogue::list(args.data.dir.as_deref()) {
        if args.json {
            output::json(&serde_json::to_value(&status).map_err(Failure::failed)?)?;
        } else {
            output::line(status.to_string().trim_end())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A line on standard error every so often, for logs; on a terminal there is a bar instead.
struct Log {
    last: Instant,
    silent: bool,
}

impl Log {
    const EVERY: Duration = Duration::from_secs(10);

    fn new() -> Self {
        Self { last: Instant::now(), silent: stderr().is_terminal() }
    }

    fn write(&mut self, text: impl FnOnce() -> String) {
        if !self.silent && self.last.elapsed() >= Self::EVERY {
            self.last = Instant::now();
            output::log_line(text());
        }
    }
}
