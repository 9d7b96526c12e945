//! What can go wrong with a download, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::units::bytes;

/// Everything that can go wrong with a download.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// An invalid request.
    #[error("{what}")]
    Request {
        /// Why not.
        what: String,
    },
    /// No connection.
    #[error("cannot reach {url}: {why}")]
    Unreachable {
        /// The requested address.
        url: String,
        /// Why not.
        why: String,
    },
    /// The server refuses.
    #[error("{url}: the server answers {code}{}", reason(*code))]
    Status {
        /// The requested address.
        url: String,
        /// The HTTP status.
        code: u16,
    },
    /// The connection was lost or stalled.
    #[error("{url}: {why} after {}{}; they are kept in {}", bytes(*done), of_total(*total), part.display())]
    Broken {
        /// The requested address.
        url: String,
        /// What happened.
        why: String,
        /// Bytes that are there.
        done: u64,
        /// Size of the whole file, if known.
        total: Option<u64>,
        /// The file that has them.
        part: PathBuf,
    },
    /// The server sends more than it should.
    #[error("{url}: the server sends more than {}", bytes(*limit))]
    TooLong {
        /// The requested address.
        url: String,
        /// The size that the server names, or the most that is accepted where it names none.
        limit: u64,
    },
    /// No answer continues the one before it.
    #[error(
        "{url}: the download restarted {times} times; the server does not continue where it was cut off"
    )]
    Restarts {
        /// The requested address.
        url: String,
        /// How often.
        times: u32,
    },
    /// The disk is too small.
    #[error("not enough space for {}: {}", path.display(), room(*needed, *free))]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Bytes still to come, if known.
        needed: Option<u64>,
        /// Bytes that are free, if known.
        free: Option<u64>,
    },
    /// What came is not what was asked for.
    #[error("wrong checksum: SHA-256 is {found}, expected {expected}; the file is kept as {}", bad.display())]
    Checksum {
        /// The file.
        bad: PathBuf,
        /// The right SHA-256.
        expected: String,
        /// Its SHA-256.
        found: String,
    },
    /// Another file has the place.
    #[error("{} exists with a different SHA-256: {found}, expected {expected}", path.display())]
    Occupied {
        /// The file.
        path: PathBuf,
        /// The right SHA-256.
        expected: String,
        /// Its SHA-256.
        found: String,
    },
    /// Another process fetches the same file.
    #[error("{} is being fetched by another process", part.display())]
    Busy {
        /// The file.
        part: PathBuf,
    },
    /// It was told to stop.
    #[error("interrupted; {}{} are kept in {}", bytes(*done), of_total(*total), kept.display())]
    Interrupted {
        /// The file with what has come.
        kept: PathBuf,
        /// Bytes that are there.
        done: u64,
        /// Size of the whole file, if known.
        total: Option<u64>,
    },
    /// The operating system refused to read or write.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl FetchError {
    /// What to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Request { .. } => "`dss data list` says which data there are and how to get them",
            Self::Unreachable { .. } => {
                "check the network, or give another address with --url; you can also put the file into the data folder yourself"
            }
            Self::Status { code: 404 | 410, .. } => {
                "the file has moved: give its new address with --url, or put the file into the data folder yourself"
            }
            Self::Status { code: 401 | 403, .. } => {
                "the server refuses to send it: give another address with --url, or put the file into the data folder yourself"
            }
            Self::TooLong { .. } | Self::Restarts { .. } => {
                "give another address with --url, or put the file into the data folder yourself"
            }
            Self::Status { .. } => "try again later, or give another address with --url",
            Self::Broken { .. } | Self::Interrupted { .. } => {
                "the same command continues from there"
            }
            Self::NoRoom { .. } => {
                "free some space, or choose another folder with --to; the same command continues from there"
            }
            Self::Checksum { .. } => {
                "the same command fetches it again; if the file is right after all, give its SHA-256 with --sha256"
            }
            Self::Occupied { .. } => {
                "move it away, or give its SHA-256 with --sha256 if it is right"
            }
            Self::Busy { .. } => "wait for the other process",
            Self::Io { .. } => "choose another folder with --to",
        }
    }

    /// Whether the next attempt may succeed; `reached`: the server has been reached before.
    pub(super) fn is_passing(&self, reached: bool) -> bool {
        match self {
            Self::Unreachable { .. } => reached,
            Self::Broken { .. } => true,
            Self::Status { code, .. } => matches!(code, 408 | 429 | 500 | 502..=504),
            _ => false,
        }
    }
}

fn reason(code: u16) -> String {
    let status = ureq::http::StatusCode::from_u16(code).ok();
    status.and_then(|s| s.canonical_reason()).map_or(String::new(), |reason| format!(" ({reason})"))
}

fn of_total(total: Option<u64>) -> String {
    total.map_or(String::new(), |total| format!(" of {}", bytes(total)))
}

fn room(needed: Option<u64>, free: Option<u64>) -> String {
    match (needed, free) {
        (Some(needed), Some(free)) => {
            format!("{} still to come, but only {} free", bytes(needed), bytes(free))
        }
        (Some(needed), None) => format!("the disk is full, with {} still to come", bytes(needed)),
        _ => "the disk is full".into(),
    }
}
