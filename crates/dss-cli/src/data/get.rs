//! `dss data get`

use std::path::Path;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dss_data::catalogue::entry;
use dss_data::fetch::{Download, Event, FetchError, FetchedFile, RetryPolicy, fetch, plan};
use dss_data::units::bytes;

use super::Log;
use crate::args::DataGetArgs;
use crate::failure::Failure;
use crate::interrupt::INTERRUPTED;
use crate::progress::{loading, style};
use crate::{output, text};

pub fn run(args: DataGetArgs) -> Result<ExitCode, Failure> {
    let Some(to) = args.to.as_deref().or(args.data.dir.as_deref()) else {
        return Err(Failure::usage("no folder for the data was given")
            .hint("name one with --to DIR, with --data DIR or with the variable DSS_DATA"));
    };
    let downloads = plan(&args.task, to, args.url.as_deref(), args.sha256.as_deref())
        .map_err(|error| Failure::usage(error.to_string()).hint(error.hint()))?;
    let stop = stop_flag()?;
    for download in &downloads {
        match one(download, &stop) {
            Ok(fetched) => output::line(&describe(download, &fetched))?,
            Err(error @ FetchError::Interrupted { .. }) => {
                output::log_line(format_args!("{error}\ncontinue: {}", again(&args, to)));
                return Ok(ExitCode::from(INTERRUPTED));
            }
            Err(error) => {
                let hint = error.hint();
                return Err(Failure::failed(error).hint(hint));
            }
        }
    }
    let (task, dir) = (&args.task, text::shell(to));
    let official = entry(task).and_then(|entry| entry.official.as_ref());
    output::line(&match official.and_then(|official| official.then_in(Path::new(&dir))) {
        Some(then) => format!("then {then}"),
        None => format!("check it: dss data check {task} --data {dir}"),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn one(download: &Download, stop: &AtomicBool) -> Result<FetchedFile, FetchError> {
    let name = download.to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bar = loading();
    bar.set_message(format!("{name}: contacting {}", download.url));
    bar.tick();
    let mut log = Log::new();
    let mut of = String::new();
    let fetched = fetch(download, &RetryPolicy::default(), stop, &mut |event| match event {
        Event::Start { from, total } => {
            of = total.map_or(String::new(), |total| format!(" of {}", bytes(total)));
            bar.set_message(name.clone());
            if let Some(total) = total {
                bar.set_style(style(
                    "{msg} {bar:24} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
                ));
                bar.set_length(total);
            } else {
                bar.set_style(style("{spinner} {msg} {bytes}  {bytes_per_sec}"));
            }
            bar.set_position(from);
            bar.reset_eta();
        }
        Event::Bytes(done) => {
            bar.set_position(done);
            log.write(|| format!("{name}: {}{of}", bytes(done)));
        }
        Event::Restart(why) => output::log_line(format_args!("{name}: starting over: {why}")),
        Event::Retry(why) => output::log_line(format_args!("{why}; trying again")),
        Event::Checking(done) => {
            bar.set_message(format!("{name}: checking"));
            bar.set_position(done);
            log.write(|| format!("{name}: checked {}{of}", bytes(done)));
        }
    });
    bar.finish_and_clear();
    fetched
}

fn describe(download: &Download, fetched: &FetchedFile) -> String {
    let (path, size) = (download.to.display(), bytes(fetched.bytes));
    let already = if fetched.already { "already there, " } else { "" };
    let sum = match (&fetched.sha256, &download.sha256) {
        (Some(sum), Some(_)) => format!("SHA-256 {sum} as expected"),
        (Some(sum), None) => format!("SHA-256 {sum}; no published one to compare with"),
        (None, _) => "its SHA-256 is not published".to_owned(),
    };
    format!("{path}: {already}{size}, {sum}")
}

/// The command that continues.
fn again(args: &DataGetArgs, to: &Path) -> String {
    let mut command = format!("dss data get {} --to {}", args.task, text::shell(to));
    if let Some(url) = &args.url {
        command += &format!(" --url {}", text::shell(Path::new(url)));
    }
    if let Some(sum) = &args.sha256 {
        command += &format!(" --sha256 {sum}");
    }
    command
}

/// Raised by Ctrl-C or SIGTERM; a second one ends at once.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::SeqCst) {
            process::exit(i32::from(INTERRUPTED));
        }
    })
    .map_err(Failure::failed)?;
    Ok(flag)
}
