//! CIFAR-10 in its three forms: one task, one split.

use crate::common;
use std::fs;
use std::io::Write;
use std::path::Path;

use dss_data::image::{LABELS, grey};
use dss_data::{
    Dataset, ImageConfig, Input, ReadFile, SequencePlace, Target, TargetKind, Task, TaskConfig,
};
use proptest::prelude::*;

const RECORD: usize = 3073;

fn load_with(config: ImageConfig) -> dss_data::Result<Task> {
    common::own_cache();
    TaskConfig::Image(config).load(None, &|_| {})
}

fn config(dir: &Path) -> ImageConfig {
    ImageConfig { dir: dir.to_str().unwrap().to_owned(), ..ImageConfig::default() }
}

fn load(dir: &Path) -> dss_data::Result<Task> {
    load_with(config(dir))
}

fn fault(dir: &Path) -> String {
    load(dir).err().unwrap().message_and_hint()
}

fn values(data: &dyn Dataset, i: usize) -> (u32, Vec<f32>) {
    let example = data.example(i).unwrap();
    let (Target::Class(class), Input::Values(values)) = (example.target, example.input) else {
        panic!()
    };
    (class, values)
}

/// Five batches of `n` records and one of 7: (name, bytes).
fn batches(n: usize) -> Vec<(String, Vec<u8>)> {
    let batch = |name: &str, first: usize, n: usize| {
        let record = |i: usize| {
            let pixel = move |p: usize| ((i * 7919 + p * 31 + p * p / 7 * i) % 251) as u8;
            std::iter::once((i % 10) as u8).chain((0..RECORD - 1).map(pixel))
        };
        (name.to_owned(), (first..first + n).flat_map(record).collect())
    };
    let train = (0..5).map(|b| batch(&format!("data_batch_{}.bin", b + 1), b * n, n));
    train.chain([batch("test_batch.bin", 5 * n, 7)]).collect()
}

fn write_binary(dir: &Path, batches: &[(String, Vec<u8>)]) {
    fs::create_dir_all(dir).unwrap();
    batches.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

fn write_archive(path: &Path, batches: &[(String, Vec<u8>)]) {
    let gz =
        flate2::write::GzEncoder::new(fs::File::create(path).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (name, bytes) in batches.iter().rev() {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        let name = format!("cifar-10-batches-bin/{name}");
        tar.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
}

fn idx(dims: &[usize], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dims.len() as u8];
    dims.iter().for_each(|&d| bytes.extend((d as u32).to_be_bytes()));
    bytes.extend_from_slice(data);
    bytes
}

fn write_idx(dir: &Path, batches: &[(String, Vec<u8>)]) {
    for (split, batches) in [("train", &batches[..5]), ("test", &batches[5..])] {
        let records: Vec<&[u8]> = batches.iter().flat_map(|(_, b)| b.chunks(RECORD)).collect();
        let labels: Vec<u8> = records.iter().map(|record| record[0]).collect();
        let pixel = |record: &[u8], p: usize| grey([1, 1025, 2049].map(|at| record[at + p]));
        let pixels = records.iter().flat_map(|record| (0..1024).map(|p| pixel(record, p)));
        let images = idx(&[labels.len(), 32, 32], &pixels.collect::<Vec<_>>());
        let file = dir.join(format!("cifar10-gray-{split}-images-idx3-ubyte.gz"));
        let mut gz = flate2::write::GzEncoder::new(
            fs::File::create(file).unwrap(),
            flate2::Compression::fast(),
        );
        gz.write_all(&images).unwrap();
        gz.finish().unwrap();
        let file = dir.join(format!("cifar10-{split}-labels-idx1-ubyte"));
        fs::write(file, idx(&[labels.len()], &labels)).unwrap();
    }
}

#[test]
fn every_form_gives_the_same_task() {
    let dir = tempfile::tempdir().unwrap();
    let [folder, packed, grey_files] = ["folder", "packed", "grey"].map(|name| {
        fs::create_dir(dir.path().join(name)).unwrap();
        dir.path().join(name)
    });
    let batches = batches(8);
    write_binary(&folder.join("cifar-10-batches-bin"), &batches);
    write_archive(&packed.join("cifar-10-binary.tar.gz"), &batches);
    write_idx(&grey_files, &batches);
    let archive = packed.join("cifar-10-binary.tar.gz");
    let tasks = [&folder, &packed, &archive, &grey_files].map(|path| load(path).unwrap());
    let first = &tasks[0];
    assert_eq!((first.train.len(), first.val.len(), first.test.len()), (36, 4, 7));
    assert_eq!(first.spec.target, TargetKind::Class { labels: LABELS.map(str::to_owned).into() });
    assert_eq!(first.spec.len, 1024);
    assert!(first.notes.iter().any(|note| note.to_string().contains("40 training and 7 test")));
    for task in &tasks[1..] {
        assert_eq!(task.split_hash, first.split_hash);
        for (a, b) in
            [(&task.train, &first.train), (&task.val, &first.val), (&task.test, &first.test)]
        {
            (0..b.len()).for_each(|i| assert_eq!(values(&**a, i), values(&**b, i)));
        }
    }

    // The test images keep their order: image 40 is the first one.
    let (class, seen) = values(&*first.test, 0);
    let record = &batches[5].1[..RECORD];
    assert_eq!(class, u32::from(record[0]));
    let x = f64::from(grey([record[1 + 5], record[1025 + 5], record[2049 + 5]]));
    assert_eq!(seen[5], ((x / 255.0 - 122.6 / 255.0) / (61.0 / 255.0)) as f32);

    // Training and validation together are the five batches, each image once.
    let all = [&first.train, &first.val]
        .into_iter()
        .flat_map(|data| (0..data.len()).map(|i| values(&**data, i)));
    let mut all: Vec<_> = all.collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all.dedup();
    assert_eq!(all.len(), 40);

    // Prediction reads both forms, as the training did.
    let binary = folder.join("cifar-10-batches-bin/test_batch.bin");
    let grey_file = grey_files.join("cifar10-gray-test-images-idx3-ubyte.gz");
    for path in [binary, grey_file] {
        let read = first.encoder.read(&path).unwrap();
        assert_eq!(read.len(), 7);
        assert_eq!(read[0].0, SequencePlace::Item(0));
        assert_eq!(read[0].1, Input::Values(seen.clone()));
    }
}

#[test]
fn settings_choose_the_examples() {
    let dir = tempfile::tempdir().unwrap();
    write_binary(dir.path(), &batches(8));
    let all = load(dir.path()).unwrap();
    let few = load_with(ImageConfig { train: 5, test: 2, ..config(dir.path()) }).unwrap();
    assert_eq!((few.train.len(), few.val.len(), few.test.len()), (5, 4, 2));
    (0..5).for_each(|i| assert_eq!(values(&*few.train, i), values(&*all.train, i)));
    assert_ne!(few.split_hash, all.split_hash);
    let same = load_with(ImageConfig { train: 36, ..config(dir.path()) }).unwrap();
    assert_eq!(same.split_hash, all.split_hash);
    let other = load_with(ImageConfig { split_seed: 7, ..config(dir.path()) }).unwrap();
    assert_ne!(other.split_hash, all.split_hash);
    assert_ne!(values(&*other.train, 0), values(&*all.train, 0));
    let many = load_with(ImageConfig { val: 5, ..config(dir.path()) }).err().unwrap().to_string();
    assert!(many.contains("task.val = 5") && many.contains("only 4"), "{many}");
}

#[test]
fn faults_name_the_file_and_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let gone = fault(dir.path());
    for part in ["cifar-10-binary.tar.gz", "data_batch_1.bin", "dss data get image", "cifar10"] {
        assert!(gone.contains(part), "{gone}");
    }

    let mut batches = batches(4);
    batches[1].1[2 * RECORD] = 10;
    batches[3].1.truncate(3 * RECORD + 5);
    write_binary(dir.path(), &batches);
    let label = fault(dir.path());
    assert!(label.contains("data_batch_2.bin, image 2: label 10"), "{label}");
    let skipped = load_with(ImageConfig { skip_bad: true, ..config(dir.path()) }).unwrap();
    assert_eq!(skipped.train.len() + skipped.val.len(), 18);
    // A second time from the cache, with the same remarks.
    let again = load_with(ImageConfig { skip_bad: true, ..config(dir.path()) }).unwrap();
    assert_eq!(again.notes, skipped.notes);
    assert!(
        again.notes[0].to_string().starts_with("2 faulty entries skipped: "),
        "{:?}",
        again.notes
    );
    batches[1].1[2 * RECORD] = 9;
    write_binary(dir.path(), &batches);
    let cut = fault(dir.path());
    assert!(cut.contains("data_batch_4.bin: cut short: after 3 images"), "{cut}");

    let archive = dir.path().join("cifar-10-binary.tar.gz");
    write_archive(&archive, &batches[1..]);
    let missing = fault(&archive);
    assert!(missing.contains("data_batch_4.bin: cut short"), "{missing}");
    batches[3].1.truncate(3 * RECORD);
    write_archive(&archive, &batches[1..]);
    let missing = fault(&archive);
    assert!(missing.contains("data_batch_1.bin is not in this archive"), "{missing}");
    let twice = [&batches[..], &batches[2..3]].concat();
    write_archive(&archive, &twice);
    let twice = fault(&archive);
    assert!(twice.contains("data_batch_3.bin: appears twice"), "{twice}");

    let grey_files = tempfile::tempdir().unwrap();
    write_idx(grey_files.path(), &batches);
    let labels = grey_files.path().join("cifar10-train-labels-idx1-ubyte");
    fs::write(&labels, idx(&[3], &[1; 3])).unwrap();
    let few = fault(grey_files.path());
    assert!(few.contains("3 labels") && few.contains("19 images"), "{few}");
    fs::write(&labels, idx(&[19], &[200; 19])).unwrap();
    let high = fault(grey_files.path());
    assert!(high.contains("labels-idx1-ubyte, image 0: label 200"), "{high}");
    let images = grey_files.path().join("cifar10-gray-train-images-idx3-ubyte.gz");
    fs::write(&images, idx(&[19, 8, 128], &[0; 19 * 1024])).unwrap();
    let shape = fault(grey_files.path());
    assert!(shape.contains("8 x 128"), "{shape}");
    assert!(skipped.encoder.read(&images).unwrap_err().to_string().contains("8 x 128"));
    let bin = dir.path().join("few.bin");
    fs::write(&bin, &batches[0].1[..RECORD - 1]).unwrap();
    assert!(skipped.encoder.read(&bin).unwrap_err().to_string().contains("cut short"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn damaged_archives_are_refused_or_read(cut in 0usize..200_000, at in 0usize..200_000, bit in 0u8..8) {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("cifar-10-binary.tar.gz");
        write_archive(&archive, &batches(2));
        let mut bytes = fs::read(&archive).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        fs::write(&archive, &bytes).unwrap();
        let _ = load(&archive);
        bytes[at] ^= 1 << bit;
        bytes.truncate(cut % bytes.len());
        fs::write(&archive, &bytes).unwrap();
        prop_assert!(load(&archive).is_err());
    }
}

#[test]
fn the_real_images() {
    let Some(dir) = common::data("cifar10") else { return };
    let task = load(&dir).unwrap();
    assert_eq!((task.train.len(), task.val.len(), task.test.len()), (45_000, 5_000, 10_000));
    assert!(task.notes.is_empty());
    let mut counts = [0; 10];
    let (mut sum, mut square) = (0.0, 0.0);
    for data in [&task.train, &task.val] {
        for i in 0..data.len() {
            let (class, values) = values(&**data, i);
            counts[class as usize] += 1;
            sum += values.iter().map(|&v| f64::from(v)).sum::<f64>();
            square += values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
        }
    }
    assert_eq!(counts, [5_000; 10]);
    // The known mean 122.62 and deviation 60.99 of the grey training images.
    let n = 50_000.0 * 1024.0;
    let (mean, sd) = (sum / n, (square / n - (sum / n).powi(2)).sqrt());
    assert!((mean * 61.0 + 122.6 - 122.62).abs() < 0.01, "{mean}");
    assert!((sd * 61.0 - 60.99).abs() < 0.01, "{sd}");

    // The first thousand official records are the first thousand grey images.
    for (colour, grey) in [
        ("rgb_data_batch_1_first1000.bin.gz", "cifar10-gray-train-images-idx3-ubyte.gz"),
        ("rgb_test_batch_first1000.bin.gz", "cifar10-gray-test-images-idx3-ubyte.gz"),
    ] {
        let [colour, grey] = [colour, grey].map(|name| task.encoder.read(&dir.join(name)).unwrap());
        assert_eq!(colour.len(), 1000);
        assert!(colour.iter().zip(&grey).all(|((_, a), (_, b))| a == b));
    }
}
