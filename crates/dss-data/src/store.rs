//! Decoded examples in one file of the cache folder, read one at a time: a run starts at once and little is resident.
//!
//! Layout: the bytes of all examples; where each one ends (u64); their CRC-32 (u32); labels (u32); facts as JSON;
//! SHA-256 of labels and bytes; the key; number of examples and length of the facts (u64); SHA-256 of everything after
//! the examples; magic. Numbers are little-endian. A file is complete or absent: it gets its name when all is written.
//!
//! The file is not mapped into memory: one that is cut or overwritten during a run is then an error, not a crash.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use dss_format::atomic_write::AtomicFile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::hash::hex;
use crate::source::enter;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"DSSSTOR2";
/// Content hash, key, two counts, seal, magic.
const FOOTER: usize = 32 + 32 + 16 + 32 + 8;
/// Bytes of the tables per example: end, checksum, label.
const PER_EXAMPLE: usize = 8 + 4 + 4;

/// Everything that the stored examples depend on.
pub(crate) struct StoreKey {
    task: String,
    hash: Sha256,
}

impl StoreKey {
    /// `version` increases when the decoding changes.
    pub(crate) fn new(task: &str, version: u32) -> Self {
        let hash = Sha256::new().chain_update(task).chain_update(version.to_le_bytes());
        Self { task: task.to_owned(), hash }
    }

    pub(crate) fn settings(mut self, settings: &impl Serialize) -> Self {
        self.add(&serde_json::to_vec(settings).expect("settings are plain data"));
        self
    }

    /// Name, size and time of a file, or of every file of a folder.
    pub(crate) fn source(mut self, path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(Error::io("find", path))?;
        self.add_files(&path, &mut Vec::new())?;
        Ok(self)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    fn add_files(&mut self, path: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        let about = fs::metadata(path).map_err(Error::io("read", path))?;
        if about.is_dir() {
            enter(path, above)?;
            let entries = fs::read_dir(path).and_then(|entries| {
                entries.map(|e| e.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>()
            });
            let mut entries = entries.map_err(Error::io("read the folder", path))?;
            entries.sort();
            entries.iter().try_for_each(|entry| self.add_files(entry, above))?;
            above.pop();
            Ok(())
        } else {
            let time = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            self.add(path.as_os_str().as_encoded_bytes());
            self.add(&about.len().to_le_bytes());
            self.add(&time.map_or(0, |t| t.as_nanos()).to_le_bytes());
            Ok(())
        }
    }
}

/// The folder of decoded data: `DSS_CACHE`, else `dss` in the user's cache folder.
pub fn cache_dir() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || Some(set("HOME")?.join(".cache"));
    let user = || set("XDG_CACHE_HOME").or_else(|| set("LOCALAPPDATA")).or_else(home);
    set("DSS_CACHE").unwrap_or_else(|| user().unwrap_or_else(std::env::temp_dir).join("dss"))
}

/// Writes examples one after the other.
pub(crate) struct Writer {
    file: AtomicFile,
    path: PathBuf,
    end: u64,
    ends: Vec<u8>,
    sums: Vec<u8>,
    labels: Vec<u8>,
    info: Vec<u8>,
    content: Sha256,
}

impl Writer {
    pub(crate) fn push(&mut self, label: u32, bytes: &[u8]) -> Result<()> {
        add_example(&mut self.content, label, bytes);
        self.end += bytes.len() as u64;
        self.ends.extend_from_slice(&self.end.to_le_bytes());
        self.sums.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
        self.labels.extend_from_slice(&label.to_le_bytes());
        self.file.write_all(bytes).map_err(full(&self.path))
    }

    /// Facts about the whole: split sizes, vocabulary, notes.
    pub(crate) fn info(&mut self, info: &impl Serialize) {
        self.info = serde_json::to_vec(info).expect("facts are plain data");
    }

    fn finish(mut self, key: &[u8; 32]) -> Result<()> {
        let mut rest = std::mem::take(&mut self.ends);
        let count = rest.len() as u64 / 8;
        rest.extend_from_slice(&self.sums);
        rest.extend_from_slice(&self.labels);
        rest.extend_from_slice(&self.info);
        rest.extend_from_slice(&self.content.finalize_reset());
        rest.extend_from_slice(key);
        rest.extend_from_slice(&count.to_le_bytes());
        rest.extend_from_slice(&(self.info.len() as u64).to_le_bytes());
        let seal = Sha256::digest(&rest);
        rest.extend_from_slice(&seal);
        rest.extend_from_slice(MAGIC);
        let path = std::mem::take(&mut self.path);
        self.file.write_all(&rest).and_then(|()| self.file.commit()).map_err(full(&path))
    }
}

/// Adds an example to the hash of the content.
fn add_example(content: &mut Sha256, label: u32, bytes: &[u8]) {
    content.update(label.to_le_bytes());
    content.update((bytes.len() as u64).to_le_bytes());
    content.update(bytes);
}

fn full(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    Error::io("write the cache file (DSS_CACHE names another folder)", path)
}

/// Examples by number.
#[derive(Debug)]
pub(crate) struct Store {
    file: File,
    path: PathBuf,
    ends: Vec<u64>,
    sums: Vec<u32>,
    labels: Vec<u32>,
    info: Vec<u8>,
    content: [u8; 32],
}

/// A process that was killed while it wrote a store has left it behind; one that is alive writes all the time, and holds
/// a lock, for when the clock jumps.
fn remove_abandoned(folder: &Path) {
    const AGE: Duration = Duration::from_secs(3600);
    let old = |file: &fs::DirEntry| {
        let path = file.path();
        let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let changed = file.metadata().and_then(|m| m.modified()).ok();
        kind.starts_with("tmp") && changed.and_then(|t| t.elapsed().ok()).is_some_and(|t| t > AGE)
    };
    for file in fs::read_dir(folder).into_iter().flatten().flatten().filter(old) {
        let lock = File::open(file.path()).map(|file| file.try_lock());
        if !matches!(lock, Ok(Err(TryLockError::WouldBlock))) {
            // A file that cannot be removed is harmless.
            let _ = fs::remove_file(file.path());
        }
    }
}

impl Store {
    /// The store of this key in the cache folder; if there is none, `build` makes it.
    pub(crate) fn open_or_build(
        key: StoreKey,
        build: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<Arc<Self>> {
        Self::open_or_build_in(&cache_dir(), key, build)
    }

    fn open_or_build_in(
        folder: &Path,
        key: StoreKey,
        build: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<Arc<Self>> {
        let hash: [u8; 32] = key.hash.finalize().into();
        let path = folder.join(format!("{}-{}.store", key.task, hex(&hash[..8])));
        if let Some(store) = Self::open(&path, &hash) {
            return Ok(Arc::new(store));
        }
        fs::create_dir_all(folder).map_err(full(folder))?;
        remove_abandoned(folder);
        write(&path, &hash, build)?;
        let store = Self::open(&path, &hash);
        store.map(Arc::new).ok_or_else(|| Error::content(&path, "changed while it was opened"))
    }

    /// `None` when there is no such file, or it is damaged or of another key.
    fn open(path: &Path, key: &[u8; 32]) -> Option<Self> {
        let file = File::open(path).ok()?;
        let body = file.metadata().ok()?.len().checked_sub(FOOTER as u64)?;
        let footer = read_at(&file, body, FOOTER).ok()?;
        let mut rest = &footer[..];
        let content = take(&mut rest)?;
        let key_of_file: [u8; 32] = take(&mut rest)?;
        let count = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
        let info = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
        let sealed = &footer[..FOOTER - rest.len()];
        let seal: [u8; 32] = take(&mut rest)?;
        if rest != MAGIC || key_of_file != *key {
            return None;
        }
        let tables = count.checked_mul(PER_EXAMPLE)?.checked_add(info)?;
        let start = body.checked_sub(tables as u64)?;
        let tables = read_at(&file, start, tables).ok()?;
        let hash = Sha256::new().chain_update(&tables).chain_update(sealed).finalize();
        if hash[..] != seal {
            return None;
        }
        let (ends, rest) = tables.split_at(8 * count);
        let (sums, rest) = rest.split_at(4 * count);
        let (labels, info) = rest.split_at(4 * count);
        let (ends, _) = ends.as_chunks();
        let ends: Vec<u64> = ends.iter().map(|n| u64::from_le_bytes(*n)).collect();
        if !ends.is_sorted() || ends.last().copied().unwrap_or(0) != start {
            return None;
        }
        let numbers = |bytes: &[u8]| {
            let (numbers, _) = bytes.as_chunks();
            numbers.iter().map(|n| u32::from_le_bytes(*n)).collect()
        };
        Some(Self {
            path: path.to_owned(),
            ends,
            sums: numbers(sums),
            labels: numbers(labels),
            info: info.to_vec(),
            content,
            file,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of example `i`.
    pub(crate) fn bytes(&self, i: usize) -> Result<Vec<u8>> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        let bytes = match read_at(&self.file, start, (self.ends[i] - start) as usize) {
            Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
                return Err(Error::io("read", &self.path)(error));
            }
            bytes => bytes.ok().filter(|bytes| crc32fast::hash(bytes) == self.sums[i]),
        };
        bytes.ok_or_else(|| {
            // The next start builds it from the source.
            let _ = fs::remove_file(&self.path);
            let what = format!(
                "example {i} is damaged; this cache file was removed, and the next start makes it again"
            );
            Error::content(&self.path, what)
        })
    }

    pub(crate) fn label(&self, i: usize) -> u32 {
        self.labels[i]
    }

    /// What [`Writer::info`] was given.
    pub(crate) fn info<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.info)
            .map_err(|e| Error::content(&self.path, format!("{e}; delete this cache file")))
    }

    /// SHA-256 of all labels and bytes.
    pub(crate) fn content_hash(&self) -> &[u8; 32] {
        &self.content
    }
}

fn write(path: &Path, key: &[u8; 32], build: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
    let file = AtomicFile::create(path).map_err(full(path))?;
    // Where there are no locks, its age alone says whether it is abandoned.
    let _ = file.lock();
    let mut writer = Writer {
        file,
        path: path.to_owned(),
        end: 0,
        ends: Vec::new(),
        sums: Vec::new(),
        labels: Vec::new(),
        info: b"null".to_vec(),
        content: Sha256::new(),
    };
    build(&mut writer)?;
    writer.finish(key)
}

/// `len` bytes of the file from `start` on.
fn read_at(file: &File, start: u64, len: usize) -> std::io::Result<Vec<u8>> {
    // A damaged length asks for more than there is.
    if start.saturating_add(len as u64) > file.metadata()?.len() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut bytes = vec![0; len];
    #[cfg(unix)]
    std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, start)?;
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < len {
            let at = start + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], at)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                n => done += n,
            }
        }
    }
    Ok(bytes)
}

/// The next `N` bytes, which are taken off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (next, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*next)
}

/// The examples in an order that depends on their content and the seed only, never on names or places of files.
pub(crate) fn content_order(seed: u64, examples: &[&[u8]]) -> Vec<u32> {
    let digest = |bytes: &&[u8]| -> [u8; 32] {
        Sha256::new().chain_update(seed.to_le_bytes()).chain_update(bytes).finalize().into()
    };
    let digests: Vec<_> = examples.iter().map(digest).collect();
    let mut order: Vec<u32> = (0..examples.len() as u32).collect();
    order.sort_by_key(|&i| digests[i as usize]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(writer: &mut Writer) -> Result<()> {
        for (label, bytes) in [(3, &b"one"[..]), (1, b""), (2, b"three")] {
            writer.push(label, bytes)?;
        }
        writer.info(&vec!["note"]);
        Ok(())
    }

    fn open(
        folder: &Path,
        version: u32,
        build: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<Arc<Store>> {
        Store::open_or_build_in(folder, StoreKey::new("test", version), build)
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, other] = ["a.tmp1-0", "b.tmp2-0", "c.store"].map(|f| dir.path().join(f));
        let ago = std::time::SystemTime::now() - Duration::from_secs(7200);
        for (path, is_old) in [(&old, true), (&new, false), (&other, true)] {
            let file = File::create(path).unwrap();
            if is_old {
                file.set_modified(ago).unwrap();
            }
        }
        remove_abandoned(dir.path());
        assert_eq!([old, new, other].map(|path| path.exists()), [false, true, true]);
    }

    /// The clock jumps by two hours while a store is written.
    #[test]
    fn a_store_that_is_being_written_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let ago = std::time::SystemTime::now() - Duration::from_secs(7200);
        let store = open(dir.path(), 1, |writer| {
            let path = writer.file.temporary().to_owned();
            File::options().append(true).open(&path).unwrap().set_modified(ago).unwrap();
            remove_abandoned(dir.path());
            assert!(path.exists());
            build(writer)
        });
        assert_eq!(store.unwrap().len(), 3);
    }

    #[test]
    fn written_examples_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..2 {
            let built = std::cell::Cell::new(false);
            let store = open(dir.path(), 1, |w| {
                built.set(true);
                build(w)
            })
            .unwrap();
            assert_eq!(built.get(), round == 0, "the second time it is there already");
            assert_eq!(store.len(), 3);
            let bytes: Vec<_> = (0..3).map(|i| store.bytes(i).unwrap()).collect();
            assert_eq!(bytes, [&b"one"[..], b"", b"three"]);
            assert_eq!([0, 1, 2].map(|i| store.label(i)), [3, 1, 2]);
            assert_eq!(store.info::<Vec<String>>().unwrap(), ["note"]);
        }
        let other = open(dir.path(), 2, |w| w.push(0, b"x")).unwrap();
        let first = open(dir.path(), 1, build).unwrap();
        assert_ne!(other.content_hash(), first.content_hash());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    /// Cut or changed by someone else while a run reads it.
    #[test]
    fn a_store_that_changes_in_use_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let example = |i: usize| vec![i as u8; 1 << 16];
        let build = |w: &mut Writer| (0..4).try_for_each(|i| w.push(0, &example(i)));
        for change in [0, 1] {
            let store = open(dir.path(), 1, build).unwrap();
            let file = File::options().write(true).open(&store.path).unwrap();
            match change {
                0 => file.set_len(1 << 17).unwrap(),
                _ => std::io::Write::write_all(&mut { file }, &example(7)).unwrap(),
            }
            assert_eq!(store.bytes(1).unwrap(), example(1));
            let bad = if change == 0 { 3 } else { 0 };
            let error = store.bytes(bad).unwrap_err().to_string();
            assert!(error.contains("damaged") && !store.path.exists(), "{error}");
        }
        assert_eq!(open(dir.path(), 1, build).unwrap().bytes(3).unwrap(), example(3));
    }

    #[test]
    fn a_failure_leaves_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let error = open(dir.path(), 1, |w| {
            w.push(0, b"x")?;
            Err(Error::content(Path::new("bad.wav"), "bad"))
        });
        assert!(error.unwrap_err().to_string().contains("bad.wav"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn damage_is_noticed_and_mended() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path(), 1, build).unwrap();
        let path = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            // The examples themselves (8 bytes) may be many gigabytes: each is checked when it is read.
            let store = open(dir.path(), 1, build).unwrap();
            assert_eq!([0, 2].iter().any(|&i| store.bytes(i).is_err()), at < 8, "byte {at}");
            let store = open(dir.path(), 1, build).unwrap();
            assert_eq!(store.bytes(2).unwrap(), b"three");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(open(dir.path(), 1, build).unwrap().label(0), 3);
        }
    }

    #[test]
    fn a_changed_source_is_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let key = |what: &Path| -> [u8; 32] {
            StoreKey::new("t", 1).source(what).unwrap().hash.finalize().into()
        };
        let file = dir.path().join("a");
        fs::write(&file, "1").unwrap();
        let (one, folder) = (key(&file), key(dir.path()));
        fs::write(&file, "22").unwrap();
        assert_ne!(one, key(&file));
        assert_ne!(folder, key(dir.path()));
    }

    #[test]
    #[cfg(unix)]
    fn links_in_a_circle_end() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::os::unix::fs::symlink(dir.path(), dir.path().join(name)).unwrap();
        }
        let error = StoreKey::new("t", 1).source(dir.path()).err().unwrap().to_string();
        assert!(error.contains("leads back to"), "{error}");
    }

    #[test]
    fn order_by_content() {
        let examples: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        let order = content_order(1, &examples);
        let reversed: Vec<&[u8]> = examples.iter().rev().copied().collect();
        let other: Vec<u32> = content_order(1, &reversed).iter().map(|i| 3 - i).collect();
        assert_eq!(order, other);
        assert_ne!((0..20).map(|s| content_order(s, &examples)[0]).max(), Some(0));
    }
}
