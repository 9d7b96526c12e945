//! Training images that are easier in the first epochs.

use std::sync::Arc;

use crate::{Dataset, Example, Result};

/// A training split: `stages` in the first epochs, one each, then `last`. All have as many images.
pub(super) struct Curriculum {
    pub(super) stages: Vec<Arc<dyn Dataset>>,
    pub(super) last: Arc<dyn Dataset>,
}

impl Dataset for Curriculum {
    fn len(&self) -> usize {
        self.last.len()
    }

    fn example(&self, i: usize) -> Result<Example> {
        self.last.example(i)
    }

    fn in_epoch(&self, _seed: u64, epoch: u64) -> Option<Arc<dyn Dataset>> {
        self.stages.get(usize::try_from(epoch).ok()?).cloned()
    }
}
