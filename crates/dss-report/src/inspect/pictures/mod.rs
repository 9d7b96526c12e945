//! The figures of the paper's §4.2 and appendix, of one model.

mod attention;
mod frequencies;
mod gallery;
mod half_lives;
mod heatmap;
mod lambda;
mod portraits;
mod spectrum;
mod swarm;

use super::Inspection;
use crate::draw::{Anchor, Ink, MARGIN, Mark, Scene, TOP, Text, layer_colour};

/// Width of all pictures.
const WIDTH: f64 = 920.0;

/// All of them, the most telling first: those of state spaces, then what other mixers show.
pub fn all(inspection: &Inspection) -> Vec<Scene> {
    let mut scenes = Vec::new();
    let layers = &inspection.layers;
    if !layers.is_empty() {
        scenes.push(heatmap::kernels(inspection));
        if layers.iter().all(|layer| layer.modes.are_decays()) {
            scenes.push(half_lives::curves(inspection));
        } else {
            let pictures = [lambda::plane, swarm::lambda_re, swarm::delta_log];
            scenes.extend(pictures.map(|picture| picture(inspection)));
        }
        scenes.push(gallery::gallery(inspection));
    }
    scenes.extend(portraits::all(inspection));
    scenes
}

/// A title with the name of the task.
fn titled(what: &str, inspection: &Inspection) -> String {
    match inspection.task() {
        "" => what.to_owned(),
        task => format!("{what}: {task}"),
    }
}

/// The names of a model's layers, counted from 1 as people do.
fn layer_name(i: usize) -> String {
    format!("layer {}", i + 1)
}

/// The name of a layer at the left of its row of panels, upwards around `middle`.
fn name_row(scene: &mut Scene, layer: usize, middle: f64) {
    scene.marks.push(Mark::Text(Text {
        at: [MARGIN + 8.0, middle],
        words: layer_name(layer),
        size: 12.0,
        ink: Ink::Text,
        anchor: Anchor::Middle,
        bold: true,
        upright: true,
    }));
}

/// Legend entries on one line.
const PER_LINE: usize = 8;

/// What so many legend entries need below their first line.
fn legend_height(entries: usize) -> f64 {
    18.0 * (entries.saturating_sub(1) / PER_LINE) as f64
}

/// An entry of a legend that begins at `left`: a dot of this size, and a name.
fn legend_entry(scene: &mut Scene, left: f64, i: usize, (ink, size): (Ink, f64), name: &str) {
    let x = MARGIN + left + 92.0 * (i % PER_LINE) as f64;
    let y = TOP + 8.0 + 18.0 * (i / PER_LINE) as f64;
    scene.dots(vec![[x + 4.0, y]], size, ink, 0.8);
    scene.label([x + 13.0, y + 4.0], name, Anchor::Start);
}

/// A legend that begins at `left`, with the colours of the layers.
fn layer_legend(scene: &mut Scene, left: f64, layers: usize) {
    for i in 0..layers {
        let ink = Ink::Fixed(layer_colour(i, layers));
        legend_entry(scene, left, i, (ink, 4.0), &layer_name(i));
    }
}

/// At most `most` of `count` places, from the first to the last at equal distances.
fn evenly(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let shown = count.min(most);
    (0..shown).map(move |i| i * (count - 1) / (shown - 1).max(1))
}
