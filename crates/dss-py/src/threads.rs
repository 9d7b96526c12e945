//! How many threads work on an operation, also in the child of a `fork`.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

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
pub fn set_num_threads(threads: usize) -> PyResult<()> {
    if threads == 0 {
        return Err(value_error("the number of threads must be at least 1"));
    }
    THREADS.store(threads, Relaxed);
    if !FORKED.load(Relaxed) {
        dss_kernels::limit_threads(threads);
    }
    Ok(())
}

/// As many threads as another library uses, unless a number was set; cheap enough for every call.
#[pyfunction]
pub fn follow_num_threads(threads: usize) {
    if THREADS.load(Relaxed) == 0
        && FOLLOWED.swap(threads, Relaxed) != threads
        && threads > 0
        && !FORKED.load(Relaxed)
    {
        dss_kernels::limit_threads(threads);
    }
}

/// How many threads work on an operation.
#[pyfunction]
pub fn get_num_threads() -> usize {
    if FORKED.load(Relaxed) {
        return 1;
    }
    match (THREADS.load(Relaxed), FOLLOWED.load(Relaxed)) {
        (0, 0) => rayon::current_num_threads(),
        (0, threads) | (threads, _) => threads.min(rayon::current_num_threads()),
    }
}

extern "C" fn in_child() {
    FORKED.store(true, Relaxed);
    dss_kernels::limit_threads(1);
}

/// A forked child works on its one thread: those of its parent do not exist there.
pub fn survive_fork() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handler only stores to atomics.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}
