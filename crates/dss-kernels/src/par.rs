//! One loop over independent items, on every core or on the calling thread.
//!
//! An item's result never depends on which worker took it or on how many there are: that is what makes results equal
//! bit for bit whatever the number of threads.

#[cfg(feature = "rayon")]
mod team;

/// Lets at most `threads` threads work on an operation, 1 being the caller alone. Results do not depend on it.
pub fn limit_threads(threads: usize) {
    #[cfg(feature = "rayon")]
    team::limit_threads(threads);
    #[cfg(not(feature = "rayon"))]
    let _ = threads;
}

/// Every operation works on its caller's thread from now on, as in the child of a `fork`.
pub(crate) fn alone() {
    #[cfg(feature = "rayon")]
    team::alone();
}

/// How many workers (and so how many scratch buffers) a plan should have.
pub(crate) fn workers() -> usize {
    #[cfg(feature = "rayon")]
    return team::workers();
    #[cfg(not(feature = "rayon"))]
    return 1;
}

/// The buffers of a plan, made at its first use: one for each worker that `pieces` of work keep busy.
pub(crate) fn fill<S>(scratches: &mut Vec<S>, pieces: usize, scratch: impl Fn() -> S) {
    if scratches.is_empty() {
        scratches.extend((0..workers().min(pieces)).map(|_| scratch()));
    }
}

/// Blocks of items at most that workers begin with.
#[cfg(feature = "rayon")]
const BLOCKS: usize = 16;

/// Calls `body(scratch, item)` once for every item in `0..items`; each worker owns one of the scratches.
///
/// A worker begins with a block of neighbouring items, the same in every loop: what it finds there it has often made
/// itself, and has in its cache.
pub(crate) fn for_each<S: Send>(
    scratches: &mut [S],
    items: usize,
    body: impl Fn(&mut S, usize) + Sync,
) {
    let used = scratches.len().min(items);
    if used <= 1 {
        for item in 0..items {
            body(&mut scratches[0], item);
        }
        return;
    }
    #[cfg(feature = "rayon")]
    {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let blocks = used.min(BLOCKS);
        let next = [const { AtomicUsize::new(0) }; BLOCKS];
        let scratches = Disjoint::new(scratches);
        team::run(&|worker| {
            if worker >= used {
                return;
            }
            // SAFETY: a worker has its own number.
            let scratch = &mut unsafe { scratches.part(worker, 1) }[0];
            // Its own block, then what others have left of theirs.
            for block in (0..blocks).map(|block| (worker + block) % blocks) {
                let own = share(items, blocks, block);
                loop {
                    let item = own.start + next[block].fetch_add(1, Relaxed);
                    if item >= own.end {
                        break;
                    }
                    body(scratch, item);
                }
            }
        });
    }
    #[cfg(not(feature = "rayon"))]
    unreachable!("a plan without `rayon` has one scratch");
}

/// Calls `work`. The workers of its loops stay awake from one to the next.
pub(crate) fn together<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(feature = "rayon")]
    return team::together(work);
    #[cfg(not(feature = "rayon"))]
    return work();
}

/// Share `i` of `n` things in `shares` contiguous shares.
pub(crate) fn share(n: usize, shares: usize, i: usize) -> std::ops::Range<usize> {
    i * n / shares..(i + 1) * n / shares
}

/// A mutable slice whose disjoint parts are written by different workers.
pub(crate) struct Disjoint<'a, T> {
    ptr: *mut T,
    len: usize,
    life: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: whoever takes a part, or writes through a pointer, guarantees that no one else does so there.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}
// SAFETY: as above; it is a `&mut [T]` in disguise.
unsafe impl<T: Send> Send for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { ptr: slice.as_mut_ptr(), len: slice.len(), life: std::marker::PhantomData }
    }

    /// A pointer to elements `start..start + len`; no one else may access them while the caller writes.
    pub(crate) fn pointer(&self, start: usize, len: usize) -> *mut T {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: in bounds by the assertion.
        unsafe { self.ptr.add(start) }
    }

    /// Elements `start..start + len`.
    ///
    /// # Safety
    /// No two parts that live at the same time may overlap.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn part(&self, start: usize, len: usize) -> &mut [T] {
        // SAFETY: in bounds by `pointer`; not aliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(start, len), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::Disjoint;

    #[test]
    #[should_panic = "is_some_and"]
    fn a_range_that_overflows_is_out_of_bounds() {
        Disjoint::new(&mut [0u8; 4]).pointer(usize::MAX, 2);
    }
}
