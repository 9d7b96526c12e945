//! Tasks whose examples are generated when they are needed: no memory, no files.

use std::sync::Arc;

use crate::hash::SplitHash;
use crate::task::Split;
use crate::{Dataset, Encoder, Example, Result, Target, Task, TaskSpec, limits};

/// Examples as a pure function of split and number.
pub(crate) trait Source: Send + Sync + 'static {
    /// Every setting that an example depends on.
    fn identity(&self) -> serde_json::Value;

    /// Example `i` of a split.
    fn example(&self, split: &str, i: u64) -> Example;
}

struct GeneratedSplit<S> {
    source: Arc<S>,
    split: Split,
    count: usize,
}

impl<S: Source> Dataset for GeneratedSplit<S> {
    fn len(&self) -> usize {
        self.count
    }

    fn example(&self, i: usize) -> Result<Example> {
        Ok(self.source.example(self.split.name(), i as u64))
    }
}

/// Examples of each split whose targets enter the split hash, so that it notices a change of the generator.
const HASHED: usize = 4;

/// A task of `counts` examples for train, val and test.
pub(crate) fn task<S: Source>(
    source: Arc<S>,
    spec: TaskSpec,
    encoder: Encoder,
    counts: [usize; 3],
) -> Result<Task> {
    limits::counts(counts, "sequence")?;
    let mut hash = SplitHash::new(&spec.name);
    hash.settings(&source.identity());
    for (split, count) in Split::ALL.into_iter().zip(counts) {
        hash.bytes(split.name(), &(count as u64).to_le_bytes());
        for i in 0..count.min(HASHED) {
            hash.bytes("target", &target_bytes(&source.example(split.name(), i as u64).target));
        }
    }
    let splits = [0, 1, 2].map(|i| -> Arc<dyn Dataset> {
        Arc::new(GeneratedSplit { source: source.clone(), split: Split::ALL[i], count: counts[i] })
    });
    Ok(Task::new(spec, splits, hash, encoder))
}

fn target_bytes(target: &Target) -> Vec<u8> {
    match target {
        Target::Class(class) => class.to_le_bytes().into(),
        Target::PositionClasses(classes) => classes.iter().flat_map(|c| c.to_le_bytes()).collect(),
        Target::Values(values) | Target::PositionValues(values) => {
            values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
    }
}
