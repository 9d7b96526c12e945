//! The page: head, result, and one section after the other.

use std::fmt::Write;

use dss_train::Scores;

use super::run::Run;
use super::{confusion, curves, inside, tables};
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
    section(&mut out, "Learning curves", &charts, |charts| {
        format!("<div class=\"charts\">\n{charts}</div>\n")
    });
    if let Some(matrix) = run.test.as_ref().and_then(|t| t.scores.confusion.as_ref()) {
        let table = confusion::html(matrix, &run.labels);
        section(&mut out, "Confusion matrix of the test set", &table, str::to_owned);
    }
    let baselines = run.test.as_ref().map(|t| tables::baselines(&t.scores)).unwrap_or_default();
    section(&mut out, "Compared with simple methods, on the test set", &baselines, str::to_owned);
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
    let _ = write!(
        out,
        "<header>\n<h1>{}</h1>\n<p class=\"quiet\">Run <code>{}</code>: {}, {} of H = {} channels and N = {} states{}.</p>\n",
        escape(run.config.task.name()),
        escape(&run.name),
        crate::inspect::kind(model),
        counted(model.layers as u64, "layer"),
        model.h,
        model.n,
        run.len.map(|l| format!(", sequences of up to L = {} steps", count(l))).unwrap_or_default(),
    );
    if run.test.is_none() {
        let _ = writeln!(out, "<p class=\"status\" role=\"status\">{}</p>", unfinished(run));
    }
    out.push_str("<dl class=\"cards\">\n");
    if let Some(test) = &run.test {
        let note = match test.scores.confusion.as_deref().and_then(confusion::majority) {
            Some(share) => format!("most frequent class: {}", percent(share)),
            None => String::new(),
        };
        let examples = counted(test.scores.examples as u64, "example");
        let main = "main";
        card(
            out,
            main,
            &format!("Test {}", measure(&test.scores)),
            &score(&test.scores),
            &[
                &format!("checkpoint of step {}, best in validation", count(test.step)),
                &examples,
                &note,
                &other(&test.scores),
            ],
        );
    }
    if let Some(best) = run.best() {
        let title = format!("Best validation {}", measure(&best.scores));
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
    let of = planned.map(|p| format!(" of {}", count(p))).unwrap_or_default();
    format!(
        "This run is not finished: it stands at step {}{of}, and there is no test result yet. \
         Go on with it by <code>dss train {} --resume --out {}</code>.",
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

fn measure(scores: &Scores) -> &'static str {
    match (scores.accuracy, scores.bits) {
        (Some(_), _) => "accuracy",
        (None, Some(_)) => "cross entropy",
        (None, None) => "mean squared error",
    }
}

fn score(scores: &Scores) -> String {
    match (scores.accuracy, scores.bits) {
        (Some(accuracy), _) => percent(accuracy),
        (None, Some(_)) => format!("{}\u{a0}nats", number(scores.loss)),
        (None, None) => number(scores.loss),
    }
}

/// The same in another measure.
fn other(scores: &Scores) -> String {
    match (scores.accuracy, scores.bits, scores.mae) {
        (Some(_), ..) => format!("loss {}", number(scores.loss)),
        (None, Some(bits), _) => format!("{} bits per token", number(bits)),
        (None, None, Some(mae)) => format!("mean absolute error {}", number(mae)),
        (None, None, None) => String::new(),
    }
}

fn footer(run: &Run, out: &mut String) {
    let version = run.environment.as_ref().map_or(env!("CARGO_PKG_VERSION"), |e| &e.version);
    let started = run.environment.as_ref().map(|e| format!(", run of {}", date(e.started)));
    let _ = writeln!(
        out,
        "<footer><p>dss {}{}. The numbers behind the curves stand in <code>metrics.jsonl</code>.</p></footer>",
        escape(version),
        started.unwrap_or_default()
    );
}
