//! The opcodes of a pickle.

use std::collections::HashMap;

use super::{Content, Node, Text, Value};
use crate::error::{Error, Result};

/// The most containers and calls of a pickle; a checkpoint of a large model has some ten thousand.
const MAX_NODES: usize = 500_000;
/// The most values on the stack, and in the memo.
const MAX_VALUES: usize = 1_000_000;

/// What a pickle is a program for.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    pub at: usize,
    pub nodes: Vec<Content>,
    stack: Vec<Value>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
}

fn damaged(what: &str) -> Error {
    Error::file(format!("the pickle in it is damaged: {what}"))
}

impl<'a> Machine<'a> {
    /// For a pickle that begins at `start`.
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        let (nodes, stack, marks) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, at: start, nodes, stack, marks, memo: HashMap::new() }
    }

    /// The value that the opcodes up to the stop build.
    pub fn run(&mut self) -> Result<Value> {
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
                let line = self.line()?.text_in(self.bytes);
                let value = match line.trim_end_matches('L') {
                    "00" => Value::Bool(false),
                    "01" => Value::Bool(true),
                    digits => digits.parse().map_or(Value::Other, Value::Int),
                };
                self.stack.push(value);
            }
            b'F' => {
                let value = self.line()?.text_in(self.bytes).parse();
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
                let key = self.line()?.text_in(self.bytes).parse();
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
                let key = self.line()?.text_in(self.bytes).parse();
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
                (module.text_in(self.bytes), name.text_in(self.bytes)),
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
