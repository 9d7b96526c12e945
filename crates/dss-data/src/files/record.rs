//! Labelled sequences as they were read, not yet encoded.

use std::fmt;

use sha2::{Digest, Sha256};

use dss_format::encoder::Column;

use crate::Note;

/// One sequence of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Text(String),
    /// `[len, channels]`
    Numbers(Vec<f32>),
}

impl Content {
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn numbers(&self) -> Option<&[f32]> {
        if let Self::Numbers(numbers) = self { Some(numbers) } else { None }
    }
}

/// What is in the label column, in `y.npy`, or as the folder's name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Label {
    Name(String),
    Numbers(Vec<f32>),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?}"),
            Self::Numbers(numbers) => write!(f, "{numbers:?}"),
        }
    }
}

pub(super) struct Record {
    /// Where it comes from, relative to the path of the task.
    pub name: String,
    pub content: Content,
    pub label: Label,
}

impl Record {
    /// Digest of the content alone: it decides the split, so that names and order do not.
    pub(super) fn digest(&self, seed: u64) -> [u8; 32] {
        let mut hash = Sha256::new().chain_update(seed.to_le_bytes());
        match &self.content {
            Content::Text(text) => hash.update(text),
            Content::Numbers(numbers) => numbers.iter().for_each(|x| hash.update(x.to_le_bytes())),
        }
        hash.finalize().into()
    }
}

/// Where the sequences are in the files.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Layout {
    /// One text per row of a table, or per file when there is no column.
    Texts(Option<Column>),
    /// One channel: a sequence per row of a table.
    Rows(Vec<Column>),
    /// One or more channels: a sequence per file (columns known for tables), or per item of a stacked array.
    Steps { columns: Vec<Column>, channels: usize, stacked: bool },
}

impl Layout {
    /// Numbers per step; `None` for text.
    pub(super) fn channels(&self) -> Option<usize> {
        match self {
            Self::Texts(_) => None,
            Self::Rows(_) => Some(1),
            Self::Steps { channels, .. } => Some(*channels),
        }
    }

    /// The columns of tables that are read.
    pub(super) fn columns(&self) -> &[Column] {
        match self {
            Self::Texts(column) => column.as_slice(),
            Self::Rows(columns) | Self::Steps { columns, .. } => columns,
        }
    }
}

/// Everything that was read from one table, pair of arrays, or folder.
pub(super) struct Records {
    pub records: Vec<Record>,
    pub layout: Layout,
    /// Whether the numbers of its tables have a decimal comma.
    pub decimal_comma: bool,
    pub notes: Vec<Note>,
}
