//! Buffers that are used again: fresh memory costs more than the arithmetic that fills it.

use crate::fork::Lock;
use crate::lines::Lines;
use crate::real::Real;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Idle buffers, for any number of plans and threads.
pub struct Buffers<T: Real>(Lock<Vec<Lines<T>>>);

impl<T: Real> Default for Buffers<T> {
    fn default() -> Self {
        Self(Lock::new(Vec::new()))
    }
}

impl<T: Real> Buffers<T> {
    /// A buffer of `len` elements with any content. If no idle one fits, one that does not is freed.
    pub fn take(self: &Arc<Self>, len: usize) -> Buffer<T> {
        let fits = |idle: &Lines<T>| (len..=2 * len).contains(&idle.as_slice().len());
        let (found, given_up) = {
            let mut idle = self.0.lock();
            match idle.iter().position(fits) {
                Some(i) => (Some(idle.swap_remove(i)), None),
                None => (None, idle.pop()),
            }
        };
        drop(given_up);
        let lines = found.unwrap_or_else(|| Lines::new(len.div_ceil(T::LINE)));
        Buffer { lines: Some(lines), len, home: self.clone() }
    }
}

/// A slice that goes back to its [`Buffers`] when dropped.
pub struct Buffer<T: Real> {
    /// Present until dropped.
    lines: Option<Lines<T>>,
    len: usize,
    home: Arc<Buffers<T>>,
}

impl<T: Real> Buffer<T> {
    /// Bytes that the first element is aligned to.
    pub const ALIGN: usize = 64;
}

impl<T: Real> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.lines.as_ref().map_or(&[], |lines| &lines.as_slice()[..self.len])
    }
}

impl<T: Real> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.lines.as_mut().map_or(&mut [], |lines| &mut lines.as_mut_slice()[..self.len])
    }
}

impl<T: Real> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.home.0.lock().extend(self.lines.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_comes_back() {
        let home = Arc::new(Buffers::<f32>::default());
        let first = home.take(100).as_ptr();
        assert_eq!(home.take(90).as_ptr(), first);
        assert_eq!(home.take(90).len(), 90);
        // Too large a request, and too small a one, get their own; the idle one is given up.
        let large = home.take(1000);
        assert!(home.0.lock().is_empty());
        drop(large);
        assert_eq!(home.take(10).len(), 10);
        assert_eq!(home.0.lock().len(), 1);
    }
}
