//! Pickles, read as data. The opcodes build plain values; a call of anything is kept as a description of the call and
//! never made. Values live in one list and refer to each other by index, so that neither deep nesting nor a value that
//! contains itself can do harm.

mod machine;
mod opcodes;

use crate::error::Result;
use machine::Machine;

/// A value. Containers are indices of nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A place in the file.
    Text(Text),
    List(Node),
    Tuple(Node),
    Dict(Node),
    Global(Node),
    Call(Node),
    /// A persistent id, which the program that wrote the file has a meaning for.
    Persistent(Node),
    /// Bytes, large integers, sets: known to be there, and not needed.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Text {
    start: usize,
    len: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node(u32);

#[derive(Debug)]
enum Content {
    Items(Vec<Value>),
    Pairs(Vec<(Value, Value)>),
    Global { module: Text, name: Text },
    Call { callable: Value, args: Value, state: Value, pairs: Vec<(Value, Value)> },
    Id(Value),
}

/// A pickle that was read.
pub(crate) struct Pickle<'a> {
    bytes: &'a [u8],
    nodes: Vec<Content>,
    root: Value,
}

/// Reads one pickle that begins at `start`; also where it ends.
pub(crate) fn read(bytes: &[u8], start: usize) -> Result<(Pickle<'_>, usize)> {
    let mut machine = Machine::new(bytes, start);
    let root = machine.run()?;
    Ok((Pickle { bytes, nodes: machine.nodes, root }, machine.at))
}

impl Pickle<'_> {
    pub(crate) fn root(&self) -> Value {
        self.root
    }

    fn content(&self, node: Node) -> &Content {
        &self.nodes[node.0 as usize]
    }

    pub(crate) fn text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(text) => Some(text.text_in(self.bytes)),
            _ => None,
        }
    }

    /// Of a list or a tuple.
    pub(crate) fn items(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::List(node) | Value::Tuple(node) => match self.content(node) {
                Content::Items(items) => Some(items),
                _ => None,
            },
            _ => None,
        }
    }

    /// Of a dictionary, or of an object that has such.
    pub(crate) fn pairs(&self, value: Value) -> Option<&[(Value, Value)]> {
        match value {
            Value::Dict(node) | Value::Call(node) => match self.content(node) {
                Content::Pairs(pairs) => Some(pairs),
                Content::Call { pairs, .. } if !pairs.is_empty() => Some(pairs),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a dictionary has under a key; of several, the last.
    pub(crate) fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let pairs = self.pairs(dict)?;
        pairs.iter().rev().find(|(k, _)| self.text(*k) == Some(key)).map(|(_, value)| *value)
    }

    /// Module and name of a global.
    pub(crate) fn global(&self, value: Value) -> Option<(&str, &str)> {
        let Value::Global(node) = value else { return None };
        match self.content(node) {
            Content::Global { module, name } => {
                Some((module.text_in(self.bytes), name.text_in(self.bytes)))
            }
            _ => None,
        }
    }

    /// What is called, with which arguments.
    pub(crate) fn call(&self, value: Value) -> Option<((&str, &str), &[Value])> {
        let Value::Call(node) = value else { return None };
        match self.content(node) {
            Content::Call { callable, args, .. } => {
                Some((self.global(*callable)?, self.items(*args)?))
            }
            _ => None,
        }
    }

    /// The attributes of an object.
    pub(crate) fn state(&self, value: Value) -> Option<Value> {
        let Value::Call(node) = value else { return None };
        match self.content(node) {
            Content::Call { state, .. } => Some(*state),
            _ => None,
        }
    }

    pub(crate) fn persistent(&self, value: Value) -> Option<Value> {
        let Value::Persistent(node) = value else { return None };
        match self.content(node) {
            Content::Id(id) => Some(*id),
            _ => None,
        }
    }

    /// All persistent ids, in the order of the file.
    pub(crate) fn persistent_ids(&self) -> impl Iterator<Item = Value> {
        self.nodes.iter().filter_map(|content| match content {
            Content::Id(id) => Some(*id),
            _ => None,
        })
    }

    /// What a value is, for messages.
    pub(crate) fn describe(&self, value: Value) -> String {
        match value {
            Value::None => "None".into(),
            Value::Bool(_) => "a truth value".into(),
            Value::Int(_) | Value::Float(_) => "a number".into(),
            Value::Text(_) => "a string".into(),
            Value::List(_) => "a list".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::Dict(_) => "a dictionary".into(),
            Value::Persistent(_) => "a storage".into(),
            Value::Other => "bytes, a set or a large integer".into(),
            Value::Global(_) => match self.global(value) {
                Some((module, name)) => format!("the Python object {module}.{name}"),
                None => "a Python object".into(),
            },
            Value::Call(_) => match self.call(value) {
                Some(((module, name), _)) => {
                    format!("a call of {module}.{name}, which is not made")
                }
                None => "a call, which is not made".into(),
            },
        }
    }
}

impl Text {
    fn text_in(self, bytes: &[u8]) -> &str {
        let text = bytes.get(self.start..self.start + self.len as usize).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_description() {
        // os.system("touch x"), protocol 0.
        let (pickle, end) = read(b"cos\nsystem\n(S'touch x'\ntR.", 0).unwrap();
        assert_eq!(end, 26);
        let ((module, name), args) = pickle.call(pickle.root()).unwrap();
        assert_eq!((module, name, pickle.text(args[0])), ("os", "system", Some("touch x")));
        assert!(pickle.describe(pickle.root()).contains("os.system"));
    }

    #[test]
    fn values_that_contain_themselves() {
        // d = {}; d["d"] = d
        let (pickle, _) = read(b"\x80\x02}q\x00X\x01\x00\x00\x00dh\x00s.", 0).unwrap();
        assert_eq!(pickle.get(pickle.root(), "d"), Some(pickle.root()));
    }

    #[test]
    fn integers_of_any_size() {
        for (bytes, value) in [
            (&b"\x8a\x00."[..], Value::Int(0)),
            (b"\x8a\x01\xff.", Value::Int(-1)),
            (b"\x8a\x02\x00\x80.", Value::Int(-32768)),
            (b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", Value::Other),
            (b"I01\n.", Value::Bool(true)),
            (b"L12L\n.", Value::Int(12)),
        ] {
            assert_eq!(read(bytes, 0).unwrap().0.root(), value);
        }
    }

    #[test]
    fn damage_is_an_error() {
        for bytes in [
            &b""[..],
            b".",
            b"N",
            b"h\x00.",
            b"\x86.",
            b"(N\x85u.",
            b"\x80\x09N.",
            b"\xff.",
            b"X\xff\xff\xff\xffa.",
            b"(N0000.",
            b"NNs.",
            b"}(Nu.",
        ] {
            assert!(read(bytes, 0).is_err(), "{bytes:?}");
        }
    }
}
