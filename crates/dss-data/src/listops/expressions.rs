//! Many labelled expressions in one buffer.

/// Expressions and their values: one byte per symbol, one offset and one label per expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expressions {
    codes: Vec<u8>,
    ends: Vec<usize>,
    labels: Vec<u8>,
}

impl Expressions {
    /// Adds one at the end.
    pub fn push(&mut self, codes: &[u8], label: u8) {
        self.codes.extend_from_slice(codes);
        self.ends.push(self.codes.len());
        self.labels.push(label);
    }

    /// Adds all of `other` at the end.
    pub fn append(&mut self, other: &Self) {
        let start = self.codes.len();
        self.codes.extend_from_slice(&other.codes);
        self.ends.extend(other.ends.iter().map(|end| start + end));
        self.labels.extend_from_slice(&other.labels);
    }

    /// Number of expressions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no expressions.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The symbols of expression `i`.
    pub fn codes(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.codes[start..self.ends[i]]
    }

    /// The values of all expressions.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// Symbols of the longest expression.
    pub fn longest(&self) -> usize {
        (0..self.len()).map(|i| self.codes(i).len()).max().unwrap_or(0)
    }
}
