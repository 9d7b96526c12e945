//! Locks that the child of a `fork` can use.
//!
//! A child has one thread, and a copy of every lock: one that another thread of its parent held at that moment is
//! locked for ever. So a fork waits for the short sections in which a thread holds one, and no such section begins
//! until the fork is over.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the thread in a section, or by the one that forks.
static GATE: Mutex<()> = Mutex::new(());

/// What the thread that forks holds.
struct Forking(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: only the thread that holds the gate uses it.
unsafe impl Sync for Forking {}

static FORKING: Forking = Forking(UnsafeCell::new(None));

/// To be called before a `fork`, as the first handler of `pthread_atfork`.
pub fn before() {
    let gate = section().0;
    // SAFETY: this thread holds the gate.
    unsafe { *FORKING.0.get() = Some(gate) };
}

/// To be called after a `fork` in the parent, as the second handler of `pthread_atfork`.
pub fn in_parent() {
    // SAFETY: this thread holds the gate, until the guard is dropped, which is outside of the cell by then.
    let gate = unsafe { (*FORKING.0.get()).take() };
    drop(gate);
}

/// To be called after a `fork` in the child, as the third handler of `pthread_atfork`: it works on its one thread, since
/// those of its parent do not exist there.
pub fn in_child() {
    crate::par::alone();
    in_parent();
}

/// While it lives, no fork happens. It must not live for long, and no two in one thread.
pub struct Section(MutexGuard<'static, ()>);

/// Begins a section.
#[must_use]
pub fn section() -> Section {
    Section(GATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A lock for short sections.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the value. Whoever has it must not take another lock.
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        let section = section();
        LockGuard {
            value: self.0.lock().unwrap_or_else(PoisonError::into_inner),
            _section: section,
        }
    }
}

/// The value of a [`Lock`]; the section ends after it is unlocked.
pub(crate) struct LockGuard<'a, T> {
    value: MutexGuard<'a, T>,
    _section: Section,
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
