//! The ZIP archives of `torch.save`: the directory at the end, stored or deflated entries, no encryption, no parts.

use std::borrow::Cow;
use std::collections::HashMap;

use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};

use crate::error::{Error, Result};

const LOCAL: &[u8] = b"PK\x03\x04";
const DIRECTORY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
/// The end of the directory without its comment.
const END_SIZE: usize = 22;
/// A deflated entry may be this many times its size in the file, and small ones any number of times.
const MAX_RATIO: u64 = 64;
const SMALL: u64 = 1 << 20;

/// An archive in memory.
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    entries: HashMap<&'a str, Entry>,
}

struct Entry {
    method: u16,
    encrypted: bool,
    crc: u32,
    /// In the file, and taken out of it.
    packed: u64,
    size: u64,
    /// Of its local header.
    offset: u64,
    /// Two entries have this name.
    twice: bool,
}

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::file(format!("the archive is damaged: {what}"))
}

/// Whether the bytes begin like an archive.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(LOCAL) || bytes.starts_with(END)
}

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let end = find_end(bytes).ok_or_else(|| damaged("it has no directory (is it cut off?)"))?;
        let [count, size, offset] = directory_place(bytes, end)?;
        let (start, stop) = (offset, offset.checked_add(size));
        let directory = stop.and_then(|stop| slice(bytes, start, stop));
        let directory = directory.filter(|_| stop.is_some_and(|stop| stop <= end as u64));
        let directory = directory.ok_or_else(|| damaged("its directory is not in the file"))?;
        let mut entries: HashMap<&str, Entry> = HashMap::new();
        let mut at = 0;
        for _ in 0..count {
            let (name, entry, next) = read_entry(directory, at)?;
            at = next;
            let twice = entries.contains_key(name);
            entries.insert(name, Entry { twice, ..entry });
        }
        Ok(Self { bytes, entries })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.keys().copied()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The bytes of an entry, which must be `expected` many if that is given; its checksum is right.
    pub(crate) fn read(&self, name: &str, expected: Option<u64>) -> Result<Cow<'a, [u8]>> {
        let entry = self.entries.get(name);
        let entry = entry.ok_or_else(|| damaged(format_args!("the entry {name} is missing")))?;
        let Entry { method, encrypted, crc, packed, size, offset, twice } = *entry;
        let wrong = |what: &str| damaged(format_args!("the entry {name} {what}"));
        if twice {
            return Err(wrong("is there twice"));
        }
        if encrypted {
            return Err(wrong("is encrypted"));
        }
        if let Some(expected) = expected.filter(|expected| *expected != size) {
            return Err(wrong(&format!("has {size} bytes, but {expected} were announced")));
        }
        let header = slice(self.bytes, offset, offset.saturating_add(30));
        let header = header.filter(|header| header.starts_with(LOCAL));
        let header = header.ok_or_else(|| wrong("has no header"))?;
        let skip = u64::from(u16_at(header, 26)) + u64::from(u16_at(header, 28));
        let start = offset.saturating_add(30).saturating_add(skip);
        let data = slice(self.bytes, start, start.saturating_add(packed));
        let data = data.ok_or_else(|| wrong("goes beyond the end of the file"))?;
        let data = match method {
            0 if packed == size => Cow::Borrowed(data),
            0 => return Err(wrong("has two sizes")),
            8 if size > SMALL.max(packed.saturating_mul(MAX_RATIO)) => {
                return Err(wrong(&format!("claims to be {size} bytes made of {packed}")));
            }
            8 => Cow::Owned(inflate(data, size as usize).ok_or_else(|| {
                wrong(&format!("does not inflate to the {size} bytes that it announces"))
            })?),
            _ => return Err(wrong(&format!("has the unknown compression method {method}"))),
        };
        if crc32fast::hash(&data) != crc {
            return Err(wrong("has a wrong checksum"));
        }
        Ok(data)
    }
}

fn inflate(data: &[u8], size: usize) -> Option<Vec<u8>> {
    match decompress_to_vec_with_limit(data, size) {
        Ok(inflated) if inflated.len() == size => Some(inflated),
        Ok(_) => None,
        Err(error) => {
            debug_assert!(error.status != TINFLStatus::Done);
            None
        }
    }
}

/// Where the end of the directory begins: its comment reaches to the end of the file.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_SIZE)?;
    let first = last.saturating_sub(u16::MAX.into());
    (first..=last).rev().find(|&at| {
        bytes[at..].starts_with(END)
            && at + END_SIZE + usize::from(u16_at(bytes, at + 20)) == bytes.len()
    })
}

/// Number of entries, size and offset of the directory.
fn directory_place(bytes: &[u8], end: usize) -> Result<[u64; 3]> {
    let place = [
        u16_at(bytes, end + 10).into(),
        u32_at(bytes, end + 12).into(),
        u32_at(bytes, end + 16).into(),
    ];
    let locator = end.checked_sub(20).filter(|&at| bytes[at..].starts_with(LOCATOR_64));
    let Some(locator) = locator else { return Ok(place) };
    let at = u64_at(bytes, locator + 8);
    let end_64 = slice(bytes, at, at.saturating_add(56)).filter(|end| end.starts_with(END_64));
    let end_64 = end_64.ok_or_else(|| damaged("its 64-bit directory is missing"))?;
    Ok([u64_at(end_64, 32), u64_at(end_64, 40), u64_at(end_64, 48)])
}

/// An entry of the directory, and where the next begins.
fn read_entry(directory: &[u8], at: usize) -> Result<(&str, Entry, usize)> {
    let short = || damaged("its directory ends too soon");
    let head = directory.get(at..at + 46).filter(|head| head.starts_with(DIRECTORY));
    let head = head.ok_or_else(short)?;
    let [name_len, extra_len, comment_len] =
        [28, 30, 32].map(|place| usize::from(u16_at(head, place)));
    let name_at = at + 46;
    let extra_at = name_at + name_len;
    let next = extra_at + extra_len + comment_len;
    let name = directory.get(name_at..extra_at).ok_or_else(short)?;
    let name = std::str::from_utf8(name).map_err(|_| damaged("a name is not UTF-8"))?;
    let extra = directory.get(extra_at..extra_at + extra_len).ok_or_else(short)?;
    if next > directory.len() {
        return Err(short());
    }
    let mut sizes = [24, 20, 42].map(|place| u64::from(u32_at(head, place)));
    if sizes.contains(&u64::from(u32::MAX)) {
        read_sizes_64(extra, &mut sizes);
    }
    let [size, packed, offset] = sizes;
    let entry = Entry {
        method: u16_at(head, 10),
        encrypted: u16_at(head, 8) & 1 != 0,
        crc: u32_at(head, 16),
        packed,
        size,
        offset,
        twice: false,
    };
    Ok((name, entry, next))
}

/// Replaces the sizes that do not fit into 32 bits by those of the extra field 1, which has them in order.
fn read_sizes_64(extra: &[u8], sizes: &mut [u64; 3]) {
    let mut rest = extra;
    while rest.len() >= 4 {
        let (id, len) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
        let Some(field) = rest.get(4..4 + len) else { return };
        if id == 1 {
            let mut values = field.chunks_exact(8);
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                if let Some(value) = values.next() {
                    *size = u64_at(value, 0);
                }
            }
            return;
        }
        rest = &rest[4 + len..];
    }
}

fn slice(bytes: &[u8], start: u64, end: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
