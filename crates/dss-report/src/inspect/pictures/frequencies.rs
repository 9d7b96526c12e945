//! What Fourier transforms find in the sequences that reach them: the size of each frequency, layer by layer.

use super::{WIDTH, evenly, layer_name, titled};
use crate::draw::{Anchor, Axis, Frame, Ink, MARGIN, Panel, Scene, TOP, layer_colour, polyline};
use crate::inspect::Inspection;
use crate::inspect::portraits::Frequencies;

/// Layers that are shown, at most.
const LAYERS: usize = 12;

const HEIGHT: f64 = 120.0;
const LEFT: f64 = 58.0;
const HEAD: f64 = 22.0;
const BOTTOM: f64 = 46.0;
/// Width of a panel with the space around it.
const PITCH: f64 = (WIDTH - 2.0 * MARGIN) / 2.0;
/// Below this share of the largest size all are alike.
const LEAST: f64 = 1e-4;

pub(super) fn curves(inspection: &Inspection, layers: &[(usize, &Frequencies)]) -> Scene {
    let shown = layers.len().min(LAYERS);
    let rows = shown.div_ceil(2);
    let height = TOP + rows as f64 * (HEAD + HEIGHT + BOTTOM) + 4.0;
    let title = titled("What the Fourier transforms find", inspection);
    let mut scene = Scene::new("frequencies", &title, WIDTH, height);
    let chosen: Vec<_> = evenly(layers.len(), LAYERS).map(|i| layers[i]).collect();
    // One scale for all layers.
    let all = chosen.iter().flat_map(|(_, frequencies)| frequencies.sizes());
    let all: Vec<f64> = all.filter(|size| size.is_finite()).collect();
    let largest = all.iter().copied().fold(1e-12, f64::max);
    let least = all.iter().copied().fold(largest, f64::min).max(LEAST * largest);
    for (i, (layer, frequencies)) in chosen.into_iter().enumerate() {
        let frame = Frame {
            x: MARGIN + LEFT + (i % 2) as f64 * PITCH,
            y: TOP + (i / 2) as f64 * (HEAD + HEIGHT + BOTTOM) + HEAD,
            width: PITCH - LEFT - 12.0,
            height: HEIGHT,
        };
        let ink = Ink::Fixed(layer_colour(layer, inspection.meta.model.layers));
        curve(&mut scene, frame, (least, largest), frequencies, ink);
        let top = frame.y - 8.0;
        scene.heading([frame.x, top], layer_name(layer));
        let gain = format!("{:.0} times its input", frequencies.gain);
        scene.label([frame.right(), top], gain, Anchor::End);
    }
    scene.summary = format!(
        "Outputs of the Fourier transforms in {shown} of {} layers for a made-up sequence, as root mean squares over the \
         channels. Frequency 0 is the mean of the sequence, k has k periods in the length that the model is made for.",
        layers.len()
    );
    scene
}

fn curve(
    scene: &mut Scene,
    frame: Frame,
    (least, largest): (f64, f64),
    frequencies: &Frequencies,
    ink: Ink,
) {
    let sizes = frequencies.sizes();
    let last = (sizes.len() - 1).max(1) as f64;
    let (x, y) = (Axis::linear(0.0, last, 6, false), Axis::log(least, largest));
    let panel = Panel { x, y, frame };
    panel.draw_columns(scene);
    panel.draw_y(scene, true);
    panel.draw_x(scene, true);
    panel.draw_frame(scene);
    panel.draw_names(scene, "frequency", "size", 46.0);
    let points = sizes.iter().enumerate().filter(|(_, size)| size.is_finite());
    let points: Vec<[f64; 2]> = points.map(|(k, size)| panel.at(k as f64, *size)).collect();
    scene.stroke(polyline(points.iter().copied()), ink, 1.4);
    // A line of one point would not be seen.
    if points.len() == 1 {
        scene.dots(points, 2.8, ink, 1.0);
    }
}
