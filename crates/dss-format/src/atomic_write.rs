//! Files that are either complete or absent: written beside their final place, synced, and renamed.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Names that are tried before giving up: another process has taken all of them.
const ATTEMPTS: usize = 16;

/// A file that gets its name by [`AtomicFile::commit`]; dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    temporary: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl AtomicFile {
    /// Begins to write the future `target` in the same folder, under a name that no other process uses: `target.tmp`,
    /// the number of the process and a random number.
    pub fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file")
        })?;
        let mut failure = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let mut temporary = name.to_os_string();
            let random = RandomState::new().build_hasher().finish();
            temporary.push(format!(".tmp{}{random:020}", std::process::id()));
            let temporary = target.with_file_name(temporary);
            match File::create_new(&temporary) {
                Ok(file) => {
                    let file = BufWriter::with_capacity(1 << 20, file);
                    let target = target.to_owned();
                    return Ok(Self { file, temporary, target, committed: false });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Holds a lock on the file until it is complete or dropped, by which others tell it from one that a killed process
    /// left; some file systems have no locks.
    pub fn lock(&self) -> io::Result<()> {
        self.file.get_ref().lock()
    }

    /// Where it is until it is complete.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Puts the file into its place, where it is from then on, whatever happens to the machine.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.target)?;
        self.committed = true;
        sync_folder(&self.target)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // The failure that led here is the one to report.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a file so that at every moment either the old or the new one is there, whole.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Whether `name` is that of a file which a process that died has left beside `target`.
pub fn is_temporary(name: &str, target: &str) -> bool {
    let number = name.strip_prefix(target).and_then(|rest| rest.strip_prefix(".tmp"));
    number.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
}

/// Makes the names of a file's folder reach the disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = file.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_old_or_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, b"one").unwrap();
        let mut half = AtomicFile::create(&path).unwrap();
        half.write_all(b"half").unwrap();
        let name = half.temporary().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(is_temporary(&name, "file") && !is_temporary("file", "file"));
        drop(half);
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"one".to_vec(), vec!["file".to_owned()])
        );
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        // What cannot be replaced stays, and nothing is left beside it.
        fs::create_dir_all(folder.path().join("folder/inside")).unwrap();
        assert!(write(&folder.path().join("folder"), b"x").is_err());
        assert_eq!(names(folder.path()).len(), 2);
        assert!(write(Path::new("/"), b"x").is_err());
    }

    /// Two processes with one number (in containers) write to one folder.
    #[test]
    fn names_do_not_depend_on_the_process_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let files: Vec<_> = (0..50).map(|_| AtomicFile::create(&path).unwrap()).collect();
        assert_eq!(names(folder.path()).len(), 50);
        drop(files);
        assert!(names(folder.path()).is_empty());
    }
}
