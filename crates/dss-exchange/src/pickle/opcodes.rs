//! The opcodes of a pickle.

use super::machine::{Machine, damaged, pairs};
use super::{Content, Text, Value};
use crate::error::{Error, Result};

impl Machine<'_> {
    /// The value that the opcodes up to the stop build.
    pub fn run(&mut self) -> Result<Value> {
        loop {
            let [opcode] = self.fixed()?;
            if opcode == b'.' {
                return self.pop();
            }
            self.step(opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            0x80 => {
                let [protocol] = self.fixed()?;
                if protocol > 5 {
                    return Err(Error::file(format!("its pickle protocol {protocol} is unknown")));
                }
                Ok(())
            }
            0x95 => self.fixed::<8>().map(drop),
            b'(' => self.mark(),
            b'0' => self.pop().map(drop),
            b'1' => self.pop_to_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                self.push(top)
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'J' => {
                let value = i32::from_le_bytes(self.fixed()?);
                self.push(Value::Int(value.into()))
            }
            b'K' => self.push_count::<1>(),
            b'M' => self.push_count::<2>(),
            0x8a => self.push_long::<1>(),
            0x8b => self.push_long::<4>(),
            b'I' | b'L' => {
                let line = self.line()?.text_in(self.bytes);
                let value = match line.trim_end_matches('L') {
                    "00" => Value::Bool(false),
                    "01" => Value::Bool(true),
                    digits => digits.parse().map_or(Value::Other, Value::Int),
                };
                self.push(value)
            }
            b'F' => {
                let value = self.line()?.text_in(self.bytes).parse();
                self.push(value.map_or(Value::Other, Value::Float))
            }
            b'G' => {
                let value = f64::from_be_bytes(self.fixed()?);
                self.push(Value::Float(value))
            }
            0x8c | b'U' => self.push_text::<1>(),
            b'X' | b'T' => self.push_text::<4>(),
            0x8d => self.push_text::<8>(),
            b'V' => {
                let text = self.line()?;
                self.push(Value::Text(text))
            }
            b'S' => {
                let text = self.line()?;
                let quoted = text.len >= 2;
                let inner = Text { start: text.start + 1, len: text.len.saturating_sub(2) };
                self.push(if quoted { Value::Text(inner) } else { Value::Other })
            }
            b'C' => self.push_bytes::<1>(),
            b'B' => self.push_bytes::<4>(),
            0x8e | 0x96 => self.push_bytes::<8>(),
            b']' | 0x8f => self.push_items(Vec::new(), Value::List),
            b')' => self.push_items(Vec::new(), Value::Tuple),
            b'l' | 0x91 => self.gather(Value::List),
            b't' => self.gather(Value::Tuple),
            0x85..=0x87 => {
                let start = self.height(usize::from(opcode - 0x84))?;
                let items = self.stack.split_off(start);
                self.push_items(items, Value::Tuple)
            }
            b'}' => self.push_dict(Vec::new()),
            b'd' => {
                let items = self.pop_to_mark()?;
                self.push_dict(pairs(&items)?)
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])
            }
            b'e' | 0x90 => {
                let items = self.pop_to_mark()?;
                self.append(&items)
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(vec![(key, value)])
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(pairs(&items)?)
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push_global(module, name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Text(module), Value::Text(name)) = (module, name) else {
                    return Err(damaged("a global has no name"));
                };
                self.push_global(module, name)
            }
            b'R' | 0x81 => {
                let (args, callable) = (self.pop()?, self.pop()?);
                self.push_call(callable, args)
            }
            0x92 => {
                let (_keywords, args, callable) = (self.pop()?, self.pop()?, self.pop()?);
                self.push_call(callable, args)
            }
            b'o' => {
                let mut items = self.pop_to_mark()?;
                if items.is_empty() {
                    return Err(damaged("its stack is empty"));
                }
                let args = items.split_off(1);
                self.push_items(args, Value::Tuple)?;
                let args = self.pop()?;
                self.push_call(items[0], args)
            }
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                self.gather(Value::Tuple)?;
                let args = self.pop()?;
                self.push_global(module, name)?;
                let callable = self.pop()?;
                self.push_call(callable, args)
            }
            b'b' => {
                let built = self.pop()?;
                self.build(built)
            }
            b'Q' => {
                let id = self.pop()?;
                let node = self.node(Content::Id(id))?;
                self.push(Value::Persistent(node))
            }
            b'q' => {
                let key = self.count::<1>()?;
                self.put(key)
            }
            b'r' => {
                let key = self.count::<4>()?;
                self.put(key)
            }
            b'p' => {
                let key = self.written_key()?;
                self.put(key)
            }
            0x94 => self.put(self.memo.len() as u64),
            b'h' => {
                let key = self.count::<1>()?;
                self.recall(key)
            }
            b'j' => {
                let key = self.count::<4>()?;
                self.recall(key)
            }
            b'g' => {
                let key = self.written_key()?;
                self.recall(key)
            }
            _ => {
                let at = self.at - 1;
                Err(damaged(&format!("unknown opcode {opcode:#04x} at byte {at}")))
            }
        }
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

    /// A number of `N` bytes, at least 0.
    fn count<const N: usize>(&mut self) -> Result<u64> {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&self.fixed::<N>()?);
        Ok(u64::from_le_bytes(all))
    }

    /// Up to the end of the line, which is skipped.
    fn line(&mut self) -> Result<Text> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&b| b == b'\n').ok_or_else(|| damaged("it has no end"))?;
        let text = self.take(len as u64)?;
        self.at += 1;
        Ok(text)
    }

    /// The key of a memo in digits.
    fn written_key(&mut self) -> Result<u64> {
        let key = self.line()?.text_in(self.bytes).parse();
        key.map_err(|_| damaged("a memo has no number"))
    }

    fn push_count<const N: usize>(&mut self) -> Result<()> {
        let value = self.count::<N>()?;
        self.push(Value::Int(value as i64))
    }

    /// An integer of any size, after its length in `N` bytes.
    fn push_long<const N: usize>(&mut self) -> Result<()> {
        let len = self.count::<N>()?;
        let Text { start, len } = self.take(len)?;
        let bytes = &self.bytes[start..start + len as usize];
        let sign = if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
        let mut all = [sign; 8];
        let Some(low) = all.get_mut(..bytes.len()) else { return self.push(Value::Other) };
        low.copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(all)))
    }

    /// A string, after its length in `N` bytes.
    fn push_text<const N: usize>(&mut self) -> Result<()> {
        let len = self.count::<N>()?;
        let text = self.take(len)?;
        self.push(Value::Text(text))
    }

    /// Bytes, after their length in `N` bytes: not needed.
    fn push_bytes<const N: usize>(&mut self) -> Result<()> {
        let len = self.count::<N>()?;
        self.take(len)?;
        self.push(Value::Other)
    }
}
