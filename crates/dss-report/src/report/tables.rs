//! The tables: configuration, parameters, environment.

use std::fmt::Write;

use dss_data::Baseline;
use dss_format::TensorSpec;
use dss_train::Scores;
use dss_train::config::{Config, Section};
use serde_json::Value;

use super::run::Run;
use crate::text::{count, counted, date, duration, escape, number, percent};

/// A text without its quotes, any other value as JSON.
fn shown(value: &Value) -> String {
    escape(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Every key, its value and its meaning.
pub(super) fn configuration(config: &Config) -> String {
    let name = config.task.name();
    let values = config.flat();
    let mut out = String::new();
    for section in Section::ALL {
        let _ = write!(
            out,
            "<h3><code>[{section}]</code></h3>\n<div class=\"scroll\">\n<table class=\"wide\">\n<caption>{}</caption>\n\
             <thead><tr><th scope=\"col\">key</th><th scope=\"col\">value</th><th scope=\"col\">meaning</th></tr></thead>\n<tbody>\n",
            escape(section.about())
        );
        for (key, doc) in section.key_docs(name, config.model.mixer.kind()) {
            let value = values.get(&format!("{section}.{key}")).filter(|value| !value.is_null());
            let value = value.map_or("not set".to_owned(), shown);
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\"><code>{key}</code></th><td class=\"setting\"><code>{value}</code></td><td class=\"quiet\">{}</td></tr>",
                escape(&doc)
            );
        }
        out.push_str("</tbody></table>\n</div>\n");
    }
    out
}

/// The model's errors next to those of simple methods.
pub(super) fn baselines(scores: &Scores) -> String {
    if scores.baselines.is_empty() {
        return String::new();
    }
    let head: &[&str] = match scores.accuracy {
        Some(_) => &["accuracy"],
        None => &["mean squared error", "mean absolute error"],
    };
    let head: String = head.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let mut out =
        format!("<table>\n<thead><tr><th scope=\"col\">method</th>{head}</tr></thead>\n<tbody>\n");
    for Baseline { name, accuracy, mse, mae } in scores.with_baselines() {
        let cells = [accuracy.map(percent), mse.map(number), mae.map(number)];
        let cells: String =
            cells.into_iter().flatten().map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(out, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(&name));
    }
    out.push_str("</tbody></table>\n");
    out
}

/// Trained numbers.
pub(super) fn trained(run: &Run) -> usize {
    run.tensors.iter().filter(|t| t.trained).filter_map(TensorSpec::elements).sum()
}

/// Counts per group, then per tensor.
pub(super) fn parameters(run: &Run) -> String {
    if run.tensors.is_empty() {
        return String::new();
    }
    let total = trained(run);
    let mut out = String::from(
        "<table>\n<thead><tr><th scope=\"col\">group</th><th class=\"number\" scope=\"col\">numbers</th>\
         <th class=\"number\" scope=\"col\">share</th><th class=\"number\" scope=\"col\">learning rate</th></tr></thead>\n<tbody>\n",
    );
    let t = &run.config.train;
    let groups = [
        (dss_nn::ParamGroup::Lambda, "Λ", t.lr_lambda),
        (dss_nn::ParamGroup::Delta, "Δ_log", t.lr_delta),
        (dss_nn::ParamGroup::W, "W", t.lr_w),
        (dss_nn::ParamGroup::Other, "everything else", t.lr),
    ];
    for (group, name, lr) in groups {
        let members = run.tensors.iter().filter(|t| t.trained && t.group == group);
        let size: usize = members.filter_map(TensorSpec::elements).sum();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{lr}</td></tr>",
            count(size as u64),
            percent(size as f64 / total.max(1) as f64)
        );
    }
    let _ = writeln!(
        out,
        "</tbody>\n<tfoot><tr><th scope=\"row\">all</th><td class=\"number\">{}</td><td></td><td></td></tr></tfoot></table>",
        count(total as u64)
    );
    out.push_str(
        "<details>\n<summary>Every tensor</summary>\n<div class=\"scroll\">\n<table>\n<thead><tr><th scope=\"col\">tensor</th>\
         <th scope=\"col\">shape</th><th class=\"number\" scope=\"col\">numbers</th></tr></thead>\n<tbody>\n",
    );
    for tensor in &run.tensors {
        let shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
        let kept = if tensor.trained {
            ""
        } else {
            " <span class=\"quiet\">(statistics, not trained)</span>"
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><code>{}</code>{kept}</th><td>{}</td><td class=\"number\">{}</td></tr>",
            escape(&tensor.name),
            shape.join(" × "),
            count(tensor.elements().unwrap_or_default() as u64)
        );
    }
    out.push_str("</tbody></table>\n</div>\n</details>\n");
    out
}

/// Two tables side by side: what it took, and where.
pub(super) fn environment(run: &Run) -> String {
    let mut took: Vec<(&str, String)> = vec![("total time", duration(run.seconds()))];
    if !run.train.is_empty() {
        let mut speeds: Vec<f64> = run.train.iter().map(|r| r.samples_per_s).collect();
        speeds.sort_by(f64::total_cmp);
        took.push(("sequences per second (median)", format!("{:.1}", speeds[speeds.len() / 2])));
    }
    took.push(("optimiser steps", count(run.steps())));
    if let Some(state) = &run.state {
        took.push(("steps per epoch", count(state.steps_per_epoch)));
    }
    if let Some(peak) = run.peak_mb() {
        took.push(("peak memory", format!("{peak:.0}\u{a0}MB")));
    }
    if let Some(state) = run.state.as_ref().filter(|s| s.bounded_steps > 0) {
        took.push(("steps with a Δ_log at its bound", count(state.bounded_steps)));
    }
    let mut place: Vec<(&str, String)> = Vec::new();
    if let Some(e) = &run.environment {
        place.extend([
            ("dss", e.version.clone()),
            ("started", date(e.started)),
            ("system", format!("{} ({})", e.os, e.arch)),
            ("processor", format!("{}, {}", e.cpu, counted(e.cores as u64, "core"))),
            ("threads", e.threads.to_string()),
            ("vector instructions", e.simd.clone()),
        ]);
    }
    place.push(("seed", run.config.train.seed.to_string()));
    if let Some(state) = &run.state {
        place.push(("hash of the data splits", state.split_hash.clone()));
    }
    pairs("Time and memory", &took) + &pairs("Where", &place)
}

fn pairs(title: &str, rows: &[(&str, String)]) -> String {
    let mut out = format!("<div>\n<h3>{title}</h3>\n<table class=\"wide\">\n<tbody>\n");
    for (name, value) in rows {
        let _ = writeln!(
            out,
            "<tr><th class=\"quiet\" scope=\"row\">{}</th><td class=\"value\">{}</td></tr>",
            escape(name),
            escape(value)
        );
    }
    out.push_str("</tbody></table>\n</div>\n");
    out
}
