//! Buffers aligned to cache lines, on huge pages where the system has them.

use crate::real::Real;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const LINE: usize = 64;
const HUGE_PAGE: usize = 1 << 21;

/// A zeroed buffer of `T` that starts on a cache line and fills whole lines.
///
/// Buffers of a huge page or more ask for such pages: a long FFT walks several streams that are far apart, and with
/// small pages spends a good part of its time on address translation.
pub(crate) struct Lines<T> {
    ptr: NonNull<T>,
    len: usize,
    layout: Layout,
}

// SAFETY: it owns its elements as a `Vec` does.
unsafe impl<T: Send> Send for Lines<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Lines<T> {}

impl<T: Real> Lines<T> {
    /// `count` lines of `T::LINE` elements.
    ///
    /// # Panics
    /// If the size overflows.
    pub(crate) fn new(count: usize) -> Self {
        let bytes = count.max(1).checked_mul(LINE).expect("buffer size overflows");
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { LINE };
        let layout = Layout::from_size_align(bytes, align).expect("buffer size overflows");
        // SAFETY: the size is not zero.
        let Some(ptr) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if align == HUGE_PAGE {
            // SAFETY: the range was just allocated; a refusal changes nothing.
            unsafe { libc::madvise(ptr.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: `bytes` bytes were just allocated.
        unsafe { ptr.write_bytes(0, bytes) };
        Self { ptr: ptr.cast(), len: count * T::LINE, layout }
    }

    /// A pointer to the elements, for callers that read and write parts of them in turn.
    pub(crate) fn pointer(&self) -> *mut T {
        self.ptr.as_ptr()
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `len` initialised elements; all-zero bytes are a float.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl<T: Real> Clone for Lines<T> {
    fn clone(&self) -> Self {
        let mut new = Self::new(self.len / T::LINE);
        new.copy_from_slice(self);
        new
    }
}

impl<T: Real> PartialEq for Lines<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Real> std::fmt::Debug for Lines<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: Real> Deref for Lines<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Real> DerefMut for Lines<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.ptr.as_ptr().cast(), self.layout) };
    }
}
