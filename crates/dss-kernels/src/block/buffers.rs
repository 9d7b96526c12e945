//! Buffers that are used again: fresh memory costs more than the arithmetic that fills it.

use crate::lines::Lines;
use crate::real::Real;
use std::sync::{Mutex, PoisonError};

/// Buffers between uses, for any number of plans and threads.
pub struct Buffers<T: Real>(Mutex<Vec<Lines<T>>>);

impl<T: Real> Default for Buffers<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T: Real> Buffers<T> {
    /// A buffer of at least `len` elements, with old content. Where none fits, one that does not is given up for it.
    pub(super) fn take(&self, len: usize) -> Lines<T> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &Lines<T>| (len..=2 * len).contains(&buffer.as_slice().len());
        if let Some(i) = free.iter().position(fits) {
            return free.swap_remove(i);
        }
        free.pop();
        Lines::new(len.div_ceil(T::LINE))
    }

    /// Takes buffers back.
    pub(super) fn give(&self, buffers: impl IntoIterator<Item = Lines<T>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(buffers);
    }
}
