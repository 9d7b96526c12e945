//! Eigenvalues of recurrent matrices in the complex plane, with the line on which a state keeps its size.

use std::f64::consts::TAU;

use dss_nn::mixer::StableEdge;

use super::{WIDTH, layer_legend, legend_height, titled};
use crate::draw::{Axis, Frame, Ink, MARGIN, Panel, Scene, TOP, layer_colour, polyline};
use crate::inspect::Inspection;

/// One matrix: its name, where its eigenvalues lie if it keeps the size of a state, and those of each layer.
pub(super) struct Matrix<'a> {
    pub name: &'a str,
    pub edge: StableEdge,
    pub layers: Vec<(usize, &'a [[f64; 2]])>,
}

const LEFT: f64 = 52.0;
const LEGEND: f64 = 26.0;
const HEAD: f64 = 22.0;
const BOTTOM: f64 = 46.0;

pub(super) fn planes(inspection: &Inspection, matrices: &[Matrix]) -> Scene {
    let columns = matrices.len().clamp(1, 2);
    let rows = matrices.len().div_ceil(columns);
    let layers = inspection.meta.model.layers;
    let top = TOP + LEGEND + legend_height(layers);
    let pitch = (WIDTH - 2.0 * MARGIN) / 2.0;
    let side = pitch - LEFT - 16.0;
    let height = top + rows as f64 * (HEAD + side + BOTTOM) + 4.0;
    let title = titled("Spectra of the recurrent matrices", inspection);
    let mut scene = Scene::new("spectra", &title, WIDTH, height);
    layer_legend(&mut scene, LEFT, layers);
    for (i, matrix) in matrices.iter().enumerate() {
        let frame = Frame {
            x: MARGIN + LEFT + (i % columns) as f64 * pitch,
            y: top + (i / columns) as f64 * (HEAD + side + BOTTOM) + HEAD,
            width: side,
            height: side,
        };
        plane(&mut scene, frame, matrix, layers);
    }
    let growing = matrices.iter().flat_map(|matrix| {
        matrix.layers.iter().flat_map(|(_, all)| all.iter()).filter(move |z| match matrix.edge {
            StableEdge::UnitCircle => z[0].hypot(z[1]) > 1.0 + 1e-9,
            StableEdge::ImaginaryAxis => z[0] > 1e-9,
        })
    });
    scene.summary = format!(
        "Eigenvalues of the recurrent matrices of all layers. Dashed: where a state keeps its size, |λ| = 1 for a step \
         and Re λ = 0 for a rate of change; {} of {} are beyond it.",
        growing.count(),
        matrices.iter().flat_map(|matrix| &matrix.layers).map(|(_, all)| all.len()).sum::<usize>()
    );
    scene
}

/// One matrix; both axes have the same scale.
fn plane(scene: &mut Scene, frame: Frame, matrix: &Matrix, layers: usize) {
    let all = || matrix.layers.iter().flat_map(|(_, all)| all.iter());
    let circle = matrix.edge == StableEdge::UnitCircle;
    let least = if circle { 1.0 } else { 0.0 };
    let low = [0, 1].map(|axis| all().map(|z| z[axis]).fold(-least, f64::min));
    let high = [0, 1].map(|axis| all().map(|z| z[axis]).fold(least, f64::max));
    let half = (0..2).map(|i| 0.5 * (high[i] - low[i])).fold(1e-6, f64::max) * 1.08;
    let [x, y] = [0, 1].map(|i| {
        let middle = 0.5 * (high[i] + low[i]);
        Axis::linear(middle - half, middle + half, 5, false)
    });
    let panel = Panel { x, y, frame };
    scene.heading([frame.x, frame.y - 8.0], matrix.name);
    panel.draw_columns(scene);
    panel.draw_y(scene, true);
    panel.draw_x(scene, true);
    if circle {
        let points = (0..=180).map(|i| {
            let (sin, cos) = (TAU * f64::from(i) / 180.0).sin_cos();
            panel.at(cos, sin)
        });
        scene.dashes(polyline(points), Ink::Quiet, 1.0);
    } else {
        let x = panel.px(0.0);
        scene.dashes(format!("M{x:.1} {:.1}V{:.1}", frame.y, frame.bottom()), Ink::Quiet, 1.0);
    }
    panel.draw_frame(scene);
    panel.draw_names(scene, "Re λ", "Im λ", 40.0);
    for (layer, eigenvalues) in &matrix.layers {
        let ink = Ink::Fixed(layer_colour(*layer, layers));
        scene.dots(eigenvalues.iter().map(|z| panel.at(z[0], z[1])).collect(), 2.8, ink, 0.8);
    }
}
