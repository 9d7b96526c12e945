//! Making pictures smaller as Pillow does: Lanczos-3 in fixed point, rows first, rounded to bytes after each pass.

use std::f64::consts::PI;

use super::raster::Picture;

/// Fixed point: 8 bits of pixel, 2 bits of room for overshooting, the rest for the weights.
const BITS: u32 = 32 - 8 - 2;
/// Half the width of the filter, in pixels of the smaller picture.
const LOBES: f64 = 3.0;

/// Resizes pictures from one side length to a smaller one.
pub(crate) struct Resizer {
    from: usize,
    to: usize,
    /// For every new pixel the first old pixel it depends on, and the weights of that one and the next ones.
    taps: Vec<(usize, Vec<i32>)>,
}

impl Resizer {
    pub(crate) fn new(from: usize, to: usize) -> Self {
        let scale = (from as f64 / to as f64).max(1.0);
        let support = LOBES * scale;
        let taps = (0..to).map(|i| {
            let centre = (i as f64 + 0.5) * (from as f64 / to as f64);
            let first = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(from);
            let weights: Vec<f64> =
                (first..end).map(|j| lanczos((j as f64 - centre + 0.5) * (1.0 / scale))).collect();
            let sum: f64 = weights.iter().sum();
            let fixed = |w: f64| (w / sum * f64::from(1 << BITS)).round() as i32;
            (first, weights.into_iter().map(fixed).collect())
        });
        Self { from, to, taps: taps.collect() }
    }

    /// # Panics
    /// If the picture's side is not the one this was made for.
    pub(crate) fn apply(&self, picture: &Picture) -> Picture {
        assert_eq!(picture.side, self.from);
        let (from, to) = (self.from, self.to);
        let lit: Vec<bool> =
            picture.pixels.chunks_exact(from).map(|row| row.iter().any(|&v| v > 0)).collect();
        let mut narrow = vec![0; from * to];
        for y in (0..from).filter(|&y| lit[y]) {
            let row = &picture.pixels[y * from..(y + 1) * from];
            for (x, (first, weights)) in self.taps.iter().enumerate() {
                let terms = row[*first..].iter().zip(weights);
                narrow[y * to + x] = byte(terms.map(|(&v, w)| i32::from(v) * w).sum());
            }
        }
        let mut out = Picture::black(to);
        for (y, (first, weights)) in self.taps.iter().enumerate() {
            if !lit[*first..first + weights.len()].contains(&true) {
                continue;
            }
            for x in 0..to {
                let terms = weights.iter().enumerate();
                let sum = terms.map(|(j, w)| i32::from(narrow[(first + j) * to + x]) * w).sum();
                out.pixels[y * to + x] = byte(sum);
            }
        }
        out
    }
}

/// Rounds a fixed-point sum and clips it to 0..=255.
fn byte(sum: i32) -> u8 {
    ((sum + (1 << (BITS - 1))) >> BITS).clamp(0, 255) as u8
}

/// sinc(x) sinc(x/3) for |x| < 3.
fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
    if (-LOBES..LOBES).contains(&x) { sinc(x) * sinc(x / LOBES) } else { 0.0 }
}
