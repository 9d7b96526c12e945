//! The generator of Pathfinder images (Linsley et al. 2018; Kim et al. 2020), as the Long Range Arena used it.
//!
//! Two long paths of short segments start next to each other; distractors are shorter ones. Two discs mark an end of one
//! path and, in a connected image, its other end, else the other end of the other path.
//!
//! Segments keep apart by an occupancy mask. The mask of a path's newest segment is only added when the next segment
//! follows, so a path does not run into its own end.

use std::f64::consts::PI;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::parameters::{Parameters, distractor_length};
use super::raster::Picture;
use super::tiles::{Heading, Marker, Point, Seed, Stamp, Tile, Tiles};
use crate::random::stream;

/// Tries for one segment.
const SEGMENT_TRIES: usize = 3;
/// Tries for one distractor.
const DISTRACTOR_TRIES: usize = 5;
/// A path ends where the weights of all turns together are below this.
const LEAST_WEIGHT: f64 = 1e-4;
/// Masks of two segments may add up to less than this at a pixel: 1.8, in bytes.
const OVERLAP: u16 = 459;
/// A pixel is free when its mask is at most this: 0.3, in bytes.
const FREE: u8 = 76;
/// Distractors need this share of free pixels.
const FREE_SHARE: f64 = 0.01;

/// One image with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathImage {
    /// Whether the two markers are on one path.
    pub connected: bool,
    /// Free space around segments, in pixels: drawn per image where the size has a choice.
    pub margin: usize,
    /// Grey levels, row by row.
    pub pixels: Vec<u8>,
}

/// Makes the images of one size, length of path and seed: image i is always the same.
pub struct Generator {
    parameters: &'static Parameters,
    contour: usize,
    seed: u64,
    purpose: String,
    tiles: Vec<Tiles>,
    marker: Marker,
}

impl Generator {
    pub(super) fn new(parameters: &'static Parameters, contour: usize, seed: u64) -> Self {
        Self {
            parameters,
            contour,
            seed,
            purpose: format!("pathfinder-{}-{contour}", parameters.size),
            tiles: parameters.margins.par_iter().map(|&m| Tiles::new(parameters, m)).collect(),
            marker: Marker::new(parameters),
        }
    }

    /// Image `i`.
    pub fn image(&self, i: u64) -> PathImage {
        let mut rng = stream(&self.purpose, self.seed, i);
        let connected = rng.random_range(0..2) == 1;
        let tiles = &self.tiles[rng.random_range(0..self.tiles.len() as u32) as usize];
        let mut scene = Scene::new(self.parameters, tiles);
        let ends = loop {
            if let Some(ends) = scene.targets(self.contour, &mut rng) {
                break ends;
            }
        };
        let targets = scene.segments.len();
        for _ in 0..self.parameters.distractors {
            let length = distractor_length(self.contour);
            (0..DISTRACTOR_TRIES).any(|_| scene.distractor(length, &mut rng));
        }
        let k = rng.random_range(0..2u32) as usize;
        let other = if connected { k } else { 1 - k };
        let markers = [ends[k].0, ends[other].1].map(|end| self.marker.draw(end));
        let pixels = self.render(scene.segments.split_at(targets), &markers);
        PathImage { connected, margin: tiles.margin, pixels }
    }

    /// Draws everything on top of each other, the brightest pixel winning, and scales to 0..=255.
    fn render(&self, (targets, others): (&[Segment], &[Segment]), markers: &[Picture]) -> Vec<u8> {
        let Parameters { size, target_contrast, distractor_contrast, .. } = *self.parameters;
        let mut grey = vec![0f64; size * size];
        for (segments, contrast) in [(targets, target_contrast), (others, distractor_contrast)] {
            let mut layer = Picture::black(size);
            segments.iter().for_each(|s| paste(&mut layer, &s.tile.line, s.start));
            for (g, &v) in grey.iter_mut().zip(&layer.pixels) {
                // Lines are in single precision in the original, which decides how ties are rounded.
                *g = g.max(f64::from((f64::from(v) / 255.0 * contrast) as f32));
            }
        }
        for marker in markers {
            for (g, &v) in grey.iter_mut().zip(&marker.pixels) {
                *g = g.max(f64::from(v) / 255.0);
            }
        }
        let least = grey.iter().copied().fold(f64::INFINITY, f64::min);
        let most = grey.iter().copied().fold(0.0, f64::max);
        let scale = 255.0 / (most - least);
        grey.iter().map(|g| ((g - least) * scale + 0.5) as u8).collect()
    }
}

/// A segment in the image.
#[derive(Clone, Copy)]
struct Segment<'a> {
    tile: &'a Tile,
    start: Point,
}

/// A growing path.
struct Path<'a> {
    /// The next segment starts on a circle around the point that follows this one.
    pivot: Point,
    heading: &'a Heading,
    /// The newest segment, not yet in the mask.
    pending: Segment<'a>,
    /// The far end of the newest segment.
    tip: Point,
}

/// An image in the making.
struct Scene<'a> {
    parameters: &'a Parameters,
    tiles: &'a Tiles,
    mask: Picture,
    segments: Vec<Segment<'a>>,
    /// Scratch: the running sum of weights, and the number of the turn.
    choice: Vec<(f64, u16)>,
}

impl<'a> Scene<'a> {
    fn new(parameters: &'a Parameters, tiles: &'a Tiles) -> Self {
        let mask = Picture::black(parameters.size);
        Self { parameters, tiles, mask, segments: Vec::new(), choice: Vec::new() }
    }

    /// One attempt at the two target paths: origin and terminal of each.
    fn targets(&mut self, contour: usize, rng: &mut ChaCha8Rng) -> Option<[(Point, Point); 2]> {
        let (seed, origin) = self.first_seed(rng)?;
        self.segments.clear();
        self.clear_mask();
        let mut first = self.start(seed, origin)?;
        let mut second = (0..SEGMENT_TRIES).find_map(|_| self.second_seed(origin, rng))?;
        let origins = [first.tip, second.tip];
        self.segments.extend([first.pending, second.pending]);
        for _ in 1..contour {
            self.extend(&mut first, rng)?;
            self.extend(&mut second, rng)?;
        }
        // The last segment of the first path is never added to the mask, as in the original.
        self.block(second.pending);
        Some([(origins[0], first.tip), (origins[1], second.tip)])
    }

    /// The first target's direction and place, in the middle of the image.
    fn first_seed(&self, rng: &mut ChaCha8Rng) -> Option<(&'a Seed, Point)> {
        let border = 2 * self.parameters.seed_distance as i32;
        let size = self.parameters.size as i32;
        for _ in 0..SEGMENT_TRIES {
            let seed = self.any_seed(rng);
            let footprint = seed.footprint.as_ref()?;
            // Free are the pixels whose whole footprint is within the border: a rectangle.
            let span = |part: fn(&Point) -> i32| {
                let least = footprint.iter().map(part).min().unwrap_or(0);
                let most = footprint.iter().map(part).max().unwrap_or(0);
                border - least..size - border - most
            };
            let (rows, columns) = (span(|p| p.0), span(|p| p.1));
            if rows.is_empty() || columns.is_empty() {
                return None;
            }
            let place = (rng.random_range(rows), rng.random_range(columns));
            if self.start(seed, place).is_some() {
                return Some((seed, place));
            }
        }
        None
    }

    /// The second target starts at a distance from the first, in any direction.
    fn second_seed(&self, first: Point, rng: &mut ChaCha8Rng) -> Option<Path<'a>> {
        let seed = self.any_seed(rng);
        let (sin, cos) = (f64::from(rng.random_range(0..360)) * PI / 180.0).sin_cos();
        let distance = self.parameters.seed_distance as f64;
        let place =
            |from: i32, along: f64| (f64::from(from) + distance * along).round_ties_even() as i32;
        self.start(seed, (place(first.0, sin), place(first.1, cos)))
    }

    /// One try at a distractor; nothing changes if it fails.
    fn distractor(&mut self, length: usize, rng: &mut ChaCha8Rng) -> bool {
        let (mask, segments) = (self.mask.clone(), self.segments.len());
        let done = self.try_distractor(length, rng).is_some();
        if !done {
            self.mask = mask;
            self.segments.truncate(segments);
        }
        done
    }

    fn try_distractor(&mut self, length: usize, rng: &mut ChaCha8Rng) -> Option<()> {
        let mut path = self.distractor_seed(rng)?;
        self.segments.push(path.pending);
        for _ in 1..length {
            self.extend(&mut path, rng)?;
        }
        self.block(path.pending);
        Some(())
    }

    fn distractor_seed(&self, rng: &mut ChaCha8Rng) -> Option<Path<'a>> {
        let free = self.mask.pixels.iter().filter(|&&v| v <= FREE).count();
        if (free as f64) < FREE_SHARE * self.mask.pixels.len() as f64 {
            return None;
        }
        for _ in 0..SEGMENT_TRIES {
            let seed = self.any_seed(rng);
            let places = self.free_places(seed.footprint.as_ref()?);
            if places.is_empty() {
                return None;
            }
            let place = places[rng.random_range(0..places.len() as u32) as usize];
            let size = self.parameters.size as u32;
            let path = self.start(seed, ((place / size) as i32, (place % size) as i32));
            if path.is_some() {
                return path;
            }
        }
        None
    }

    /// The pixels around which the footprint is free; what is outside the image does not count.
    fn free_places(&self, footprint: &[Point]) -> Vec<u32> {
        let size = self.parameters.size;
        let mut taken = vec![0u8; size * size];
        for &(dy, dx) in footprint {
            for y in overlap(dy, size) {
                let columns = overlap(dx, size);
                let from = (y as i32 + dy) as usize * size + (columns.start as i32 + dx) as usize;
                let source = &self.mask.pixels[from..from + columns.len()];
                let target = &mut taken[y * size..][columns];
                target.iter_mut().zip(source).for_each(|(t, &s)| *t = (*t).max(s));
            }
        }
        (0u32..).zip(taken).filter(|(_, v)| *v <= FREE).map(|(i, _)| i).collect()
    }

    fn any_seed(&self, rng: &mut ChaCha8Rng) -> &'a Seed {
        &self.tiles.seeds[rng.random_range(0..self.tiles.seeds.len() as u32) as usize]
    }

    /// A path of one segment, if its head and its pivot are inside the image.
    fn start(&self, seed: &'a Seed, tail: Point) -> Option<Path<'a>> {
        let length = self.parameters.length;
        let head = seed.heading.go(tail, length as f64);
        let pivot = seed.back.go(head, (length + self.tiles.margin) as f64);
        let pending = Segment { tile: &seed.tile, start: tail };
        (self.inside(head) && self.inside(pivot)).then_some(Path {
            pivot,
            heading: &seed.heading,
            pending,
            tip: tail,
        })
    }

    /// Adds one segment to a path.
    fn extend(&mut self, path: &mut Path<'a>, rng: &mut ChaCha8Rng) -> Option<()> {
        let tiles = self.tiles;
        let pivot = path.heading.go(path.pivot, (self.parameters.length + 2 * tiles.margin) as f64);
        let end = |turn: u16| add(pivot, tiles.turns[usize::from(turn)].offset);
        let mut choice = std::mem::take(&mut self.choice);
        choice.clear();
        let mut sum = 0.0;
        for &(turn, weight) in &path.heading.turns {
            if self.inside(end(turn)) {
                sum += weight * (1.0 - f64::from(self.blocked(end(turn))) / 255.0);
                choice.push((sum, turn));
            }
        }
        let mut found = None;
        if sum >= LEAST_WEIGHT {
            found = (0..SEGMENT_TRIES).find_map(|_| {
                let u = rng.random::<f64>() * sum;
                let &(_, turn) = choice.iter().find(|(sum, _)| *sum > u)?;
                let placed =
                    Segment { tile: &tiles.turns[usize::from(turn)].tile, start: end(turn) };
                self.fits(placed).then_some((turn, placed))
            });
        }
        self.choice = choice;
        let (turn, placed) = found?;
        self.segments.push(placed);
        self.block(path.pending);
        let heading = &tiles.turns[usize::from(turn)].heading;
        *path = Path { pivot, heading, pending: placed, tip: placed.start };
        Some(())
    }

    fn inside(&self, (y, x): Point) -> bool {
        let range = 0..self.parameters.size as i32;
        range.contains(&y) && range.contains(&x)
    }

    /// The largest mask value within the margin of a pixel of the image.
    fn blocked(&self, (y, x): Point) -> u8 {
        let size = self.parameters.size as i32;
        let rows = self.tiles.near.iter().map(|&(dy, reach)| (y + dy, reach));
        let values = rows.filter(|(y, _)| (0..size).contains(y)).map(|(y, reach)| {
            let (first, last) = ((x - reach).max(0), (x + reach).min(size - 1));
            let row = &self.mask.pixels[(y * size + first) as usize..=(y * size + last) as usize];
            row.iter().copied().fold(0, u8::max)
        });
        values.max().unwrap_or(0)
    }

    /// Whether a segment keeps clear of all others.
    fn fits(&self, segment: Segment) -> bool {
        let mut most = 0;
        for (y, x, tile) in clipped(&segment.tile.mask, segment.start, self.mask.side) {
            let row = &self.mask.pixels[y * self.mask.side + x..][..tile.len()];
            let sums = row.iter().zip(tile).map(|(&a, &b)| u16::from(a) + u16::from(b));
            most = sums.fold(most, u16::max);
        }
        most < OVERLAP
    }

    /// Adds a segment to the mask.
    fn block(&mut self, segment: Segment) {
        paste(&mut self.mask, &segment.tile.mask, segment.start);
    }

    /// Only the border is taken.
    fn clear_mask(&mut self) {
        let (size, padding) = (self.parameters.size, self.parameters.padding);
        self.mask.pixels.fill(255);
        for row in self.mask.pixels.chunks_exact_mut(size).skip(padding).take(size - 2 * padding) {
            row[padding..size - padding].fill(0);
        }
    }
}

fn add(a: Point, b: Point) -> Point {
    (a.0 + b.0, a.1 + b.1)
}

/// The i with 0 ≤ i < size and 0 ≤ i + d < size.
fn overlap(d: i32, size: usize) -> std::ops::Range<usize> {
    let size = size as i32;
    let start = (-d).clamp(0, size);
    start as usize..(size - d).clamp(start, size) as usize
}

/// The rows of a stamp put on a point of an image: row and column in the image, and the pixels inside it.
fn clipped(
    stamp: &Stamp,
    (y, x): Point,
    size: usize,
) -> impl Iterator<Item = (usize, usize, &[u8])> {
    let (top, left) = (y + stamp.corner.0, x + stamp.corner.1);
    let first = (-left).clamp(0, stamp.width as i32);
    let end = (size as i32 - left).clamp(first, stamp.width as i32);
    let column = (left + first).clamp(0, size as i32) as usize;
    let rows = (top..size as i32).zip(stamp.pixels.chunks_exact(stamp.width.max(1)));
    rows.filter(|(y, _)| *y >= 0)
        .map(move |(y, row)| (y as usize, column, &row[first as usize..end as usize]))
}

/// Puts a stamp into an image; the brighter pixel stays.
fn paste(image: &mut Picture, stamp: &Stamp, at: Point) {
    let side = image.side;
    for (y, x, pixels) in clipped(stamp, at, side) {
        let row = &mut image.pixels[y * side + x..][..pixels.len()];
        row.iter_mut().zip(pixels).for_each(|(a, &b)| *a = (*a).max(b));
    }
}
