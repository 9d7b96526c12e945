//! Everything that can be drawn and every turn that can be taken, precomputed: a generator only looks things up.
//!
//! A path starts in one of 360 whole-degree directions, and then always turns to one of a few points on a circle of
//! whole pixels: so there are some 400 different segments.

use std::collections::BTreeSet;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

use super::parameters::{ANTIALIAS, Parameters};
use super::raster::Picture;
use super::resize::Resizer;

/// A pixel, or the way between two: (y, x), y downwards.
pub(crate) type Point = (i32, i32);

/// Weights below this are those of turns that are never taken (cos² of 90° is not quite 0).
const NO_WEIGHT: f64 = 1e-20;

/// A picture to be put into another one: its dark borders are cut off.
pub(crate) struct Stamp {
    /// From the point where it is put to its first pixel.
    pub(crate) corner: Point,
    pub(crate) width: usize,
    /// Row by row.
    pub(crate) pixels: Vec<u8>,
}

impl Stamp {
    /// Cuts a picture that is put with its middle on a point.
    fn cut(picture: &Picture) -> Self {
        let half = (picture.side / 2) as i32;
        let lit = |i: &usize| picture.pixels[*i] > 0;
        let rows = (0..picture.pixels.len()).filter(lit).map(|i| i / picture.side);
        let columns = (0..picture.pixels.len()).filter(lit).map(|i| i % picture.side);
        let rows = rows.clone().min().unwrap_or(0)..rows.max().map_or(0, |y| y + 1);
        let columns = columns.clone().min().unwrap_or(0)..columns.max().map_or(0, |x| x + 1);
        let row = |y: usize| &picture.pixels[y * picture.side..][columns.clone()];
        Self {
            corner: (rows.start as i32 - half, columns.start as i32 - half),
            width: columns.len(),
            pixels: rows.clone().flat_map(row).copied().collect(),
        }
    }
}

/// One segment and the space it takes, to be put where the segment starts.
pub(crate) struct Tile {
    pub(crate) line: Stamp,
    pub(crate) mask: Stamp,
}

/// A direction; angle t leads to dy = sin t, dx = cos t.
pub(crate) struct Heading {
    sin: f64,
    cos: f64,
    /// Where a path that goes this way may turn to: number of the turn and its weight, weights of 0 left out.
    pub(crate) turns: Vec<(u16, f64)>,
}

impl Heading {
    /// The pixel `distance` further on. It is rounded up in both coordinates.
    pub(crate) fn go(&self, (y, x): Point, distance: f64) -> Point {
        let step = |from: i32, along: f64| (f64::from(from) + distance * along).ceil() as i32;
        (step(y, self.sin), step(x, self.cos))
    }
}

/// The first segment of a path.
pub(crate) struct Seed {
    pub(crate) heading: Heading,
    /// The opposite direction, without turns.
    pub(crate) back: Heading,
    pub(crate) tile: Tile,
    /// Pixels that must be free, relative to the first; `None` when the edge rule forbids this direction.
    pub(crate) footprint: Option<Vec<Point>>,
}

/// A further segment of a path.
pub(crate) struct Turn {
    /// From the path's pivot to the far end of the segment.
    pub(crate) offset: Point,
    pub(crate) heading: Heading,
    /// Drawn from the far end back.
    pub(crate) tile: Tile,
}

/// All of it for one margin.
pub(crate) struct Tiles {
    pub(crate) margin: usize,
    /// For -180°, -179°, ..., 179°.
    pub(crate) seeds: Vec<Seed>,
    /// Sorted by offset.
    pub(crate) turns: Vec<Turn>,
    /// The pixels within the margin: dy, and the largest |dx|.
    pub(crate) near: Vec<(i32, i32)>,
}

impl Tiles {
    pub(crate) fn new(parameters: &Parameters, margin: usize) -> Self {
        let pen = Pen::new(parameters, margin);
        let reach = parameters.length + margin;
        let offsets = circle_points(reach);
        let angle = |&(dy, dx): &Point| f64::from(dy).atan2(f64::from(dx));
        let angles: Vec<f64> = offsets.iter().map(angle).collect();
        let heading = |t: f64| {
            let weights = angles.iter().map(|&o| turn_weight(t, o, parameters.continuity));
            let taken = (0u16..).zip(weights).filter(|(_, w)| *w > NO_WEIGHT);
            Heading { sin: t.sin(), cos: t.cos(), turns: taken.collect() }
        };
        let seed = |degree: i32| {
            let t = f64::from(degree) * PI / 180.0;
            let back = reversed(t);
            let (line, mask) = pen.segment(t);
            Seed {
                heading: heading(t),
                back: Heading { sin: back.sin(), cos: back.cos(), turns: Vec::new() },
                footprint: edge_rule(taken(&mask, reach as i32)),
                tile: Tile { line: Stamp::cut(&line), mask: Stamp::cut(&mask) },
            }
        };
        let turn = |(&offset, &t): (&Point, &f64)| {
            let (line, mask) = pen.segment(reversed(t));
            let tile = Tile { line: Stamp::cut(&line), mask: Stamp::cut(&mask) };
            Turn { offset, heading: heading(t), tile }
        };
        Self {
            margin,
            seeds: (-180..180).map(seed).collect(),
            turns: offsets.iter().zip(&angles).map(turn).collect(),
            near: disc_rows(margin as i32),
        }
    }
}

/// The rows of the disc dy² + dx² ≤ r²: dy, and the largest |dx|.
fn disc_rows(r: i32) -> Vec<(i32, i32)> {
    (-r..=r).map(|dy| (dy, (r * r - dy * dy).isqrt())).collect()
}

/// The opposite angle, within -π..π.
fn reversed(t: f64) -> f64 {
    if t + PI < PI { t + PI } else { t - PI }
}

/// The whole pixels of a circle around a pixel, sorted: one point per unit of its length, rounded down.
fn circle_points(r: usize) -> Vec<Point> {
    let r = r as f64;
    let step = 360.0 / (TAU * r);
    let angles = (0..).map(|i| f64::from(i) * step).take_while(|&degree| degree < 360.0);
    let point = |degree: f64| {
        let (sin, cos) = (degree * PI / 180.0).sin_cos();
        ((r * sin).floor() as i32, (r * cos).floor() as i32)
    };
    angles.map(point).collect::<BTreeSet<_>>().into_iter().collect()
}

/// cos²(c·e) of the angle e between two directions, 0 from c·e = 90° on.
fn turn_weight(from: f64, to: f64, continuity: f64) -> f64 {
    let between = (to - from).abs();
    let between = if between > PI { TAU - between } else { between };
    (between * continuity).min(FRAC_PI_2).cos().powi(2)
}

/// The pixels that a segment takes fully, relative to the pixel *before* its start.
fn taken(mask: &Picture, reach: i32) -> Vec<Point> {
    let half = (mask.side / 2) as i32;
    let full = mask.pixels.iter().enumerate().filter(|(_, v)| **v == 255);
    let offset = |(i, _): (usize, &u8)| {
        let (y, x) = (i / mask.side, i % mask.side);
        (y as i32 - half + 1, x as i32 - half + 1)
    };
    let inside = |(dy, dx): &Point| dy.abs() <= reach && dx.abs() <= reach;
    full.map(offset).filter(inside).collect()
}

/// The edge rule: the original looks for free places by a dilation that gives nonsense where all of the footprint is
/// outside the image, and then finds no place at all. That happens unless the footprint reaches all four quadrants.
fn edge_rule(footprint: Vec<Point>) -> Option<Vec<Point>> {
    let reached = |(sy, sx): (i32, i32)| footprint.iter().any(|(y, x)| y * sy >= 0 && x * sx >= 0);
    [(1, 1), (1, -1), (-1, 1), (-1, -1)].into_iter().all(reached).then_some(footprint)
}

/// Draws segments.
struct Pen {
    length: usize,
    width: usize,
    margin: usize,
    half: usize,
    resizer: Resizer,
}

impl Pen {
    fn new(parameters: &Parameters, margin: usize) -> Self {
        let half = parameters.tile_half(margin);
        Self {
            length: parameters.length,
            width: (parameters.thickness * ANTIALIAS as f64).round() as usize,
            margin,
            half,
            resizer: Resizer::new(2 * half * ANTIALIAS + 1, 2 * half + 1),
        }
    }

    /// A segment in direction t, starting in the middle, and the space it takes.
    fn segment(&self, t: f64) -> (Picture, Picture) {
        let mut large = Picture::black(2 * self.half * ANTIALIAS + 1);
        let middle = ((self.half * ANTIALIAS) as i32, (self.half * ANTIALIAS) as i32);
        let along = Heading { sin: t.sin(), cos: t.cos(), turns: Vec::new() };
        large.line(middle, along.go(middle, (self.length * ANTIALIAS) as f64), self.width);
        let mask = self.resizer.apply(&large.dilated(self.margin * ANTIALIAS));
        (self.resizer.apply(&large), mask)
    }
}

/// Draws markers: discs anywhere in the image.
pub(crate) struct Marker {
    size: usize,
    radius: f64,
    resizer: Resizer,
}

impl Marker {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let Parameters { size, radius, .. } = *parameters;
        Self { size, radius, resizer: Resizer::new(size * ANTIALIAS, size) }
    }

    /// A whole image with one disc.
    pub(crate) fn draw(&self, (y, x): Point) -> Picture {
        let mut large = Picture::black(self.size * ANTIALIAS);
        let side = large.side as i32;
        let radius = self.radius * ANTIALIAS as f64;
        let (cy, cx) = (y * ANTIALIAS as i32, x * ANTIALIAS as i32);
        let reach = radius as i32;
        for y in (cy - reach).max(0)..(cy + reach + 1).min(side) {
            for x in (cx - reach).max(0)..(cx + reach + 1).min(side) {
                if f64::from((y - cy).pow(2) + (x - cx).pow(2)) <= radius * radius {
                    large.pixels[(y * side + x) as usize] = 255;
                }
            }
        }
        self.resizer.apply(&large)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Vectors {
        segments: Vec<SegmentVector>,
        circles: Vec<CircleVector>,
        seed_kernels: Vec<KernelVector>,
        candidates: Vec<CandidateVector>,
    }

    #[derive(Deserialize)]
    struct SegmentVector {
        set: String,
        margin: usize,
        deg: i32,
        line: Vec<Vec<u8>>,
        mask: Vec<Vec<u8>>,
    }

    #[derive(Deserialize)]
    struct CircleVector {
        set: String,
        tile: Vec<Vec<u8>>,
    }

    #[derive(Deserialize)]
    struct KernelVector {
        set: String,
        margin: usize,
        deg: i32,
        kernel: Vec<Vec<u8>>,
    }

    #[derive(Deserialize)]
    struct CandidateVector {
        set: String,
        margin: usize,
        pivot: Point,
        angle: f64,
        coords: Vec<Point>,
        cum: Vec<f64>,
    }

    /// Made with the original generator: see tests/data/README.md.
    fn vectors() -> Vectors {
        let json = include_str!("../../tests/data/pathfinder_vectors.json");
        serde_json::from_str(json).unwrap()
    }

    fn parameters(set: &str) -> &'static Parameters {
        Parameters::for_size(set.strip_prefix("pathfinder").unwrap().parse().unwrap()).unwrap()
    }

    fn radians(degree: i32) -> f64 {
        f64::from(degree) * PI / 180.0
    }

    #[test]
    fn segments_are_those_of_the_original() {
        for v in vectors().segments {
            let (line, mask) = Pen::new(parameters(&v.set), v.margin).segment(radians(v.deg));
            for (what, got, expected) in [("line", line, v.line), ("mask", mask, v.mask)] {
                let got: Vec<_> = got.pixels.chunks(got.side).map(<[u8]>::to_vec).collect();
                assert_eq!(got, expected, "{what} of {} m {} {}°", v.set, v.margin, v.deg);
            }
        }
    }

    #[test]
    fn markers_are_those_of_the_original() {
        for v in vectors().circles {
            let parameters = parameters(&v.set);
            let half = v.tile.len() / 2;
            let middle = parameters.size / 2;
            let drawn = Marker::new(parameters).draw((middle as i32, middle as i32));
            for (i, expected) in v.tile.iter().enumerate() {
                let at = (middle - half + i) * parameters.size + middle - half;
                assert_eq!(drawn.pixels[at..at + v.tile.len()], **expected, "{}", v.set);
            }
        }
    }

    #[test]
    fn footprints_are_those_of_the_original() {
        for v in vectors().seed_kernels {
            let parameters = parameters(&v.set);
            let (_, mask) = Pen::new(parameters, v.margin).segment(radians(v.deg));
            let reach = (parameters.length + v.margin) as i32;
            let mut expected = Vec::new();
            for (y, row) in v.kernel.iter().enumerate() {
                let lit = row.iter().enumerate().filter(|(_, k)| **k == 1);
                expected.extend(lit.map(|(x, _)| (y as i32 - reach, x as i32 - reach)));
            }
            assert_eq!(taken(&mask, reach), expected, "{} {}", v.set, v.deg);
        }
    }

    #[test]
    fn turns_are_those_of_the_original() {
        for v in vectors().candidates {
            let parameters = parameters(&v.set);
            let points = circle_points(parameters.length + v.margin);
            let around: Vec<Point> =
                points.iter().map(|p| (p.0 + v.pivot.0, p.1 + v.pivot.1)).collect();
            assert_eq!(around, v.coords);
            let weight = |&(dy, dx): &Point| {
                turn_weight(v.angle, f64::from(dy).atan2(f64::from(dx)), parameters.continuity)
            };
            let total: f64 = points.iter().map(weight).sum();
            let mut sum = 0.0;
            for (point, expected) in points.iter().zip(v.cum) {
                sum += weight(point) / total;
                assert!((sum - expected).abs() < 1e-6, "{point:?}: {sum}, expected {expected}");
            }
        }
    }

    #[test]
    fn a_stamp_is_the_lit_part() {
        let mut picture = Picture::black(5);
        (picture.pixels[5 + 3], picture.pixels[15 + 2]) = (7, 8);
        let stamp = Stamp::cut(&picture);
        assert_eq!((stamp.corner, stamp.width), ((-1, 0), 2));
        assert_eq!(stamp.pixels, [0, 7, 0, 0, 8, 0]);
        assert!(Stamp::cut(&Picture::black(3)).pixels.is_empty());
        assert_eq!(disc_rows(2), [(-2, 0), (-1, 1), (0, 2), (1, 1), (2, 0)]);
    }

    /// At 32 pixels all seeds lead up and left; at 128 nearly all directions are possible.
    #[test]
    fn the_edge_rule() {
        let allowed = |size, margin| {
            let tiles = Tiles::new(Parameters::for_size(size).unwrap(), margin);
            let seeds = (-180..180).zip(tiles.seeds);
            seeds.filter(|(_, s)| s.footprint.is_some()).map(|(t, _)| t).collect::<Vec<i32>>()
        };
        assert_eq!(allowed(32, 1), (-150..=-121).collect::<Vec<_>>());
        assert_eq!([2, 3].map(|margin| allowed(128, margin).len()), [354, 360]);
    }
}
