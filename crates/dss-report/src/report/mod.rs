//! The report of a run: one HTML file that needs nothing else, neither a network nor scripts.
//!
//! It is made from the files of the run directory, so it can be made at any time: while a run is at work, when it was
//! interrupted, or when it is finished.

mod answers;
mod confusion;
mod curves;
mod generated;
mod inside;
mod page;
mod run;
mod tables;

use std::path::{Path, PathBuf};

use dss_train::run_dir::write_file;

use crate::error::Result;

/// The look of all pages: light and dark, on screen and on paper.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Writes `report.html` into a run directory and returns its path.
///
/// # Errors
///
/// If `config.toml` is missing, a file cannot be read or understood, or the report cannot be written.
pub fn write_report(run_dir: &Path) -> Result<PathBuf> {
    let run = run::Run::read(run_dir)?;
    let path = run_dir.join("report.html");
    write_file(&path, page::html(&run).as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests;
