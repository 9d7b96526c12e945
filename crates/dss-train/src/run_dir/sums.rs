//! `last/SHA256SUMS`: checksums of the files beside it, in the form that `sha256sum --check` reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::atomic;
use crate::error::{Error, Result};

const FILE: &str = "SHA256SUMS";

/// Writes the checksums of all files of a directory.
pub(crate) fn write(dir: &Path) -> Result<()> {
    let listing = fs::read_dir(dir).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut names = Vec::new();
    for entry in listing.map_err(Error::io("cannot read", dir))? {
        names.push(entry.file_name().into_string().expect("this program named the file"));
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        text += &format!("{}  {name}\n", sum(&dir.join(&name))?);
    }
    atomic::write_file(&dir.join(FILE), text.as_bytes())
}

/// A directory whose checksums are right.
#[derive(Debug)]
pub(crate) struct CheckedDir {
    dir: PathBuf,
    /// The files that are listed; `None` in a directory of an older version, which has no checksums.
    listed: Option<BTreeSet<String>>,
}

impl CheckedDir {
    /// Makes sure that the listed files are as they were written.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { dir: dir.into(), listed: None });
            }
            text => text.map_err(Error::io("cannot read", &path))?,
        };
        let mut listed = BTreeSet::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let Some((expected, name)) = line.split_once("  ").filter(|(_, n)| is_plain(n)) else {
                return Err(damaged(path, "a line is not a checksum and a file name"));
            };
            let file = dir.join(name);
            // A link or a device of a stranger's directory may lead to anything, or have no end.
            let kind = file.symlink_metadata().map_err(Error::io("cannot read", &file))?;
            if !kind.is_file() {
                return Err(damaged(file, "it is not a regular file"));
            }
            if sum(&file)? != expected {
                return Err(damaged(file, "its checksum is wrong"));
            }
            listed.insert(name.to_owned());
        }
        Ok(Self { dir: dir.into(), listed: Some(listed) })
    }

    /// The path of a file that is to be read back: its checksum must be known.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf> {
        match &self.listed {
            Some(listed) if !listed.contains(name) => {
                let what = format!("the checksum of {name} is missing");
                Err(damaged(self.dir.join(FILE), &what))
            }
            _ => Ok(self.dir.join(name)),
        }
    }

    /// Whether a file is listed.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.listed.as_ref().is_some_and(|listed| listed.contains(name))
    }
}

/// Whether a name is that of a file in the directory itself.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name)
}

fn damaged(path: PathBuf, what: &str) -> Error {
    Error::Damaged { path, what: what.to_owned() }
}

fn sum(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(Error::io("cannot read", path))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("dss-sums-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn files_that_are_read_back_are_listed() {
        let dir = temp("listed");
        fs::write(dir.join("a"), "1").unwrap();
        assert!(CheckedDir::open(&dir).unwrap().file("a").is_ok(), "of an older version");
        write(&dir).unwrap();
        let checked = CheckedDir::open(&dir).unwrap();
        assert!(checked.file("a").is_ok() && checked.lists("a") && !checked.lists("b"));
        fs::write(dir.join("b"), "2").unwrap();
        assert!(checked.file("b").unwrap_err().to_string().contains("checksum of b is missing"));
        fs::write(dir.join(FILE), "").unwrap();
        let error = CheckedDir::open(&dir).unwrap().file("a").unwrap_err().to_string();
        assert!(error.contains("SHA256SUMS is damaged"), "{error}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn only_files_of_the_directory_are_read() {
        let dir = temp("plain");
        let outside = dir.join("outside");
        fs::write(&outside, "1").unwrap();
        fs::create_dir(dir.join("last")).unwrap();
        fs::create_dir(dir.join("last/folder")).unwrap();
        let right = sum(&outside).unwrap();
        for name in ["../outside", outside.to_str().unwrap(), ".", "..", "", "folder", "./a"] {
            fs::write(dir.join("last").join(FILE), format!("{right}  {name}\n")).unwrap();
            assert!(CheckedDir::open(&dir.join("last")).is_err(), "{name:?}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, dir.join("last/link")).unwrap();
            fs::write(dir.join("last").join(FILE), format!("{right}  link\n")).unwrap();
            let error = CheckedDir::open(&dir.join("last")).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
