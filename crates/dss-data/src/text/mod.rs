//! IMDB: is a film review positive or negative? Read as characters, or as bytes.
//!
//! The vocabulary is counted on the first L - 1 characters of *all* training reviews, those held out for validation
//! included: it uses no labels, and it is the authors' (129 ids at L = 2048).
//!
//! Which reviews are held out depends on their texts and the seed only, so every form of the data gives the same
//! splits, at every length. Every split has the classes in the proportion of the whole.

mod config;
mod official;
mod predict;
mod reviews;
mod tables;

use std::path::Path;

pub use self::config::{TextConfig, Validation};
pub(crate) use self::predict::read;
pub(crate) use self::reviews::{Review, Reviews};
use crate::characters::{TextWriter, Texts, balanced_order, digest};
use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::skip::Skips;
use crate::store::{Store, StoreKey, Writer};
use crate::subset::select;
use crate::task::Split;
use crate::{Encoder, Error, Example, InputKind, Note, Result, Task, TaskSpec, subset};

/// Increases when the stored form changes.
const VERSION: u32 = 1;

impl TaskSource for TextConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        self.check()?;
        let reviews = Reviews::find(&self.dir, data_dir)?;
        let key = reviews.key(StoreKey::new("text", VERSION).settings(&self.stored()))?;
        let store = Store::open_or_build(key, |writer| {
            progress(&format!("text: reading {}", reviews.place().display()));
            self.store(&reviews, writer)
        })?;
        let texts = Texts::open(store, self.level, self.len, self.min_count)?;
        let [learn, exam] = [Split::Train, Split::Test].map(|split| self.order(&texts, split));
        let mut notes: Vec<Note> = texts.note().cloned().into_iter().collect();
        notes.extend(reviews.expected().and_then(|n| incomplete(n, learn.len(), exam.len())));
        let splits = self.split(learn, exam, &mut notes)?;

        let encoder = texts.encoder().clone();
        let mut hash = SplitHash::new(name);
        hash.settings(&encoder);
        for (split, numbers) in Split::ALL.iter().zip(&splits) {
            for &i in numbers {
                hash.bytes(split.name(), texts.digest(i as usize));
                hash.bytes("label", &[class(&texts, i) as u8]);
            }
        }
        let input = InputKind::Tokens { vocab: encoder.alphabet.symbols().len() };
        let spec = TaskSpec::classes(name, input, reviews::CLASSES, self.len);
        let splits = select(splits, move |i| {
            Ok(Example::classified(texts.tokens(i)?, class(&texts, i as u32)))
        });
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::Text(encoder)) })
    }
}

impl TextConfig {
    /// Stores all reviews, in the order of the source.
    fn store(&self, reviews: &Reviews, writer: &mut Writer) -> Result<()> {
        let mut texts = TextWriter::new(writer, self.level, self.len);
        let mut skips = Skips::new(self.skip_bad);
        reviews.for_each(&mut |review| {
            let checked = review.and_then(|review| {
                let cut = if review.text.is_empty() {
                    Err("the text is empty")
                } else {
                    texts.cut(review.text)
                };
                cut.map_err(|what| review.fault(what))
                    .map(|cut| (review.split, review.class, cut, digest(review.text)))
            });
            let Some((split, class, cut, digest)) = skips.check(checked)? else { return Ok(()) };
            if split == Split::Train {
                texts.count(cut, 1);
            }
            texts.push(label(split, class), cut, &digest)
        })?;
        texts.finish(skips.note())
    }

    /// The reviews of the training or the test set.
    fn order(&self, texts: &Texts, split: Split) -> Vec<u32> {
        let numbers: Vec<u32> = (0..texts.len() as u32)
            .filter(|&i| texts.label(i as usize) / 2 == label(split, 0) / 2)
            .collect();
        let keys: Vec<&[u8]> = numbers.iter().map(|&i| texts.digest(i as usize)).collect();
        let classes: Vec<u32> = numbers.iter().map(|&i| class(texts, i)).collect();
        let order = balanced_order(self.split_seed, &keys, &classes);
        order.into_iter().map(|i| numbers[i as usize]).collect()
    }

    /// Train, val and test out of the training and the test set.
    fn split(
        &self,
        mut learn: Vec<u32>,
        mut test: Vec<u32>,
        notes: &mut Vec<Note>,
    ) -> Result<[Vec<u32>; 3]> {
        subset::limit("test", self.test, &mut test)?;
        let val = match self.validation {
            Validation::Test => {
                notes.push(
                    "validation and test are the same reviews, as in the authors' code".into(),
                );
                test.clone()
            }
            Validation::HeldOut if self.val < learn.len() => {
                let rest = learn.split_off(self.val);
                std::mem::replace(&mut learn, rest)
            }
            Validation::HeldOut => {
                let what = format!("the training set has {} reviews; hold fewer out", learn.len());
                return Err(Error::setting("val", self.val, what));
            }
        };
        subset::limit("train", self.train, &mut learn)?;
        Ok([learn, val, test])
    }
}

/// A remark if the official data are incomplete.
fn incomplete(expected: usize, train: usize, test: usize) -> Option<Note> {
    (train != expected || test != expected).then(|| {
        let what = "test reviews found; the official data have";
        format!("{train} training and {test} {what} {expected} each").into()
    })
}

/// What a store keeps of split and class.
fn label(split: Split, class: u32) -> u32 {
    2 * u32::from(split == Split::Test) + class
}

fn class(texts: &Texts, i: u32) -> u32 {
    texts.label(i as usize) % 2
}
