//! What the opcodes of a pickle work on: a stack, a memo, and the values that are built.

use std::collections::HashMap;

use super::{Content, Node, Text, Value};
use crate::error::{Error, Result};

/// The most containers and calls of a pickle; a checkpoint of a large model has some ten thousand.
const MAX_NODES: usize = 500_000;
/// The most values on the stack, and in the memo.
const MAX_VALUES: usize = 1_000_000;

/// What a pickle is a program for.
pub(super) struct Machine<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    pub nodes: Vec<Content>,
    pub stack: Vec<Value>,
    /// Heights of the stack.
    marks: Vec<usize>,
    pub memo: HashMap<u64, Value>,
}

pub(super) fn damaged(what: &str) -> Error {
    Error::file(format!("the pickle in it is damaged: {what}"))
}

fn too_many() -> Error {
    Error::file("the pickle in it has more values than any checkpoint")
}

impl<'a> Machine<'a> {
    /// For a pickle that begins at `start`.
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        let (nodes, stack, marks) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, at: start, nodes, stack, marks, memo: HashMap::new() }
    }

    pub fn node(&mut self, content: Content) -> Result<Node> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Error::file("the pickle in it has more containers than any checkpoint"));
        }
        self.nodes.push(content);
        Ok(Node(self.nodes.len() as u32 - 1))
    }

    pub fn push(&mut self, value: Value) -> Result<()> {
        if self.stack.len() >= MAX_VALUES {
            return Err(too_many());
        }
        self.stack.push(value);
        Ok(())
    }

    pub fn mark(&mut self) -> Result<()> {
        if self.marks.len() >= MAX_VALUES {
            return Err(too_many());
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// The last value of the stack, which stays there.
    pub fn top(&self) -> Result<Value> {
        self.stack.last().copied().ok_or_else(|| damaged("its stack is empty"))
    }

    pub fn pop(&mut self) -> Result<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(damaged("its stack is empty"));
        }
        Ok(self.stack.pop().expect("above the floor"))
    }

    /// Where the last `count` values begin.
    pub fn height(&self, count: usize) -> Result<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let start = self.stack.len().checked_sub(count).filter(|start| *start >= floor);
        start.ok_or_else(|| damaged("its stack is empty"))
    }

    pub fn pop_to_mark(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().ok_or_else(|| damaged("a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    pub fn push_items(&mut self, items: Vec<Value>, kind: fn(Node) -> Value) -> Result<()> {
        let node = self.node(Content::Items(items))?;
        self.push(kind(node))
    }

    pub fn push_dict(&mut self, pairs: Vec<(Value, Value)>) -> Result<()> {
        let node = self.node(Content::Pairs(pairs))?;
        self.push(Value::Dict(node))
    }

    pub fn gather(&mut self, kind: fn(Node) -> Value) -> Result<()> {
        let items = self.pop_to_mark()?;
        self.push_items(items, kind)
    }

    pub fn push_global(&mut self, module: Text, name: Text) -> Result<()> {
        let node = self.node(Content::Global { module, name })?;
        self.push(Value::Global(node))
    }

    /// Dictionaries of Python's own kinds are values; any other call stays a call.
    pub fn push_call(&mut self, callable: Value, args: Value) -> Result<()> {
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
                return self.push_dict(Vec::new());
            }
        }
        let (state, pairs) = (Value::None, Vec::new());
        let node = self.node(Content::Call { callable, args, state, pairs })?;
        self.push(Value::Call(node))
    }

    pub fn build(&mut self, built: Value) -> Result<()> {
        let target = self.top()?;
        if let Value::Call(node) = target
            && let Content::Call { state, .. } = &mut self.nodes[node.0 as usize]
        {
            *state = built;
        }
        Ok(())
    }

    pub fn append(&mut self, new: &[Value]) -> Result<()> {
        let target = self.top()?;
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

    pub fn set_items(&mut self, new: Vec<(Value, Value)>) -> Result<()> {
        let target = self.top()?;
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

    pub fn put(&mut self, key: u64) -> Result<()> {
        let top = self.top()?;
        if self.memo.len() >= MAX_VALUES {
            return Err(Error::file("the pickle in it remembers more than any checkpoint"));
        }
        self.memo.insert(key, top);
        Ok(())
    }

    pub fn recall(&mut self, key: u64) -> Result<()> {
        let value = self.memo.get(&key).copied();
        self.push(value.ok_or_else(|| damaged("it recalls what it never remembered"))?)
    }
}

pub(super) fn pairs(items: &[Value]) -> Result<Vec<(Value, Value)>> {
    if !items.len().is_multiple_of(2) {
        return Err(damaged("a key of a dictionary has no value"));
    }
    Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}
