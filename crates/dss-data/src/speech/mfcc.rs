//! MFCC: the spectral shape of a short frame, as 20 numbers.
//!
//! Frames of 200 samples (12.5 ms), every 100 samples, centred, the signal reflected at its ends; a periodic Hann
//! window; the power spectrum; 64 triangles that are evenly spaced and half overlapping on the mel scale
//! m = 2595 log₁₀(1 + f/700) from 0 to 8000 Hz; log(· + 1e-6); the first 20 coefficients of the orthonormal DCT-II.
//! The same numbers as torchaudio's `MFCC(log_mels=True, n_mfcc=20, melkwargs=dict(n_fft=200, n_mels=64))`.

use std::f64::consts::PI;
use std::sync::OnceLock;

use dss_format::encoder::speech::{COEFFICIENTS, FRAMES, SAMPLES};

const WINDOW: usize = 200;
const HOP: usize = 100;
const _: () = assert!(FRAMES == SAMPLES / HOP + 1);
const HALF: usize = WINDOW / 2;
/// Frequencies 0 to 8000 Hz in steps of 80.
const BINS: usize = HALF + 1;
/// Bins, filled up to whole vectors.
const WIDTH: usize = BINS.next_multiple_of(8);
const MELS: usize = 64;
const FLOOR: f32 = 1e-6;

/// The tables.
struct Mfcc {
    window: [f32; WINDOW],
    /// cos(2πkn/200) and sin(2πkn/200), `[n][k]` for n = 0..=100.
    cos: Vec<[f32; WIDTH]>,
    sin: Vec<[f32; WIDTH]>,
    /// The first bin of each triangle, and its heights from there.
    triangles: Vec<(usize, Vec<f32>)>,
    /// `[coefficient][mel]`.
    dct: Vec<[f32; MELS]>,
}

/// Features of a clip, `[FRAMES, COEFFICIENTS]`; x in [-1, 1], filled up with zeros where it is short.
pub(super) fn mfcc(x: &[f32]) -> Vec<f32> {
    static TABLES: OnceLock<Mfcc> = OnceLock::new();
    let tables = TABLES.get_or_init(Mfcc::new);
    let mut padded = vec![0.0; SAMPLES + WINDOW];
    let kept = x.len().min(SAMPLES);
    padded[HALF..HALF + kept].copy_from_slice(&x[..kept]);
    for i in 1..=HALF {
        padded[HALF - i] = padded[HALF + i];
        padded[HALF + SAMPLES - 1 + i] = padded[HALF + SAMPLES - 1 - i];
    }
    let frames = (0..FRAMES).map(|t| &padded[t * HOP..t * HOP + WINDOW]);
    frames.flat_map(|frame| tables.frame(frame)).collect()
}

impl Mfcc {
    fn new() -> Self {
        let angle = |n: usize, k: usize| 2.0 * PI * ((n * k) % WINDOW) as f64 / WINDOW as f64;
        let table = |wave: fn(f64) -> f64| {
            let row = |n| std::array::from_fn(|k| wave(angle(n, k)) as f32);
            (0..=HALF).map(row).collect()
        };
        let dct = |k: usize| {
            let scale = (if k == 0 { 1.0 } else { 2.0 } / MELS as f64).sqrt();
            let wave = |m: usize| (PI / MELS as f64 * (m as f64 + 0.5) * k as f64).cos();
            std::array::from_fn(|m| (scale * wave(m)) as f32)
        };
        Self {
            window: std::array::from_fn(|n| (0.5 - 0.5 * angle(n, 1).cos()) as f32),
            cos: table(f64::cos),
            sin: table(f64::sin),
            triangles: triangles(),
            dct: (0..COEFFICIENTS).map(dct).collect(),
        }
    }

    fn frame(&self, frame: &[f32]) -> [f32; COEFFICIENTS] {
        let mut x = [0.0; WINDOW];
        x.iter_mut().zip(frame).zip(&self.window).for_each(|((x, s), w)| *x = s * w);
        // The cosine is even and the sine odd about n = 100: two samples share one row of the table.
        let (mut re, mut im) = ([0.0; WIDTH], [0.0; WIDTH]);
        for n in 0..=HALF {
            let (even, odd) = match n {
                0 | HALF => (x[n], 0.0),
                _ => (x[n] + x[WINDOW - n], x[n] - x[WINDOW - n]),
            };
            for k in 0..WIDTH {
                re[k] += even * self.cos[n][k];
                im[k] += odd * self.sin[n][k];
            }
        }
        let power: [f32; WIDTH] = std::array::from_fn(|k| re[k] * re[k] + im[k] * im[k]);
        let mel = |(first, heights): &(usize, Vec<f32>)| {
            let sum: f32 = heights.iter().zip(&power[*first..]).map(|(h, p)| h * p).sum();
            (sum + FLOOR).ln()
        };
        let mels: Vec<f32> = self.triangles.iter().map(mel).collect();
        std::array::from_fn(|k| self.dct[k].iter().zip(&mels).map(|(d, m)| d * m).sum())
    }
}

/// Triangle m rises from the m-th of 66 points that are evenly spaced in mel to the next and falls to the one after.
fn triangles() -> Vec<(usize, Vec<f32>)> {
    let mel = |f: f64| 2595.0 * (1.0 + f / 700.0).log10();
    let top = mel(8000.0);
    let point = |i: usize| 700.0 * (10f64.powf(top * i as f64 / (MELS + 1) as f64 / 2595.0) - 1.0);
    let triangle = |m: usize| {
        let [a, b, c] = [point(m), point(m + 1), point(m + 2)];
        let height = |k: usize| {
            let f = 80.0 * k as f64;
            ((f - a) / (b - a)).min((c - f) / (c - b)).max(0.0) as f32
        };
        let first = (0..BINS).find(|&k| height(k) > 0.0).unwrap_or(0);
        let heights = (first..BINS).map(height).take_while(|&h| h > 0.0).collect();
        (first, heights)
    };
    (0..MELS).map(triangle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each formula, literally, in f64.
    fn slow(x: &[f32]) -> Vec<f64> {
        let at = |i: isize| {
            let last = SAMPLES as isize - 1;
            let i = if i < 0 {
                -i
            } else if i > last {
                2 * last - i
            } else {
                i
            };
            x.get(i as usize).map_or(0.0, |&x| f64::from(x))
        };
        let mut found = Vec::new();
        for t in 0..FRAMES {
            let mut power = [0.0; BINS];
            for (k, power) in power.iter_mut().enumerate() {
                let (mut re, mut im) = (0.0, 0.0);
                for n in 0..WINDOW {
                    let phase = 2.0 * PI * n as f64 / WINDOW as f64;
                    let s = at((t * HOP + n) as isize - HALF as isize) * (1.0 - phase.cos()) / 2.0;
                    re += s * (phase * k as f64).cos();
                    im -= s * (phase * k as f64).sin();
                }
                *power = re * re + im * im;
            }
            let hertz = |mel: f64| 700.0 * (10f64.powf(mel / 2595.0) - 1.0);
            let step = 2595.0 * (1.0f64 + 8000.0 / 700.0).log10() / 65.0;
            let logs: Vec<f64> = (0..MELS)
                .map(|m| {
                    let [a, b, c] = [0, 1, 2].map(|i| hertz(step * (m + i) as f64));
                    let height = |f: f64| match f {
                        f if f < a || f > c => 0.0,
                        f if f <= b => (f - a) / (b - a),
                        f => (c - f) / (c - b),
                    };
                    let bins = power.iter().enumerate();
                    (bins.map(|(k, p)| p * height(k as f64 * 80.0)).sum::<f64>() + 1e-6).ln()
                })
                .collect();
            for k in 0..COEFFICIENTS {
                let wave = |m: usize| (PI * (2 * m + 1) as f64 * k as f64 / 128.0).cos();
                let sum: f64 = logs.iter().enumerate().map(|(m, log)| log * wave(m)).sum();
                found.push(sum * if k == 0 { 1.0 / 8.0 } else { 2f64.sqrt() / 8.0 });
            }
        }
        found
    }

    /// Ramps, noise and silence, from whole numbers.
    fn signal(samples: i64) -> Vec<f32> {
        let sample = |n: i64| match n {
            4000..6000 => 0,
            _ => (n * n * 7 + n * 131) % 2001 - 1000 + (n % 40) * (n / 20),
        };
        (0..samples).map(|n| sample(n) as f32 / 32768.0).collect()
    }

    #[test]
    fn fast_is_slow() {
        for samples in [16_000, 11_111] {
            let x = signal(samples);
            let (fast, slow) = (mfcc(&x), slow(&x));
            assert_eq!((fast.len(), FRAMES), (161 * 20, 161));
            for (i, (a, b)) in fast.iter().zip(&slow).enumerate() {
                assert!((f64::from(*a) - b).abs() < 2e-4, "{i}: {a} and {b}");
            }
        }
    }

    // Made with torchaudio 2.11.0, `MFCC(log_mels=True, n_mfcc=20, melkwargs=dict(n_fft=200, n_mels=64))`, on the
    // signal above; frames 0, 1, 50, 80 and 160.
    #[test]
    fn torchaudio_has_the_same_numbers() {
        let golden: Vec<f32> = include_str!("mfcc_torchaudio.txt")
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        let found = mfcc(&signal(16_000));
        assert_eq!(golden.len(), 5 * COEFFICIENTS);
        for (frame, golden) in [0, 1, 50, 80, 160].into_iter().zip(golden.chunks(COEFFICIENTS)) {
            let found = &found[frame * COEFFICIENTS..][..COEFFICIENTS];
            for (a, b) in found.iter().zip(golden) {
                assert!((a - b).abs() < 2e-4, "frame {frame}: {found:?} and {golden:?}");
            }
        }
    }

    #[test]
    fn silence_is_the_floor() {
        let found = mfcc(&[]);
        assert!((found[0] - 8.0 * 1e-6f32.ln()).abs() < 1e-3, "{}", found[0]);
        assert!(found[1..COEFFICIENTS].iter().all(|c| c.abs() < 1e-3));
    }
}
