//! Pictures: a scene of simple marks, written as SVG or painted as PNG.
//!
//! Both look the same: the text of the PNG is drawn with outlines that come with the program.

mod axis;
mod chart;
mod colour;
mod font;
mod panel;
mod png;
mod scene;
mod svg;

pub(crate) use axis::Axis;
pub(crate) use chart::{Chart, Scale, Series, Shape, smooth, thin};
pub(crate) use colour::{MAGMA, categorical_colour, layer_colour};
pub(crate) use font::width as text_width;
pub(crate) use panel::{Frame, Panel};
pub use scene::Scene;
pub(crate) use scene::{Anchor, Ink, MARGIN, Mark, Raster, TOP, Text, polyline, rectangle};
