//! Some kernels of each layer, from the one that peaks first to the one that peaks last.

use super::{WIDTH, evenly, name_row, titled};
use crate::draw::{
    Anchor, Axis, Frame, Ink, MARGIN, Panel, Scene, TOP, layer_colour, polyline, thin,
};
use crate::inspect::bank::{KernelBank, argmax};
use crate::inspect::{Inspection, SsmLayer};

/// Kernels per layer.
const COLUMNS: usize = 4;
/// Layers that are shown, at most.
const LAYERS: usize = 12;
/// Points of a curve, at most.
const POINTS: usize = 400;

const HEIGHT: f64 = 84.0;
const LEFT: f64 = 20.0;
const HEAD: f64 = 22.0;
const BOTTOM: f64 = 26.0;

pub(super) fn gallery(inspection: &Inspection) -> Scene {
    let all = inspection.layers.iter().enumerate();
    let all: Vec<_> = all.map(|(i, SsmLayer { kernels, .. })| (i, kernels)).collect();
    let h = all.first().map_or(1, |(_, bank)| bank.h);
    kernels(inspection, &all, |i| {
        let ahead = if i >= h { ", future" } else { "" };
        format!("channel {}{ahead}", i % h)
    })
}

/// Of the kernels of some layers; `name` is that of a kernel.
pub(super) fn kernels(
    inspection: &Inspection,
    all: &[(usize, &KernelBank)],
    name: impl Fn(usize) -> String,
) -> Scene {
    let pitch = HEAD + HEIGHT + BOTTOM;
    let height = TOP + pitch * all.len().clamp(1, LAYERS) as f64 + 24.0;
    let mut scene =
        Scene::new("gallery", &titled("A gallery of kernels", inspection), WIDTH, height);
    scene.summary = format!(
        "{COLUMNS} kernels of each layer over their own reach, from the one that peaks first to the one that peaks last."
    );
    for (row, at) in evenly(all.len(), LAYERS).enumerate() {
        let (i, kernels) = all[at];
        let y = TOP + row as f64 * pitch + HEAD;
        name_row(&mut scene, i, y + 0.5 * HEIGHT);
        let width = (WIDTH - 2.0 * MARGIN - LEFT) / COLUMNS as f64;
        for (column, which) in chosen(kernels).into_iter().enumerate() {
            let x = MARGIN + LEFT + column as f64 * width;
            let frame = Frame { x: x + 8.0, y, width: width - 20.0, height: HEIGHT };
            let ink = Ink::Fixed(layer_colour(at, all.len()));
            panel(&mut scene, frame, kernels, which, &name(which), ink);
        }
    }
    scene.label([WIDTH / 2.0, height - 10.0], "position k", Anchor::Middle);
    scene
}

/// Kernels at evenly spaced ranks of their argmax.
fn chosen(bank: &KernelBank) -> Vec<usize> {
    let mut order: Vec<(usize, usize)> =
        bank.rows().enumerate().map(|(i, k)| (argmax(k), i)).collect();
    order.sort_unstable();
    evenly(order.len(), COLUMNS).map(|i| order[i].1).collect()
}

fn panel(scene: &mut Scene, frame: Frame, bank: &KernelBank, which: usize, name: &str, ink: Ink) {
    let k = &bank.values[which * bank.l..][..bank.l];
    let (peak, shown) = (argmax(k), shown(k));
    scene.label([frame.x, frame.y - 6.0], format!("{name}: peak at {peak}"), Anchor::Start);
    let largest = k.get(peak).map_or(0.0, |x| x.abs()).max(f64::MIN_POSITIVE);
    let panel = Panel {
        x: Axis::linear(0.0, (shown - 1).max(1) as f64, 4, false),
        y: Axis::linear(-1.08, 1.08, 2, false),
        frame,
    };
    panel.draw_columns(scene);
    let zero = panel.py(0.0);
    scene.stroke(format!("M{:.1} {zero:.1}H{:.1}", frame.x, frame.right()), Ink::Quiet, 0.8);
    let points: Vec<(f64, f64)> =
        k[..shown].iter().enumerate().map(|(x, y)| (x as f64, y / largest)).collect();
    let points = thin(&points, POINTS).into_iter().map(|(x, y)| panel.at(x, y));
    scene.stroke(polyline(points), ink, 1.4);
    panel.draw_frame(scene);
    panel.draw_x(scene, true);
}

/// How many positions hold all but a thousandth of Σ|K|, and a little more.
fn shown(k: &[f64]) -> usize {
    let total: f64 = k.iter().map(|x| x.abs()).sum();
    let mut sum = 0.0;
    let needed = k.iter().take_while(|x| {
        let before = sum;
        sum += x.abs();
        before < 0.999 * total
    });
    (needed.count() * 21 / 20).max(16).min(k.len()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_reach_from_the_first_to_the_last_peak() {
        let (h, l) = (9, 20);
        let mut values = vec![0.0; h * l];
        for i in 0..h {
            values[i * l + 2 * (i * 2 % 9)] = 1.0;
        }
        let bank = KernelBank { c: 1, h, l, values };
        let peaks: Vec<usize> =
            chosen(&bank).iter().map(|&i| argmax(&bank.values[i * l..][..l])).collect();
        assert_eq!(peaks, [0, 4, 10, 16]);
        let one = KernelBank { c: 1, h: 1, l: 2, values: vec![1.0, 0.0] };
        assert_eq!(chosen(&one), [0]);
    }

    #[test]
    fn a_curve_is_shown_as_far_as_it_goes() {
        let mut k = vec![0.0; 5000];
        k[..100].fill(1.0);
        assert_eq!(shown(&k), 105);
        assert_eq!((shown(&[1.0]), shown(&[0.0; 40])), (1, 16));
    }
}
