//! The files of flax's `checkpoints.save_checkpoint` (without orbax): MessagePack of a tree of tables, whose arrays are
//! extensions of type 1, themselves MessagePack of (shape, dtype, bytes). Nothing is copied: a tensor is a place in the file.

use std::collections::BTreeMap;

use crate::checkpoint::{Dtype, Entry, Tensor};
use crate::error::{Error, Result};

/// The deepest nesting, and the most values of a file.
const MAX_DEPTH: usize = 64;
const MAX_VALUES: usize = 1_000_000;
/// The longest name of a tensor.
const MAX_NAME: usize = 1000;

/// Arrays, numbers that numpy made, in flax's extensions.
const ARRAY: u8 = 1;
const SCALAR: u8 = 3;

/// Whether the bytes begin with a table whose first key is a text.
pub(crate) fn looks_like_it(bytes: &[u8]) -> bool {
    let table = match bytes {
        [0x81..=0x8f, rest @ ..] | [0xde, _, _, rest @ ..] | [0xdf, _, _, _, _, rest @ ..] => rest,
        _ => return false,
    };
    matches!(table.first(), Some(0xa1..=0xbf | 0xd9..=0xdb))
}

/// The tensors by their names, the tables' joined by dots: of a train state its `params`, else all.
pub(crate) fn open(bytes: &[u8]) -> Result<BTreeMap<String, Entry>> {
    let mut reader = Reader { bytes, at: 0, values: 0 };
    let mut entries = BTreeMap::new();
    reader.value("", 0, &mut entries)?;
    if reader.at != bytes.len() {
        return Err(damaged("something follows its last table"));
    }
    let within = "params.";
    if entries.keys().any(|name| name.starts_with(within)) {
        let state = entries.into_iter();
        entries = state
            .filter_map(|(name, entry)| Some((name.strip_prefix(within)?.to_owned(), entry)))
            .collect();
    }
    Ok(entries)
}

fn damaged(what: &str) -> Error {
    Error::file(format!("not a MessagePack file of flax, or a damaged one: {what}"))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
}

/// A value; of tables and lists, how many parts follow.
enum Value {
    Table(usize),
    List(usize),
    Integer(u64),
    /// Where its bytes are.
    Text(usize, usize),
    Bytes(usize, usize),
    Extension(u8, usize, usize),
    Other,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<usize> {
        let start = self.at;
        let end = start.checked_add(count).filter(|end| *end <= self.bytes.len());
        self.at = end.ok_or_else(|| damaged("it ends too early"))?;
        Ok(start)
    }

    /// A big-endian number of this many bytes.
    fn number(&mut self, size: usize) -> Result<u64> {
        let start = self.take(size)?;
        Ok(self.bytes[start..start + size].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    fn count(&mut self, size: usize) -> Result<usize> {
        usize::try_from(self.number(size)?).map_err(|_| damaged("a length is too great"))
    }

    /// The head of the next value, and all of it unless it has parts.
    fn head(&mut self) -> Result<Value> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(damaged("it has too many values"));
        }
        let first = self.number(1)? as u8;
        let low = usize::from(first & 0x1f);
        Ok(match first {
            0x00..=0x7f => Value::Integer(first.into()),
            0x80..=0x8f => Value::Table(low & 0xf),
            0x90..=0x9f => Value::List(low & 0xf),
            0xa0..=0xbf => Value::Text(self.take(low)?, low),
            0xc4..=0xc6 => {
                let count = self.count(1 << (first - 0xc4))?;
                Value::Bytes(self.take(count)?, count)
            }
            0xc7..=0xc9 => {
                let count = self.count(1 << (first - 0xc7))?;
                self.extension(count)?
            }
            0xd4..=0xd8 => self.extension(1 << (first - 0xd4))?,
            0xcc..=0xcf => Value::Integer(self.number(1 << (first - 0xcc))?),
            0xd0..=0xd3 => self.skipped(1 << (first - 0xd0))?,
            0xca => self.skipped(4)?,
            0xcb => self.skipped(8)?,
            0xd9..=0xdb => {
                let count = self.count(1 << (first - 0xd9))?;
                Value::Text(self.take(count)?, count)
            }
            0xdc | 0xdd => Value::List(self.count(2 << (first - 0xdc))?),
            0xde | 0xdf => Value::Table(self.count(2 << (first - 0xde))?),
            0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => Value::Other,
            0xc1 => return Err(damaged("it has the byte c1, which means nothing")),
        })
    }

    fn skipped(&mut self, count: usize) -> Result<Value> {
        self.take(count)?;
        Ok(Value::Other)
    }

    fn extension(&mut self, count: usize) -> Result<Value> {
        let kind = self.number(1)? as u8;
        Ok(Value::Extension(kind, self.take(count)?, count))
    }

    /// Reads the value with this name and what is in it.
    fn value(
        &mut self,
        name: &str,
        depth: usize,
        entries: &mut BTreeMap<String, Entry>,
    ) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(damaged("it is nested too deeply"));
        }
        let entry = match self.head()? {
            Value::Table(count) => {
                for _ in 0..count {
                    let key = self.key()?;
                    if key == "__msgpack_chunked_array__" {
                        return Err(Error::file(format!(
                            "the array {name} is stored in pieces, which is not read"
                        )));
                    }
                    if name.len() + key.len() > MAX_NAME {
                        return Err(damaged("a name is too long"));
                    }
                    let full = if name.is_empty() { key } else { format!("{name}.{key}") };
                    self.value(&full, depth + 1, entries)?;
                }
                return Ok(());
            }
            Value::List(count) => {
                for i in 0..count {
                    self.value(&format!("{name}.{i}"), depth + 1, entries)?;
                }
                return Ok(());
            }
            Value::Extension(ARRAY | SCALAR, start, count) => self.array(name, start, count)?,
            Value::Extension(..) => Entry::Other("an extension of another kind".into()),
            Value::Integer(_) => Entry::Other("an integer".into()),
            Value::Text(..) => Entry::Other("a text".into()),
            Value::Bytes(..) => Entry::Other("bytes".into()),
            Value::Other => Entry::Other("a plain value".into()),
        };
        if entries.insert(name.to_owned(), entry).is_some() {
            return Err(damaged(&format!("the name {name} is there twice")));
        }
        Ok(())
    }

    fn key(&mut self) -> Result<String> {
        match self.head()? {
            Value::Text(start, count) => self.text(start, count),
            _ => Err(damaged("a key of a table is not a text")),
        }
    }

    fn text(&self, start: usize, count: usize) -> Result<String> {
        let text = std::str::from_utf8(&self.bytes[start..start + count]);
        Ok(text.map_err(|_| damaged("a text is not UTF-8"))?.to_owned())
    }

    /// (shape, dtype, bytes), with the bytes as many as the shape says.
    fn array(&self, name: &str, start: usize, count: usize) -> Result<Entry> {
        let wrong = |what: &str| Error::file(format!("the array {name} is damaged: {what}"));
        let bytes = &self.bytes[..start + count];
        let mut parts = Reader { bytes, at: start, values: 0 };
        let Value::List(3) = parts.head()? else {
            return Err(wrong("it does not have three parts"));
        };
        let Value::List(axes) = parts.head()? else { return Err(wrong("it has no shape")) };
        let mut shape = Vec::new();
        for _ in 0..axes {
            let Value::Integer(size) = parts.head()? else { return Err(wrong("it has no shape")) };
            shape.push(usize::try_from(size).map_err(|_| wrong("its shape is too large"))?);
        }
        let Value::Text(at, length) = parts.head()? else { return Err(wrong("it has no type")) };
        let type_name = parts.text(at, length)?;
        let Value::Bytes(base, held) = parts.head()? else { return Err(wrong("it has no bytes")) };
        let Some(dtype) = Dtype::of_name(&type_name) else {
            return Ok(Entry::Other(format!("an array of {type_name}")));
        };
        let elements = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let wanted = elements.and_then(|elements| elements.checked_mul(dtype.size()));
        if wanted != Some(held) || parts.at != bytes.len() {
            let what = format!("{held} bytes cannot be {shape:?} numbers of {type_name}");
            return Err(wrong(&what));
        }
        Ok(Entry::Tensor(Tensor::contiguous(dtype, shape, base, held)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": {"b": array}}` with an array of two float32.
    fn sound() -> Vec<u8> {
        let mut array = b"\x93\x91\x02\xa7float32\xc4\x08".to_vec();
        array.extend([1f32, -2.5].iter().flat_map(|x| x.to_le_bytes()));
        let mut file = b"\x81\xa1a\x81\xa1b\xc7".to_vec();
        file.extend([array.len() as u8, ARRAY]);
        file.extend(array);
        file
    }

    fn error(bytes: &[u8]) -> String {
        open(bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_tensor_is_a_place_in_the_file() {
        let file = sound();
        let entries = open(&file).unwrap();
        let Some(Entry::Tensor(tensor)) = entries.get("a.b") else { panic!("{entries:?}") };
        assert_eq!((tensor.dtype, &tensor.shape[..]), (Dtype::F32, &[2][..]));
        assert_eq!(file[tensor.base..tensor.base + 4], 1f32.to_le_bytes());
        assert!(looks_like_it(&file) && !looks_like_it(b"\x81\x01\x01") && !looks_like_it(b""));
    }

    /// Of a train state only the parameters are read.
    #[test]
    fn only_parameters() {
        let entries = open(b"\x82\xa6params\x81\xa1x\x01\xa4step\x02").unwrap();
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn damage_is_named() {
        let file = sound();
        for end in 0..file.len() {
            assert!(open(&file[..end]).is_err(), "{end} bytes");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert!(error(&longer).contains("follows"));
        let mut shape = file.clone();
        let at = shape.windows(2).position(|two| two == [0x91, 2]).unwrap();
        shape[at + 1] = 3;
        assert!(error(&shape).contains("8 bytes cannot be [3]"), "{}", error(&shape));
        assert!(error(b"\x82\xa1a\x01\xa1a\x01").contains("twice"));
        assert!(error(&[vec![0x91; 100], vec![1]].concat()).contains("deeply"));
        assert!(error(b"\xdf\xff\xff\xff\xff").contains("early"));
        let pieces = b"\x81\xb9__msgpack_chunked_array__\x01";
        assert!(error(pieces).contains("pieces"));
    }
}
