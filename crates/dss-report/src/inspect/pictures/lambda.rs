//! Λ of all layers in the complex plane over the points it started from (§4.2).

use super::{WIDTH, layer_legend, legend_entry, legend_height, titled};
use crate::draw::Axis;
use crate::draw::{Anchor, Frame, Ink, MARGIN, Panel, Scene, TOP, layer_colour};
use crate::inspect::{Inspection, SsmLayer};

const HEIGHT: f64 = 380.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 62.0;
const LEGEND: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// How the paper shows imaginary parts: linear near 0, logarithmic beyond.
fn scaled(im: f64) -> f64 {
    (im / 2.0).asinh()
}

pub(super) fn plane(inspection: &Inspection) -> Scene {
    let layers = &inspection.layers;
    let first = layers.first().map(|layer| &layer.modes);
    let (start, start_name) =
        first.map_or((Vec::new(), ""), |modes| (modes.initial.clone(), modes.initial_name));
    let top = TOP + LEGEND + legend_height(layers.len() + 1);
    let mut scene = Scene::new(
        "lambda",
        &titled("Λ in the complex plane", inspection),
        WIDTH,
        top + HEIGHT + BOTTOM,
    );
    let all = || layers.iter().flat_map(|l| &l.modes.lambda).chain(&start);
    let range = |part: fn(&[f64; 2]) -> f64| {
        let (low, high) = all()
            .map(part)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let pad = 0.04 * (high - low).max(0.25);
        (low - pad, high + pad)
    };
    let (re, im) = (range(|z| z[0]), range(|z| scaled(z[1])));
    let frame = Frame {
        x: MARGIN + LEFT,
        y: top,
        width: WIDTH - 2.0 * MARGIN - LEFT - RIGHT,
        height: HEIGHT,
    };
    let panel = Panel {
        x: Axis::linear(re.0, re.1, 8, false),
        y: Axis::linear(im.0, im.1, 6, false),
        frame,
    };
    panel.draw_columns(&mut scene);
    panel.draw_y(&mut scene, true);
    panel.draw_x(&mut scene, true);
    if re.0 < 0.0 && re.1 > 0.0 {
        let x = panel.px(0.0);
        scene.dashes(format!("M{x:.1} {:.1}V{:.1}", frame.y, frame.bottom()), Ink::Quiet, 1.0);
    }
    panel.draw_frame(&mut scene);
    panel.draw_names(&mut scene, "Re λ", "arcsinh(Im λ / 2)", 45.0);
    right_axis(&mut scene, &panel, im);
    let place = |z: &[f64; 2]| panel.at(z[0], scaled(z[1]));
    for (i, SsmLayer { modes, .. }) in layers.iter().enumerate() {
        let ink = Ink::Fixed(layer_colour(i, layers.len()));
        scene.dots(modes.lambda.iter().map(place).collect(), 3.4, ink, 0.85);
    }
    scene.dots(start.iter().map(place).collect(), 1.9, Ink::Text, 1.0);
    layer_legend(&mut scene, LEFT, layers.len());
    if !start_name.is_empty() {
        legend_entry(&mut scene, LEFT, layers.len(), (Ink::Text, 2.2), start_name);
    }
    let growing: usize = layers.iter().map(|l| l.modes.growing()).sum();
    let total: usize = layers.iter().map(|l| l.modes.lambda.len()).sum();
    scene.summary = format!(
        "The {total} eigenvalues of all layers over the points of their initialisation. {growing} of them have a \
         positive real part."
    );
    scene
}

/// Im λ itself, at the right.
fn right_axis(scene: &mut Scene, panel: &Panel, im: (f64, f64)) {
    let right = panel.frame.right();
    let decades = (0..7).map(|d| 10f64.powi(d));
    for value in decades.clone().rev().map(|x| -x).chain([0.0]).chain(decades) {
        if (im.0..=im.1).contains(&scaled(value)) {
            let y = panel.py(scaled(value));
            scene.stroke(format!("M{right:.1} {y:.1}h4"), Ink::Quiet, 1.0);
            let label = format!("{value}").replace('-', "\u{2212}");
            scene.label([right + 7.0, y + 4.0], label, Anchor::Start);
        }
    }
    scene.label([right + 7.0, panel.frame.y - 9.0], "Im λ", Anchor::Start);
}
