//! A chosen number of threads.

use crate::error::{Error, Result};

/// The most threads that can be asked for.
pub const MAX_THREADS: usize = 1024;

/// Runs `work` on a pool of its own: of as many threads as asked for, or, for `None`, of one per core.
///
/// # Errors
/// If `threads` is not in 1..=[`MAX_THREADS`], or the system does not start them.
pub fn with<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T> {
    let refused = |what: String| Error::Threads { threads: threads.unwrap_or(0), what };
    if threads.is_some_and(|threads| !(1..=MAX_THREADS).contains(&threads)) {
        return Err(refused(format!("expected 1 to {MAX_THREADS}")));
    }
    // Rayon takes 0 for one per core.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    Ok(pool.map_err(|error| refused(error.to_string()))?.install(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_many_as_asked_for() {
        assert_eq!(with(Some(3), rayon::current_num_threads).unwrap(), 3);
        assert_eq!(with(None, || 7).unwrap(), 7);
        for wrong in [0, MAX_THREADS + 1, usize::MAX] {
            let error = with(Some(wrong), || ()).unwrap_err().to_string();
            assert!(error.contains("expected 1 to 1024"), "{error}");
        }
    }
}
