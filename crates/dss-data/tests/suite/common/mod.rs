//! A cache of the tests' own, and real data for the tests that use them when they are there.

use std::path::{Path, PathBuf};
use std::sync::Once;

/// Decoded data go to an empty folder of the build, not to the user's.
pub fn own_cache() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        // What an earlier run has left; there may be nothing.
        let _ = std::fs::remove_dir_all(&folder);
        // SAFETY: the standard library alone reads the environment here, behind its lock.
        unsafe { std::env::set_var("DSS_CACHE", folder) };
    });
}

/// A file of the data folder: `DSS_DATA`, or `shared/data` next to the repository. Says so when it is not there.
pub fn data(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("DSS_DATA").map_or_else(beside, PathBuf::from).join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there; set DSS_DATA to the data folder", path.display());
    None
}
