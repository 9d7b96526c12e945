//! What the protocol of a team is made of.

use std::cell::UnsafeCell;
pub(super) use std::sync::atomic::{AtomicUsize, Ordering};

/// How often a thread looks before it offers its core to others.
const LOOKS: usize = 4096;

/// How often it looks before it counts as idle.
const LONG: usize = 16 * LOOKS;

/// Takes the time between two looks, `looks` of which were in vain; says whether that has gone on for long.
pub(super) fn pause(looks: usize) -> bool {
    if looks < LOOKS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
    looks >= LONG
}

/// A value that one thread writes and others read, at different times.
pub(super) struct TaskCell<T>(UnsafeCell<T>);

impl<T: Copy> TaskCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// # Safety
    /// No one reads or writes at the same time.
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: by the caller's promise.
        unsafe { *self.0.get() = value };
    }

    /// # Safety
    /// No one writes at the same time.
    pub(super) unsafe fn read(&self) -> T {
        // SAFETY: by the caller's promise.
        unsafe { *self.0.get() }
    }
}
