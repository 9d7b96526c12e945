//! The incomplete file, and the note that says which file of which server it is a part of.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::FetchError;

/// Which file it is a part of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Origin {
    /// Where it is.
    pub(super) url: String,
    /// What changes when the file does: its strong ETag, or its date.
    pub(super) version: Option<String>,
    /// Its size.
    pub(super) total: Option<u64>,
}

impl Origin {
    /// Whether they cannot be the same file. Another place of the same file may have other marks: there the size and
    /// the checksum must do.
    pub(super) fn differs(&self, other: &Self) -> bool {
        fn known<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_some() && b.is_some() && a != b
        }
        known(&self.total, &other.total)
            || (self.url == other.url && known(&self.version, &other.version))
    }
}

/// `NAME.part`, locked against other processes.
pub(super) struct PartFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Bytes that are there.
    pub(super) len: u64,
    pub(super) origin: Origin,
    /// How often the part was discarded.
    pub(super) restarts: u32,
    to: PathBuf,
}

impl PartFile {
    /// Opens or begins the part of a file that will be called `to`.
    pub(super) fn open(to: &Path) -> Result<Self, FetchError> {
        let folder = to.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed("create the folder", folder))?;
        let path = with_ending(to, ".part");
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(failed("write", &path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(FetchError::Busy { part: path }),
            // Some file systems have no locks: then there is none.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let len = file.seek(SeekFrom::End(0)).map_err(failed("read", &path))?;
        let note = fs::read(with_ending(&path, ".json")).ok();
        let origin = note.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        Ok(Self { path, file, len, origin, restarts: 0, to: to.to_owned() })
    }

    /// Bytes that are still to come, if that is known.
    pub(super) fn to_come(&self) -> Option<u64> {
        self.origin.total.map(|total| total.saturating_sub(self.len))
    }

    /// Writes down which file it is a part of.
    pub(super) fn belongs_to(&mut self, origin: Origin) -> Result<(), FetchError> {
        if self.origin != origin {
            let path = with_ending(&self.path, ".json");
            let json = serde_json::to_vec(&origin).expect("plain data");
            fs::write(&path, json).map_err(|e| self.full(e, &path))?;
            self.origin = origin;
        }
        Ok(())
    }

    /// Discards the part.
    pub(super) fn empty(&mut self) -> Result<(), FetchError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(failed("write", &self.path))?;
        self.len = 0;
        self.restarts += 1;
        self.origin = Origin::default();
        Ok(())
    }

    /// Adds bytes at the end.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        let written = self.file.write_all(bytes);
        if let Err(error) = written {
            // Some of the bytes may have found room.
            self.len = self.file.seek(SeekFrom::End(0)).unwrap_or(self.len);
            return Err(self.full(error, &self.path));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Everything is on the disk.
    pub(super) fn flush(&mut self) -> Result<(), FetchError> {
        self.file.sync_all().map_err(|e| self.full(e, &self.path))
    }

    /// Gives the complete file its name.
    pub(super) fn finish(self) -> Result<(), FetchError> {
        fs::rename(&self.path, &self.to).map_err(failed("rename", &self.path))?;
        self.forget();
        Ok(())
    }

    /// Names it `NAME.bad`.
    pub(super) fn set_aside(self) -> Result<PathBuf, FetchError> {
        let bad = with_ending(&self.to, ".bad");
        fs::rename(&self.path, &bad).map_err(failed("rename", &self.path))?;
        self.forget();
        Ok(bad)
    }

    /// The error after an interruption.
    pub(super) fn interrupted(&self) -> FetchError {
        FetchError::Interrupted {
            kept: self.path.clone(),
            done: self.len,
            total: self.origin.total,
        }
    }

    fn forget(&self) {
        // A note without its part is harmless.
        let _ = fs::remove_file(with_ending(&self.path, ".json"));
    }

    fn full(&self, error: io::Error, path: &Path) -> FetchError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                FetchError::NoRoom { path: self.to.clone(), needed: self.to_come(), free: None }
            }
            _ => failed("write", path)(error),
        }
    }
}

/// The path with something at its end.
pub(super) fn with_ending(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FetchError {
    let path = path.to_owned();
    move |source| FetchError::Io { action, path, source }
}
