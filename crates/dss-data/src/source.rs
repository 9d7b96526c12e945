//! A folder or a tar archive (plain or gzipped), read in the same way.

use std::fs;
use std::io::{self, BufRead, Read};
use std::path::{Component, Path, PathBuf};

use tar::EntryType;

use crate::{Error, Result, io as files};

/// The largest file that is read into memory.
const FILE_LIMIT: u64 = 256 << 20;
/// Bytes of a block of a tar archive, which ends with two blocks of zeros.
const BLOCK: u64 = 512;

/// Gives each file's name (with `/`, from the top of the folder or archive) and its bytes.
pub(crate) type Visit<'a> = dyn FnMut(&str, &[u8]) -> Result<()> + 'a;

/// Visits every wanted file of a folder, in the order of names, or of an archive, in its own order.
pub(crate) fn for_each_file(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if path.is_dir() {
        walk(path, "", &mut Vec::new(), wanted, visit)
    } else {
        unpack(path, wanted, visit)
    }
}

fn walk(
    folder: &Path,
    prefix: &str,
    above: &mut Vec<PathBuf>,
    wanted: &dyn Fn(&str) -> bool,
    visit: &mut Visit<'_>,
) -> Result<()> {
    enter(folder, above)?;
    let read = |e| Error::io("read the folder", folder)(e);
    let mut entries =
        fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(read)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(Error::content(&path, "the name is not UTF-8; rename the file"));
        };
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let kind = fs::metadata(&path).map_err(Error::io("read", &path))?;
        if kind.is_dir() {
            walk(&path, &name, above, wanted, visit)?;
        } else if kind.is_file() && wanted(&name) {
            check_size(&path, kind.len())?;
            visit(&name, &fs::read(&path).map_err(Error::io("read", &path))?)?;
        }
    }
    above.pop();
    Ok(())
}

/// Adds a folder to those that a walk is inside of; refuses one that it is inside of already, by a link.
pub(crate) fn enter(folder: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
    let real = folder.canonicalize().map_err(Error::io("read the folder", folder))?;
    if above.contains(&real) {
        let what = format!("a link that leads back to {}; remove it", real.display());
        return Err(Error::content(folder, what));
    }
    above.push(real);
    Ok(())
}

fn unpack(path: &Path, wanted: &dyn Fn(&str) -> bool, visit: &mut Visit<'_>) -> Result<()> {
    let damaged = |e: io::Error| match e.kind() {
        io::ErrorKind::PermissionDenied => Error::io("read", path)(e),
        _ => Error::content(path, format!("the archive is damaged or cut short ({e})")),
    };
    let mut ending = TrailingZeros { inner: files::open(path)?, zeros: 0 };
    let mut archive = tar::Archive::new(&mut ending);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let inside = |what: &str| Error::content(path, format!("entry {name:?}: {what}"));
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            _ => return Err(inside("links and special files are not read from archives")),
        }
        let parts = Path::new(&name).components();
        let mut clean = Vec::new();
        for part in parts {
            match part {
                Component::Normal(part) => clean.push(part.to_string_lossy()),
                Component::CurDir => {}
                _ => return Err(inside("the name leads out of the archive")),
            }
        }
        let clean = clean.join("/");
        if wanted(&clean) {
            check_size(&path.join(&clean), entry.size())?;
            let mut bytes = Vec::with_capacity(entry.size().min(1 << 20) as usize);
            entry.read_to_end(&mut bytes).map_err(damaged)?;
            if bytes.len() as u64 != entry.size() {
                return Err(inside("cut short"));
            }
            visit(&clean, &bytes)?;
        }
    }
    // What follows the end mark must unpack too: a gzip ends with its checksum.
    io::copy(&mut ending, &mut io::sink()).map_err(damaged)?;
    match ending.zeros >= 2 * BLOCK {
        true => Ok(()),
        false => Err(Error::content(path, "the archive is cut short: its end mark is missing")),
    }
}

fn check_size(path: &Path, size: u64) -> Result<()> {
    match size <= FILE_LIMIT {
        true => Ok(()),
        false => {
            let what = format!("{size} bytes; files above {} MiB are not read", FILE_LIMIT >> 20);
            Err(Error::content(path, what))
        }
    }
}

/// Counts the zeros at the end of what was read.
struct TrailingZeros {
    inner: Box<dyn BufRead>,
    zeros: u64,
}

impl Read for TrailingZeros {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let zeros = buffer[..n].iter().rev().take_while(|&&b| b == 0).count();
        self.zeros = zeros as u64 + if zeros == n { self.zeros } else { 0 };
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// A tar of (name, bytes); names go in unchecked.
    fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append(&header, *bytes).unwrap();
        }
        tar.into_inner().unwrap()
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    }

    fn read(path: &Path) -> Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        for_each_file(path, &|name| name.ends_with(".txt"), &mut |name, bytes| {
            found.push((name.to_owned(), bytes.to_owned()));
            Ok(())
        })?;
        Ok(found)
    }

    fn read_bytes(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn folders_and_archives_read_alike() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("top/b")).unwrap();
        for (name, text) in [("top/b/x.txt", "1"), ("top/a.txt", "22"), ("top/c.wav", "3")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let entries: [(&str, &[u8]); 3] =
            [("./top/a.txt", b"22"), ("top/b/x.txt", b"1"), ("top/c.wav", b"3")];
        let expected = vec![
            ("top/a.txt".to_owned(), b"22".to_vec()),
            ("top/b/x.txt".to_owned(), b"1".to_vec()),
        ];
        assert_eq!(read(dir.path()).unwrap(), expected);
        assert_eq!(read_bytes(&tar(&entries)).unwrap(), expected);
        assert_eq!(read_bytes(&gz(&tar(&entries))).unwrap(), expected);
    }

    /// Two of them: without a check there are 2^n names of n folders.
    #[test]
    #[cfg(unix)]
    fn links_in_a_circle_end() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("a.txt"), "1").unwrap();
        let link = |to: &str, name| {
            std::os::unix::fs::symlink(dir.path().join(to), dir.path().join(name)).unwrap();
        };
        // The same folder twice is not a circle.
        link("b", "c");
        assert_eq!(read(dir.path()).unwrap().len(), 1);
        link("", "b/x");
        link("", "b/y");
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("leads back to"), "{error}");
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in ["../a.txt", "/etc/a.txt", "x/../../a.txt"] {
            let error = read_bytes(&tar(&[(name, b"1")])).unwrap_err().to_string();
            assert!(error.contains("leads out") && error.contains(name), "{error}");
        }
    }

    #[test]
    fn links_are_refused() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "a.txt", "/etc/passwd").unwrap();
        let error = read_bytes(&tar.into_inner().unwrap()).unwrap_err().to_string();
        assert!(error.contains("links"), "{error}");
    }

    #[test]
    fn every_cut_is_noticed() {
        let whole = tar(&[("a.txt", &[7; 700]), ("b.txt", &[8; 512])]);
        for cut in (0..whole.len() - 2 * BLOCK as usize).step_by(128) {
            assert!(read_bytes(&whole[..cut]).is_err(), "cut at {cut}");
        }
        let packed = gz(&whole);
        for cut in 0..packed.len() {
            assert!(read_bytes(&packed[..cut]).is_err(), "cut at {cut} of the gzip");
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_path("a.txt").unwrap();
        header.set_size(1 << 40);
        header.set_cksum();
        tar.append(&header, io::empty()).unwrap();
        let error = read_bytes(&tar.into_inner().unwrap()).unwrap_err().to_string();
        assert!(error.contains("a.txt") && error.contains("256 MiB"), "{error}");
        let zeros = gz(&vec![0; 300 << 20]);
        let error = read_bytes(&zeros).unwrap_err().to_string();
        assert!(error.contains("unpacks to more than"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = read_bytes(&bytes);
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0usize..3000, bit in 0u8..8, zipped in any::<bool>()) {
            let mut bytes = tar(&[("a.txt", &[7; 700]), ("b/c.txt", b"text")]);
            if zipped {
                bytes = gz(&bytes);
            }
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let _ = read_bytes(&bytes);
        }
    }
}
