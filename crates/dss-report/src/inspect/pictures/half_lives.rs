//! How long the dimensions of moving averages remember, where a layer has nothing but decays.

use super::{WIDTH, layer_name, titled};
use crate::draw::{
    Anchor, Axis, Frame, Ink, MARGIN, Panel, Scene, TOP, layer_colour, polyline, thin,
};
use crate::inspect::Inspection;

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const LEGEND: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Legend entries on one line.
const PER_LINE: usize = 8;
/// Points of a curve, at most.
const POINTS: usize = 400;
/// Half-lives in steps beyond which all are alike.
const RANGE: (f64, f64) = (0.01, 1e6);

/// A curve for each layer: its half-lives, from the shortest to the longest.
pub(super) fn curves(inspection: &Inspection) -> Scene {
    let layers: Vec<Vec<f64>> =
        inspection.layers.iter().map(|layer| sorted(layer.modes.half_lives())).collect();
    let n = layers.len();
    let top = TOP + LEGEND + 18.0 * (n.saturating_sub(1) / PER_LINE) as f64;
    let title = titled("Half-lives", inspection);
    let mut scene = Scene::new("half-lives", &title, WIDTH, top + HEIGHT + BOTTOM + 4.0);
    let all = || layers.iter().flatten().copied();
    let (least, most) =
        all().fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
    let (least, most) = if most > 0.0 { (least, most) } else { (1.0, 10.0) };
    let frame = Frame {
        x: MARGIN + LEFT,
        y: top,
        width: WIDTH - 2.0 * MARGIN - LEFT - 12.0,
        height: HEIGHT,
    };
    let x = Axis::linear(0.0, 1.0, 5, false).in_percent();
    let panel = Panel { x, y: Axis::log(least, most), frame };
    panel.draw_columns(&mut scene);
    panel.draw_y(&mut scene, true);
    panel.draw_x(&mut scene, true);
    panel.draw_frame(&mut scene);
    panel.draw_names(
        &mut scene,
        "dimensions, the shortest memory first",
        "half-life in steps",
        45.0,
    );
    for (i, half_lives) in layers.iter().enumerate() {
        let ink = Ink::Fixed(layer_colour(i, n));
        let share = |rank: usize| (rank as f64 + 0.5) / half_lives.len() as f64;
        let points: Vec<_> =
            half_lives.iter().enumerate().map(|(rank, &x)| (share(rank), x)).collect();
        let points = thin(&points, POINTS).into_iter().map(|(x, y)| panel.at(x, y));
        let points: Vec<[f64; 2]> = points.collect();
        scene.stroke(polyline(points.iter().copied()), ink, 1.8);
        if points.len() == 1 {
            scene.dots(points, 2.8, ink, 1.0);
        }
        let x = MARGIN + LEFT + 92.0 * (i % PER_LINE) as f64;
        let y = TOP + 8.0 + 18.0 * (i / PER_LINE) as f64;
        scene.dots(vec![[x + 4.0, y]], 4.0, ink, 0.8);
        scene.label([x + 13.0, y + 4.0], layer_name(i), Anchor::Start);
    }
    scene.summary = format!(
        "Steps after which the dimensions of each layer have forgotten half of an input, of all channels from the \
         shortest to the longest: between {least:.2} and {most:.2}."
    );
    scene
}

/// From the least to the greatest, within what can be drawn.
fn sorted(mut half_lives: Vec<f64>) -> Vec<f64> {
    half_lives.iter_mut().for_each(|x| *x = x.clamp(RANGE.0, RANGE.1));
    half_lives.sort_by(f64::total_cmp);
    half_lives
}
