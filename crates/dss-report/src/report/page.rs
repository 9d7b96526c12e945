//! The page: head, result, and one section after the other.

use std::fmt::Write;

use dss_train::Scores;

use super::run::Run;
use super::{answers, confusion, curves, generated, inside, tables};
use crate::text::{count, counted, date, duration, escape, number, percent};

/// The whole document.
pub(super) fn html(run: &Run) -> String {
    let task = escape(run.config.task.name());
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{task}: {name}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n",
        name = escape(&run.name),
        style = super::STYLE,
    );
    head(run, &mut out);
    let charts = curves::html(run);
    let grid = |charts: &str| format!("<div class=\"charts\">\n{charts}</div>\n");
    section(&mut out, "Learning curves", &charts, grid);
    section(&mut out, "Answers on the test set", &answers::regression(run), grid);
    section(&mut out, "Generated text", &generated::html(run), str::to_owned);
    if let Some(matrix) = run.test.as_ref().and_then(|t| t.scores.confusion.as_ref()) {
        let table = confusion::html(matrix, run.meta.as_ref().map_or(&[][..], |meta| &meta.labels));
        section(&mut out, "Confusion matrix of the test set", &table, str::to_owned);
    }
    let baselines = run.test.as_ref().map(|t| tables::baselines(&t.scores)).unwrap_or_default();
    section(&mut out, "Compared with simple methods, on the test set", &baselines, str::to_owned);
    section(&mut out, "The worst answers on the test set", &answers::worst(run), grid);
    section(&mut out, "Inside the model", &inside::html(run), str::to_owned);
    let columns = |html: &str| format!("<div class=\"columns\">\n{html}</div>\n");
    section(&mut out, "Time, memory, environment", &tables::environment(run), columns);
    section(&mut out, "Parameters", &tables::parameters(run), str::to_owned);
    section(&mut out, "Configuration", &tables::configuration(&run.config), str::to_owned);
    out.push_str("</main>\n");
    footer(run, &mut out);
    out.push_str("</body>\n</html>\n");
    out
}

fn section(out: &mut String, title: &str, body: &str, wrap: impl Fn(&str) -> String) {
    if !body.is_empty() {
        let _ = write!(out, "<section>\n<h2>{title}</h2>\n{}</section>\n", wrap(body));
    }
}

fn head(run: &Run, out: &mut String) {
    let model = &run.config.model;
    let length = run
        .meta
        .as_ref()
        .map(|meta| format!(", sequences of up to L = {} steps", count(meta.io.len as u64)));
    let _ = write!(
        out,
        "<header>\n<h1>{}</h1>\n<p class=\"quiet\">Run <code>{}</code>: {}, {} of H = {} channels, {}{}.</p>\n",
        escape(run.config.task.name()),
        escape(&run.name),
        model.mixer.settings().title(),
        counted(model.layers as u64, "layer"),
        model.h,
        model.mixer.settings().size(),
        length.unwrap_or_default(),
    );
    if run.test.is_none() {
        let _ = writeln!(out, "<p class=\"status\" role=\"status\">{}</p>", unfinished(run));
    }
    out.push_str("<dl class=\"cards\">\n");
    if let Some(test) = &run.test {
        let shown = |what: &str, share: Option<f64>| {
            share.map_or_else(String::new, |share| format!("{what}: {}", percent(share)))
        };
        let majority = shown("most frequent class", test.scores.majority());
        let macro_f1 = shown("macro F1", test.scores.macro_f1());
        let examples = counted(test.scores.examples as u64, "example");
        let main = "main";
        card(
            out,
            main,
            &format!("Test {}", test.scores.measure().name()),
            &score(&test.scores),
            &[
                &format!("checkpoint of step {}, best in validation", count(test.step)),
                &examples,
                &majority,
                &macro_f1,
                &other(&test.scores),
            ],
        );
    }
    if let Some(best) = run.best() {
        let title = format!("Best validation {}", best.scores.measure().name());
        let step = format!("step {}, epoch {}", count(best.step), best.epoch);
        card(out, "", &title, &score(&best.scores), &[&step, &other(&best.scores)]);
    }
    let epochs = run.train.last().map_or(0, |r| r.epoch).max(run.val.last().map_or(0, |r| r.epoch));
    let steps = format!("{}, {}", counted(run.steps(), "step"), counted(epochs, "epoch"));
    card(out, "", "Time", &duration(run.seconds()), &[&steps]);
    let trained = tables::trained(run);
    if trained > 0 {
        card(out, "", "Parameters", &count(trained as u64), &[]);
    }
    if let Some(peak) = run.peak_mb() {
        card(out, "", "Peak memory", &format!("{peak:.0}\u{a0}MB"), &[]);
    }
    out.push_str("</dl>\n</header>\n");
}

/// What to say when there is no test result.
fn unfinished(run: &Run) -> String {
    let planned = run.state.as_ref().map(|s| run.config.train.total_steps(s.steps_per_epoch));
    let planned = planned.map(|p| format!(" of {}", count(p))).unwrap_or_default();
    format!(
        "This run is not finished: it is at step {}{planned}, and there is no test result yet. \
         Resume it with <code>dss train {} --resume --out {}</code>.",
        count(run.steps()),
        escape(run.config.task.name()),
        escape(&run.dir)
    )
}

fn card(out: &mut String, class: &str, title: &str, value: &str, notes: &[&str]) {
    let _ = write!(out, "<div class=\"{class}\"><dt>{}</dt><dd>{}", escape(title), escape(value));
    for note in notes.iter().filter(|n| !n.is_empty()) {
        let _ = write!(out, "<small>{}</small>", escape(note));
    }
    out.push_str("</dd></div>\n");
}

/// The score that counts; its unit stays on its line.
fn score(scores: &Scores) -> String {
    scores.in_words(number).0.replace(' ', "\u{a0}")
}

/// The same in another measure.
fn other(scores: &Scores) -> String {
    match (scores.accuracy, scores.mae, scores.in_words(number).1) {
        (Some(_), ..) => format!("loss {}", number(scores.loss)),
        (None, Some(mae), _) => format!("mean absolute error {}", number(mae)),
        (None, None, other) => other.unwrap_or_default(),
    }
}

fn footer(run: &Run, out: &mut String) {
    let version = run.environment.as_ref().map_or(env!("CARGO_PKG_VERSION"), |e| &e.version);
    let started = run.environment.as_ref().map(|e| format!(", run of {}", date(e.started)));
    let _ = writeln!(
        out,
        "<footer><p>dss {}{}. The numbers behind the curves are in <code>metrics.jsonl</code>.</p></footer>",
        escape(version),
        started.unwrap_or_default()
    );
}
