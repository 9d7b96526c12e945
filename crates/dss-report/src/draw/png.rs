//! Scenes painted as PNG at twice their size.

use zeno::{Cap, Join, Mask, PathBuilder, PathData, Stroke, Style, Transform};

use super::colour::{MAGMA, magma};
use super::font;
use super::scene::{Mark, Raster, Scene, Text};

/// Pixels per unit of a scene.
const SCALE: f64 = 2.0;

/// Bold text without a bold font: the width of the line around it, in ems.
const BOLD: f64 = 0.045;

impl Scene {
    /// The picture as a PNG file, in light colours.
    pub fn png(&self) -> Vec<u8> {
        let mut canvas = Canvas::new(self.width, self.height);
        for mark in &self.marks {
            canvas.draw(mark);
        }
        let (width, height) = (canvas.width as u32, canvas.height as u32);
        encode(width, height, png::ColorType::Rgb, None, &canvas.pixels)
    }
}

/// A raster as a PNG file with the colour map as its palette.
pub(crate) fn encode_indexed(raster: &Raster) -> Vec<u8> {
    let palette = (0..MAGMA).flat_map(|i| magma(i as u8)).collect();
    let (width, height) = (raster.width as u32, raster.height as u32);
    encode(width, height, png::ColorType::Indexed, Some(palette), &raster.values)
}

fn encode(
    width: u32,
    height: u32,
    colour: png::ColorType,
    palette: Option<Vec<u8>>,
    data: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    if let Some(palette) = palette {
        encoder.set_palette(palette);
    }
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(data));
    written.expect("the sizes fit, and a Vec takes every byte");
    bytes
}

/// Pixels in red, green, blue.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// White.
    fn new(width: f64, height: f64) -> Self {
        let [width, height] = [width, height].map(|x| (SCALE * x).round().max(1.0) as usize);
        Self { width, height, pixels: vec![255; 3 * width * height] }
    }

    fn draw(&mut self, mark: &Mark) {
        let whole = Transform::scale(SCALE as f32, SCALE as f32);
        match mark {
            Mark::Stroke { path, line } => {
                let mut stroke = Stroke::new(line.width as f32);
                stroke.join(Join::Round);
                let dashes = [4.0, 3.0];
                if line.dashed {
                    stroke.dash(&dashes, 0.0);
                } else {
                    stroke.cap(Cap::Butt);
                }
                self.paint(path.as_str(), stroke, whole, line.ink.light(), line.opacity);
            }
            Mark::Fill { path, ink, opacity } => {
                self.paint(path.as_str(), zeno::Fill::NonZero, whole, ink.light(), *opacity);
            }
            Mark::Dots { at, radius, ink, opacity } => {
                for [x, y] in at {
                    let mut disc = Vec::new();
                    disc.add_circle((*x as f32, *y as f32), *radius as f32);
                    self.paint(&disc, zeno::Fill::NonZero, whole, ink.light(), *opacity);
                }
            }
            Mark::Text(text) => self.text(text),
            Mark::Image { rectangle, raster } => self.image(*rectangle, raster),
        }
    }

    fn text(&mut self, text: &Text) {
        for (outline, [x, y], factor) in font::outlines(text) {
            let f = (SCALE * factor) as f32;
            let (x, y) = ((SCALE * x) as f32, (SCALE * y) as f32);
            let place = if text.upright {
                Transform::new(0.0, -f, f, 0.0, x, y)
            } else {
                Transform::new(f, 0.0, 0.0, f, x, y)
            };
            let colour = text.ink.light();
            self.paint(outline, zeno::Fill::NonZero, place, colour, 1.0);
            if text.bold {
                let around = Stroke::new((BOLD * text.size / factor) as f32);
                self.paint(outline, around, place, colour, 1.0);
            }
        }
    }

    /// Lays a colour over the pixels that a path covers.
    fn paint<'a>(
        &mut self,
        path: impl PathData,
        style: impl Into<Style<'a>>,
        transform: Transform,
        colour: [u8; 3],
        opacity: f64,
    ) {
        let (mask, place) = Mask::new(path).style(style).transform(Some(transform)).render();
        for (row, cover) in mask.chunks_exact((place.width as usize).max(1)).enumerate() {
            let y = i64::from(place.top) + row as i64;
            for (column, &cover) in cover.iter().enumerate() {
                let x = i64::from(place.left) + column as i64;
                let inside =
                    (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
                if cover > 0 && inside {
                    let share = opacity * f64::from(cover) / 255.0;
                    self.blend(x as usize, y as usize, colour.map(f64::from), share);
                }
            }
        }
    }

    fn blend(&mut self, x: usize, y: usize, colour: [f64; 3], share: f64) {
        let at = 3 * (y * self.width + x);
        for (pixel, colour) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            *pixel = (f64::from(*pixel) * (1.0 - share) + colour * share).round() as u8;
        }
    }

    /// Each pixel gets the mean of the colours that it covers.
    fn image(&mut self, rectangle: [f64; 4], raster: &Raster) {
        let [left, top, width, height] = rectangle.map(|x| (SCALE * x).round() as usize);
        let spans = |pixels: usize, values: usize| -> Vec<(usize, usize)> {
            let cut = |i: usize| i * values / pixels.max(1);
            (0..pixels).map(|i| (cut(i), cut(i + 1).max(cut(i) + 1).min(values))).collect()
        };
        let (columns, rows) = (spans(width, raster.width), spans(height, raster.height));
        let (down, across) = (self.height.saturating_sub(top), self.width.saturating_sub(left));
        for (y, (from, to)) in rows.iter().enumerate().take(down) {
            for (x, (first, last)) in columns.iter().enumerate().take(across) {
                let mut sum = [0.0; 3];
                for row in raster.values.chunks_exact(raster.width).take(*to).skip(*from) {
                    for &value in &row[*first..*last] {
                        sum.iter_mut().zip(magma(value)).for_each(|(s, c)| *s += f64::from(c));
                    }
                }
                let count = ((to - from) * (last - first)) as f64;
                self.blend(left + x, top + y, sum.map(|s| s / count), 1.0);
            }
        }
    }
}
