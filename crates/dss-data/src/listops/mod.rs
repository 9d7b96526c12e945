//! ListOps: nested lists of MIN, MAX, MED and SM over digits; the class is the value of the expression.
//!
//! The task of Nangia & Bowman (2018) in the long form of the Long Range Arena: a tree is drawn top-down; a node above
//! depth `max_depth` is an operator with probability 1/4 and else a digit; an operator has 2..`max_args` children; trees
//! with `min_length` < length < `max_length` symbols are kept, each only once.

mod dataset;
mod evaluate;
mod expressions;
mod generate;
pub mod symbols;
mod tsv;

use std::path::Path;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use dataset::{ids, vocabulary};
use dss_format::encoder::Encoder;
pub use dss_format::encoder::ListopsEncoder;
pub use evaluate::evaluate;
pub use expressions::Expressions;
pub use generate::generate;
pub use tsv::{read_tsv, write_tsv};

use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::store::{Store, StoreKey};
use crate::subset::select;
use crate::{Error, Example, InputKind, Note, Result, Task, TaskSpec, io, limits};

/// Increases when the generator produces different expressions.
const GENERATOR_VERSION: u32 = 1;
/// Fewer expressions than this are generated in a moment, and not cached.
const KEPT: usize = 10_000;

/// Which trees are drawn and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grammar {
    /// Depth at which every node is a digit; the root has depth 1.
    pub max_depth: usize,
    /// Most children of an operator.
    pub max_args: usize,
    /// Kept trees are longer than this.
    pub min_length: usize,
    /// Kept trees are shorter than this.
    pub max_length: usize,
}

/// Settings of the task `listops`. The defaults are the sizes of the Long Range Arena.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ListopsConfig {
    /// Training expressions to generate; with dir, the most to use.
    pub train: usize,
    /// Validation expressions to generate; with dir, the most to use.
    pub val: usize,
    /// Test expressions to generate; with dir, the most to use.
    pub test: usize,
    /// Generated expressions have more symbols than this.
    pub min_length: usize,
    /// Generated expressions have fewer symbols than this.
    pub max_length: usize,
    /// Nodes at this depth are always digits; the root has depth 1.
    pub max_depth: usize,
    /// Largest number of arguments of an operator, at least 2.
    pub max_args: usize,
    /// Sequence length L of the model, including `<eos>`; 0 = as long as needed.
    pub len: usize,
    /// Random seed of the generator.
    pub seed: u64,
    /// Folder with basic_train.tsv, basic_val.tsv and basic_test.tsv (or .gz); empty = generate.
    pub dir: String,
    /// Obsolete: accepted in configurations of version 0.1, without effect.
    #[doc(hidden)]
    #[serde(skip_serializing)]
    pub cache: String,
}

impl Default for ListopsConfig {
    fn default() -> Self {
        Self {
            train: 96_000,
            val: 2_000,
            test: 2_000,
            min_length: 500,
            max_length: 2_000,
            max_depth: 10,
            max_args: 10,
            len: 0,
            seed: 1112,
            dir: String::new(),
            cache: String::new(),
        }
    }
}

impl TaskSource for ListopsConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        let mut notes = Vec::new();
        let (rows, counts, hash) = if self.dir.is_empty() {
            self.check()?;
            let rows = self.generated(progress, &mut notes)?;
            let mut hash = SplitHash::new(name);
            hash.settings(&self.identity());
            hash.bytes("labels", rows.labels());
            (rows, [self.train, self.val, self.test], hash)
        } else {
            self.read_official(name, data_dir, progress)?
        };
        limits::length("len", self.len)?;
        let needed = 1 + if self.dir.is_empty() { self.max_length - 1 } else { rows.longest() };
        if self.len != 0 && self.len < needed {
            let what = format!(
                "too short: expressions with <eos> take up to {needed}; use 0 or at least {needed}"
            );
            return Err(Error::setting("len", self.len, what));
        }
        let vocabulary = vocabulary(&rows, counts[0]);
        let input = InputKind::Tokens { vocab: vocabulary.symbols().len() };
        let labels = (0..10).map(|d| d.to_string());
        let spec = TaskSpec::classes(name, input, labels, self.len.max(needed));
        let encoder = ListopsEncoder { vocabulary, len: spec.len };
        let ids = ids(&encoder);
        let mut start = 0;
        let numbers = counts.map(|count| {
            start += count as u32;
            (start - count as u32..start).collect()
        });
        let splits = select(numbers, move |i| {
            let class = rows.labels()[i].into();
            Ok(Example::classified(dataset::encode(&ids, rows.codes(i)), class))
        });
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::Listops(encoder)) })
    }
}

impl ListopsConfig {
    /// Which trees these settings draw and keep.
    pub fn grammar(&self) -> Grammar {
        let Self { max_depth, max_args, min_length, max_length, .. } = *self;
        Grammar { max_depth, max_args, min_length, max_length }
    }

    fn count(&self) -> usize {
        self.train + self.val + self.test
    }

    /// What the generated expressions depend on.
    fn identity(&self) -> impl Serialize {
        (self.grammar(), self.seed, [self.train, self.val, self.test])
    }

    fn check(&self) -> Result<()> {
        limits::counts([self.train, self.val, self.test], "expression")?;
        if self.max_args < 2 || self.max_args > 1000 {
            return Err(Error::setting("max_args", self.max_args, "must be 2..1000"));
        }
        if self.max_depth < 2 || self.max_depth > 100 {
            return Err(Error::setting("max_depth", self.max_depth, "must be 2..100"));
        }
        limits::length("min_length", self.min_length)?;
        limits::length("max_length", self.max_length)?;
        if self.max_length < self.min_length + 2 {
            let what = format!("must be at least min_length + 2 = {}", self.min_length + 2);
            return Err(Error::setting("max_length", self.max_length, what));
        }
        Ok(())
    }

    /// Generates all splits, or takes them from the cache folder.
    fn generated(&self, progress: &dyn Fn(&str), notes: &mut Vec<Note>) -> Result<Expressions> {
        if self.count() < KEPT {
            return self.generate(progress);
        }
        let key = StoreKey::new("listops", GENERATOR_VERSION).settings(&self.identity());
        let mut made = None;
        let store = Store::open_or_build(key, |writer| {
            let rows = made.insert(self.generate(progress)?);
            let examples = rows.labels().iter().enumerate();
            examples
                .into_iter()
                .try_for_each(|(i, &label)| writer.push(label.into(), rows.codes(i)))
        });
        match (store, made) {
            (Ok(_), Some(rows)) => Ok(rows),
            (Ok(store), None) => stored_rows(&store).or_else(|error| {
                notes.push(format!("the data are generated again: {error}").into());
                self.generate(progress)
            }),
            // Expressions that cannot be cached can still be used.
            (Err(error @ Error::Io { .. }), made) => {
                notes.push(
                    format!("the generated data are used but cannot be cached: {error}").into(),
                );
                made.map_or_else(|| self.generate(progress), Ok)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn generate(&self, progress: &dyn Fn(&str)) -> Result<Expressions> {
        let rows = generate(&self.grammar(), self.count(), self.seed, progress);
        if rows.len() < self.count() {
            let what = format!(
                "could generate only {} of {} different expressions; allow more lengths, depth or arguments",
                rows.len(),
                self.count()
            );
            return Err(Error::setting("max_length", self.max_length, what));
        }
        Ok(rows)
    }

    /// Reads the official files, at most as many rows of each as the settings say.
    fn read_official(
        &self,
        name: &str,
        data_dir: Option<&Path>,
        progress: &dyn Fn(&str),
    ) -> Result<(Expressions, [usize; 3], SplitHash)> {
        let dir = io::resolve(&self.dir, data_dir);
        let mut all = Expressions::default();
        let mut counts = [0; 3];
        let mut hash = SplitHash::new(name);
        let splits = [("train", self.train), ("val", self.val), ("test", self.test)];
        for (slot, (split, most)) in splits.into_iter().enumerate() {
            let file = format!("basic_{split}.tsv");
            let path = io::find(&dir, &[&file]).ok_or_else(|| Error::Missing {
                what: format!("{file} (or {file}.gz)"),
                looked: vec![dir.clone()],
                hint: "Put the three official ListOps files there, name their folder with --set task.dir=DIR, or leave task.dir \
                       empty to generate the data."
                    .into(),
            })?;
            progress(&format!("ListOps: reading {}", path.display()));
            let rows = read_tsv(&path)?;
            counts[slot] = rows.len().min(most);
            let mut part = Expressions::default();
            (0..counts[slot]).for_each(|i| part.push(rows.codes(i), rows.labels()[i]));
            (0..part.len()).for_each(|i| hash.bytes(split, part.codes(i)));
            all.append(&part);
        }
        Ok((all, counts, hash))
    }
}
/// The expressions of a store.
fn stored_rows(store: &Store) -> Result<Expressions> {
    let mut rows = Expressions::default();
    for i in 0..store.len() {
        rows.push(&store.bytes(i)?, store.label(i) as u8);
    }
    Ok(rows)
}
