//! A chosen number of threads.

use crate::failure::Failure;

/// Runs `work` on a pool of its own, or on the default one: a thread per core.
pub fn with<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Some(threads) = threads else { return Ok(work()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.map_err(Failure::failed)?.install(work))
}
