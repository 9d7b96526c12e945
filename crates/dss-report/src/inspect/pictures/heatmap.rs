//! All kernels of a model at a glance: one row of pixels per kernel, |K|/‖K‖∞, sorted by where they peak.

use super::{WIDTH, layer_name, titled};
use crate::draw::{
    Anchor, Axis, Frame, Ink, MAGMA, MARGIN, Mark, Panel, Raster, Scene, TOP, rectangle,
};
use crate::inspect::bank::{KernelBank, LOCAL, argmax, peaks};
use crate::inspect::{Inspection, SsmLayer};
use crate::text::count;

/// Positions that are shown.
const POSITIONS: usize = 1024;
/// Pixels of a raster, at most: what a screen can show of it.
const COLUMNS: usize = 512;
const ROWS: usize = 256;

/// Height of a panel.
const HEIGHT: f64 = 150.0;
/// Space for the names around a panel.
const LEFT: f64 = 34.0;
const HEAD: f64 = 22.0;
const BOTTOM: f64 = 44.0;
/// Space for the colour bar.
const BAR: f64 = 64.0;

pub(super) fn kernels(inspection: &Inspection) -> Scene {
    let mut parts: Vec<(String, &KernelBank, usize)> = Vec::new();
    for (i, SsmLayer { kernels, .. }) in inspection.layers.iter().enumerate() {
        for c in 0..kernels.c {
            let name = match (kernels.c, c) {
                (1, _) => layer_name(i),
                (_, 0) => format!("{}, past", layer_name(i)),
                _ => format!("{}, future", layer_name(i)),
            };
            parts.push((name, kernels, c));
        }
    }
    panels(inspection, parts)
}

/// One panel for each of the named directions of banks of kernels.
pub(super) fn panels(inspection: &Inspection, parts: Vec<(String, &KernelBank, usize)>) -> Scene {
    let two = parts.iter().any(|(_, bank, _)| bank.c > 1);
    let columns = match parts.len() {
        0..=1 => 1,
        _ if two => 2,
        2..=4 => 2,
        _ => 3,
    };
    let rows = parts.len().div_ceil(columns).max(1);
    let pitch = (WIDTH - 2.0 * MARGIN - BAR) / columns as f64;
    let height = TOP + rows as f64 * (HEAD + HEIGHT + BOTTOM) + 4.0;
    let mut scene = Scene::new("kernels", &titled("Kernels", inspection), WIDTH, height);
    for (i, (name, bank, c)) in parts.iter().enumerate() {
        let frame = Frame {
            x: MARGIN + (i % columns) as f64 * pitch + LEFT,
            y: TOP + (i / columns) as f64 * (HEAD + HEIGHT + BOTTOM) + HEAD,
            width: pitch - LEFT - 8.0,
            height: HEIGHT,
        };
        panel(&mut scene, frame, name, bank, *c);
    }
    bar(&mut scene);
    let peaks = peaks(parts.iter().flat_map(|(_, bank, c)| bank.direction(*c)));
    scene.summary = format!(
        "Absolute values of the {} kernels over their first {POSITIONS} positions at most, each divided by its maximum, \
         sorted by the position of the maximum. {:.0} % of them peak at or beyond {LOCAL}; the 95th percentile of the \
         position is {:.0}.",
        count(peaks.kernels as u64),
        100.0 * peaks.long,
        peaks.argmax_95
    );
    scene
}

fn panel(scene: &mut Scene, frame: Frame, name: &str, bank: &KernelBank, c: usize) {
    let shown = bank.l.clamp(1, POSITIONS);
    scene.heading([frame.x, frame.y - 9.0], name);
    let [x, y] = [frame.right(), frame.y - 9.0];
    scene.label([x, y], format!("{} kernels", bank.h), Anchor::End);
    scene.marks.push(Mark::Image { rectangle: frame.rectangle(), raster: raster(bank, c) });
    let mut x = Axis::linear(0.0, shown as f64, 6, false);
    if shown == POSITIONS {
        x.ticks = [0, LOCAL, 256, 512, 768, POSITIONS].map(|k| k as f64).to_vec();
    }
    let panel = Panel { x, y: Axis::linear(0.0, bank.h as f64, 4, false), frame };
    if shown > LOCAL {
        let x = panel.px(LOCAL as f64);
        let white = Ink::Fixed([255; 3]);
        scene.dashes(format!("M{x:.1} {:.1}V{:.1}", frame.y, frame.bottom()), white, 0.8);
    }
    panel.draw_frame(scene);
    panel.draw_x(scene, true);
    panel.draw_names(scene, "position k", "kernels by argmax |K|", 12.0);
}

/// The rows |K|/‖K‖∞ of one direction by rising argmax. More positions or kernels than pixels are thinned out: of
/// neighbouring positions the largest value, of neighbouring kernels one.
fn raster(bank: &KernelBank, c: usize) -> Raster {
    let mut kernels: Vec<(usize, &[f64])> = bank.direction(c).map(|k| (argmax(k), k)).collect();
    kernels.sort_by_key(|(at, _)| *at);
    let shown = bank.l.clamp(1, POSITIONS);
    let (width, height) = (shown.min(COLUMNS), kernels.len().clamp(1, ROWS));
    let mut values = Vec::with_capacity(width * height);
    for row in 0..height {
        let Some((at, k)) = kernels.get(row * kernels.len() / height) else {
            values.resize(width * height, 0);
            break;
        };
        let largest = k.get(*at).map_or(0.0, |x| x.abs());
        let scale = if largest > 0.0 { (MAGMA - 1) as f64 / largest } else { 0.0 };
        for column in 0..width {
            let span = column * shown / width..((column + 1) * shown / width).min(k.len());
            let value = k[span].iter().fold(0.0, |max: f64, x| max.max(x.abs()));
            values.push((value * scale).round() as u8);
        }
    }
    Raster { width, height, values }
}

/// The colour bar of all panels.
fn bar(scene: &mut Scene) {
    let frame = Frame { x: WIDTH - MARGIN - 46.0, y: TOP + HEAD, width: 11.0, height: HEIGHT };
    let values = (0..MAGMA).rev().map(|i| i as u8).collect();
    let raster = Raster { width: 1, height: MAGMA, values };
    scene.marks.push(Mark::Image { rectangle: frame.rectangle(), raster });
    scene.stroke(rectangle(frame.rectangle()), Ink::Quiet, 1.0);
    for i in 0..=4 {
        let y = frame.bottom() - frame.height * f64::from(i) / 4.0;
        scene.stroke(format!("M{:.1} {y:.1}h4", frame.right()), Ink::Quiet, 1.0);
        let label = ["0", "0.25", "0.5", "0.75", "1"][i as usize];
        scene.label([frame.right() + 7.0, y + 4.0], label, Anchor::Start);
    }
    let at = [WIDTH - 4.0, frame.y - 9.0];
    scene.label(at, "|K| / ‖K‖∞", Anchor::End);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_rise_by_argmax_and_thin_peaks_survive() {
        let (h, l) = (3, 1024);
        let mut values = vec![0.0; h * l];
        values[700] = -4.0;
        values[l + 3] = 2.0;
        values[l + 5] = 1.0;
        let bank = KernelBank { c: 1, h, l, values };
        let raster = raster(&bank, 0);
        assert_eq!((raster.width, raster.height), (512, 3));
        let row = |i: usize| &raster.values[i * 512..][..512];
        // The kernel of zeros first, then the early peak, then the late one.
        assert!(row(0).iter().all(|x| *x == 0));
        assert_eq!((row(1)[1], row(1)[2]), (255, 128));
        assert_eq!((row(2)[350], row(2).iter().filter(|x| **x > 0).count()), (255, 1));
    }
}
