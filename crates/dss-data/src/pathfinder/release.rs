//! Writes generated images in the layout of the Long Range Arena's release.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::parameters::distractor_length;
use super::{ImageSet, grey};
use crate::{Error, Result, io};

/// Images per batch folder.
const BATCH: u64 = 1000;

/// Writes the images `range` of a set as PNG files with their metadata; `DIR/pathfinder32/curv_contour_length_14` or so
/// is returned. Image i is `imgs/<i / 1000>/sample_<i % 1000>.png`. Files that are there already are replaced.
pub fn write_lra_folder(
    dir: &Path,
    set: &ImageSet,
    range: Range<u64>,
    progress: &dyn Fn(&str),
) -> Result<PathBuf> {
    let generator = set.generator();
    let [size, difficulty] = set.folders();
    let folder = dir.join(size).join(difficulty);
    let mut start = range.start;
    while start < range.end {
        let batch = start / BATCH;
        let end = range.end.min((batch + 1) * BATCH);
        let pictures = folder.join(format!("imgs/{batch}"));
        fs::create_dir_all(&pictures).map_err(Error::io("create the folder", &pictures))?;
        let rows = (start..end).into_par_iter().map(|i| {
            let image = generator.image(i);
            let file = pictures.join(format!("sample_{}.png", i % BATCH));
            let bytes = grey::encode(&image.pixels, set.size);
            fs::write(&file, bytes).map_err(Error::io("write", &file))?;
            Ok(row(set, batch, i % BATCH, image.connected, image.margin))
        });
        let rows = rows.collect::<Result<Vec<String>>>()?;
        let metadata = folder.join(format!("metadata/{batch}.npy"));
        io::write_atomic(&metadata, rows.concat().as_bytes())?;
        start = end;
        let (done, all) = (end - range.start, range.end - range.start);
        progress(&format!("Pathfinder: {done} of {all} images written"));
    }
    Ok(folder)
}

/// Folder, file, number, label, continuity, segments of targets and distractors, length, thickness and margin of
/// segments, number of contrasts.
fn row(set: &ImageSet, batch: u64, number: u64, connected: bool, margin: usize) -> String {
    let p = set.parameters();
    format!(
        "imgs/{batch} sample_{number}.png {number} {} {:?} {} {} {} {:?} {margin} 1\n",
        u8::from(connected),
        p.continuity,
        set.contour,
        distractor_length(set.contour),
        p.length,
        p.thickness,
    )
}
