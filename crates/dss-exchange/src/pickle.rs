//! Pickles, read as data. The opcodes build plain values; a call of anything is kept as a description of the call and
//! never made. Values live in one list and refer to each other by index, so that neither deep nesting nor a value that
//! contains itself can do harm.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// The most containers and calls of a pickle; a checkpoint of a large model has some ten thousand.
const MAX_NODES: usize = 500_000;
/// The most values on the stack, and in the memo.
const MAX_VALUES: usize = 1_000_000;

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
    let mut machine = Machine {
        bytes,
        at: start,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
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
            Value::Text(text) => Some(text.of(self.bytes)),
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
            Content::Global { module, name } => Some((module.of(self.bytes), name.of(self.bytes))),
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
    fn of(self, bytes: &[u8]) -> &str {
        let text = bytes.get(self.start..self.start + self.len as usize).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Content>,
    stack: Vec<Value>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
}

fn damaged(what: &str) -> Error {
    Error::file(format!("the pickle in it is damaged: {what}"))
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Value> {
        loop {
            let [opcode] = self.fixed()?;
            if opcode == b'.' {
                return self.pop();
            }
            self.step(opcode)?;
            if self.stack.len() > MAX_VALUES || self.marks.len() > MAX_VALUES {
                return Err(Error::file("the pickle in it has more values than any checkpoint"));
            }
        }
    }

    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            0x80 => {
                let [protocol] = self.fixed()?;
                if protocol > 5 {
                    return Err(Error::file(format!("its pickle protocol {protocol} is unknown")));
                }
            }
            0x95 => {
                self.fixed::<8>()?;
            }
            b'(' => self.marks.push(self.stack.len()),
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.pop_to_mark()?;
            }
            b'2' => {
                let top = *self.stack.last().ok_or_else(|| damaged("its stack is empty"))?;
                self.stack.push(top);
            }
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            b'J' => {
                let value = i32::from_le_bytes(self.fixed()?);
                self.stack.push(Value::Int(value.into()));
            }
            b'K' => {
                let [value] = self.fixed()?;
                self.stack.push(Value::Int(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.fixed()?);
                self.stack.push(Value::Int(value.into()));
            }
            0x8a => {
                let [len] = self.fixed()?;
                self.long(len.into())?;
            }
            0x8b => {
                let len = u32::from_le_bytes(self.fixed()?);
                self.long(len as usize)?;
            }
            b'I' | b'L' => {
                let line = self.line()?.of(self.bytes);
                let value = match line.trim_end_matches('L') {
                    "00" => Value::Bool(false),
                    "01" => Value::Bool(true),
                    digits => digits.parse().map_or(Value::Other, Value::Int),
                };
                self.stack.push(value);
            }
            b'F' => {
                let value = self.line()?.of(self.bytes).parse();
                self.stack.push(value.map_or(Value::Other, Value::Float));
            }
            b'G' => {
                let value = f64::from_be_bytes(self.fixed()?);
                self.stack.push(Value::Float(value));
            }
            b'X' | b'T' => {
                let len = u32::from_le_bytes(self.fixed()?);
                self.push_text(len.into())?;
            }
            0x8c | b'U' => {
                let [len] = self.fixed()?;
                self.push_text(len.into())?;
            }
            0x8d => {
                let len = u64::from_le_bytes(self.fixed()?);
                self.push_text(len)?;
            }
            b'V' => {
                let text = self.line()?;
                self.stack.push(Value::Text(text));
            }
            b'S' => {
                let text = self.line()?;
                let quoted = text.len >= 2;
                let inner = Text { start: text.start + 1, len: text.len.saturating_sub(2) };
                self.stack.push(if quoted { Value::Text(inner) } else { Value::Other });
            }
            b'C' => {
                let [len] = self.fixed()?;
                self.skip(len.into())?;
            }
            b'B' => {
                let len = u32::from_le_bytes(self.fixed()?);
                self.skip(len.into())?;
            }
            0x8e | 0x96 => {
                let len = u64::from_le_bytes(self.fixed()?);
                self.skip(len)?;
            }
            b']' => self.push_items(Vec::new(), Value::List)?,
            b')' => self.push_items(Vec::new(), Value::Tuple)?,
            0x8f => self.push_items(Vec::new(), Value::List)?,
            b'l' => self.gather(Value::List)?,
            b't' => self.gather(Value::Tuple)?,
            0x91 => self.gather(Value::List)?,
            0x85..=0x87 => {
                let count = usize::from(opcode - 0x84);
                let start = self.height(count)?;
                let items = self.stack.split_off(start);
                self.push_items(items, Value::Tuple)?;
            }
            b'}' => {
                let node = self.node(Content::Pairs(Vec::new()))?;
                self.stack.push(Value::Dict(node));
            }
            b'd' => {
                let items = self.pop_to_mark()?;
                let node = self.node(Content::Pairs(pairs(&items)?))?;
                self.stack.push(Value::Dict(node));
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' | 0x90 => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(vec![(key, value)])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(pairs(&items)?)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push_global(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Text(module), Value::Text(name)) = (module, name) else {
                    return Err(damaged("a global has no name"));
                };
                self.push_global(module, name)?;
            }
            b'R' | 0x81 => {
                let (args, callable) = (self.pop()?, self.pop()?);
                self.push_call(callable, args)?;
            }
            0x92 => {
                let (_keywords, args, callable) = (self.pop()?, self.pop()?, self.pop()?);
                self.push_call(callable, args)?;
            }
            b'o' => {
                let mut items = self.pop_to_mark()?;
                if items.is_empty() {
                    return Err(damaged("its stack is empty"));
                }
                let args = items.split_off(1);
                self.push_items(args, Value::Tuple)?;
                let args = self.pop()?;
                self.push_call(items[0], args)?;
            }
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                self.gather(Value::Tuple)?;
                let args = self.pop()?;
                self.push_global(module, name)?;
                let callable = self.pop()?;
                self.push_call(callable, args)?;
            }
            b'b' => {
                let built = self.pop()?;
                self.build(built)?;
            }
            b'Q' => {
                let id = self.pop()?;
                let node = self.node(Content::Id(id))?;
                self.stack.push(Value::Persistent(node));
            }
            b'q' => {
                let [key] = self.fixed()?;
                self.put(key.into())?;
            }
            b'r' => {
                let key = u32::from_le_bytes(self.fixed()?);
                self.put(key.into())?;
            }
            b'p' => {
                let key = self.line()?.of(self.bytes).parse();
                self.put(key.map_err(|_| damaged("a memo has no number"))?)?;
            }
            0x94 => self.put(self.memo.len() as u64)?,
            b'h' => {
                let [key] = self.fixed()?;
                self.recall(key.into())?;
            }
            b'j' => {
                let key = u32::from_le_bytes(self.fixed()?);
                self.recall(key.into())?;
            }
            b'g' => {
                let key = self.line()?.of(self.bytes).parse();
                self.recall(key.map_err(|_| damaged("a memo has no number"))?)?;
            }
            _ => {
                let at = self.at - 1;
                return Err(damaged(&format!("unknown opcode {opcode:#04x} at byte {at}")));
            }
        }
        Ok(())
    }

    fn take(&mut self, len: u64) -> Result<Text> {
        let left = (self.bytes.len() - self.at) as u64;
        if len > left || len > u32::MAX.into() {
            return Err(damaged(&format!("it ends {} bytes too soon", len.saturating_sub(left))));
        }
        let text = Text { start: self.at, len: len as u32 };
        self.at += len as usize;
        Ok(text)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Text { start, .. } = self.take(N as u64)?;
        Ok(self.bytes[start..start + N].try_into().expect("of this size"))
    }

    /// Up to the end of the line, which is skipped.
    fn line(&mut self) -> Result<Text> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&b| b == b'\n').ok_or_else(|| damaged("it has no end"))?;
        let text = self.take(len as u64)?;
        self.at += 1;
        Ok(text)
    }

    fn long(&mut self, len: usize) -> Result<()> {
        let Text { start, .. } = self.take(len as u64)?;
        let bytes = &self.bytes[start..start + len];
        let sign = if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
        let mut all = [sign; 8];
        let value = if len <= 8 {
            all[..len].copy_from_slice(bytes);
            Value::Int(i64::from_le_bytes(all))
        } else {
            Value::Other
        };
        self.stack.push(value);
        Ok(())
    }

    fn push_text(&mut self, len: u64) -> Result<()> {
        let text = self.take(len)?;
        self.stack.push(Value::Text(text));
        Ok(())
    }

    fn skip(&mut self, len: u64) -> Result<()> {
        self.take(len)?;
        self.stack.push(Value::Other);
        Ok(())
    }

    fn node(&mut self, content: Content) -> Result<Node> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Error::file("the pickle in it has more containers than any checkpoint"));
        }
        self.nodes.push(content);
        Ok(Node(self.nodes.len() as u32 - 1))
    }

    fn pop(&mut self) -> Result<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(damaged("its stack is empty"));
        }
        Ok(self.stack.pop().expect("above the floor"))
    }

    /// Where the last `count` values begin.
    fn height(&self, count: usize) -> Result<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let start = self.stack.len().checked_sub(count).filter(|start| *start >= floor);
        start.ok_or_else(|| damaged("its stack is empty"))
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().ok_or_else(|| damaged("a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    fn push_items(&mut self, items: Vec<Value>, kind: fn(Node) -> Value) -> Result<()> {
        let node = self.node(Content::Items(items))?;
        self.stack.push(kind(node));
        Ok(())
    }

    fn gather(&mut self, kind: fn(Node) -> Value) -> Result<()> {
        let items = self.pop_to_mark()?;
        self.push_items(items, kind)
    }

    fn push_global(&mut self, module: Text, name: Text) -> Result<()> {
        let node = self.node(Content::Global { module, name })?;
        self.stack.push(Value::Global(node));
        Ok(())
    }

    /// Dictionaries of Python's own kinds are values; any other call stays a call.
    fn push_call(&mut self, callable: Value, args: Value) -> Result<()> {
        if let (Value::Global(node), Value::Tuple(args)) = (callable, args)
            && let Content::Global { module, name } = &self.nodes[node.0 as usize]
            && let Content::Items(args) = &self.nodes[args.0 as usize]
        {
            let known = matches!(
                (module.of(self.bytes), name.of(self.bytes)),
                ("collections", "OrderedDict" | "defaultdict")
                    | ("builtins" | "__builtin__", "dict")
            );
            let empty = args.iter().all(|arg| matches!(arg, Value::Global(_)));
            if known && empty {
                let node = self.node(Content::Pairs(Vec::new()))?;
                self.stack.push(Value::Dict(node));
                return Ok(());
            }
        }
        let (state, pairs) = (Value::None, Vec::new());
        let node = self.node(Content::Call { callable, args, state, pairs })?;
        self.stack.push(Value::Call(node));
        Ok(())
    }

    fn build(&mut self, built: Value) -> Result<()> {
        let target = *self.stack.last().ok_or_else(|| damaged("its stack is empty"))?;
        if let Value::Call(node) = target
            && let Content::Call { state, .. } = &mut self.nodes[node.0 as usize]
        {
            *state = built;
        }
        Ok(())
    }

    fn append(&mut self, new: &[Value]) -> Result<()> {
        let target = *self.stack.last().ok_or_else(|| damaged("its stack is empty"))?;
        match target {
            Value::List(node) => {
                if let Content::Items(items) = &mut self.nodes[node.0 as usize] {
                    items.extend_from_slice(new);
                }
                Ok(())
            }
            // A list of another class.
            Value::Call(_) => Ok(()),
            _ => Err(damaged("something is appended to a value that is not a list")),
        }
    }

    fn set_items(&mut self, new: Vec<(Value, Value)>) -> Result<()> {
        let target = *self.stack.last().ok_or_else(|| damaged("its stack is empty"))?;
        let (Value::Dict(node) | Value::Call(node)) = target else {
            return Err(damaged("an item is set of a value that is not a dictionary"));
        };
        if let Content::Pairs(pairs) | Content::Call { pairs, .. } =
            &mut self.nodes[node.0 as usize]
        {
            pairs.extend(new);
        }
        Ok(())
    }

    fn put(&mut self, key: u64) -> Result<()> {
        let top = *self.stack.last().ok_or_else(|| damaged("its stack is empty"))?;
        if self.memo.len() >= MAX_VALUES {
            return Err(Error::file("the pickle in it remembers more than any checkpoint"));
        }
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<()> {
        let value = self.memo.get(&key).copied();
        self.stack.push(value.ok_or_else(|| damaged("it recalls what it never remembered"))?);
        Ok(())
    }
}

fn pairs(items: &[Value]) -> Result<Vec<(Value, Value)>> {
    if !items.len().is_multiple_of(2) {
        return Err(damaged("a key of a dictionary has no value"));
    }
    Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
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
