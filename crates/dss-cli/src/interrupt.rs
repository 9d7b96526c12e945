//! Ctrl-C and SIGTERM: the first signal asks for an orderly end, the second one ends the process at once. While data
//! are being read there is nothing to save, and the first one ends it at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, process};

use crate::failure::Failure;
use crate::output;

/// Exit code after an interruption: 128 + SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Signals this close together are one: `timeout` sends SIGTERM to the process and again to its group.
const SAME: Duration = Duration::from_millis(500);

static LOADING: AtomicBool = AtomicBool::new(false);
/// Whether this process prints messages, if there are several.
type Speaks = Box<dyn Fn() -> bool + Send>;
static SPEAKS: Mutex<Option<Speaks>> = Mutex::new(None);

/// For one of several processes: `speaks` decides whether it prints a message at the first signal.
pub fn together(speaks: impl Fn() -> bool + Send + 'static) {
    *SPEAKS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(speaks));
}

/// The message at the first signal.
fn print_stopping() {
    let message = match &*SPEAKS.lock().unwrap_or_else(PoisonError::into_inner) {
        None => "stopping: finishing this step and saving; press Ctrl-C again to quit now",
        Some(speaks) if speaks() => {
            "stopping: finishing this step and saving; if a process was lost, continue with --resume"
        }
        Some(_) => return,
    };
    output::log_line(message);
}

/// Notes whether data are being read. Ends the process if `stop` has been raised.
pub fn loading(now: bool, stop: &AtomicBool) {
    LOADING.store(now, Ordering::SeqCst);
    if now && stop.load(Ordering::SeqCst) {
        end();
    }
}

/// Unfinished work (a cache, a run directory) is started over by the next command.
fn end() -> ! {
    output::log_line("stopped while reading the data");
    exit()
}

fn exit() -> ! {
    output::clear_bar();
    process::exit(i32::from(INTERRUPTED))
}

/// Removes a folder of temporary files at the first signal, and ends at once.
pub fn remove_first(folder: PathBuf) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(move || {
        let _ = fs::remove_dir_all(&folder);
        exit();
    })
}

/// A flag that the first signal sets.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        if let Some(first) = first {
            if first.elapsed() >= SAME {
                exit();
            }
            return;
        }
        if LOADING.load(Ordering::SeqCst) {
            end();
        }
        first = Some(Instant::now());
        set.store(true, Ordering::SeqCst);
        print_stopping();
    })
    .map_err(Failure::failed)?;
    Ok(flag)
}
