//! How many threads work on an operation, also in the child of a `fork`.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use dss_kernels::fork;
use dss_kernels::plans::Planned;
use pyo3::prelude::*;

use crate::value_error;

/// What was set; 0: nothing, which means as many as [`FOLLOWED`].
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// What another library uses; 0: all cores.
static FOLLOWED: AtomicUsize = AtomicUsize::new(0);

/// Whether this process is the child of one that had loaded the module.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Sets how many threads work on an operation; results do not depend on it. The child of a fork always has one.
#[pyfunction]
pub fn set_num_threads(threads: i64) -> PyResult<()> {
    let threads = count(threads)?;
    THREADS.store(threads, Relaxed);
    dss_kernels::limit_threads(threads);
    Ok(())
}

/// As many threads as another library uses, unless a number was set; cheap enough for every call.
#[pyfunction]
pub fn follow_num_threads(threads: usize) {
    if THREADS.load(Relaxed) == 0 && FOLLOWED.swap(threads, Relaxed) != threads && threads > 0 {
        dss_kernels::limit_threads(threads);
    }
}

/// How many threads work on an operation.
#[pyfunction]
pub fn get_num_threads() -> usize {
    if is_forked() {
        return 1;
    }
    match (THREADS.load(Relaxed), FOLLOWED.load(Relaxed)) {
        (0, 0) => rayon::current_num_threads(),
        (0, threads) | (threads, _) => threads.min(rayon::current_num_threads()),
    }
}

/// A number of threads as Python gives it.
pub fn count(threads: i64) -> PyResult<usize> {
    let found = usize::try_from(threads).ok().filter(|threads| *threads > 0);
    let wrong = || format!("the number of threads must be at least 1, but is {threads}");
    found.ok_or_else(|| value_error(wrong()))
}

/// Whether this process is a forked child.
pub fn is_forked() -> bool {
    FORKED.load(Relaxed)
}

/// Runs work that uses rayon: in a forked child, where the shared pool has no threads, in a pool of its own.
pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> PyResult<R> {
    match is_forked() {
        true => dss_train::threads::with(Some(1), work).map_err(value_error),
        false => Ok(work()),
    }
}

extern "C" fn before_fork() {
    fork::before();
}

extern "C" fn in_parent() {
    fork::in_parent();
}

extern "C" fn in_child() {
    FORKED.store(true, Relaxed);
    fork::in_child();
}

/// Forks wait for the locks of `dss-kernels`, and a child works on its one thread.
pub fn survive_fork() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // Made now, not by a thread that a fork interrupts.
        let _ = (f32::buffers(), f64::buffers());
        #[cfg(unix)]
        // SAFETY: the handlers use atomics and one lock, which no other handler needs.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        }
    });
}
