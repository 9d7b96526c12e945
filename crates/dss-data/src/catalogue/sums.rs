//! Checksums: is a file the published one?

use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::CatalogueEntry;
use crate::hash::hex;
use crate::io as files;
use crate::{Error, Result};

/// The result of comparing the checksum of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is the published file, or unpacks to the same.
    Official,
    /// It has the name of a published archive but different content.
    Mismatch,
    /// It has the name of a published file but different content, like other data sets in the same format.
    Other,
    /// No checksum is known for this name.
    Unknown,
}

/// SHA-256 of a file of a data set, in hex, and the result of comparing it. `progress` receives the number of bytes
/// read.
pub fn compare_with_published(
    entry: Option<&CatalogueEntry>,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<(String, Verdict)> {
    let read = |e| Error::io("read", path)(e);
    let found = sha256(&mut std::fs::File::open(path).map_err(read)?, progress).map_err(read)?;
    let name = files::file_name(path);
    let archive = entry.and_then(|entry| entry.official.as_ref()?.archive(&name)?.sha256);
    if archive == Some(found.as_str()) {
        return Ok((found, Verdict::Official));
    }
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    if let Some(sum) = entry.and_then(|entry| entry.sums.iter().find(|sum| sum.name == plain)) {
        let unpacked = sha256(&mut files::open(path)?, &mut |_| {}).map_err(read)?;
        let same = unpacked == sum.sha256;
        return Ok((found, if same { Verdict::Official } else { Verdict::Other }));
    }
    Ok((found, if archive.is_some() { Verdict::Mismatch } else { Verdict::Unknown }))
}

/// SHA-256 of everything that is read, in hex. `progress` receives the number of bytes read.
pub(crate) fn sha256(from: &mut impl Read, progress: &mut dyn FnMut(u64)) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut read = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(n) => {
                hash.update(&buffer[..n]);
                read += n as u64;
                progress(read);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{Archive, FileChecksum, Official};
    use super::*;

    // printf abc | sha256sum
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    const ENTRY: CatalogueEntry = CatalogueEntry {
        tasks: &["test"],
        generated: false,
        forms: &[],
        official: Some(Official {
            about: "",
            licence: "",
            archives: &[
                Archive { name: "a.tar.gz", url: "", bytes: 3, sha256: Some(ABC) },
                Archive { name: "none.tar.gz", url: "", bytes: 3, sha256: None },
            ],
            others: &[],
            then: None,
        }),
        sums: &[FileChecksum { name: "loose", sha256: ABC }],
        picture: false,
    };

    #[test]
    fn verdicts() {
        let dir = tempfile::tempdir().unwrap();
        let verdict = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            compare_with_published(Some(&ENTRY), &path, &mut |_| {}).unwrap()
        };
        assert_eq!(verdict("a.tar.gz", b"abc"), (ABC.to_owned(), Verdict::Official));
        assert_eq!(verdict("a.tar.gz", b"abd").1, Verdict::Mismatch);
        assert_eq!(verdict("none.tar.gz", b"abc").1, Verdict::Unknown);
        assert_eq!(verdict("own.csv", b"abc").1, Verdict::Unknown);
        assert_eq!(verdict("loose", b"abc").1, Verdict::Official);
        assert_eq!(verdict("loose", b"ab").1, Verdict::Other);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"abc").unwrap();
        assert_eq!(verdict("loose.gz", &gz.finish().unwrap()).1, Verdict::Official);
        let error = compare_with_published(Some(&ENTRY), &dir.path().join("none"), &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("none"), "{error}");
    }
}
