//! Bytes as they arrive, from a thread of their own: a silent input must not keep Ctrl-C waiting.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::failure::Failure;

/// What comes next.
pub enum Event {
    Bytes(Vec<u8>),
    End,
    Interrupted,
}

pub struct Arrivals {
    receiver: Receiver<std::io::Result<Vec<u8>>>,
    interrupted: Arc<AtomicBool>,
    name: String,
    piped: bool,
}

impl Arrivals {
    /// Begins to read a file, or standard input for `-`.
    pub fn open(path: &Path, interrupted: Arc<AtomicBool>) -> Result<Self, Failure> {
        let standard = path == Path::new("-");
        let name = if standard { "standard input".into() } else { path.display().to_string() };
        let mut from: Box<dyn Read + Send> = if standard {
            Box::new(std::io::stdin())
        } else {
            Box::new(File::open(path).map_err(|e| Failure::failed(eyre::eyre!("{name}: {e}")))?)
        };
        // A few pieces ahead, no more: memory stays bounded however fast the input is.
        let (sender, receiver) = sync_channel(4);
        std::thread::spawn(move || {
            loop {
                let mut bytes = vec![0; 1 << 16];
                let read = match from.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(count) => {
                        bytes.truncate(count);
                        Ok(bytes)
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(e) => Err(e),
                };
                let failed = read.is_err();
                if sender.send(read).is_err() || failed {
                    return;
                }
            }
        });
        Ok(Self { receiver, interrupted, name, piped: standard })
    }

    /// Where the bytes come from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether they come from standard input.
    pub fn is_piped(&self) -> bool {
        self.piped
    }

    /// Waits for more.
    pub fn next(&mut self) -> Result<Event, Failure> {
        loop {
            if self.interrupted.load(Ordering::SeqCst) {
                return Ok(Event::Interrupted);
            }
            match self.receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(Ok(bytes)) => return Ok(Event::Bytes(bytes)),
                Ok(Err(e)) => return Err(Failure::failed(eyre::eyre!("{}: {e}", self.name))),
                Err(RecvTimeoutError::Disconnected) => return Ok(Event::End),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
