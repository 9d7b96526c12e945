//! `last/SHA256SUMS`: checksums of the files beside it, in the form that `sha256sum --check` reads.

use std::fs;
use std::path::Path;

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

/// Whether the files are as they were written. A directory without checksums, from an older version, is not checked.
pub(crate) fn check(dir: &Path) -> Result<()> {
    let path = dir.join(FILE);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(Error::io("cannot read", &path))?,
    };
    let text = String::from_utf8_lossy(&text);
    for line in text.lines() {
        let damaged = |path, what: &str| Error::Damaged { path, what: what.to_owned() };
        let Some((expected, name)) = line.split_once("  ") else {
            return Err(damaged(path, "a line is not a checksum and a name"));
        };
        let file = dir.join(name);
        if sum(&file)? != expected {
            return Err(damaged(file, "its checksum is wrong"));
        }
    }
    Ok(())
}

fn sum(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(Error::io("cannot read", path))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
