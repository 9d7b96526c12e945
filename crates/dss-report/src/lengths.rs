//! The picture of `dss bench lengths`: time and memory of a training step against the length.

use crate::draw::{
    Anchor, Axis, Frame, Ink, MARGIN, Panel, Scene, TOP, categorical_colour, polyline, text_width,
};

/// What the training steps of one model take.
#[derive(Clone, Debug)]
pub struct LengthCurve {
    /// Its name in the legend.
    pub name: String,
    /// Rising in L.
    pub points: Vec<LengthPoint>,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct LengthPoint {
    /// L.
    pub length: usize,
    /// Of a step.
    pub milliseconds: f64,
    /// The most memory that its process had, if the system tells.
    pub peak_mb: Option<f64>,
}

const WIDTH: f64 = 820.0;
const LEFT: f64 = 52.0;
const HEAD: f64 = 24.0;
const FRAME: f64 = 300.0;
const LEGEND_LINE: f64 = 20.0;
const BOTTOM: f64 = 46.0;
/// Length of a line in the legend.
const KEY: f64 = 22.0;

/// What a panel shows.
type Quantity = fn(&LengthPoint) -> Option<f64>;

/// The picture, all axes logarithmic; nothing without points. `sizes`: of the model and the batch, for the title.
pub fn lengths_picture(curves: &[LengthCurve], sizes: &str) -> Option<Scene> {
    let lengths = || curves.iter().flat_map(|curve| curve.points.iter().map(|p| p.length as f64));
    let (low, high) = (lengths().reduce(f64::min)?, lengths().reduce(f64::max)?);
    let ink = |i: usize| Ink::Fixed(categorical_colour(i));

    let mut scene = Scene::new(
        "lengths",
        &format!("One training step against the length ({sizes})"),
        WIDTH,
        0.0,
    );
    let (mut x, mut y) = (MARGIN, TOP + 8.0);
    for (i, curve) in curves.iter().enumerate() {
        let width = KEY + 6.0 + text_width(&curve.name, Scene::LABEL_SIZE);
        if x + width > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + LEGEND_LINE);
        }
        scene.stroke(format!("M{x:.1} {y:.1}h{KEY}"), ink(i), 2.2);
        scene.dots(vec![[x + 0.5 * KEY, y]], 3.0, ink(i), 1.0);
        scene.label([x + KEY + 6.0, y + 4.0], curve.name.clone(), Anchor::Start);
        x += width + 18.0;
    }
    let pitch = (WIDTH - 2.0 * MARGIN) / 2.0;
    let parts: [(&str, Quantity); 2] = [
        ("milliseconds per step", |point| Some(point.milliseconds)),
        ("peak memory of the process, MB", |point| point.peak_mb),
    ];
    let top = y + LEGEND_LINE;
    for (column, (name, value)) in parts.into_iter().enumerate() {
        let values = || curves.iter().flat_map(|curve| curve.points.iter().filter_map(value));
        let (Some(least), Some(most)) = (values().reduce(f64::min), values().reduce(f64::max))
        else {
            continue;
        };
        let frame = Frame {
            x: MARGIN + LEFT + column as f64 * pitch,
            y: top + HEAD,
            width: pitch - LEFT - 16.0,
            height: FRAME,
        };
        let panel = Panel { frame, x: Axis::powers_of_two(low, high), y: Axis::log(least, most) };
        scene.heading([frame.x, frame.y - 8.0], name);
        panel.draw_columns(&mut scene);
        panel.draw_y(&mut scene, true);
        panel.draw_x(&mut scene, true);
        panel.draw_frame(&mut scene);
        panel.draw_names(&mut scene, "length L", "", 0.0);
        for (i, curve) in curves.iter().enumerate() {
            let place = |point: &LengthPoint| Some(panel.at(point.length as f64, value(point)?));
            let points: Vec<[f64; 2]> = curve.points.iter().filter_map(place).collect();
            scene.stroke(polyline(points.iter().copied()), ink(i), 1.8);
            scene.dots(points, 3.0, ink(i), 1.0);
        }
    }
    scene.height = top + HEAD + FRAME + BOTTOM;
    let last = |curve: &LengthCurve| {
        let point = curve.points.last()?;
        Some(format!("{} {:.0} ms at L = {}", curve.name, point.milliseconds, point.length))
    };
    let ends: Vec<String> = curves.iter().filter_map(last).collect();
    scene.summary =
        format!("Time and memory of a training step against the length: {}.", ends.join(", "));
    Some(scene)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_a_line_in_each_panel() {
        let point =
            |length, milliseconds| LengthPoint { length, milliseconds, peak_mb: Some(80.0) };
        let curve = |name: &str, k: f64| LengthCurve {
            name: name.to_owned(),
            points: vec![point(512, k), point(1024, 2.0 * k)],
        };
        let mut curves = vec![curve("one", 3.0), curve("two", 5.0)];
        let svg = lengths_picture(&curves, "2 layers").unwrap().svg();
        let points = 4 * curves.len();
        assert_eq!(
            svg.matches("<circle").count(),
            points + curves.len(),
            "points, and the legend's"
        );
        assert!(svg.contains(">512<") && svg.contains(">1024<"), "{svg}");
        curves.iter_mut().for_each(|curve| curve.points.clear());
        assert!(lengths_picture(&curves, "2 layers").is_none());
    }
}
