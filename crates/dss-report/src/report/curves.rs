//! The learning curves.

use dss_train::Scores;

use super::run::Run;
use crate::draw::{Chart, Ink, Scale, Series, Shape, smooth};
use crate::text::{number, percent};

/// All charts that the run has data for.
pub(super) fn html(run: &Run) -> String {
    let charts = [loss(run), accuracy(run), learning_rate(run), speed(run)];
    let scenes = charts.iter().filter_map(Chart::scene);
    scenes.map(|scene| format!("<figure>\n{}</figure>\n", scene.inline_svg())).collect()
}

fn loss(run: &Run) -> Chart {
    let raw = points(run.train.iter().map(|r| (r.step, r.loss)));
    let val = points(run.val.iter().map(|r| (r.step, r.scores.loss)));
    let mut summary = ends("Training loss", &raw, number);
    summary.push_str(&ends(" Validation loss", &val, number));
    let title = match is_regression(run) {
        true => "Loss (mean squared error)",
        false => "Loss (cross entropy in nats)",
    };
    let mut series = trained(raw);
    series.push(Series { name: "validation", ink: Ink::Second, shape: Shape::Dots, points: val });
    chart(run, "loss", title, summary, Scale::Auto, series)
}

fn accuracy(run: &Run) -> Chart {
    let raw = points(run.train.iter().filter_map(|r| Some((r.step, r.accuracy?))));
    let val = points(run.val.iter().filter_map(|r| Some((r.step, r.scores.accuracy?))));
    let mut summary = ends("Training accuracy", &raw, percent);
    summary.push_str(&ends(" Validation accuracy", &val, percent));
    let mut series = trained(raw);
    series.push(Series { name: "validation", ink: Ink::Second, shape: Shape::Dots, points: val });
    chart(run, "accuracy", "Accuracy", summary, Scale::Percent, series)
}

fn learning_rate(run: &Run) -> Chart {
    let points = points(run.train.iter().map(|r| (r.step, r.lr)));
    let summary = ends("Learning rate", &points, number);
    let series =
        vec![Series { name: "all but Λ, Δ, W", ink: Ink::First, shape: Shape::Line, points }];
    chart(run, "rate", "Learning rate", summary, Scale::Auto, series)
}

fn speed(run: &Run) -> Chart {
    let raw = points(run.train.iter().map(|r| (r.step, r.samples_per_s)));
    let summary = ends("Sequences per second", &raw, number);
    let series = trained(raw);
    let mut chart = chart(run, "speed", "Sequences per second", summary, Scale::Linear, series);
    chart.mark = None;
    chart
}

/// The values as they are, pale, and their running mean.
fn trained(raw: Vec<(f64, f64)>) -> Vec<Series> {
    let smoothed = smooth(&raw);
    vec![
        Series { name: "training", ink: Ink::First, shape: Shape::Faint, points: raw },
        Series { name: "smoothed", ink: Ink::First, shape: Shape::Line, points: smoothed },
    ]
}

fn chart(
    run: &Run,
    name: &str,
    title: &str,
    summary: String,
    scale: Scale,
    series: Vec<Series>,
) -> Chart {
    let mark = run.best().map(|r| (r.step as f64, "kept checkpoint"));
    Chart {
        name: name.into(),
        title: title.into(),
        summary,
        scale,
        series,
        mark,
        x: (0.0, run.steps().max(1) as f64),
        x_name: "step",
        height: Chart::HEIGHT,
    }
}

fn points(values: impl Iterator<Item = (u64, f64)>) -> Vec<(f64, f64)> {
    values.filter(|v| v.1.is_finite()).map(|(step, value)| (step as f64, value)).collect()
}

/// "... goes from a at step 1 to b at step 9."
fn ends(what: &str, points: &[(f64, f64)], show: fn(f64) -> String) -> String {
    match (points.first(), points.last()) {
        (Some(a), Some(b)) => {
            let (from, to) = (show(a.1), show(b.1));
            format!("{what} goes from {from} at step {} to {to} at step {}.", a.0, b.0)
        }
        _ => String::new(),
    }
}

pub(super) fn is_regression(run: &Run) -> bool {
    let by_classes = |s: &Scores| s.accuracy.is_some() || s.bits.is_some();
    let evals = run.val.iter().chain(&run.test).any(|r| by_classes(&r.scores));
    !evals && !run.train.iter().any(|r| r.accuracy.is_some())
}
