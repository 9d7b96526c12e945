//! Pathfinder as a whole: the generator against the original's images, the release's layout, idx files, the task.

use crate::common;
use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use dss_data::idx::read_idx;
use dss_data::pathfinder::{ImageSet, PathImage, write_lra_folder};
use dss_data::{
    Dataset, Encoder, Input, PathfinderConfig, ReadFile, SequencePlace, Target, TargetKind, Task,
    TaskConfig,
};
use proptest::prelude::*;
use rayon::prelude::*;

fn images(size: usize, contour: usize, seed: u64, count: u64) -> Vec<PathImage> {
    let generator = ImageSet::new(size, contour, seed).unwrap().generator();
    (0..count).into_par_iter().map(|i| generator.image(i)).collect()
}

/// What is counted in an image: mean level, share above 8, numbers above 200, in 91..=200, equal to 255.
fn figures(levels: &[u8]) -> [f64; 5] {
    let n = levels.len() as f64;
    let count = |wanted: &dyn Fn(u8) -> bool| levels.iter().filter(|&&v| wanted(v)).count() as f64;
    [
        levels.iter().map(|&v| f64::from(v)).sum::<f64>() / n,
        count(&|v| v > 8) / n,
        count(&|v| v > 200),
        count(&|v| (91..=200).contains(&v)),
        count(&|v| v == 255),
    ]
}

/// Mean of each figure over images, and its standard deviation.
fn summary<'a>(all: impl Iterator<Item = &'a [u8]>) -> ([(f64, f64); 5], f64) {
    let rows: Vec<[f64; 5]> = all.map(figures).collect();
    let n = rows.len() as f64;
    let columns = std::array::from_fn(|j| {
        let mean = rows.iter().map(|r| r[j]).sum::<f64>() / n;
        let square = rows.iter().map(|r| (r[j] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, square.sqrt())
    });
    (columns, n)
}

/// Within four standard errors of the difference, and what the expected figures are rounded to.
fn compare(ours: ([(f64, f64); 5], f64), theirs: ([(f64, f64); 5], f64), rounded: [f64; 5]) {
    for (j, (a, b)) in ours.0.iter().zip(theirs.0).enumerate() {
        let error = (a.1.powi(2) / ours.1 + b.1.powi(2) / theirs.1).sqrt();
        let bound = 4.0 * error + rounded[j];
        assert!((a.0 - b.0).abs() < bound, "figure {j}: {}, expected {} ± {bound}", a.0, b.0);
    }
}

/// Figures of 3,000 (150) images of the original generator: mean and standard deviation over images.
#[test]
fn figures_are_those_of_the_original() {
    let rounded = [0.005, 0.0005, 0.05, 0.05, 0.05];
    let small = [(20.13, 1.95), (0.160, 0.016), (16.2, 4.5), (97.5, 10.8), (2.2, 1.4)];
    let ours = images(32, 14, 1, 1000);
    compare(summary(ours.iter().map(|i| &i.pixels[..])), (small, 3000.0), rounded);
    let connected = ours.iter().filter(|i| i.connected).count();
    assert!((437..=563).contains(&connected), "{connected} of 1000 are connected");

    let large = [(7.90, 0.34), (0.062, 0.003), (222.6, 18.7), (345.5, 20.8), (12.0, 0.2)];
    let ours = images(128, 14, 1, 100);
    compare(summary(ours.iter().map(|i| &i.pixels[..])), (large, 150.0), rounded);
    assert!((30..=70).contains(&ours.iter().filter(|i| i.margin == 2).count()));
}

#[test]
fn images_look_like_the_real_ones() {
    for (size, count) in [(32, 3000), (128, 150)] {
        let name = format!("pathfinder/pathfinder{size}_hard_reference-images-idx3-ubyte.gz");
        let Some(path) = common::data(&name) else { return };
        let real = read_idx(&path, 3).unwrap();
        let theirs: Vec<&[u8]> = (0..real.len()).map(|i| real.item(i)).collect();
        let made = images(size, 14, 2, count);
        let ours: Vec<&[u8]> = made.iter().map(|i| &i.pixels[..]).collect();
        compare(summary(ours.iter().copied()), summary(theirs.iter().copied()), [0.0; 5]);

        // How often each level occurs per image: also the roundings are the same.
        let levels = |all: &[&[u8]]| {
            let mut counts = [0.0; 256];
            let share = 1.0 / all.len() as f64;
            all.iter().copied().flatten().for_each(|&v| counts[usize::from(v)] += share);
            counts
        };
        for (level, (a, b)) in levels(&ours).into_iter().zip(levels(&theirs)).enumerate() {
            let bound = 0.15 * f64::max(a, b) + if size == 32 { 0.1 } else { 1.0 };
            assert!((a - b).abs() < bound, "level {level}: {a} per image, expected {b}");
        }

        // The mean images; those of 128 × 128 are too few for that.
        if size == 32 {
            let mean = |all: &[&[u8]]| -> Vec<f64> {
                let sum = |i: usize| all.iter().map(|v| f64::from(v[i])).sum::<f64>();
                (0..size * size).map(sum).collect()
            };
            let r = correlation(&mean(&ours), &mean(&theirs));
            assert!(r > 0.985, "the mean images correlate at {r}");
        }
    }
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let sum = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    sum(a, ma, b, mb) / (sum(a, ma, a, ma) * sum(b, mb, b, mb)).sqrt()
}

#[test]
fn an_image_depends_on_settings_and_number_only() {
    let here = images(32, 14, 1, 40);
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| images(32, 14, 1, 40)), here);
    }
    assert_ne!(images(32, 14, 2, 1)[0], here[0]);
    for (size, contour) in [(32, 6), (32, 9), (64, 6), (64, 14), (128, 9), (256, 14)] {
        let made = images(size, contour, 1, 4);
        for image in &made {
            assert_eq!(image.pixels.len(), size * size);
            assert!(image.pixels.contains(&0) && image.pixels.contains(&255));
        }
        assert_ne!(made[0].pixels, made[1].pixels);
    }
}

/// In the small images one marker is never far from the middle.
#[test]
fn a_marker_is_near_the_middle() {
    for image in images(32, 14, 3, 200) {
        let bright = |(i, &v): (usize, &u8)| {
            let (y, x) = ((i / 32) as f64, (i % 32) as f64);
            (v > 200).then(|| (y - 15.0).hypot(x - 15.0))
        };
        let nearest = image.pixels.iter().enumerate().filter_map(bright).fold(99.0, f64::min);
        assert!(nearest < 9.0, "{nearest}");
    }
}

fn load(config: PathfinderConfig) -> dss_data::Result<Task> {
    common::own_cache();
    TaskConfig::Pathfinder(config).load(None, &|_| {})
}

fn error(config: PathfinderConfig) -> String {
    load(config).err().unwrap().message_and_hint()
}

fn small() -> PathfinderConfig {
    PathfinderConfig { train: 30, val: 5, test: 6, ..PathfinderConfig::default() }
}

fn at(dir: &Path) -> PathfinderConfig {
    PathfinderConfig { dir: dir.to_str().unwrap().into(), ..PathfinderConfig::default() }
}

fn example(data: &dyn Dataset, i: usize) -> (Vec<f32>, u32) {
    let example = data.example(i).unwrap();
    let (Input::Values(values), Target::Class(class)) = (example.input, example.target) else {
        panic!()
    };
    (values, class)
}

fn all(data: &dyn Dataset) -> Vec<(Vec<f32>, u32)> {
    (0..data.len()).map(|i| example(data, i)).collect()
}

fn scaled(levels: &[u8]) -> Vec<f32> {
    levels.iter().map(|&v| (f32::from(v) / 255.0 - 0.5) / 0.5).collect()
}

#[test]
fn generated_splits() {
    let task = load(small()).unwrap();
    assert_eq!((task.train.len(), task.val.len(), task.test.len()), (30, 5, 6));
    assert_eq!((task.spec.len, &task.spec.name[..]), (1024, "pathfinder"));
    let labels = ["not connected", "connected"].map(String::from).into();
    assert_eq!(task.spec.target, TargetKind::Class { labels });
    // Test, val, train: in this order.
    let made = images(32, 14, 1112, 41);
    let expected: Vec<_> = made.iter().map(|i| (scaled(&i.pixels), i.connected.into())).collect();
    let got = [&task.test, &task.val, &task.train].map(|data| all(&**data)).concat();
    assert_eq!(got, expected);
    let values: Vec<f32> = got.into_iter().flat_map(|(values, _)| values).collect();
    assert!(values.contains(&-1.0) && values.contains(&1.0));
    assert!(values.iter().all(|v| (-1.0..=1.0).contains(v)));

    let more = load(PathfinderConfig { train: 35, ..small() }).unwrap();
    assert_eq!(all(&*more.test), all(&*task.test));
    assert_eq!(all(&*more.val), all(&*task.val));
    assert_ne!(more.split_hash, task.split_hash);
}

#[test]
fn a_curriculum_changes_the_training_images_of_its_epochs() {
    let config = PathfinderConfig { curriculum: vec![6, 14], ..small() };
    let (task, plain) = (load(config.clone()).unwrap(), load(small()).unwrap());
    let easy = task.train.in_epoch(1, 0).unwrap();
    let made = images(32, 6, 1112, 30);
    let expected: Vec<_> = made.iter().map(|i| (scaled(&i.pixels), i.connected.into())).collect();
    assert_eq!(all(&*easy), expected);
    // The task's own contour has the training images, not those of the test.
    assert_eq!(all(&*task.train.in_epoch(1, 1).unwrap()), all(&*plain.train));
    assert!(task.train.in_epoch(1, 2).is_none());
    for (with, without) in
        [(&task.train, &plain.train), (&task.val, &plain.val), (&task.test, &plain.test)]
    {
        assert_eq!(all(&**with), all(&**without));
    }
    assert_ne!(task.split_hash, plain.split_hash);

    let wrong = error(PathfinderConfig { curriculum: vec![6, 7], ..small() });
    assert!(wrong.contains("task.curriculum = [6, 7]") && wrong.contains("6, 9 and 14"), "{wrong}");
}

// Runs are compared by this hash, so the generator must not change unnoticed. Written down from the first run.
#[test]
fn the_generated_data_are_pinned() {
    assert_eq!(
        load(small()).unwrap().split_hash,
        "f046b32143483258aebfc5b3622d664d9cc111b9a494bb8de9e78526b83a70d8"
    );
}

#[test]
fn generated_images_are_kept() {
    common::own_cache();
    let config = PathfinderConfig { seed: 99, ..small() };
    let told = Cell::new(0);
    let tell = |_: &str| told.set(told.get() + 1);
    let first = TaskConfig::Pathfinder(config.clone()).load(None, &tell).unwrap();
    assert!(told.replace(0) > 1);
    let second = TaskConfig::Pathfinder(config.clone()).load(None, &tell).unwrap();
    assert_eq!((told.get(), second.split_hash), (0, first.split_hash));
    // The same images, divided in another way.
    let moved = PathfinderConfig { train: 29, val: 6, ..config };
    let third = TaskConfig::Pathfinder(moved).load(None, &tell).unwrap();
    assert_eq!(told.get(), 0);
    assert_eq!(all(&*third.test), all(&*first.test));
}

#[test]
fn path_x_is_larger() {
    common::own_cache();
    let config = PathfinderConfig { train: 2, val: 1, test: 1, ..PathfinderConfig::default() };
    let task = TaskConfig::PathX(config.clone()).load(None, &|_| {}).unwrap();
    assert_eq!((task.spec.len, &task.spec.name[..]), (16384, "path-x"));
    assert_eq!(example(&*task.test, 0).0, scaled(&images(128, 14, 1112, 1)[0].pixels));
    let task = TaskConfig::PathX(PathfinderConfig { size: 64, ..config }).load(None, &|_| {});
    assert_eq!(task.unwrap().spec.len, 4096);
}

#[test]
fn settings_are_checked() {
    let cases = [
        (PathfinderConfig { size: 48, ..small() }, "task.size = 48: must be 32, 64, 128 or 256"),
        (PathfinderConfig { contour: 7, ..small() }, "task.contour = 7: must be 6, 9 or 14"),
        (PathfinderConfig { val: 0, ..small() }, "task.val = 0"),
        (at(Path::new("/no/such/folder")), "/no/such/folder"),
    ];
    for (config, part) in cases {
        let message = error(config);
        assert!(message.contains(part), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let message = error(at(folder.path()));
    for part in ["pathfinder32/curv_contour_length_14", "imgs", "idx3", "task.dir", "dss data make"]
    {
        assert!(message.contains(part), "{message}");
    }
}

/// The first 60 images of a seed in the layout of the release; `DIR` and the set's folder.
fn release() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let set = ImageSet::new(32, 14, 5).unwrap();
    let folder = write_lra_folder(dir.path(), &set, 0..60, &|_| {}).unwrap();
    assert_eq!(folder, dir.path().join("pathfinder32/curv_contour_length_14"));
    (dir, folder)
}

/// A tar.gz of a folder, its files in reversed order.
fn archive(folder: &Path, name: &str, out: &Path) {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let gz =
        flate2::write::GzEncoder::new(fs::File::create(out).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for file in files.iter().rev() {
        let inside = Path::new(name).join(file.strip_prefix(folder).unwrap());
        tar.append_path_with_name(file, inside).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap().flush().unwrap();
}

fn idx(dims: &[usize], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dims.len() as u8];
    dims.iter().for_each(|&d| bytes.extend((d as u32).to_be_bytes()));
    bytes.extend_from_slice(data);
    bytes
}

/// The same 60 images as two idx files.
fn idx_files(dir: &Path) {
    let made = images(32, 14, 5, 60);
    let pixels: Vec<u8> = made.iter().flat_map(|i| i.pixels.clone()).collect();
    let labels: Vec<u8> = made.iter().map(|i| i.connected.into()).collect();
    fs::write(dir.join("mine-images-idx3-ubyte"), idx(&[60, 32, 32], &pixels)).unwrap();
    fs::write(dir.join("mine-labels-idx1-ubyte"), idx(&[60], &labels)).unwrap();
}

#[test]
fn folder_archive_and_idx_files_are_one_data_set() {
    let (dir, folder) = release();
    let task = load(at(&folder)).unwrap();
    assert_eq!((task.train.len(), task.val.len(), task.test.len()), (48, 6, 6));
    assert!(task.notes.is_empty());
    let key = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let mut expected: HashMap<_, u32> = images(32, 14, 5, 60)
        .iter()
        .map(|i| (key(&scaled(&i.pixels)), i.connected.into()))
        .collect();
    for (values, class) in [&task.train, &task.val, &task.test].map(|data| all(&**data)).concat() {
        assert_eq!(expected.remove(&key(&values)), Some(class), "each image once, with its label");
    }

    let other = tempfile::tempdir().unwrap();
    archive(&folder, "lra/pathfinder32/curv_contour_length_14", &other.path().join("a.tar.gz"));
    archive(&folder, "", &other.path().join("b.tar.gz"));
    idx_files(other.path());
    let same = [
        dir.path().to_owned(),
        dir.path().join("pathfinder32"),
        other.path().join("a.tar.gz"),
        other.path().join("b.tar.gz"),
        other.path().to_owned(),
        other.path().join("mine-images-idx3-ubyte"),
    ];
    for path in same {
        let again = load(at(&path)).unwrap();
        assert_eq!(again.split_hash, task.split_hash, "{}", path.display());
        assert_eq!(all(&*again.test), all(&*task.test), "{}", path.display());
    }

    let fewer = load(PathfinderConfig { train: 20, ..at(&folder) }).unwrap();
    assert_eq!(all(&*fewer.train), all(&*task.train)[..20]);
    assert_ne!(fewer.split_hash, task.split_hash);
    let seed = load(PathfinderConfig { split_seed: 1, ..at(&folder) }).unwrap();
    assert_ne!(all(&*seed.test), all(&*task.test));
    // Another set is not taken for this one.
    for config in [
        PathfinderConfig { contour: 9, ..at(&folder) },
        PathfinderConfig { size: 64, ..at(&folder) },
    ] {
        assert!(error(config).contains("not found"));
    }
}

#[test]
fn the_real_files() {
    let Some(dir) = common::data("pathfinder") else { return };
    let task = load(at(&dir)).unwrap();
    assert_eq!((task.train.len(), task.val.len(), task.test.len()), (2400, 300, 300));
    let ones: u32 = all(&*task.train).iter().map(|(_, class)| class).sum();
    assert!((1080..1320).contains(&ones), "{ones}");
    common::own_cache();
    let task = TaskConfig::PathX(at(&dir)).load(None, &|_| {}).unwrap();
    assert_eq!((task.train.len(), task.val.len(), task.spec.len), (120, 15, 16384));
    let read = load(small()).unwrap().encoder.read(&dir.join("png_samples/pf32_0_label1.png"));
    let (place, Input::Values(values)) = &read.unwrap()[0] else { panic!() };
    let images =
        read_idx(&dir.join("pathfinder32_hard_reference-images-idx3-ubyte.gz"), 3).unwrap();
    assert_eq!((place, values), (&SequencePlace::File, &scaled(images.item(0))));
}

/// What becomes of the bytes of a file; `None` = it is removed.
type Damage<'a> = &'a dyn Fn(Vec<u8>) -> Option<Vec<u8>>;

fn damage(file: &Path, damage: Damage) {
    match damage(fs::read(file).unwrap()) {
        Some(bytes) => fs::write(file, bytes).unwrap(),
        None => fs::remove_file(file).unwrap(),
    }
}

/// Changes the metadata's row of picture 7, the eighth line.
fn row_7(bytes: Vec<u8>, change: impl Fn(&str) -> String) -> Option<Vec<u8>> {
    let text = String::from_utf8(bytes).unwrap();
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows[7] = change(&rows[7]);
    Some(rows.join("\n").into_bytes())
}

fn relabel(row: &str, label: &str) -> String {
    let mut cells: Vec<&str> = row.split(' ').collect();
    cells[3] = label;
    cells.join(" ")
}

#[test]
fn faults_are_named_or_skipped() {
    let (picture, rows) = ("imgs/0/sample_7.png", "metadata/0.npy");
    let cases: [(&str, Damage, &str); 8] = [
        (picture, &|_| Some(Vec::new()), "imgs/0/sample_7.png: an empty file"),
        (picture, &|b| Some(b[..b.len() - 20].into()), "sample_7.png: not a whole PNG"),
        (picture, &|_| Some(b"<html>".into()), "sample_7.png: not a whole PNG"),
        (picture, &|_| None, "sample_7.png: listed in the metadata, but missing"),
        (rows, &|b| row_7(b, |r| relabel(r, "2")), "0.npy, line 8: label \"2\" in column 4"),
        (rows, &|b| row_7(b, |r| relabel(r, "x")), "0.npy, line 8: label \"x\""),
        (rows, &|b| row_7(b, |_| "imgs/0 sample_7.png".into()), "0.npy, line 8: 2 columns"),
        (
            rows,
            &|b| row_7(b, |r| format!("{}\n{}\n{}", r, relabel(r, "0"), relabel(r, "1"))),
            "conflicting labels for imgs/0/sample_7.png: 0 and 1",
        ),
    ];
    for (i, (file, change, part)) in cases.into_iter().enumerate() {
        let (_dir, folder) = release();
        damage(&folder.join(file), change);
        let message = error(at(&folder));
        assert!(message.contains(part), "{message}");
        let task = load(PathfinderConfig { skip_bad: true, ..at(&folder) }).unwrap();
        let count = task.train.len() + task.val.len() + task.test.len();
        // The first of two labels is believed.
        assert_eq!(count, if i == 7 { 60 } else { 59 });
        let notes: Vec<String> = task.notes.iter().map(|note| note.to_string()).collect();
        let notes = notes.join("; ");
        assert!(notes.contains("1 faulty entry skipped") && notes.contains(part), "{notes}");
        let unlisted = notes.contains("no row of the metadata names them: 1");
        assert_eq!(unlisted, (4..7).contains(&i), "{notes}");
    }
}

#[test]
fn other_faults() {
    let (_dir, folder) = release();
    fs::write(folder.join("metadata/1.npy"), b"\x93NUMPY\x01\x00").unwrap();
    assert!(error(at(&folder)).contains("1.npy: a binary NumPy array"));
    fs::remove_dir_all(folder.join("metadata")).unwrap();
    assert!(error(at(&folder)).contains("not found"));

    // Too few for three splits.
    let dir = tempfile::tempdir().unwrap();
    let set = ImageSet::new(32, 14, 5).unwrap();
    write_lra_folder(dir.path(), &set, 998..1003, &|_| {}).unwrap();
    let folder = dir.path().join("pathfinder32/curv_contour_length_14");
    assert!(folder.join("imgs/0/sample_999.png").exists());
    assert!(folder.join("imgs/1/sample_2.png").exists());
    assert!(error(at(&folder)).contains("5 images; at least 10"));
    // Pictures of another size than the folder's name says.
    let wrong = tempfile::tempdir().unwrap();
    fs::rename(&folder, wrong.path().join("curv_contour_length_14")).unwrap();
    let message = error(PathfinderConfig { size: 64, ..at(wrong.path()) });
    assert!(message.contains("32 × 32 pixels, but 64 × 64"), "{message}");

    // A set twice in one archive.
    let both = tempfile::tempdir().unwrap();
    let twice = both.path().join("twice");
    for name in ["a", "b"] {
        write_lra_folder(&twice.join(name), &set, 0..3, &|_| {}).unwrap();
    }
    let path = both.path().join("twice.tar.gz");
    archive(&twice, "", &path);
    assert!(error(at(&path)).contains("two data sets in one archive"));
}

#[test]
fn faults_of_idx_files() {
    let faulty = |damage: &dyn Fn(&Path, &Path)| {
        let dir = tempfile::tempdir().unwrap();
        idx_files(dir.path());
        let file = |name: &str| dir.path().join(format!("mine-{name}-ubyte"));
        damage(&file("images-idx3"), &file("labels-idx1"));
        (error(at(dir.path())), dir)
    };
    let resize = |path: &Path, by: i64| {
        let mut bytes = fs::read(path).unwrap();
        bytes.resize((bytes.len() as i64 + by) as usize, 0);
        fs::write(path, bytes).unwrap();
    };
    let (message, _) = faulty(&|images, _| resize(images, -1));
    assert!(message.contains("ends within image 59"), "{message}");
    let (message, _) = faulty(&|images, _| resize(images, 1));
    assert!(message.contains("more bytes after its 60 images"), "{message}");
    let (message, _) = faulty(&|_, labels| fs::write(labels, idx(&[59], &[0; 59])).unwrap());
    assert!(message.contains("59 labels, but") && message.contains("60 images"), "{message}");
    let (message, _) = faulty(&|_, labels| fs::remove_file(labels).unwrap());
    assert!(message.contains("mine-labels-idx1-ubyte"), "{message}");
    let (message, _) =
        faulty(&|images, _| drop(fs::copy(images, images.with_file_name("x-images-idx3-ubyte"))));
    assert!(message.contains("two files of such images"), "{message}");
    let (message, dir) = faulty(&|_, labels| {
        let mut bytes = fs::read(labels).unwrap();
        bytes[20] = 3;
        fs::write(labels, bytes).unwrap();
    });
    assert!(message.contains("label 12 is 3"), "{message}");
    let task = load(PathfinderConfig { skip_bad: true, ..at(dir.path()) }).unwrap();
    assert!(task.notes[0].to_string().contains("1 faulty entry skipped"), "{:?}", task.notes);
    assert_eq!(task.train.len() + task.val.len() + task.test.len(), 59);
}

#[test]
fn prediction_encodes_like_training() {
    let task = load(small()).unwrap();
    let json = serde_json::to_string(&task.encoder).unwrap();
    let encoder: Encoder = serde_json::from_str(&json).unwrap();
    assert_eq!(encoder, task.encoder);

    let (dir, folder) = release();
    idx_files(dir.path());
    let made = images(32, 14, 5, 4);
    let one = encoder.read(&folder.join("imgs/0/sample_3.png")).unwrap();
    assert_eq!(one, [(SequencePlace::File, Input::Values(scaled(&made[3].pixels)))]);
    let all = encoder.read(&dir.path().join("mine-images-idx3-ubyte")).unwrap();
    assert_eq!((all.len(), &all[3].1), (60, &one[0].1));
    assert_eq!(all[3].0, SequencePlace::Item(3));

    let fault = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        encoder.read(&path).unwrap_err().to_string()
    };
    assert!(fault("a.txt", b"text").contains("neither a PNG picture nor an idx file"));
    assert!(fault("a.png", b"").contains("neither"));
    assert!(fault("a.png", b"\x89PNG\r\n\x1a\nx").contains("a.png: not a whole PNG"));
    assert!(fault("a-idx", &idx(&[1, 2, 2], &[0; 4])).contains("2 × 2 pixels, but the model"));
    assert!(fault("b-idx", &idx(&[0, 32, 32], &[])).contains("no sequences"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_damage_makes_it_panic(
        at_byte in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<bool>(), kind in 0..4, skip_bad in any::<bool>()
    ) {
        let dir = tempfile::tempdir().unwrap();
        let set = ImageSet::new(32, 6, 5).unwrap();
        let folder = write_lra_folder(dir.path(), &set, 0..12, &|_| {}).unwrap();
        let (path, file) = match kind {
            0 => (folder.clone(), folder.join("metadata/0.npy")),
            1 => (folder.clone(), folder.join("imgs/0/sample_3.png")),
            2 => {
                let path = dir.path().join("a.tar.gz");
                archive(&folder, "", &path);
                (path.clone(), path)
            }
            _ => {
                idx_files(dir.path());
                let path = dir.path().join("mine-images-idx3-ubyte");
                (path.clone(), path)
            }
        };
        let mut bytes = fs::read(&file).unwrap();
        let place = at_byte.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] ^= 1 << bit }
        fs::write(&file, bytes).unwrap();
        let _ = load(PathfinderConfig { contour: 6, skip_bad, ..at(&path) });
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), skip_bad in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("images-idx3-ubyte");
        fs::write(&file, &bytes).unwrap();
        fs::write(dir.path().join("labels-idx1-ubyte"), &bytes).unwrap();
        let _ = load(PathfinderConfig { skip_bad, ..at(&file) });
        let _ = load(PathfinderConfig { skip_bad, ..at(dir.path()) });
    }
}
