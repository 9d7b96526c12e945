//! Downloads of published files over HTTP: with progress, resumable after any interruption, checked, and given their
//! name only when complete.
//!
//! During the download, `NAME` is called `NAME.part`; `NAME.part.json` notes which file of the server it is a part of.
//! A file with a wrong checksum is kept as `NAME.bad` and never resumed.

mod error;
mod http;
mod part;
mod plan;

use std::fs;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use self::error::FetchError;
use self::part::PartFile;
pub use self::plan::plan;
use crate::catalogue::sha256;

/// What to fetch, and where to.
#[derive(Clone, Debug)]
pub struct Download {
    /// Where it is: `http://` or `https://`.
    pub url: String,
    /// The path of the complete file.
    pub to: PathBuf,
    /// The SHA-256 that it must have, in lower-case hex.
    pub sha256: Option<String>,
}

/// Time limits and retries.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// Time limit for connecting.
    pub connect: Duration,
    /// Time limit for the next bytes.
    pub stall: Duration,
    /// Attempts in a row without a new byte before giving up.
    pub attempts: u32,
    /// Wait before the second attempt; each further wait is twice as long.
    pub pause: Duration,
    /// The longest file that is fetched from a server that does not say how long it is.
    pub unknown_length: u64,
    /// Free bytes at a folder, if that can be known.
    pub room: fn(&Path) -> Option<u64>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(30),
            attempts: 4,
            pause: Duration::from_secs(1),
            unknown_length: 32 << 30,
            room: |folder| fs4::available_space(folder).ok(),
        }
    }
}

/// Progress of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server answers.
    Start {
        /// Bytes downloaded before.
        from: u64,
        /// Size of the whole file, if the server says so.
        total: Option<u64>,
    },
    /// Bytes downloaded so far.
    Bytes(u64),
    /// The existing part is of no use: the download starts from the beginning.
    Restart(&'static str),
    /// The connection was lost and is tried again.
    Retry(String),
    /// The file is complete; this many bytes are checked.
    Checking(u64),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedFile {
    /// The SHA-256 of the file; `None` for an existing file without a checksum to compare with.
    pub sha256: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// Whether it was there already.
    pub already: bool,
}

/// Downloads a file. Raising `stop` ends it within a moment; what has arrived is kept for the next time.
pub fn fetch(
    download: &Download,
    patience: &RetryPolicy,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<FetchedFile, FetchError> {
    if download.to.exists() {
        return already(download, stop, tell);
    }
    let mut part = PartFile::open(&download.to)?;
    let start = part.len;
    http::while_watching(download, patience, stop, |agent| {
        let mut fruitless = 0;
        loop {
            let before = part.len;
            if part.restarts > patience.attempts {
                return Err(FetchError::Restarts {
                    url: download.url.clone(),
                    times: part.restarts,
                });
            }
            match http::attempt(agent, download, patience, &mut part, stop, tell) {
                Ok(true) => return Ok(()),
                // The part that was there was of no use.
                Ok(false) => continue,
                Err(_) if stop.load(Ordering::SeqCst) => return Err(part.interrupted()),
                Err(error) => {
                    fruitless = if part.len > before { 1 } else { fruitless + 1 };
                    // A server that has not been reached at all is not waited for.
                    let passing = error.is_passing(part.len > start);
                    if !passing || fruitless >= patience.attempts {
                        return Err(error);
                    }
                    tell(Event::Retry(error.to_string()));
                    wait(patience.pause * (1 << (fruitless - 1).min(6)), stop);
                    if stop.load(Ordering::SeqCst) {
                        return Err(part.interrupted());
                    }
                }
            }
        }
    })?;
    part.flush()?;
    let found = check(&mut part, stop, tell)?;
    match &download.sha256 {
        Some(expected) if !expected.eq_ignore_ascii_case(&found) => {
            let bad = part.set_aside()?;
            Err(FetchError::Checksum { bad, expected: expected.clone(), found })
        }
        _ => {
            let bytes = part.len;
            part.finish()?;
            Ok(FetchedFile { sha256: Some(found), bytes, already: false })
        }
    }
}

/// The file is there: is it the right one?
fn already(
    download: &Download,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<FetchedFile, FetchError> {
    let path = &download.to;
    let read = |source| FetchError::Io { action: "read", path: path.clone(), source };
    let mut file = fs::File::open(path).map_err(read)?;
    let bytes = file.metadata().map_err(read)?.len();
    let Some(expected) = &download.sha256 else {
        return Ok(FetchedFile { sha256: None, bytes, already: true });
    };
    let found =
        sha256(&mut Stoppable { inner: &mut file, stop }, &mut |n| tell(Event::Checking(n)));
    if stop.load(Ordering::SeqCst) {
        return Err(FetchError::Interrupted {
            kept: path.clone(),
            done: bytes,
            total: Some(bytes),
        });
    }
    let found = found.map_err(read)?;
    if !expected.eq_ignore_ascii_case(&found) {
        let expected = expected.clone();
        return Err(FetchError::Occupied { path: path.clone(), expected, found });
    }
    Ok(FetchedFile { sha256: Some(found), bytes, already: true })
}

/// SHA-256 of what is on the disk.
fn check(
    part: &mut PartFile,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<String, FetchError> {
    let mut file = &part.file;
    let found = file.rewind().and_then(|()| {
        sha256(&mut Stoppable { inner: &mut file, stop }, &mut |n| tell(Event::Checking(n)))
    });
    if stop.load(Ordering::SeqCst) {
        return Err(part.interrupted());
    }
    found.map_err(|source| FetchError::Io { action: "read", path: part.path.clone(), source })
}

/// Ends with an error once `stop` is raised.
struct Stoppable<'a, R> {
    inner: &'a mut R,
    stop: &'a AtomicBool,
}

impl<R: io::Read> io::Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::SeqCst) {
            return Err(io::Error::other("stopped"));
        }
        self.inner.read(buffer)
    }
}

/// Waits, unless `stop` is raised.
fn wait(time: Duration, stop: &AtomicBool) {
    const SLICE: Duration = Duration::from_millis(50);
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::SeqCst) {
        std::thread::sleep(SLICE.min(end.saturating_duration_since(Instant::now())));
    }
}
