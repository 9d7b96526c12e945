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
use crate::draw::Scene;

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
