//! Where positions look: one square of pixels per head and layer, for a made-up sequence.

use super::{WIDTH, evenly, name_row, titled};
use crate::draw::{Anchor, Axis, Frame, Ink, MAGMA, MARGIN, Mark, Panel, Raster, Scene, TOP};
use crate::inspect::Inspection;
use crate::inspect::portraits::Weights;

/// Heads of a layer, and layers, that are shown, at most.
const HEADS: usize = 4;
const LAYERS: usize = 6;

const LEFT: f64 = 62.0;
const GAP: f64 = 34.0;
const HEAD: f64 = 24.0;
const BOTTOM: f64 = 40.0;

/// A picture of the weights called `name`; `number` tells several pictures apart.
pub(super) fn maps(
    inspection: &Inspection,
    name: &str,
    number: usize,
    layers: &[(usize, &Weights)],
) -> Scene {
    let shown = layers.len().min(LAYERS);
    let heads = layers.iter().map(|(_, w)| w.heads).max().unwrap_or(1).min(HEADS);
    let pitch = (WIDTH - 2.0 * MARGIN - LEFT) / heads.max(2) as f64;
    let side = (pitch - GAP).min(300.0);
    let shape = |w: &Weights| w.rows as f64 / w.columns as f64;
    let tallest = layers.iter().map(|(_, w)| shape(w)).fold(0.0, f64::max);
    // The longer side of every map is as long.
    let height_of =
        |w: &Weights| if tallest > 1.0 { side * shape(w) / tallest } else { side * shape(w) };
    let width_of = |_: &Weights| if tallest > 1.0 { side / tallest } else { side };
    let row = height_of(layers[0].1).max(48.0) + HEAD + BOTTOM;
    let file =
        if number == 0 { "attention".to_owned() } else { format!("attention-{}", number + 1) };
    let title = match name {
        "attention" => titled("Attention", inspection),
        name => titled(&format!("Attention: {name}"), inspection),
    };
    let mut scene = Scene::new(file, &title, WIDTH, TOP + shown as f64 * row + 4.0);
    for (i, at) in evenly(layers.len(), LAYERS).enumerate() {
        let (layer, weights) = layers[at];
        let y = TOP + i as f64 * row + HEAD;
        let (width, height) = (width_of(weights).max(48.0), height_of(weights).max(48.0));
        name_row(&mut scene, layer, y + 0.5 * height);
        for head in 0..weights.heads.min(HEADS) {
            let x = MARGIN + LEFT + head as f64 * pitch;
            map(&mut scene, Frame { x, y, width, height }, weights, head);
        }
    }
    scene.summary = format!(
        "Weights of attention for a made-up sequence, in {shown} of {} layers and at most {HEADS} heads of each: row i \
         shows what position i takes of the others; brightness is the square root of a weight over the largest one of \
         its panel.",
        layers.len()
    );
    scene
}

fn map(scene: &mut Scene, frame: Frame, weights: &Weights, head: usize) {
    let values = weights.head(head);
    scene.heading([frame.x, frame.y - 8.0], format!("head {}", head + 1));
    let largest = values.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // A narrow map has no room for it.
    if frame.width >= 110.0 {
        let at = [frame.right(), frame.y - 8.0];
        scene.label(at, format!("up to {largest:.2}"), Anchor::End);
    }
    let scale = if largest > 0.0 { 1.0 / largest } else { 0.0 };
    let shade = |x: &f64| ((MAGMA - 1) as f64 * (x.abs() * scale).sqrt()).round() as u8;
    let raster = Raster {
        width: weights.columns,
        height: weights.rows,
        values: values.iter().map(shade).collect(),
    };
    scene.marks.push(Mark::Image { rectangle: frame.rectangle(), raster });
    let panel = Panel {
        x: Axis::linear(0.0, weights.columns as f64, 4, false),
        // Rows go downwards.
        y: Axis::linear(-(weights.rows as f64), 0.0, 4, false),
        frame,
    };
    panel.draw_frame(scene);
    panel.draw_x(scene, true);
    for &tick in &panel.y.ticks {
        let (x, y) = (frame.x, panel.py(tick));
        scene.stroke(format!("M{x:.1} {y:.1}h-4"), Ink::Quiet, 1.0);
        if head == 0 {
            scene.label([x - 7.0, y + 4.0], tick.abs().to_string(), Anchor::End);
        }
    }
    panel.draw_names(scene, "looked at", if head == 0 { "position" } else { "" }, 36.0);
}
