//! A plot's frame: the places of values, axes with ticks, names.

use super::axis::Axis;
use super::scene::{Anchor, Ink, Mark, Scene, Text, rectangle};

/// A rectangle of the scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub fn rectangle(&self) -> [f64; 4] {
        [self.x, self.y, self.width, self.height]
    }
}

/// A frame with its two axes.
pub(crate) struct Panel {
    pub frame: Frame,
    pub x: Axis,
    pub y: Axis,
}

impl Panel {
    /// The place of a value.
    pub fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.px(x), self.py(y)]
    }

    pub fn px(&self, x: f64) -> f64 {
        self.frame.x + self.x.place(x) * self.frame.width
    }

    pub fn py(&self, y: f64) -> f64 {
        self.frame.bottom() - self.y.place(y) * self.frame.height
    }

    /// Horizontal grid lines with their labels.
    pub fn draw_y(&self, scene: &mut Scene, labels: bool) {
        for &tick in &self.y.ticks {
            let y = self.py(tick);
            scene.stroke(
                format!("M{:.1} {y:.1}H{:.1}", self.frame.x, self.frame.right()),
                Ink::Grid,
                1.0,
            );
            if labels {
                scene.label([self.frame.x - 6.0, y + 4.0], minus(self.y.label(tick)), Anchor::End);
            }
        }
    }

    /// Ticks and their labels below.
    pub fn draw_x(&self, scene: &mut Scene, labels: bool) {
        for &tick in &self.x.ticks {
            let (x, bottom) = (self.px(tick), self.frame.bottom());
            scene.stroke(format!("M{x:.1} {bottom:.1}v4"), Ink::Quiet, 1.0);
            if labels {
                scene.label([x, bottom + 16.0], minus(self.x.label(tick)), Anchor::Middle);
            }
        }
    }

    /// Vertical grid lines.
    pub fn draw_columns(&self, scene: &mut Scene) {
        for &tick in &self.x.ticks {
            let (x, frame) = (self.px(tick), self.frame);
            scene.stroke(format!("M{x:.1} {:.1}V{:.1}", frame.y, frame.bottom()), Ink::Grid, 1.0);
        }
    }

    /// The line around.
    pub fn draw_frame(&self, scene: &mut Scene) {
        scene.stroke(rectangle(self.frame.rectangle()), Ink::Quiet, 1.0);
    }

    /// The names of the axes.
    pub fn draw_names(&self, scene: &mut Scene, x: &str, y: &str, left: f64) {
        let Frame { x: x0, y: y0, width, height } = self.frame;
        if !x.is_empty() {
            let at = [x0 + 0.5 * width, y0 + height + 33.0];
            scene.label(at, x, Anchor::Middle);
        }
        if !y.is_empty() {
            scene.marks.push(Mark::Text(Text {
                at: [x0 - left, y0 + 0.5 * height],
                words: y.to_owned(),
                size: 11.0,
                ink: Ink::Quiet,
                anchor: Anchor::Middle,
                bold: false,
                upright: true,
            }));
        }
    }
}

/// A hyphen before a number is a minus sign.
fn minus(label: String) -> String {
    label.replace('-', "\u{2212}")
}
