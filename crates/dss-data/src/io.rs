//! Files: plain or gzipped reading, atomic writing, looking things up.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use dss_format::atomic_write;
use flate2::bufread::MultiGzDecoder;

use crate::{Error, Result};

/// A gzip may unpack to this many times its size, or to `UNPACK_FLOOR` bytes.
const UNPACK_RATIO: u64 = 100;
const UNPACK_FLOOR: u64 = 256 << 20;

/// What some editors write at the beginning of UTF-8 text; it is not part of it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Limits the size of unpacked data.
struct LimitedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            let (ratio, floor) = (UNPACK_RATIO, UNPACK_FLOOR >> 20);
            let what = format!(
                "unpacks to more than {ratio} times its size and {floor} MiB; unpack it yourself if that is right"
            );
            std::io::Error::new(std::io::ErrorKind::FileTooLarge, what)
        })?;
        Ok(n)
    }
}

/// Opens a file; what starts with the gzip magic number is unpacked on the way.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let gzipped = reader.fill_buf().map_err(Error::io("read", path))?.starts_with(&[0x1f, 0x8b]);
    Ok(if gzipped {
        let size = reader.get_ref().metadata().map_err(Error::io("read", path))?.len();
        let left = size.saturating_mul(UNPACK_RATIO).max(UNPACK_FLOOR);
        let bounded = LimitedReader { inner: MultiGzDecoder::new(reader), left };
        Box::new(BufReader::with_capacity(1 << 16, bounded))
    } else {
        Box::new(reader)
    })
}

/// The whole file, unpacked.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    Ok(bytes)
}

/// The whole file as UTF-8, without a byte order mark.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let mut bytes = read(path)?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = 1 + e.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
        Error::not_utf8(path, line as u64)
    })
}

/// Writes all of the file or nothing; its folder is made.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    atomic_write::write(path, bytes).map_err(Error::io("write", path))
}

/// `path` itself; where that does not exist, the one inside the data folder. A run stores absolute paths: for these,
/// the file name is looked up in the folder.
pub(crate) fn resolve(path: &str, data_dir: Option<&Path>) -> PathBuf {
    let given = PathBuf::from(path);
    let Some(dir) = data_dir.filter(|_| !given.exists()) else { return given };
    let name = if given.is_absolute() { given.file_name() } else { Some(given.as_os_str()) };
    name.map(|name| dir.join(name)).filter(|path| path.exists()).unwrap_or(given)
}

/// The setting of a path as an absolute one, found as [`resolve`] does; an empty one stays empty.
pub(crate) fn locate(path: &mut String, data_dir: Option<&Path>) {
    if path.is_empty() {
        return;
    }
    // The name stays as it was given: links are not followed.
    if let Ok(absolute) = std::path::absolute(resolve(path, data_dir))
        && let Ok(absolute) = absolute.into_os_string().into_string()
    {
        *path = absolute;
    }
}

/// The first of `dir/name` and `dir/name.gz`, over all names, that is a file.
pub(crate) fn find(dir: &Path, names: &[&str]) -> Option<PathBuf> {
    let variants = names.iter().flat_map(|name| [name.to_string(), format!("{name}.gz")]);
    variants.map(|name| dir.join(name)).find(|path| path.is_file())
}

/// The extension in lower case, `.gz` left out.
pub(crate) fn extension(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(String::new(), |(_, extension)| extension.to_owned())
}

/// The last part of a path, for naming examples.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
