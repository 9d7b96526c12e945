//! `dss predict`

mod forecast;
mod inputs;
mod lm;

use std::process::ExitCode;

use dss_data::speech::{SpeechEncoder, read_sound};
use dss_data::{Encoder, ReadFile};
use dss_nn::Model;
use dss_nn::checkpoint::CheckpointMeta;
use dss_nn::config::OutputKind;
use dss_report::csv_text;
use dss_train::predict::{Prediction, Query, encoder, predict};
use dss_train::threads;
use serde_json::{Value, json};

use crate::args::PredictArgs;
use crate::failure::Failure;
use crate::stream::other_rate;
use crate::{device, output, runs, text};
use inputs::{InputFile, Inputs};

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerForm {
    Plain,
    Csv,
    Json,
}

/// A sequence, where it comes from, and the model's answer.
struct Answer<'a> {
    sequence: Sequence<'a>,
    prediction: Prediction,
}

/// A sequence, or a pair of them.
struct Sequence<'a> {
    file: &'a InputFile,
    /// The place in the file; of a pair also the second sequence.
    place: String,
}

impl Sequence<'_> {
    /// The path as it was given, and the place in the file: `d/a.csv:1`.
    fn path_and_place(&self) -> String {
        format!("{}{}", self.file.name, self.place)
    }

    /// The same without folders: `a.csv:1`.
    fn name(&self) -> String {
        self.file.base_name() + &self.place
    }
}

pub fn run(args: PredictArgs) -> Result<ExitCode, Failure> {
    let checkpoint = runs::model_file(&args.model)?;
    let device = device::named(&args.device)?;
    let form = match (args.json, args.csv) {
        (true, _) => AnswerForm::Json,
        (_, true) => AnswerForm::Csv,
        _ => AnswerForm::Plain,
    };
    let batch = args.batch;
    let lines = threads::with(args.threads, || -> Result<_, Failure> {
        let (model, meta) = dss_nn::load(&checkpoint, &device)?;
        let encoder = encoder(&meta)?;
        let inputs = Inputs::new(&args.files, &encoder, args.format)?;
        let files = &inputs.files;
        match encoder {
            Encoder::Lm(encoder) => lm::lines(&model, &encoder, files, batch, form),
            Encoder::Forecast(encoder) => {
                forecast::lines(&model, &meta, &encoder, files, batch, form)
            }
            encoder => answers(&model, &meta, &encoder, files, batch).map(|answers| match form {
                AnswerForm::Json => {
                    answers.iter().map(|a| object(a, &meta.labels).to_string()).collect()
                }
                AnswerForm::Csv | AnswerForm::Plain => {
                    table(&answers, &meta.labels, form == AnswerForm::Csv)
                }
            }),
        }
    })??;
    output::line(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The model's answer for every sequence of the files.
fn answers<'a>(
    model: &Model,
    meta: &CheckpointMeta,
    encoder: &Encoder,
    files: &'a [InputFile],
    batch: usize,
) -> Result<Vec<Answer<'a>>, Failure> {
    if let Encoder::Speech(encoder) = encoder
        && let Some(trained) = encoder.sample_rate()
    {
        return sound(model, meta, encoder, trained, files, batch);
    }
    let (sequences, queries) = read(files, encoder, &meta.io.output)?;
    let predictions = predict(model, meta, &queries, batch)?;
    let answers = sequences.into_iter().zip(predictions);
    Ok(answers.map(|(sequence, prediction)| Answer { sequence, prediction }).collect())
}

/// Clips of any rate: as in a stream, the model's step follows that of the file.
fn sound<'a>(
    model: &Model,
    meta: &CheckpointMeta,
    encoder: &SpeechEncoder,
    trained: f64,
    files: &'a [InputFile],
    batch: usize,
) -> Result<Vec<Answer<'a>>, Failure> {
    let read = |file: &InputFile| read_sound(encoder, &file.path).map_err(|e| file.named(e));
    let clips = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut answers = Vec::new();
    for same_rate in
        files.iter().zip(clips).collect::<Vec<_>>().chunk_by(|(_, a), (_, b)| a.1 == b.1)
    {
        let (rate, ratio) = (same_rate[0].1.1, trained / same_rate[0].1.1);
        let (mut model, mut meta) = (model.clone(), meta.clone());
        if ratio != 1.0 {
            output::log_line(other_rate(rate, ratio));
            model = model.at_rate(ratio)?;
            (meta.model, meta.io) = (model.config().clone(), *model.io());
        }
        let queries =
            same_rate.iter().map(|(_, clip)| Query { input: clip.0.clone(), second: None });
        let predictions = predict(&model, &meta, &queries.collect::<Vec<_>>(), batch)?;
        answers.extend(same_rate.iter().zip(predictions).map(|((file, _), prediction)| Answer {
            sequence: Sequence { file, place: String::new() },
            prediction,
        }));
    }
    Ok(answers)
}

/// The sequences of all files; a model of pairs takes them two by two.
fn read<'a>(
    files: &'a [InputFile],
    encoder: &Encoder,
    output: &OutputKind,
) -> Result<(Vec<Sequence<'a>>, Vec<Query>), Failure> {
    let mut found = Vec::new();
    for file in files {
        if reads_one_text(encoder, file) {
            let advice = match file.name == "-" {
                true => "; --format csv reads a table",
                false => "",
            };
            output::log_line(file.own_note(&format!("{}: read as one text{advice}", base(file))));
        }
        let all =
            encoder.read_noted(&file.path, &mut |note| output::log_line(file.own_note(&note)));
        let all = all.map_err(|e| file.named(e))?.into_iter();
        found
            .extend(all.map(|(place, input)| (Sequence { file, place: place.to_string() }, input)));
    }
    let pair = matches!(output, OutputKind::Pair { .. });
    if pair && found.len() % 2 == 1 {
        let message =
            format!("an odd number of sequences ({}): the last one has no partner", found.len());
        return Err(Failure::usage(message).hint("this model compares pairs of sequences"));
    }
    let (mut sequences, mut queries) = (Vec::new(), Vec::new());
    let mut found = found.into_iter();
    while let Some((mut sequence, input)) = found.next() {
        let second = if pair { found.next() } else { None };
        if let Some((second, _)) = &second {
            sequence.place += &format!(" {}", second.name());
        }
        sequences.push(sequence);
        queries.push(Query { input, second: second.map(|(_, input)| input) });
    }
    Ok((sequences, queries))
}

/// Whether a file without a usual ending is given to a model of texts: nothing then says that it is not a table.
fn reads_one_text(encoder: &Encoder, file: &InputFile) -> bool {
    let reads_texts = match encoder {
        Encoder::Text(_) => true,
        Encoder::Files(encoder) => encoder.shape().is_none(),
        _ => false,
    };
    let name = file.path.with_extension("");
    let is_gzip = file.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let path = if is_gzip { &name } else { &file.path };
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    let known = ["txt", "csv", "tsv", "tab", "lines"];
    reads_texts && !known.iter().any(|known| ending == *known)
}

/// The name of the file that is read, without folders.
fn base(file: &InputFile) -> String {
    file.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of a class.
fn label(labels: &[String], class: usize) -> String {
    labels.get(class).cloned().unwrap_or_else(|| class.to_string())
}

fn object(answer: &Answer, labels: &[String]) -> Value {
    let rows = &answer.prediction.rows;
    let mut value = json!({"file": answer.sequence.file.name, "sequence": answer.sequence.name()});
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

/// Lines with tabs between their parts, or CSV with a header.
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
        head.extend(labels.iter().map(|label| format!("p_{label}")));
    }
    let mut lines = if csv { vec![join(&head, true)] } else { Vec::new() };
    for answer in answers {
        for (i, (row, best)) in
            answer.prediction.rows.iter().zip(answer.prediction.classes()).enumerate()
        {
            let mut cells = vec![answer.sequence.path_and_place()];
            if positions {
                cells.push(i.to_string());
            }
            if labels.is_empty() {
                cells.extend(row.iter().map(|x| if csv { single(*x) } else { text::number(*x) }));
            } else {
                cells.extend([label(labels, best.0), format!("{:.4}", best.1)]);
                if csv {
                    cells.extend(row.iter().map(|p| format!("{p:.6}")));
                }
            }
            lines.push(join(&cells, csv));
        }
    }
    lines
}

/// A number with the digits of single precision, in which models compute.
fn single(x: f64) -> String {
    (x as f32).to_string()
}

fn join(cells: &[String], csv: bool) -> String {
    if !csv {
        return cells.iter().map(|cell| text::cell(cell)).collect::<Vec<_>>().join("\t");
    }
    let mut line = csv_text([cells]);
    line.truncate(line.trim_end_matches('\n').len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_values_and_positions() {
        let file = InputFile { name: "d/a.csv".into(), path: "d/a.csv".into() };
        let answer = |rows: &[&[f64]]| {
            let rows = rows.iter().map(|row| row.to_vec()).collect();
            let sequence = Sequence { file: &file, place: ":1".into() };
            Answer { sequence, prediction: Prediction { rows } }
        };
        let labels = ["cat, \"big\"".to_owned(), "dog".to_owned()];
        let one = [answer(&[&[0.75, 0.25]])];
        assert_eq!(table(&one, &labels, false), ["d/a.csv:1\tcat, \"big\"\t0.7500"]);
        assert_eq!(
            table(&one, &labels, true),
            [
                "sequence,label,probability,\"p_cat, \"\"big\"\"\",p_dog",
                "d/a.csv:1,\"cat, \"\"big\"\"\",0.7500,0.750000,0.250000"
            ]
        );
        assert_eq!(object(&one[0], &labels)["probabilities"]["dog"], 0.25);
        assert_eq!(object(&one[0], &labels)["label"], labels[0]);
        assert_eq!(object(&one[0], &labels)["sequence"], "a.csv:1");

        let many = [answer(&[&[0.1, 0.9], &[0.8, 0.2]])];
        assert_eq!(table(&many, &labels, false)[1], "d/a.csv:1\t1\tcat, \"big\"\t0.8000");
        assert_eq!(object(&many[0], &labels)["positions"][0]["label"], "dog");

        let odd = ["don't\n".to_owned(), "dog".to_owned()];
        assert_eq!(table(&one, &odd, false), ["d/a.csv:1\tdon't\\n\t0.7500"]);

        let value = [answer(&[&[f64::from(0.1f32)]])];
        assert_eq!(table(&value, &[], true), ["sequence,value1", "d/a.csv:1,0.1"]);
        assert_eq!(object(&value[0], &[])["values"][0], f64::from(0.1f32));
    }
}
