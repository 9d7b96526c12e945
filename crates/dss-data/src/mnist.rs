//! MNIST as sequences of pixels: row by row (`smnist`), or permuted by bit reversal (`pmnist`).
//!
//! Any data set in the four files of MNIST will do, such as Fashion-MNIST.

use std::path::Path;
use std::sync::Arc;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::catalogue::entry;
use crate::config::TaskSource;
use crate::encoder::{ReadFile, SequencePlace};
use crate::hash::SplitHash;
use crate::idx::{Idx, read_idx, read_images};
use crate::pathfinder::grey as png;
use crate::random::{permutation, stream};
use crate::subset::{limit, select};
use crate::{Encoder, Error, Example, Input, InputKind, Result, Task, TaskSpec};

pub use dss_format::encoder::ImagesEncoder;

const CLASSES: u8 = 10;
/// Share of the training images that is trained on; the others are the validation split.
const TRAIN_TENTHS: usize = 9;

/// Settings of the tasks `smnist` and `pmnist`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct MnistConfig {
    /// Folder with the four idx files; empty = the data folder or its subfolder mnist.
    pub dir: String,
    /// Training images; 0 = all (54,000).
    pub train: usize,
    /// Validation images; 0 = all (6,000).
    pub val: usize,
    /// Test images; 0 = all (10,000).
    pub test: usize,
    /// Random seed of the split of the 60,000 images into training and validation.
    pub split_seed: u64,
}

impl Default for MnistConfig {
    fn default() -> Self {
        Self { dir: String::new(), train: 0, val: 0, test: 0, split_seed: 42 }
    }
}

impl TaskSource for MnistConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        let files = entry(name).expect("a published data set").find(&self.dir, data_dir)?.files;
        progress(&format!("MNIST: reading {}", files[0].parent().unwrap_or(&files[0]).display()));
        let learn = Images::read(&files[0], &files[1])?;
        let exam = Images::read(&files[2], &files[3])?;
        if learn.pixels.dims[1..] != exam.pixels.dims[1..] {
            let [a, b] = [&exam, &learn].map(|images| &images.pixels.dims[1..]);
            let what = format!("images of {a:?} pixels, but the training images have {b:?}");
            return Err(Error::content(&files[2], what));
        }

        let l = learn.pixels.item_len();
        let encoder = ImagesEncoder { pixels: l, bit_reversal: name == "pmnist" };
        let order = order(&encoder);
        let shuffled = |n, purpose| permutation(n, &mut stream(purpose, self.split_seed, 0));
        let mut train = shuffled(learn.pixels.len(), "mnist-train");
        let mut val = train.split_off(train.len() * TRAIN_TENTHS / 10);
        let mut test = shuffled(exam.pixels.len(), "mnist-test");

        let mut hash = SplitHash::new(name);
        hash.settings(&self.split_seed);
        let (learn, exam) = (Arc::new(learn), Arc::new(exam));
        let splits = [
            ("train", self.train, &mut train, &learn),
            ("val", self.val, &mut val, &learn),
            ("test", self.test, &mut test, &exam),
        ];
        for (key, count, numbers, images) in splits {
            limit(key, count, numbers)?;
            for &i in numbers.iter() {
                hash.bytes(key, images.pixels.item(i as usize));
                hash.bytes("label", &[images.labels[i as usize]]);
            }
        }
        let labels = (0..CLASSES).map(|d| d.to_string());
        let spec = TaskSpec::classes(name, InputKind::Values { channels: 1 }, labels, l);
        let example = |images: Arc<Images>| {
            let order = order.clone();
            move |i: usize| {
                let input = sequence(images.pixels.item(i), &order);
                Ok(Example::classified(input, images.labels[i].into()))
            }
        };
        let [train, val] = select([train, val], example(learn));
        let [test] = select([test], example(exam));
        Ok(Task::new(spec, [train, val, test], hash, Encoder::Images(encoder)))
    }
}

/// Images with their labels, as bytes.
struct Images {
    pixels: Idx,
    labels: Vec<u8>,
}

impl Images {
    fn read(images: &Path, labels: &Path) -> Result<Self> {
        let (pixels, data) = read_images(images, labels)?;
        if let Some(i) = data.iter().position(|&label| label >= CLASSES) {
            let what = format!("label {i} is {}; labels must be below {CLASSES}", data[i]);
            return Err(Error::content(labels, what));
        }
        if pixels.item_len() == 0 {
            return Err(Error::content(images, "the images have no pixels"));
        }
        Ok(Self { pixels, labels: data })
    }
}

/// x'[i] = x[order[i]] / 255.
fn sequence(pixels: &[u8], order: &[u32]) -> Input {
    Input::Values(order.iter().map(|&i| f32::from(pixels[i as usize]) / 255.0).collect())
}

/// The numbers below n in the order of their reversed binary digits: those of 0..2^k, 2^k ≥ n, reversed, and only the
/// ones below n kept.
fn bit_reversal(n: usize) -> Vec<u32> {
    let bits = n.next_power_of_two().trailing_zeros();
    let reversed = |i: u32| if bits == 0 { 0 } else { i.reverse_bits() >> (32 - bits) };
    (0..1 << bits).map(reversed).filter(|&i| (i as usize) < n).collect()
}

/// The pixels in the order of the sequence.
fn order(encoder: &ImagesEncoder) -> Arc<[u32]> {
    let n = encoder.pixels;
    if encoder.bit_reversal { bit_reversal(n).into() } else { (0..n as u32).collect() }
}

impl ReadFile for ImagesEncoder {
    /// The picture of a PNG file, or all images of an idx file.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        if let Some(pixels) = png::read(path, self.pixels.isqrt())?
            && pixels.len() == self.pixels
        {
            return Ok(vec![(SequencePlace::File, sequence(&pixels, &order(self)))]);
        }
        let images = read_idx(path, 3)?;
        if images.item_len() != self.pixels {
            let what = format!(
                "images of {} pixels, but the model takes {}",
                images.item_len(),
                self.pixels
            );
            return Err(Error::content(path, what));
        }
        let order = order(self);
        let one = |i| (SequencePlace::Item(i), sequence(images.item(i), &order));
        Ok((0..images.len()).map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::idx::tests::idx_bytes;
    use crate::{Dataset, TaskConfig};

    #[test]
    fn bit_reversal_by_hand() {
        assert_eq!(bit_reversal(8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(bit_reversal(6), [0, 4, 2, 1, 5, 3]);
        let mnist = bit_reversal(784);
        assert_eq!(mnist[..8], [0, 512, 256, 768, 128, 640, 384, 64]);
        let mut sorted = mnist;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..784).collect::<Vec<_>>());
    }

    #[test]
    fn a_png_picture_is_read_as_the_image() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("digit.png");
        let pixels: Vec<u8> = (0..16).map(|i| i * 15).collect();
        fs::write(&path, png::encode(&pixels, 4)).unwrap();
        for bit_reversal in [false, true] {
            let encoder = ImagesEncoder { pixels: 16, bit_reversal };
            let expected = sequence(&pixels, &order(&encoder));
            assert_eq!(encoder.read(&path).unwrap(), [(SequencePlace::File, expected)]);
        }
        let other = ImagesEncoder { pixels: 784, bit_reversal: false };
        assert!(other.read(&path).unwrap_err().to_string().contains("4 × 4 pixels, but 28 × 28"));
    }

    /// 20 training and 5 test images of 2 × 3 pixels; pixel p of image i is 6 i + p.
    fn tiny() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, n) in [("train", 20), ("t10k", 5)] {
            let pixels: Vec<u8> = (0..n * 6).collect();
            let images = idx_bytes(&[n as usize, 2, 3], &pixels);
            let labels = idx_bytes(&[n as usize], &(0..n).map(|i| i % 10).collect::<Vec<_>>());
            let gz = fs::File::create(dir.path().join(format!("{name}-images-idx3-ubyte.gz")));
            let mut gz = flate2::write::GzEncoder::new(gz.unwrap(), flate2::Compression::fast());
            gz.write_all(&images).unwrap();
            gz.finish().unwrap();
            fs::write(dir.path().join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
        }
        dir
    }

    fn load(name: &str, config: MnistConfig, dir: &Path) -> Result<Task> {
        config.load(name, Some(dir), &|_| {})
    }

    #[test]
    fn splits_are_fixed_and_disjoint() {
        let dir = tiny();
        let task = load("smnist", MnistConfig::default(), dir.path()).unwrap();
        assert_eq!((task.train.len(), task.val.len(), task.test.len()), (18, 2, 5));
        let first = |d: &dyn Dataset, i| match d.example(i).unwrap().input {
            Input::Values(v) => (v[0] * 255.0) as u32 / 6,
            Input::Tokens(_) => panic!(),
        };
        let mut seen: Vec<u32> = (0..18).map(|i| first(&*task.train, i)).collect();
        let start = seen.clone();
        seen.extend((0..2).map(|i| first(&*task.val, i)));
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());

        let fewer = MnistConfig { train: 4, ..MnistConfig::default() };
        let fewer = load("smnist", fewer, dir.path()).unwrap();
        assert_eq!((0..4).map(|i| first(&*fewer.train, i)).collect::<Vec<_>>(), start[..4]);
        assert_eq!(fewer.train.len(), 4);
        assert_ne!(fewer.split_hash, task.split_hash);
    }

    #[test]
    fn pmnist_permutes_smnist_and_prediction_agrees() {
        let dir = tiny();
        let [s, p] = ["smnist", "pmnist"]
            .map(|name| load(name, MnistConfig::default(), dir.path()).unwrap());
        let values = |task: &Task| match task.train.example(3).unwrap().input {
            Input::Values(v) => v,
            Input::Tokens(_) => panic!(),
        };
        let plain = values(&s);
        let expected: Vec<f32> = [0, 4, 2, 1, 5, 3].map(|i: usize| plain[i]).into();
        assert_eq!(values(&p), expected);
        let read = p.encoder.read(&dir.path().join("train-images-idx3-ubyte.gz")).unwrap();
        assert_eq!(read.len(), 20);
        assert!(read.iter().any(|(_, input)| *input == Input::Values(expected.clone())));
    }

    #[test]
    fn errors_say_what_is_missing() {
        let dir = tiny();
        let gone = load("smnist", MnistConfig::default(), &dir.path().join("x")).err().unwrap();
        let gone = gone.to_string();
        assert!(gone.contains("t10k-labels-idx1-ubyte") && gone.contains("x/mnist"), "{gone}");
        let none = TaskConfig::default_for("smnist").unwrap().load(None, &|_| {}).err().unwrap();
        assert!(none.message_and_hint().contains("--data"), "{none}");
        let config = MnistConfig { train: 19, ..MnistConfig::default() };
        let many = load("smnist", config, dir.path()).err().unwrap().to_string();
        assert!(many.contains("task.train = 19") && many.contains("only 18"), "{many}");
        fs::write(dir.path().join("t10k-labels-idx1-ubyte"), idx_bytes(&[4], &[1; 4])).unwrap();
        let few = load("smnist", MnistConfig::default(), dir.path()).err().unwrap().to_string();
        assert!(few.contains("4 labels") && few.contains("5 images"), "{few}");
        fs::write(dir.path().join("t10k-labels-idx1-ubyte"), idx_bytes(&[5], &[10; 5])).unwrap();
        let high = load("smnist", MnistConfig::default(), dir.path()).err().unwrap().to_string();
        assert!(high.contains("label 0 is 10"), "{high}");
    }
}
