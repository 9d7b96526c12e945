//! Pathfinder and Path-X: are the two marked ends on the same path?
//!
//! Two long dashed paths among shorter ones; a disc marks an end of one of them, another disc either its other end
//! (`connected`) or an end of the other path. The image is read pixel by pixel, row by row: L = size². The images are
//! generated, or read from the Long Range Arena's release or from idx files. `pathfinder` has 32 × 32 pixels, `path-x`
//! 128 × 128.

mod collect;
mod curriculum;
mod dataset;
mod generate;
pub(crate) mod grey;
mod idx_pair;
mod lra;
mod parameters;
mod raster;
mod release;
mod resize;
mod tiles;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use documented::DocumentedFields;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use collect::{ImageCollector, PictureFacts};
use curriculum::Curriculum;
pub use dss_format::encoder::PathfinderEncoder;
pub use generate::{Generator, PathImage};
use parameters::{CONTOURS, Parameters, SIZES};
pub use release::write_lra_folder;

use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::skip::Skips;
use crate::store::{Store, StoreKey, Writer};
use crate::subset::select;
use crate::{Dataset, Encoder, Error, Example, InputKind, Result, Task, TaskSpec, io, limits};

/// Increases when the generator produces different images.
const GENERATOR_VERSION: u32 = 1;
/// Increases when files are decoded differently.
const READER_VERSION: u32 = 1;
/// Images that are generated before they are stored.
const CHUNK: u64 = 1000;
/// Of the images of a folder, one part in this many is for validation and one for the test.
const HELD_OUT: usize = 10;

/// Settings of the tasks `pathfinder` and `path-x`. The defaults are those of the Long Range Arena's hardest set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct PathfinderConfig {
    /// Training images to generate; with dir, the most to use.
    pub train: usize,
    /// Validation images to generate; with dir, the most to use.
    pub val: usize,
    /// Test images to generate; with dir, the most to use.
    pub test: usize,
    /// Side of the images: 32, 64, 128 or 256 pixels; 0 = 32 for pathfinder, 128 for path-x.
    pub size: usize,
    /// Segments of the two long paths: 6 (easy), 9 or 14 (hard); with dir, which set to read.
    pub contour: usize,
    /// Segments of the training images of the first epochs, one number per epoch, such as 6, 6, 9; then contour.
    pub curriculum: Vec<usize>,
    /// Random seed of the generator.
    pub seed: u64,
    /// Folder or tar archive of the LRA release, or folder with a pair of idx files; empty = generate.
    pub dir: String,
    /// With dir: random seed of the split into 80 % training, 10 % validation, 10 % test.
    pub split_seed: u64,
    /// With dir: skip faulty images and rows and report how many, instead of stopping at the first.
    pub skip_bad: bool,
}

impl Default for PathfinderConfig {
    fn default() -> Self {
        Self {
            train: 160_000,
            val: 20_000,
            test: 20_000,
            size: 0,
            contour: 14,
            curriculum: Vec::new(),
            seed: 1112,
            dir: String::new(),
            split_seed: 42,
            skip_bad: false,
        }
    }
}

impl TaskSource for PathfinderConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        let set = self.images(name)?;
        limits::counts(self.counts(), "image")?;
        self.check_curriculum()?;
        let mut hash = SplitHash::new(name);
        let mut notes = Vec::new();
        let (store, splits) = if self.dir.is_empty() {
            let store = generated(&set, self.counts().iter().sum::<usize>() as u64, progress)?;
            hash.settings(&(set, self.counts()));
            hash.bytes("content", store.content_hash());
            if !self.curriculum.is_empty() {
                hash.settings(&self.curriculum);
            }
            // The test images come first, so that more training images do not change them.
            let mut start = 0;
            let mut next = |count: usize| {
                start += count as u32;
                (start - count as u32..start).collect::<Vec<u32>>()
            };
            let [test, val, train] = [self.test, self.val, self.train].map(&mut next);
            (store, [train, val, test])
        } else {
            let store = self.stored(&set, &io::resolve(&self.dir, data_dir), progress)?;
            let facts: PictureFacts = store.info()?;
            notes = facts.notes;
            let splits = self.split(&store, facts.order)?;
            hash.settings(&(self.split_seed, splits.each_ref().map(Vec::len)));
            hash.bytes("content", facts.content.as_bytes());
            (store, splits)
        };
        let [train, val, test] = chosen(store, splits);
        let train = self.in_stages(train, &set, progress)?;
        let (input, labels) = (InputKind::Values { channels: 1 }, ["not connected", "connected"]);
        let spec = TaskSpec::classes(name, input, labels, set.size * set.size);
        let encoder = Encoder::Pathfinder(PathfinderEncoder { size: set.size });
        Ok(Task { notes, ..Task::new(spec, [train, val, test], hash, encoder) })
    }
}

impl PathfinderConfig {
    /// Which images these settings of a task ask for.
    pub fn images(&self, task: &str) -> Result<ImageSet> {
        let size = match (self.size, task) {
            (0, "path-x") => 128,
            (0, _) => 32,
            (size, _) => size,
        };
        ImageSet::new(size, self.contour, self.seed)
    }

    fn counts(&self) -> [usize; 3] {
        [self.train, self.val, self.test]
    }

    fn check_curriculum(&self) -> Result<()> {
        let refused =
            |what| Err(Error::setting("curriculum", format!("{:?}", self.curriculum), what));
        if !self.curriculum.is_empty() && !self.dir.is_empty() {
            return refused("needs generated images: leave task.dir empty");
        }
        if !self.curriculum.iter().all(|contour| CONTOURS.contains(contour)) {
            return refused("must be a list of 6, 9 and 14");
        }
        Ok(())
    }

    /// The training images `last`, after those of the curriculum.
    fn in_stages(
        &self,
        last: Arc<dyn Dataset>,
        set: &ImageSet,
        progress: &dyn Fn(&str),
    ) -> Result<Arc<dyn Dataset>> {
        if self.curriculum.is_empty() {
            return Ok(last);
        }
        let stage = |&contour: &usize| -> Result<Arc<dyn Dataset>> {
            // Other images of the same contour would be those of the test.
            if contour == set.contour {
                return Ok(last.clone());
            }
            let store = generated(&ImageSet { contour, ..*set }, self.train as u64, progress)?;
            let [images] = chosen(store, [(0..self.train as u32).collect()]);
            Ok(images)
        };
        let stages = self.curriculum.iter().map(stage).collect::<Result<_>>()?;
        Ok(Arc::new(Curriculum { stages, last }))
    }

    /// Reads the images of a folder or an archive, or takes them from the cache.
    fn stored(&self, set: &ImageSet, path: &Path, progress: &dyn Fn(&str)) -> Result<Arc<Store>> {
        let source = PictureSource::find(path, set)?;
        let key = StoreKey::new("pathfinder-files", READER_VERSION)
            .settings(&(set.size, set.contour, self.split_seed, self.skip_bad))
            .source(source.path())?;
        Store::open_or_build(key, |writer| {
            let mut skips = Skips::new(self.skip_bad);
            let mut images = ImageCollector::new(writer);
            match &source {
                PictureSource::Release(path) => {
                    if !lra::read(path, set, &mut skips, &mut images, progress)? {
                        return Err(missing(path, set));
                    }
                }
                PictureSource::Idx(path) => {
                    idx_pair::read(path, &mut skips, &mut images, progress)?
                }
            }
            skips.note().into_iter().for_each(|note| images.note(note));
            images.finish(self.split_seed);
            Ok(())
        })
    }

    /// 80 % for training, 10 % for validation, 10 % for the test; then at most as many as the settings say.
    fn split(&self, store: &Store, mut train: Vec<u32>) -> Result<[Vec<u32>; 3]> {
        let held_out = store.len() / HELD_OUT;
        if held_out == 0 {
            let what = format!("{} images; at least {HELD_OUT} are needed", store.len());
            return Err(Error::content(Path::new(&self.dir), what));
        }
        let test = train.split_off(train.len() - held_out);
        let val = train.split_off(train.len() - held_out);
        let mut splits = [train, val, test];
        splits.iter_mut().zip(self.counts()).for_each(|(split, most)| split.truncate(most));
        Ok(splits)
    }
}

/// What decides every image but its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImageSet {
    size: usize,
    contour: usize,
    seed: u64,
}

impl ImageSet {
    /// Images of 32, 64, 128 or 256 pixels a side, with paths of 6, 9 or 14 segments.
    pub fn new(size: usize, contour: usize, seed: u64) -> Result<Self> {
        if !SIZES.contains(&size) {
            return Err(Error::setting("size", size, "must be 32, 64, 128 or 256"));
        }
        if !CONTOURS.contains(&contour) {
            return Err(Error::setting("contour", contour, "must be 6, 9 or 14"));
        }
        Ok(Self { size, contour, seed })
    }

    /// Pixels a side.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Makes the images of this set.
    pub fn generator(&self) -> Generator {
        Generator::new(self.parameters(), self.contour, self.seed)
    }

    fn parameters(&self) -> &'static Parameters {
        Parameters::for_size(self.size).expect("the size is checked when a set is made")
    }
}

/// Where images are read from.
enum PictureSource {
    /// The folder with `imgs` and `metadata`, or an archive.
    Release(PathBuf),
    /// The file of images.
    Idx(PathBuf),
}

impl PictureSource {
    fn find(path: &Path, set: &ImageSet) -> Result<Self> {
        if !path.exists() {
            return Err(missing(path, set));
        }
        if path.is_dir() {
            if let Some(folder) = lra::find(path, set) {
                return Ok(Self::Release(folder));
            }
        } else if !idx_pair::is_idx(path)? {
            return Ok(Self::Release(path.to_owned()));
        }
        let mut files = idx_pair::find(path, set.size)?;
        match (files.pop(), files.pop()) {
            (Some(file), None) => Ok(Self::Idx(file)),
            (Some(a), Some(b)) => {
                let [a, b] = [a, b].map(|file| io::file_name(&file));
                let what = format!("two files of such images, {b} and {a}; name one with task.dir");
                Err(Error::content(path, what))
            }
            _ => Err(missing(path, set)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Release(path) | Self::Idx(path) => path,
        }
    }
}

fn missing(path: &Path, set: &ImageSet) -> Error {
    let size = set.size;
    Error::Missing {
        what: format!(
            "the Pathfinder images {} (its folders imgs and metadata), or *images-idx3-ubyte with *labels-idx1-ubyte \
             of {size} × {size} pixels,",
            set.folders().join("/")
        ),
        looked: vec![path.to_owned()],
        hint: "Name the folder or the archive with --set task.dir=PATH, or leave task.dir empty to generate the images; \
               `dss data make` writes generated images to a folder."
            .into(),
    }
}

/// Splits that have the stored images of these numbers.
fn chosen<const N: usize>(store: Arc<Store>, numbers: [Vec<u32>; N]) -> [Arc<dyn Dataset>; N] {
    select(numbers, move |i| {
        Ok(Example::classified(dataset::sequence(&store.bytes(i)?), store.label(i)))
    })
}

/// Generates images, or takes them from the cache.
fn generated(set: &ImageSet, count: u64, progress: &dyn Fn(&str)) -> Result<Arc<Store>> {
    let key = StoreKey::new("pathfinder", GENERATOR_VERSION).settings(&(set, count));
    Store::open_or_build(key, |writer| {
        let (size, megabytes) = (set.size, count * (set.size as u64).pow(2) / 1_000_000);
        progress(&format!("Pathfinder: making {count} images of {size} × {size} ({megabytes} MB)"));
        generate_into(writer, &set.generator(), count, progress)
    })
}

/// Generates and stores the images 0..count, a few at a time.
fn generate_into(
    writer: &mut Writer,
    generator: &Generator,
    count: u64,
    progress: &dyn Fn(&str),
) -> Result<()> {
    let mut told = 0;
    for start in (0..count).step_by(CHUNK as usize) {
        let end = count.min(start + CHUNK);
        let images: Vec<PathImage> =
            (start..end).into_par_iter().map(|i| generator.image(i)).collect();
        for image in images {
            writer.push(image.connected.into(), &image.pixels)?;
        }
        // Twenty messages, however many images.
        if (end - told) * 20 >= count {
            told = end;
            progress(&format!("Pathfinder: {end} of {count} images made"));
        }
    }
    Ok(())
}
