//! Real data, for the tests that use them when they are there.

use std::path::{Path, PathBuf};

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
