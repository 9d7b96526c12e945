//! Writes generated data sets in the layout of the published ones.

use std::fs;
use std::path::{Path, PathBuf};

use dss_format::atomic_write::AtomicFile;

use crate::catalogue;
use crate::listops::{self, Expressions};
use crate::pathfinder::{ImageSet, write_lra_folder};
use crate::{Error, ListopsConfig, PathfinderConfig, Result};

/// Widths and heights of pictures.
const SIZES: [usize; 4] = [32, 64, 128, 256];
/// How many examples can be made: enough for three splits.
const COUNTS: std::ops::RangeInclusive<usize> = 10..=10_000_000;

/// The data to generate.
#[derive(Clone, Debug)]
pub struct Make {
    /// Examples of all splits together; `None` = as many as are published.
    pub count: Option<usize>,
    /// Seed of the generator.
    pub seed: u64,
    /// Width and height of the pictures, for tasks that have them; `None` = as published.
    pub size: Option<usize>,
}

/// The data that were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFiles {
    /// The files or folders.
    pub files: Vec<PathBuf>,
    /// The value of `task.dir` to read them.
    pub dir: PathBuf,
    /// Examples altogether.
    pub examples: usize,
}

impl Make {
    /// Checks that this can be generated for a task; the error says why not.
    pub fn check(&self, task: &str) -> std::result::Result<(), String> {
        match task {
            "listops" if self.size.is_some() => Err("listops has no pictures, so no --size".into()),
            "pathfinder" | "path-x" if self.size.is_some_and(|size| !SIZES.contains(&size)) => {
                Err(format!("pictures can have the sizes {SIZES:?}"))
            }
            "listops" | "pathfinder" | "path-x" => match self.count {
                Some(count) if !COUNTS.contains(&count) => {
                    let (least, most) = (COUNTS.start(), COUNTS.end());
                    Err(format!("--count must be from {least} to {most}"))
                }
                _ => Ok(()),
            },
            _ => Err(match catalogue::entry(task) {
                Some(entry) if entry.generated => format!(
                    "{task} needs no files: its examples are generated on demand; just train: dss train {task}"
                ),
                Some(_) => {
                    format!("{task} cannot be generated; fetch it: dss data get {task} --data DIR")
                }
                None => format!("{task} has no data of its own"),
            }),
        }
    }
}

/// Whether [`make`] can write the data of a task.
pub fn is_made(task: &str) -> bool {
    Make { count: None, seed: 0, size: None }.check(task).is_ok()
}

/// The folder inside the data folder that is written to unless another is given.
pub fn folder(task: &str) -> &'static str {
    if task == "listops" { "listops" } else { "" }
}

/// Writes the data of a task to a folder. Files that already exist are an error.
pub fn make(task: &str, to: &Path, make: &Make, progress: &dyn Fn(&str)) -> Result<MadeFiles> {
    make.check(task).map_err(|what| Error::setting("name", task, what))?;
    match task {
        "listops" => listops(to, make, progress),
        _ => pathfinder(task, to, make, progress),
    }
}

/// `basic_train.tsv`, `basic_val.tsv` and `basic_test.tsv`, 96 : 2 : 2.
fn listops(to: &Path, make: &Make, progress: &dyn Fn(&str)) -> Result<MadeFiles> {
    let official = ListopsConfig::default();
    let count = make.count.unwrap_or(official.train + official.val + official.test);
    let held_out = (count / 50).max(1);
    let parts = [count - 2 * held_out, held_out, held_out];
    let paths = ["train", "val", "test"].map(|split| to.join(format!("basic_{split}.tsv")));
    if let Some(path) = paths.iter().find(|path| path.exists()) {
        let what = "already exists; move it away, or choose another folder";
        return Err(Error::content(path, what));
    }
    fs::create_dir_all(to).map_err(Error::io("create the folder", to))?;
    let rows = listops::generate(&official.grammar(), count, make.seed, progress);
    if rows.len() < count {
        return Err(Error::content(
            to,
            format!("could generate only {} distinct expressions", rows.len()),
        ));
    }
    let mut start = 0;
    for (path, count) in paths.iter().zip(parts) {
        progress(&format!("ListOps: writing {}", path.display()));
        let mut part = Expressions::default();
        (start..start + count).for_each(|i| part.push(rows.codes(i), rows.labels()[i]));
        start += count;
        let write = || {
            let mut file = AtomicFile::create(path)?;
            listops::write_tsv(&mut file, &part)?;
            file.commit()
        };
        write().map_err(Error::io("write", path))?;
    }
    Ok(MadeFiles { files: paths.into(), dir: to.to_owned(), examples: count })
}

/// The folder layout of the Long Range Arena, the hardest of its three sets.
fn pathfinder(task: &str, to: &Path, make: &Make, progress: &dyn Fn(&str)) -> Result<MadeFiles> {
    let official = PathfinderConfig::default();
    let count = make.count.unwrap_or(official.train + official.val + official.test);
    let size = make.size.unwrap_or(if task == "path-x" { 128 } else { 32 });
    let set = ImageSet::new(size, official.contour, make.seed)?;
    let images = to.join(format!("pathfinder{size}"));
    if images.exists() {
        let what = "already exists; move it away, or choose another folder";
        return Err(Error::content(&images, what));
    }
    // Under another name until all is written: a part of it would train as if it were the whole.
    let part = to.join(format!("pathfinder{size}.part"));
    if part.exists() {
        let what = "left by an interrupted or running command; delete it if none is running";
        return Err(Error::content(&part, what));
    }
    let written = write_lra_folder(&part, &set, 0..count as u64, progress).and_then(|folder| {
        let name = folder.file_name().expect("a folder of the set").to_owned();
        let renamed = fs::rename(part.join(format!("pathfinder{size}")), &images);
        renamed.map_err(Error::io("rename", &part))?;
        Ok(images.join(name))
    });
    // Empty, or of no use.
    let _ = fs::remove_dir_all(&part);
    let folder = written?;
    Ok(MadeFiles { files: vec![folder.clone()], dir: folder, examples: count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, TaskConfig};

    #[test]
    fn made_expressions_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("listops");
        let few = Make { count: Some(60), seed: 5, size: None };
        let made = make("listops", &to, &few, &|_| {}).unwrap();
        assert_eq!((made.examples, made.files.len(), &made.dir), (60, 3, &to));

        let of = |dir: &str, counts: [usize; 3]| {
            let [train, val, test] = counts;
            let config =
                ListopsConfig { dir: dir.into(), train, val, test, seed: 5, ..Default::default() };
            TaskConfig::Listops(config).load(None, &|_| {}).unwrap()
        };
        let read = of(to.to_str().unwrap(), [100; 3]);
        let counts = [read.train.len(), read.val.len(), read.test.len()];
        assert_eq!(counts, [58, 1, 1]);
        // The same as without files.
        let direct = of("", counts);
        for i in [0, 7, 57] {
            assert_eq!(
                read.train.example(i).unwrap().target,
                direct.train.example(i).unwrap().target
            );
        }
        assert!(matches!(read.test.example(0).unwrap().target, Target::Class(_)));

        let again = make("listops", &to, &few, &|_| {}).unwrap_err().to_string();
        assert!(again.contains("basic_train.tsv: already exists"), "{again}");
    }

    /// As a kill does: nothing is tidied up.
    #[test]
    fn interrupted_pictures_are_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let few = Make { count: Some(10), seed: 5, size: Some(32) };
        let interrupted = std::panic::catch_unwind(|| {
            let _ = make("pathfinder", dir.path(), &few, &|_| panic!("killed"));
        });
        assert!(interrupted.is_err() && !dir.path().join("pathfinder32").exists());
        let again = make("pathfinder", dir.path(), &few, &|_| {}).unwrap_err().to_string();
        assert!(again.contains("interrupted"), "{again}");
        fs::remove_dir_all(dir.path().join("pathfinder32.part")).unwrap();
        let made = make("pathfinder", dir.path(), &few, &|_| {}).unwrap();
        assert!(made.dir.join("imgs/0/sample_9.png").is_file());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn requests_that_make_no_sense() {
        let why = |task: &str, count, size| Make { count, seed: 0, size }.check(task).unwrap_err();
        assert!(why("listops", Some(9), None).contains("from 10 to "));
        assert!(why("listops", Some(usize::MAX), None).contains("to 10000000"));
        assert!(why("listops", None, Some(32)).contains("no pictures"));
        assert!(why("pathfinder", None, Some(33)).contains("[32, 64, 128, 256]"));
        assert!(why("smnist", None, None).contains("dss data get smnist"));
        assert!(why("delay", None, None).contains("dss train delay"));
        assert!(why("files", None, None).contains("no data of its own"));
        assert!(is_made("listops") && is_made("path-x") && !is_made("delay") && !is_made("smnist"));
        let dir = tempfile::tempdir().unwrap();
        let make_it = Make { count: Some(1), seed: 0, size: None };
        let to = dir.path().join("x");
        assert!(make("listops", &to, &make_it, &|_| {}).is_err() && !to.exists());
    }
}
