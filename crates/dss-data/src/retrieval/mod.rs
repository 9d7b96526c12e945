//! Retrieval: do two documents belong together? Read as characters, or as bytes.
//!
//! The data are the paper citations of AAN in the form of the Long Range Arena, or pairs of film reviews instead. Each
//! document is stored once; pairs are numbers of documents. The vocabulary is counted on the first L - 1 characters of
//! both documents of every training pair.

mod builder;
mod config;
mod films;
mod find;
mod papers;
mod predict;

use std::path::Path;

use self::builder::{Builder, Pair};
pub use self::config::RetrievalConfig;
use self::find::Pairs;
pub(crate) use self::predict::read;
use crate::characters::{TextWriter, Texts, balanced_order};
use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::skip::Skips;
use crate::store::{Store, StoreKey, Writer};
use crate::subset::select;
use crate::task::Split;
use crate::{Encoder, Example, InputKind, Note, Result, Target, Task, TaskSpec, subset};
use dss_format::encoder::quoted;

/// Increases when the stored form changes.
const VERSION: u32 = 1;

impl TaskSource for RetrievalConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        self.check()?;
        let source = Pairs::find(&self.dir, &self.reviews, data_dir)?;
        let key = source.key(StoreKey::new("retrieval", VERSION).settings(&self.stored()))?;
        let store = Store::open_or_build(key, |writer| self.store(&source, writer, progress))?;
        let texts = Texts::open(store, self.level, self.len, self.min_count)?;
        let mut notes: Vec<Note> = texts.note().cloned().into_iter().collect();
        if matches!(source, Pairs::Films { .. }) {
            notes.push("the pairs are film reviews (same film or not), a stand-in for AAN".into());
        }

        let encoder = texts.encoder().clone();
        let mut hash = SplitHash::new(name);
        hash.settings(&encoder);
        let (mut pairs, mut numbers) = (Vec::new(), [const { Vec::new() }; 3]);
        for (split, count) in Split::ALL.into_iter().zip([self.train, self.val, self.test]) {
            let start = pairs.len() as u32;
            for pair in self.pairs(&texts, split, count)? {
                hash.bytes(split.name(), &key_of(&texts, &pair));
                hash.bytes("label", &pair.class.to_le_bytes());
                pairs.push(pair);
            }
            numbers[split as usize] = (start..pairs.len() as u32).collect();
        }
        let input = InputKind::Tokens { vocab: encoder.alphabet.symbols().len() };
        let spec = TaskSpec::classes(name, input, source.labels(), self.len);
        let spec = TaskSpec { pair: true, ..spec };
        let splits = select(numbers, move |i| {
            let Pair { class, first, second } = pairs[i];
            let second = Some(texts.tokens(second as usize)?);
            let input = texts.tokens(first as usize)?;
            Ok(Example { input, second, target: Target::Class(class) })
        });
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::TextPairs(encoder)) })
    }
}

impl RetrievalConfig {
    fn store(&self, source: &Pairs, writer: &mut Writer, progress: &dyn Fn(&str)) -> Result<()> {
        let mut builder = Builder::new(TextWriter::new(writer, self.level, self.len));
        let mut skips = Skips::new(self.skip_bad);
        match source {
            Pairs::Papers(files) => papers::build(files, &mut builder, &mut skips, progress)?,
            Pairs::Films { pairs, reviews } => {
                films::build(pairs, reviews, &mut builder, &mut skips, progress)?;
            }
        }
        builder.finish(skips.note())
    }

    /// The first `count` pairs of a split by content; 0 = all.
    fn pairs(&self, texts: &Texts, split: Split, count: usize) -> Result<Vec<Pair>> {
        let pairs = builder::pairs(texts, split)?;
        let keys: Vec<[u8; 64]> = pairs.iter().map(|pair| key_of(texts, pair)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let classes: Vec<u32> = pairs.iter().map(|pair| pair.class).collect();
        let mut order = balanced_order(self.split_seed, &keys, &classes);
        subset::limit(split.name(), count, &mut order)?;
        Ok(order.into_iter().map(|i| pairs[i as usize]).collect())
    }
}

/// What a pair contains: the digests of both texts.
fn key_of(texts: &Texts, pair: &Pair) -> [u8; 64] {
    let mut key = [0; 64];
    key[..32].copy_from_slice(texts.digest(pair.first as usize));
    key[32..].copy_from_slice(texts.digest(pair.second as usize));
    key
}

/// The class of a label, which is 0 or 1, written as a whole or a decimal number.
fn class(label: &[u8]) -> std::result::Result<u32, String> {
    let text = String::from_utf8_lossy(&label[..label.len().min(40)]);
    match text.trim().parse::<f64>() {
        Ok(0.0) => Ok(0),
        Ok(1.0) => Ok(1),
        _ => Err(format!("expected a label 0.0 or 1.0, found {}", quoted(&text))),
    }
}
