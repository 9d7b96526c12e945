//! Ownership of a run directory: what this process has created in it, and the lock that makes it the only one at work
//! there.
//!
//! Several processes may be started with one new directory. Each counts as its own only what it made itself, and asks
//! and removes only under the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// How often a directory that another process removes is made again.
const ATTEMPTS: usize = 100;

/// Exclusive use of a directory, until dropped; the system releases it however the process ends.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    _file: File,
    made: bool,
}

impl Claim {
    /// Makes the directory `root` if need be and takes its lock; returns also the directories that were made, innermost
    /// first.
    pub(super) fn take(root: &Path) -> Result<(Self, Vec<PathBuf>)> {
        let mut made = Vec::new();
        for _ in 0..ATTEMPTS {
            match make_dirs(root, &mut made).and_then(|()| Self::attempt(root)) {
                Ok(Some(claim)) => return Ok((claim, made)),
                Ok(None) => {}
                Err(error) => {
                    remove_dirs(&made);
                    return Err(error);
                }
            }
        }
        match fs::read_dir(root) {
            Ok(_) => Err(Error::RunBusy { dir: root.into() }),
            Err(error) => Err(Error::io("cannot make the directory", root)(error)),
        }
    }

    /// `None` if another process has removed the directory or the lock's file meanwhile.
    fn attempt(root: &Path) -> Result<Option<Self>> {
        let path = root.join(".lock");
        let open = |new: bool| OpenOptions::new().write(true).create_new(new).open(&path);
        let (opened, made) = match open(true) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(false), false),
            opened => (opened, true),
        };
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("cannot write", &path)(error)),
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::RunBusy { dir: root.into() }),
            // Some file systems have no locks: then two runs in one directory go unnoticed.
            Ok(()) | Err(TryLockError::Error(_)) if is_at(&file, &path) => {
                Ok(Some(Self { path, _file: file, made }))
            }
            _ => Ok(None),
        }
    }

    /// Ends the claim, and removes its file if this process made it.
    pub(super) fn end(self) {
        if self.made {
            // Before the lock is let go: whoever takes it afterwards sees that its file is gone.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the file at `path` is still this one.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity =
            |data: io::Result<fs::Metadata>| data.ok().map(|data| (data.dev(), data.ino()));
        identity(file.metadata())
            .is_some_and(|open| identity(fs::symlink_metadata(path)) == Some(open))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Makes a directory and those above it, and notes in `made` the ones that were not there, innermost first.
fn make_dirs(root: &Path, made: &mut Vec<PathBuf>) -> Result<()> {
    let missing: Vec<&Path> = root.ancestors().take_while(|dir| !dir.is_dir()).collect();
    for dir in missing.into_iter().rev().filter(|dir| !dir.as_os_str().is_empty()) {
        match fs::create_dir(dir) {
            Ok(()) => made.insert(0, dir.to_path_buf()),
            Err(_) if dir.is_dir() => {}
            // Another process has just removed the one above.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io("cannot make the directory", root)(error)),
        }
    }
    Ok(())
}

/// Removes those of the directories that are empty.
pub(super) fn remove_dirs(dirs: &[PathBuf]) {
    for dir in dirs {
        let _ = fs::remove_dir(dir);
    }
}
