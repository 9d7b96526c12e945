//! What a picture is made of.

use std::fmt::Write;

use super::colour::Rgb;

/// Space around a picture.
pub(crate) const MARGIN: f64 = 14.0;
/// Where the parts below a picture's title begin.
pub(crate) const TOP: f64 = MARGIN + 28.0;

/// What a mark is painted with. All but `Fixed` follow the light and dark theme of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ink {
    /// Titles.
    Text,
    /// Labels, axes.
    Quiet,
    /// Grid lines.
    Grid,
    /// The first colour of the page's charts.
    First,
    /// The second colour of the page's charts.
    Second,
    /// The same on every page.
    Fixed(Rgb),
}

/// Which end of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Words at a place: the left, middle or right end of the base line.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub at: [f64; 2],
    pub words: String,
    pub size: f64,
    pub ink: Ink,
    pub anchor: Anchor,
    pub bold: bool,
    /// Reads upwards.
    pub upright: bool,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub ink: Ink,
    pub width: f64,
    pub dashed: bool,
    pub opacity: f64,
}

impl Line {
    /// Solid and opaque.
    pub fn new(ink: Ink, width: f64) -> Self {
        Self { ink, width, dashed: false, opacity: 1.0 }
    }
}

/// An 8-bit picture whose values are places in the colour map.
#[derive(Clone, Debug)]
pub(crate) struct Raster {
    pub width: usize,
    pub height: usize,
    /// `[height, width]`.
    pub values: Vec<u8>,
}

impl Raster {
    /// The least value as the darkest colour, the largest as the brightest.
    pub fn scaled(width: usize, height: usize, values: &[f32]) -> Self {
        let low = values.iter().copied().fold(f32::INFINITY, f32::min);
        let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let shade = |x: &f32| (255.0 * (x - low) / (high - low).max(f32::MIN_POSITIVE)) as u8;
        Self { width, height, values: values.iter().map(shade).collect() }
    }
}

/// One mark.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// A line along SVG path data.
    Stroke { path: String, line: Line },
    /// The inside of SVG path data.
    Fill { path: String, ink: Ink, opacity: f64 },
    /// Discs.
    Dots { at: Vec<[f64; 2]>, radius: f64, ink: Ink, opacity: f64 },
    /// Words.
    Text(Text),
    /// A raster in a rectangle x, y, width, height.
    Image { rectangle: [f64; 4], raster: Raster },
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Scene {
    /// A name for files and anchors: lower case, no spaces.
    pub name: String,
    /// Title.
    pub title: String,
    /// Description for those who cannot see it.
    pub summary: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) marks: Vec<Mark>,
}

impl Scene {
    /// Size of the text of a label.
    pub(crate) const LABEL_SIZE: f64 = 11.0;

    /// A picture with its title.
    pub(crate) fn new(name: impl Into<String>, title: &str, width: f64, height: f64) -> Self {
        let (name, title, summary) = (name.into(), title.to_owned(), String::new());
        let heading = Text {
            at: [MARGIN, MARGIN + 12.0],
            words: title.clone(),
            size: 15.0,
            ink: Ink::Text,
            anchor: Anchor::Start,
            bold: true,
            upright: false,
        };
        Self { name, title, summary, width, height, marks: vec![Mark::Text(heading)] }
    }

    pub(crate) fn line(&mut self, path: String, line: Line) {
        self.marks.push(Mark::Stroke { path, line });
    }

    pub(crate) fn stroke(&mut self, path: String, ink: Ink, width: f64) {
        self.line(path, Line::new(ink, width));
    }

    pub(crate) fn dashes(&mut self, path: String, ink: Ink, width: f64) {
        self.line(path, Line { dashed: true, ..Line::new(ink, width) });
    }

    pub(crate) fn fill(&mut self, path: String, ink: Ink, opacity: f64) {
        self.marks.push(Mark::Fill { path, ink, opacity });
    }

    pub(crate) fn dots(&mut self, at: Vec<[f64; 2]>, radius: f64, ink: Ink, opacity: f64) {
        self.marks.push(Mark::Dots { at, radius, ink, opacity });
    }

    /// A label of ordinary size.
    pub(crate) fn label(&mut self, at: [f64; 2], words: impl Into<String>, anchor: Anchor) {
        let text = Text {
            at,
            words: words.into(),
            size: Self::LABEL_SIZE,
            ink: Ink::Quiet,
            anchor,
            bold: false,
            upright: false,
        };
        self.marks.push(Mark::Text(text));
    }

    /// The name of a part.
    pub(crate) fn heading(&mut self, at: [f64; 2], words: impl Into<String>) {
        let text = Text {
            at,
            words: words.into(),
            size: 12.5,
            ink: Ink::Text,
            anchor: Anchor::Start,
            bold: true,
            upright: false,
        };
        self.marks.push(Mark::Text(text));
    }
}

/// Path data of a rectangle.
pub(crate) fn rectangle([x, y, width, height]: [f64; 4]) -> String {
    format!("M{x:.2} {y:.2}h{width:.2}v{height:.2}h{:.2}Z", -width)
}

/// Path data of a line through points.
pub(crate) fn polyline(points: impl IntoIterator<Item = [f64; 2]>) -> String {
    let mut path = String::new();
    for (i, [x, y]) in points.into_iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
    }
    path
}
