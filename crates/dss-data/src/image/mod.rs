//! CIFAR-10 as grey sequences of 1024 pixels, row by row (Long Range Arena: Image).
//!
//! The official binary files and grey idx files of the same images give the same task.

mod encoder;
mod grey;
mod source;

use std::path::Path;
use std::sync::Arc;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

pub use dss_format::encoder::GreyEncoder;
pub use grey::{SIDE, grey};
use source::ImageSource;

use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::skip::Skips;
use crate::store::{Store, StoreKey, content_order};
use crate::subset::{limit_all, select};
use crate::task::Split;
use crate::{Encoder, Example, InputKind, Note, Result, Task, TaskSpec};

/// The classes, in the order of the labels.
pub const LABELS: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
/// Share of the training images that is trained on; the others are the validation split.
const TRAIN_TENTHS: usize = 9;
/// Training and test images of the official data set.
const OFFICIAL: [usize; 2] = [50_000, 10_000];

/// Settings of the task `image`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ImageConfig {
    /// Folder or archive of CIFAR-10; empty = the data folder or its subfolder cifar10.
    pub dir: String,
    /// Training images; 0 = all (45,000).
    pub train: usize,
    /// Validation images; 0 = all (5,000).
    pub val: usize,
    /// Test images; 0 = all (10,000).
    pub test: usize,
    /// Random seed of the split of the 50,000 images into training and validation.
    pub split_seed: u64,
    /// Skip faulty images and report how many, instead of stopping at the first.
    pub skip_bad: bool,
}

impl Default for ImageConfig {
    fn default() -> Self {
        Self { dir: String::new(), train: 0, val: 0, test: 0, split_seed: 42, skip_bad: false }
    }
}

/// What a store knows of its images: the training images come first.
#[derive(Serialize, Deserialize)]
struct About {
    train: usize,
    note: Option<Note>,
}

impl TaskSource for ImageConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        let source = ImageSource::find(&self.dir, data_dir)?;
        let store = self.store(name, &source, progress)?;
        let about: About = store.info()?;

        // The images are told apart by their grey pixels, so that every form of the files gives the same split.
        let pixels: Vec<_> = (0..about.train).map(|i| store.bytes(i)).collect::<Result<_>>()?;
        let pixels: Vec<&[u8]> = pixels.iter().map(Vec::as_slice).collect();
        let mut train = content_order(self.split_seed, &pixels);
        let val = train.split_off(train.len() * TRAIN_TENTHS / 10);
        let test = (about.train as u32..store.len() as u32).collect();

        let mut hash = SplitHash::new(name);
        hash.settings(&self.split_seed);
        hash.bytes("images", store.content_hash());
        let mut splits = [train, val, test];
        limit_all([self.train, self.val, self.test], &mut splits)?;
        for (split, numbers) in Split::ALL.iter().zip(&splits) {
            hash.bytes(split.name(), &(numbers.len() as u64).to_le_bytes());
        }

        let mut notes: Vec<Note> = about.note.into_iter().collect();
        let found = [about.train, store.len() - about.train];
        if found != OFFICIAL {
            let [a, b] = found;
            notes.push(
                format!("{a} training and {b} test images; CIFAR-10 has 50000 and 10000").into(),
            );
        }
        let encoder = GreyEncoder::default();
        let values = encoder.values();
        let splits = select(splits, move |i| {
            let input = encoder::sequence(&store.bytes(i)?, &values);
            Ok(Example::classified(input, store.label(i)))
        });
        let input = InputKind::Values { channels: 1 };
        let spec = TaskSpec::classes(name, input, LABELS, SIDE * SIDE);
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::Grey(encoder)) })
    }
}

impl ImageConfig {
    /// The grey images, decoded once.
    fn store(
        &self,
        name: &str,
        source: &ImageSource,
        progress: &dyn Fn(&str),
    ) -> Result<Arc<Store>> {
        let mut key = StoreKey::new(name, 1).settings(&self.skip_bad);
        for path in source.paths() {
            key = key.source(path)?;
        }
        Store::open_or_build(key, |writer| {
            progress(&format!("CIFAR-10: reading {}", source.folder().display()));
            let mut skips = Skips::new(self.skip_bad);
            let [train, test] = source.read(&mut skips)?;
            for (label, pixels) in train.iter().chain(test.iter()) {
                writer.push(label.into(), pixels)?;
            }
            writer.info(&About { train: train.len(), note: skips.note() });
            Ok(())
        })
    }
}
