//! Files and directories that are either old or new, never half written, whenever the process dies.
//!
//! A file is written beside its place, synced, and renamed into it. A directory cannot replace another one by one
//! rename, so it takes three, and a name that tells a complete directory from an unfinished one:
//!
//! ```text
//! last.tmp    being written
//! last.new    complete: from here on it is the valid one      (rename last.tmp -> last.new)
//! last.old    the one before, kept until the next is complete (rename last -> last.old)
//! last                                                        (rename last.new -> last)
//! ```
//!
//! [`recover`] finishes a swap that was cut short.

use std::ffi::OsString;
use std::fs;
#[cfg(unix)]
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use dss_format::atomic_write;

use crate::error::{Error, Result};

/// Puts `bytes` into `path`, or leaves what was there.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    atomic_write::write(path, bytes).map_err(Error::io("cannot write", path))
}

/// Whether `name` is that of a file beside one of `files`, left by a process that died in [`write_file`].
pub(crate) fn is_temporary(name: &str, files: &[&str]) -> bool {
    files.iter().any(|file| atomic_write::is_temporary(name, file))
}

/// Replaces the directory `path` by what `fill` writes into an empty one, or leaves what was there.
pub(crate) fn write_dir(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let (temporary, new) = (sibling(path, ".tmp"), sibling(path, ".new"));
    let fail = Error::io("cannot write", path);
    let emptied = remove_dir(&temporary).and_then(|()| fs::create_dir(&temporary));
    emptied.map_err(Error::io("cannot write", &temporary))?;
    fill(&temporary).inspect_err(|_| {
        let _ = remove_dir(&temporary);
    })?;
    sync_dir(&temporary).and_then(|()| fs::rename(&temporary, &new)).map_err(fail)?;
    recover(path)
}

/// Finishes what a process that died left unfinished; afterwards `path` is the newest complete directory, if any.
pub(crate) fn recover(path: &Path) -> Result<()> {
    let (new, old) = (sibling(path, ".new"), previous(path));
    let swap = || -> io::Result<()> {
        if new.is_dir() {
            if path.is_dir() {
                remove_dir(&old)?;
                fs::rename(path, &old)?;
            }
            fs::rename(&new, path)?;
        }
        Ok(())
    };
    swap().map_err(Error::io("cannot write", path))?;
    sync_parent(path)
}

/// The directory that was at `path` before the last [`write_dir`].
pub(crate) fn previous(path: &Path) -> PathBuf {
    sibling(path, ".old")
}

/// Removes a directory with its files; none is fine too.
fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Makes renames inside a directory last beyond a power cut, where the system can.
fn sync_dir(dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(dir)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = dir;
    Ok(())
}

fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => {
            sync_dir(dir).map_err(Error::io("cannot write", dir))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("dss-atomic-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn put(dir: &Path, text: &str) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("state"), text).unwrap();
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Every state in which a swap from "1" to "2" can be cut short.
    #[test]
    fn a_swap_cut_short_anywhere_leaves_the_old_or_the_new() {
        let cuts: [(&[(&str, &str)], &str); 5] = [
            (&[("last", "1"), ("last.tmp", "half")], "1"),
            (&[("last", "1"), ("last.new", "2")], "2"),
            (&[("last.old", "1"), ("last.new", "2")], "2"),
            (&[("last.old", "1"), ("last", "2")], "2"),
            (&[("last", "2"), ("last.old", "1"), ("last.new", "3")], "3"),
        ];
        for (i, (found, expected)) in cuts.into_iter().enumerate() {
            let dir = temp(&format!("cut{i}"));
            for (name, text) in found {
                put(&dir.join(name), text);
            }
            recover(&dir.join("last")).unwrap();
            assert_eq!(fs::read_to_string(dir.join("last/state")).unwrap(), expected, "{found:?}");
            write_dir(&dir.join("last"), |new| {
                put(new, "next");
                Ok(())
            })
            .unwrap();
            assert_eq!(fs::read_to_string(dir.join("last/state")).unwrap(), "next");
            assert_eq!(fs::read_to_string(dir.join("last.old/state")).unwrap(), expected);
            assert_eq!(names(&dir), ["last", "last.old"]);
            fs::remove_dir_all(dir).unwrap();
        }
    }

    #[test]
    fn a_failing_writer_leaves_what_was_there() {
        let dir = temp("fail");
        let last = dir.join("last");
        put(&last, "good");
        let failed = write_dir(&last, |new| {
            put(new, "half");
            Err(Error::Damaged { path: new.into(), what: "disk full".into() })
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(last.join("state")).unwrap(), "good");
        assert_eq!(names(&dir), ["last"]);

        let file = dir.join("file");
        write_file(&file, b"one").unwrap();
        assert!(write_file(&last, b"two").is_err(), "a directory is not replaced by a file");
        assert_eq!(fs::read_to_string(last.join("state")).unwrap(), "good");
        assert_eq!(names(&dir), ["file", "last"]);
        assert!(is_temporary(&format!("file.tmp{}", std::process::id()), &["file"]));
        for other in ["file", "file.tmp", "file.tmp1x", "other.tmp1", "my file.tmp1"] {
            assert!(!is_temporary(other, &["file"]), "{other}");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
