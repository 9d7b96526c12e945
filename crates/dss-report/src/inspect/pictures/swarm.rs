//! One number per mode or channel, layer by layer: Λ_re and Δ_log (the figures of the paper's appendix).

use super::{WIDTH, layer_name, titled};
use crate::draw::Axis;
use crate::draw::{Anchor, Frame, Ink, MARGIN, Panel, Scene, TOP, layer_colour, rectangle};
use crate::inspect::{Inspection, SsmLayer};

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const LEGEND: f64 = 28.0;
const BOTTOM: f64 = 26.0;
const RADIUS: f64 = 2.4;

/// Points of one colour in one layer.
struct Group {
    values: Vec<f64>,
    ink: Ink,
}

/// Lines and areas behind the points.
struct Background {
    /// A range with a name.
    band: Option<(f64, f64)>,
    /// A level.
    level: Option<f64>,
    /// What the legend says.
    legend: Vec<(Ink, &'static str, bool)>,
}

/// Re λ of all modes, layer by layer.
pub(super) fn lambda_re(inspection: &Inspection) -> Scene {
    let n = inspection.layers.len();
    let groups = inspection.layers.iter().enumerate().map(|(i, SsmLayer { modes, .. })| {
        let values = modes.lambda.iter().map(|z| z[0]).collect();
        vec![Group { values, ink: Ink::Fixed(layer_colour(i, n)) }]
    });
    // Every initialisation that is not random begins there.
    let skew = inspection.layers.iter().any(|layer| !layer.modes.initial.is_empty());
    let behind = Background {
        band: None,
        level: skew.then_some(-0.5),
        legend: if skew { vec![(Ink::Text, "initial value −0.5", true)] } else { Vec::new() },
    };
    let mut scene = swarms(
        "lambda-re",
        &titled("Re λ per layer", inspection),
        "Re λ",
        groups.collect(),
        &behind,
    );
    let growing: Vec<String> =
        inspection.layers.iter().map(|l| l.modes.growing().to_string()).collect();
    scene.summary =
        format!("Modes with a positive real part in each layer: {}.", growing.join(", "));
    scene
}

/// Δ_log of all channels, layer by layer.
pub(super) fn delta_log(inspection: &Inspection) -> Scene {
    let tied = inspection.layers.iter().all(|l| l.modes.tied);
    let groups = inspection.layers.iter().map(|SsmLayer { modes, .. }| {
        let mut groups = vec![Group { values: modes.delta_log_re.clone(), ink: Ink::First }];
        if !tied {
            groups.push(Group { values: modes.delta_log_im.clone(), ink: Ink::Second });
        }
        groups
    });
    let ssm = inspection.meta.model.mixer.settings().ssm();
    let mut legend = vec![(Ink::First, if tied { "Δ_log" } else { "Δ_log of Re Λ" }, false)];
    if !tied {
        legend.push((Ink::Second, "Δ_log of Im Λ", false));
    }
    legend.push((Ink::Grid, "initial range", true));
    let behind = Background {
        band: ssm.map(|ssm| (ssm.delta_min.ln(), ssm.delta_max.ln())),
        level: None,
        legend,
    };
    let mut scene = swarms(
        "delta-log",
        &titled("Δ_log per layer", inspection),
        "Δ_log",
        groups.collect(),
        &behind,
    );
    let all = || {
        let modes = inspection.layers.iter().map(|layer| &layer.modes);
        modes.flat_map(|modes| modes.delta_log_re.iter().chain(&modes.delta_log_im).copied())
    };
    scene.summary = format!(
        "The values of Δ_log reach from {:.2} to {:.2}.",
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max)
    );
    scene
}

fn swarms(
    name: &'static str,
    title: &str,
    unit: &str,
    layers: Vec<Vec<Group>>,
    behind: &Background,
) -> Scene {
    let mut scene = Scene::new(name, title, WIDTH, TOP + LEGEND + HEIGHT + BOTTOM + 4.0);
    let frame = Frame {
        x: MARGIN + LEFT,
        y: TOP + LEGEND,
        width: WIDTH - 2.0 * MARGIN - LEFT,
        height: HEIGHT,
    };
    let values = layers.iter().flatten().flat_map(|g| &g.values).copied();
    let values = values.chain(behind.level).chain(behind.band.iter().flat_map(|b| [b.0, b.1]));
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    let pad = 0.03 * (high - low).max(0.25);
    let panel = Panel {
        x: Axis::linear(0.0, layers.len().max(1) as f64, 1, false),
        y: Axis::linear(low - pad, high + pad, 6, false),
        frame,
    };
    if let Some((low, high)) = behind.band {
        let (top, bottom) = (panel.py(high), panel.py(low));
        scene.fill(rectangle([frame.x, top, frame.width, bottom - top]), Ink::Grid, 0.55);
    }
    panel.draw_y(&mut scene, true);
    if low < 0.0 && high > 0.0 {
        let y = panel.py(0.0);
        scene.stroke(format!("M{:.1} {y:.1}H{:.1}", frame.x, frame.right()), Ink::Quiet, 1.0);
    }
    if let Some(level) = behind.level {
        let y = panel.py(level);
        scene.dashes(format!("M{:.1} {y:.1}H{:.1}", frame.x, frame.right()), Ink::Text, 1.0);
    }
    panel.draw_frame(&mut scene);
    panel.draw_names(&mut scene, "", unit, 45.0);
    let slot = frame.width / layers.len().max(1) as f64;
    for (i, groups) in layers.iter().enumerate() {
        let share = slot / groups.len().max(1) as f64;
        for (j, Group { values, ink }) in groups.iter().enumerate() {
            let middle = frame.x + slot * i as f64 + share * (j as f64 + 0.5);
            // Two swarms of a layer are closer to each other than to those of the next.
            let middle =
                middle + if groups.len() == 2 { share * (0.12 - 0.24 * j as f64) } else { 0.0 };
            let heights: Vec<f64> = values.iter().map(|v| panel.py(*v)).collect();
            let offsets = spread(&heights, RADIUS, 0.40 * share);
            let at = heights.iter().zip(&offsets).map(|(y, x)| [middle + x, *y]).collect();
            scene.dots(at, RADIUS, *ink, 0.75);
        }
        let at = [frame.x + slot * (i as f64 + 0.5), frame.bottom() + 17.0];
        if layers.len() <= 16 || i % 4 == 0 {
            scene.label(
                at,
                if layers.len() <= 12 { layer_name(i) } else { (i + 1).to_string() },
                Anchor::Middle,
            );
        }
    }
    let mut x = frame.x;
    for (ink, name, line) in &behind.legend {
        let y = TOP + 8.0;
        match (ink, line) {
            (Ink::Grid, _) => scene.fill(rectangle([x, y - 5.0, 16.0, 10.0]), *ink, 0.8),
            (_, true) => scene.dashes(format!("M{x:.1} {y:.1}h18"), *ink, 1.0),
            _ => scene.dots(vec![[x + 6.0, y]], 4.0, *ink, 0.75),
        }
        scene.label([x + 23.0, y + 4.0], *name, Anchor::Start);
        x += 46.0 + 7.0 * name.chars().count() as f64;
    }
    scene
}

/// Sideways places that keep discs at the given heights apart, as near to the middle as possible and never further
/// away than `reach`.
fn spread(heights: &[f64], radius: f64, reach: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let (mut offsets, width) = (vec![0.0; heights.len()], 2.0 * radius);
    for (rank, &i) in order.iter().enumerate() {
        // Those above that are near enough to touch: a stretch of the order.
        let near: Vec<usize> = order[..rank]
            .iter()
            .rev()
            .take_while(|&&j| heights[i] - heights[j] < width)
            .copied()
            .collect();
        let free = |x: f64| {
            near.iter().all(|&j: &usize| {
                let (dx, dy): (f64, f64) = (x - offsets[j], heights[i] - heights[j]);
                dx * dx + dy * dy >= 0.98 * width * width
            })
        };
        let step = 0.5 * radius;
        let tries = (reach / step).floor().max(0.0) as usize;
        let sides = (0..=tries).flat_map(|k| [k as f64 * step, -(k as f64) * step]);
        // Where there is no room left, a fixed pattern inside.
        let crowded = || reach * (2.0 * (rank as f64 * 0.618_034).fract() - 1.0);
        let place = sides.into_iter().find(|&x| free(x)).unwrap_or_else(crowded);
        offsets[i] = place;
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discs_keep_apart_where_there_is_room() {
        let heights: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 20)).collect();
        let offsets = spread(&heights, 2.0, 200.0);
        for i in 0..40 {
            for j in 0..i {
                let (dx, dy) = (offsets[i] - offsets[j], heights[i] - heights[j]);
                assert!((dx * dx + dy * dy).sqrt() > 3.9, "{i} {j}");
            }
        }
        let crowded = spread(&[1.0; 500], 2.0, 10.0);
        assert!(crowded.iter().all(|x| x.abs() <= 10.0));
        assert_eq!(spread(&[3.0], 2.0, 10.0), [0.0]);
    }
}
