//! Pathfinder as a whole: the generator against the original's images, the release's layout, idx files, the task.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Once};

use dss_data::idx::read_idx;
use dss_data::pathfinder::{ImageSet, PathImage, write_lra_folder};
use dss_data::{Dataset, Encoder, Input, PathfinderConfig, Target, Task, TaskConfig};
use rayon::prelude::*;

mod common;

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
fn compare(what: &str, ours: ([(f64, f64); 5], f64), theirs: ([(f64, f64); 5], f64), rounded: f64) {
    for (j, (a, b)) in ours.0.iter().zip(theirs.0).enumerate() {
        let bound = 4.0 * (a.1.powi(2) / ours.1 + b.1.powi(2) / theirs.1).sqrt();
        let bound = bound + rounded * if j == 1 { 1e-3 } else { 0.05 };
        println!("{what} {j}: {:.4} expected {:.4} ± {bound:.4}", a.0, b.0);
        assert!((a.0 - b.0).abs() < bound, "{what} {j}: {}, expected {} ± {bound}", a.0, b.0);
    }
}

/// Figures of 3,000 (150) images of the original generator: mean and standard deviation over images.
#[test]
fn figures_are_those_of_the_original() {
    let small = [(20.13, 1.95), (0.160, 0.016), (16.2, 4.5), (97.5, 10.8), (2.2, 1.4)];
    let ours = images(32, 14, 1, 1000);
    compare("32", summary(ours.iter().map(|i| &i.pixels[..])), (small, 3000.0), 1.0);
    let large = [(7.90, 0.34), (0.062, 0.003), (222.6, 18.7), (345.5, 20.8), (12.0, 0.2)];
    let ours = images(128, 14, 1, 100);
    compare("128", summary(ours.iter().map(|i| &i.pixels[..])), (large, 150.0), 1.0);
    assert!((30..=70).contains(&ours.iter().filter(|i| i.margin == 2).count()));
}

#[test]
fn images_look_like_the_real_ones() {
    for (size, count) in [(32, 3000), (128, 150)] {
        let name = format!("pathfinder/pathfinder{size}_hard_reference-images-idx3-ubyte.gz");
        let Some(path) = common::data(&name) else { return };
        let real = read_idx(&path, 3).unwrap();
        let ours = images(size, 14, 2, count);
        let item = |i| real.item(i);
        compare(
            "real",
            summary(ours.iter().map(|i| &i.pixels[..])),
            summary((0..real.len()).map(item)),
            0.0,
        );
        // How often each level occurs, in 16 bins.
        let bins = |all: &mut dyn Iterator<Item = u8>| {
            let mut bins = [0f64; 16];
            all.for_each(|v| bins[usize::from(v) / 16] += f64::from(u8::from(v > 0)));
            bins
        };
        let mine = bins(&mut ours.iter().flat_map(|i| i.pixels.iter().copied()));
        let theirs = bins(&mut real.data.iter().copied());
        for (a, b) in mine.iter().zip(theirs) {
            let (a, b) = (a / ours.len() as f64, b / real.len() as f64);
            assert!((a - b).abs() < 0.06 * b + 1.0, "{a} pixels, expected {b}");
        }
        // The mean images: only the small set is large enough for them.
        if size == 32 {
            let mean = |i: usize, all: &[&[u8]]| {
                all.iter().map(|levels| f64::from(levels[i])).sum::<f64>() / all.len() as f64
            };
            let mine: Vec<&[u8]> = ours.iter().map(|i| &i.pixels[..]).collect();
            let theirs: Vec<&[u8]> = (0..real.len()).map(item).collect();
            let [a, b]: [Vec<f64>; 2] =
                [mine, theirs].map(|all| (0..size * size).map(|i| mean(i, &all)).collect());
            let r = correlation(&a, &b);
            println!("correlation of the mean images: {r:.4}");
            assert!(r > 0.985, "{r}");
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
