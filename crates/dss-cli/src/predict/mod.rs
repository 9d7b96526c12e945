//! `dss predict`

mod forecast;
mod lm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dss_data::Encoder;
use dss_nn::Model;
use dss_nn::checkpoint::CheckpointMeta;
use dss_nn::config::OutputKind;
use dss_train::predict::{Prediction, Query, encoder, predict};
use dss_train::threads;
use serde_json::{Value, json};

use crate::args::PredictArgs;
use crate::failure::Failure;
use crate::{device, output, runs, text};

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Csv,
    Json,
}

/// A sequence, where it comes from, and what the model says about it.
struct Answer {
    file: String,
    name: String,
    prediction: Prediction,
}

impl Answer {
    /// The path as it was given, and the place in the file: `d/a.csv:1`.
    fn place(&self) -> String {
        let file = Path::new(&self.file).file_name().unwrap_or_default().to_string_lossy();
        match self.name.strip_prefix(&*file) {
            Some(place) => format!("{}{place}", self.file),
            None => format!("{}:{}", self.file, self.name),
        }
    }
}

pub fn run(args: PredictArgs) -> Result<ExitCode, Failure> {
    runs::existing(&args.run)?;
    let checkpoint = runs::best(&args.run)?;
    let device = device::named(&args.device)?;
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Plain,
    };
    let (files, batch) = (&args.files, args.batch);
    let lines = threads::with(args.threads, || -> Result<_, Failure> {
        let (model, meta) = dss_nn::load(&checkpoint, &device)?;
        match encoder(&meta)? {
            Encoder::Lm(encoder) => lm::lines(&model, &encoder, files, batch, form),
            Encoder::Forecast(encoder) => {
                forecast::lines(&model, &meta, &encoder, files, batch, form)
            }
            encoder => answers(&model, &meta, &encoder, files, batch, form),
        }
    })??;
    output::line(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// A line, or one per position, for every sequence of the files.
fn answers(
    model: &Model,
    meta: &CheckpointMeta,
    encoder: &Encoder,
    files: &[PathBuf],
    batch: usize,
    form: Form,
) -> Result<Vec<String>, Failure> {
    let (names, queries) = read(files, encoder, &meta.io.output)?;
    let predictions = predict(model, meta, &queries, batch)?;
    let answers = names.into_iter().zip(predictions);
    let answers: Vec<Answer> =
        answers.map(|((file, name), prediction)| Answer { file, name, prediction }).collect();
    Ok(match form {
        Form::Json => answers.iter().map(|a| object(a, &meta.labels).to_string()).collect(),
        Form::Csv | Form::Plain => table(&answers, &meta.labels, form == Form::Csv),
    })
}

type Named = Vec<(String, String)>;

/// The sequences of all files; a model of pairs takes them two by two.
fn read(
    files: &[PathBuf],
    encoder: &Encoder,
    output: &OutputKind,
) -> Result<(Named, Vec<Query>), Failure> {
    let mut found = Vec::new();
    for file in files {
        let all = encoder.read(file)?.into_iter();
        found.extend(all.map(|(name, input)| (file.display().to_string(), name, input)));
    }
    let pair = matches!(output, OutputKind::Pair { .. });
    if pair && found.len() % 2 == 1 {
        let message = format!("{} sequences: the last one has no partner", found.len());
        return Err(Failure::usage(message).hint("this model compares sequences two by two"));
    }
    let (mut names, mut queries) = (Vec::new(), Vec::new());
    let mut found = found.into_iter();
    while let Some((file, name, input)) = found.next() {
        let second = if pair { found.next() } else { None };
        let name = match &second {
            Some((_, second, _)) => format!("{name} {second}"),
            None => name,
        };
        names.push((file, name));
        queries.push(Query { input, second: second.map(|(_, _, input)| input) });
    }
    Ok((names, queries))
}

/// The name of a class.
fn label(labels: &[String], class: usize) -> String {
    labels.get(class).cloned().unwrap_or_else(|| class.to_string())
}

fn object(answer: &Answer, labels: &[String]) -> Value {
    let rows = &answer.prediction.rows;
    let mut value = json!({"file": answer.file, "sequence": answer.name});
    if labels.is_empty() {
        value["values"] = if rows.len() == 1 { json!(rows[0]) } else { json!(rows) };
        return value;
    }
    let found: Vec<Value> = answer
        .prediction
        .classes()
        .zip(rows)
        .map(|((class, probability), row)| {
            let all: serde_json::Map<String, Value> =
                row.iter().enumerate().map(|(i, p)| (label(labels, i), json!(p))).collect();
            json!({"label": label(labels, class), "probability": probability, "probabilities": all})
        })
        .collect();
    match <[Value; 1]>::try_from(found) {
        Ok([Value::Object(one)]) => one.into_iter().for_each(|(key, item)| value[key] = item),
        Ok(one) => value["positions"] = json!(one),
        Err(many) => value["positions"] = json!(many),
    }
    value
}

/// Lines with tabs between their parts, or CSV with a head.
fn table(answers: &[Answer], labels: &[String], csv: bool) -> Vec<String> {
    let positions = answers.iter().any(|a| a.prediction.rows.len() > 1);
    let mut head = vec!["sequence".to_owned()];
    if positions {
        head.push("position".to_owned());
    }
    if labels.is_empty() {
        let outputs = answers.first().and_then(|a| a.prediction.rows.first()).map_or(1, Vec::len);
        head.extend((0..outputs).map(|i| format!("value{}", i + 1)));
    } else {
        head.extend(["label".to_owned(), "probability".to_owned()]);
    }
    let mut lines = if csv { vec![join(&head, true)] } else { Vec::new() };
    for answer in answers {
        for (i, (row, best)) in
            answer.prediction.rows.iter().zip(answer.prediction.classes()).enumerate()
        {
            let mut cells = vec![answer.place()];
            if positions {
                cells.push(i.to_string());
            }
            if labels.is_empty() {
                cells
                    .extend(row.iter().map(|x| if csv { x.to_string() } else { text::number(*x) }));
            } else {
                cells.extend([label(labels, best.0), format!("{:.4}", best.1)]);
            }
            lines.push(join(&cells, csv));
        }
    }
    lines
}

fn join(cells: &[String], csv: bool) -> String {
    if !csv {
        return cells.join("\t");
    }
    let quoted = cells.iter().map(|cell| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    });
    quoted.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[&[f64]]) -> Answer {
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        Answer { file: "d/a.csv".into(), name: "a.csv:1".into(), prediction: Prediction { rows } }
    }

    #[test]
    fn classes_values_and_positions() {
        let labels = ["cat, \"big\"".to_owned(), "dog".to_owned()];
        let one = [answer(&[&[0.75, 0.25]])];
        assert_eq!(table(&one, &labels, false), ["d/a.csv:1\tcat, \"big\"\t0.7500"]);
        assert_eq!(
            table(&one, &labels, true),
            ["sequence,label,probability", "d/a.csv:1,\"cat, \"\"big\"\"\",0.7500"]
        );
        assert_eq!(object(&one[0], &labels)["probabilities"]["dog"], 0.25);
        assert_eq!(object(&one[0], &labels)["label"], labels[0]);

        let many = [answer(&[&[0.1, 0.9], &[0.8, 0.2]])];
        assert_eq!(table(&many, &labels, false)[1], "d/a.csv:1\t1\tcat, \"big\"\t0.8000");
        assert_eq!(object(&many[0], &labels)["positions"][0]["label"], "dog");

        let value = [answer(&[&[1.5]])];
        assert_eq!(table(&value, &[], true), ["sequence,value1", "d/a.csv:1,1.5"]);
        assert_eq!(object(&value[0], &[])["values"][0], 1.5);
    }
}
