//! Answers of the best model on the test set: forecasts and values beside the truth, and the worst answers of all.

use dss_data::catalogue;
use dss_format::encoder::{Encoder, ForecastEncoder};
use dss_train::answers::{Answer, InputOutline, Outcome};

use super::run::Run;
use crate::draw::{
    Chart, Ink, MARGIN, Mark, Raster, Scale, Scene, Series, Shape, TOP, layer_colour,
};
use crate::text::{escape, number, percent};

/// Height of the plot of an input.
const HEIGHT: f64 = 110.0;
/// More channels than this are rows of pixels instead of lines.
const LINES: usize = 4;
/// Columns of such rows.
const COLUMNS: usize = 400;

/// What a regression answers: forecasts as curves, single values as a scatter plot.
pub(super) fn regression(run: &Run) -> String {
    let Some(answers) = &run.answers else { return String::new() };
    let curves = answers.sample.iter().filter_map(|answer| forecast(run, "forecast", answer));
    let charts = curves.chain(scatter(&answers.sample));
    let scenes = charts.filter_map(|chart| chart.scene());
    scenes.map(|scene| format!("<figure>\n{}</figure>\n", scene.inline_svg())).collect()
}

/// The examples with the largest loss: input, truth and answer.
pub(super) fn worst(run: &Run) -> String {
    let answers = run.answers.iter().flat_map(|answers| &answers.worst);
    answers.map(|answer| worst_example(run, answer)).collect()
}

/// Known values, the true ones after them and the predicted ones; `name` begins the name of the chart.
fn forecast(run: &Run, name: &str, answer: &Answer) -> Option<Chart> {
    let Outcome::Values { positions, targets, outputs } = &answer.outcome else { return None };
    let (first, last) = (*positions.first()?, *positions.last()?);
    let encoder = run.meta.as_ref().and_then(|meta| match Encoder::from_extra(&meta.extra) {
        Ok(Encoder::Forecast(encoder)) => Some(encoder),
        _ => None,
    });
    let unit = |value: f64| encoder.as_ref().map_or(value, |encoder| in_units(encoder, value));
    // Time 0 is the last known value.
    let time = |position: f64| position + 1.0 - first as f64;
    let values = |values: Vec<f64>| -> Vec<(f64, f64)> {
        positions.iter().zip(values).map(|(&at, value)| (time(at as f64), unit(value))).collect()
    };
    let known = match answer.inputs.first() {
        Some(InputOutline::Values { channels: 1, positions, data }) => {
            let kept = *positions as f64 / data.len() as f64;
            let points = data.iter().enumerate().map(|(i, x)| (i as f64 * kept, f64::from(*x)));
            let known = points.filter(|(at, _)| *at < first as f64);
            known.map(|(at, x)| (time(at), unit(x))).collect()
        }
        _ => Vec::new(),
    };
    let truth = values(targets.iter().copied().map(f64::from).collect());
    let series = |name, ink, shape, points| Series { name, ink, shape, points };
    let column = encoder.as_ref().and_then(|encoder| encoder.column.name.as_deref());
    let relative = encoder.as_ref().is_some_and(|encoder| encoder.relative);
    Some(Chart {
        name: format!("{name}-{}", answer.example),
        title: format!("{}, test window {}", column.unwrap_or("Forecast"), answer.number()),
        summary: format!("Mean squared error of the standardised values: {}.", number(answer.loss)),
        scale: Scale::Fit,
        x: (time(0.0), time(last as f64)),
        x_name: match relative {
            true => "steps after the last known value; values relative to it",
            false => "steps after the last known value",
        },
        series: vec![
            series("known", Ink::Quiet, Shape::Line, known),
            series("true", Ink::First, Shape::Line, truth),
            series("forecast", Ink::Second, Shape::Line, values(outputs.clone())),
        ],
        mark: None,
        height: Chart::HEIGHT,
    })
}

/// A standardised value in the units of its column; relative values stay relative.
fn in_units(encoder: &ForecastEncoder, value: f64) -> f64 {
    value * encoder.deviation + if encoder.relative { 0.0 } else { encoder.mean }
}

/// True values to the right, predicted ones upwards, and the diagonal on which they would be equal.
fn scatter(sample: &[Answer]) -> Option<Chart> {
    let points = sample.iter().flat_map(|answer| match &answer.outcome {
        Outcome::Values { positions, targets, outputs } if positions.is_empty() => {
            targets.iter().zip(outputs).map(|(t, o)| (f64::from(*t), *o)).collect()
        }
        _ => Vec::new(),
    });
    let points: Vec<(f64, f64)> = points.collect();
    let low = points.iter().map(|p| p.0).reduce(f64::min)?;
    let high = points.iter().map(|p| p.0).reduce(f64::max)?;
    let count = points.len();
    Some(Chart {
        name: "scatter".into(),
        title: "Predicted and true values".into(),
        summary: format!("{count} values of the test set, predicted against true."),
        scale: Scale::Fit,
        x: (low, high),
        x_name: "true value",
        series: vec![
            Series {
                name: "predicted = true",
                ink: Ink::Quiet,
                shape: Shape::Dashes,
                points: vec![(low, low), (high, high)],
            },
            Series { name: "predicted", ink: Ink::First, shape: Shape::Scatter, points },
        ],
        mark: None,
        height: 1.6 * Chart::HEIGHT,
    })
}

fn worst_example(run: &Run, answer: &Answer) -> String {
    let mut out = String::from("<figure>\n");
    if let Some(scene) = forecast(run, "worst", answer).and_then(|chart| chart.scene()) {
        let loss = number(answer.loss);
        out += &format!("{}<figcaption>loss {loss}</figcaption>\n</figure>\n", scene.inline_svg());
        return out;
    }
    for (i, input) in answer.inputs.iter().enumerate() {
        match input {
            InputOutline::Text(text) => {
                out += &format!("<pre class=\"input\">{}</pre>\n", escape(text));
            }
            InputOutline::Values { channels, positions, data } => {
                let name = format!("worst-{}-{i}", answer.example);
                let title = format!("Example {}", answer.number());
                let scene = input_scene(run, name, title, *channels, *positions, data);
                out += &scene.map_or_else(String::new, |scene| scene.inline_svg());
            }
        }
    }
    let words = in_words(run, &answer.outcome);
    // A picture has its own title.
    let title = match answer.inputs.first() {
        Some(InputOutline::Values { .. }) => String::new(),
        _ => format!("Example {}: ", answer.number()),
    };
    let loss = number(answer.loss);
    out + &format!("<figcaption>{title}{words}; loss {loss}</figcaption>\n</figure>\n")
}

/// Truth and answer, as HTML.
fn in_words(run: &Run, outcome: &Outcome) -> String {
    let label = |class: usize| {
        let labels = run.meta.as_ref().map_or(&[][..], |meta| &meta.labels);
        labels.get(class).map_or_else(|| class.to_string(), |label| escape(label))
    };
    match outcome {
        Outcome::Class { class, likeliest } => {
            let answers: Vec<String> = likeliest
                .iter()
                .map(|(class, p)| format!("{} ({})", label(*class), percent(*p)))
                .collect();
            format!("label <b>{}</b>, answer {}", label(*class), answers.join(", "))
        }
        Outcome::Positions { asked, right } => format!("{right} of {asked} positions right"),
        Outcome::Values { positions, targets, outputs } if positions.is_empty() => {
            let list =
                |values: Vec<f64>| values.into_iter().map(number).collect::<Vec<_>>().join(", ");
            let targets = list(targets.iter().copied().map(f64::from).collect());
            format!("true <b>{targets}</b>, predicted {}", list(outputs.clone()))
        }
        Outcome::Values { targets, .. } => format!("{} values to predict", targets.len()),
    }
}

/// An input of numbers: the pixels of a picture, a line per channel, or a row of pixels per channel.
fn input_scene(
    run: &Run,
    name: String,
    title: String,
    channels: usize,
    positions: usize,
    data: &[f32],
) -> Option<Scene> {
    let rows = data.len().checked_div(channels).filter(|rows| *rows > 0)?;
    let summary = format!("{positions} positions of {channels} numbers.");
    let picture = catalogue::entry(run.config.task.name()).is_some_and(|entry| entry.picture);
    let side = positions.isqrt();
    if picture && side * side == data.len() {
        return Some(raster_scene(
            name,
            &title,
            summary,
            [HEIGHT + 40.0; 2],
            Raster::scaled(side, side, data),
        ));
    }
    if channels > LINES {
        let column = |i: usize| i * rows / COLUMNS.min(rows);
        let columns = COLUMNS.min(rows);
        let pixel = |c: usize, i: usize| data[column(i) * channels + c];
        let pixels: Vec<f32> = (0..channels)
            .flat_map(|c| (0..columns).map(move |i| (c, i)))
            .map(|(c, i)| pixel(c, i))
            .collect();
        let raster = Raster::scaled(columns, channels, &pixels);
        return Some(raster_scene(name, &title, summary, [400.0, HEIGHT], raster));
    }
    let line = |c: usize| Series {
        name: "",
        ink: if channels == 1 { Ink::First } else { Ink::Fixed(layer_colour(c, channels)) },
        shape: Shape::Line,
        points: (0..rows)
            .map(|i| (i as f64 * positions as f64 / rows as f64, f64::from(data[i * channels + c])))
            .collect(),
    };
    let chart = Chart {
        name,
        title,
        summary,
        scale: Scale::Fit,
        series: (0..channels).map(line).collect(),
        mark: None,
        x: (0.0, positions.saturating_sub(1).max(1) as f64),
        x_name: "position",
        height: HEIGHT,
    };
    chart.scene()
}

fn raster_scene(
    name: String,
    title: &str,
    summary: String,
    [width, height]: [f64; 2],
    raster: Raster,
) -> Scene {
    let mut scene = Scene::new(name, title, 480.0, TOP + height + MARGIN);
    scene.summary = summary;
    let rectangle = [MARGIN, TOP, width, height];
    scene.marks.push(Mark::Image { rectangle, raster });
    scene
}
