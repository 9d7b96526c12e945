//! A global allocator that counts the allocations of each thread and remembers the largest.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocations of one call.
#[derive(Clone, Copy)]
pub struct Allocations {
    pub count: usize,
    /// Bytes of the largest one.
    pub largest: usize,
}

const NONE: Allocations = Allocations { count: 0, largest: 0 };

thread_local!(static SEEN: Cell<Allocations> = const { Cell::new(NONE) });

struct Watching;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // At the end of a thread its counter may be gone.
        let _ = SEEN.try_with(|seen| {
            let Allocations { count, largest } = seen.get();
            seen.set(Allocations { count: count + 1, largest: largest.max(layout.size()) });
        });
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// The result of a call and its allocations on this thread. Calls must not be nested.
pub fn watch<T>(call: impl FnOnce() -> T) -> (T, Allocations) {
    SEEN.set(NONE);
    let result = call();
    (result, SEEN.get())
}
