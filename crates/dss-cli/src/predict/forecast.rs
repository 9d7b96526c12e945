//! The values after the end of a table.

use dss_data::forecast::{ForecastEncoder, window};
use dss_nn::Model;
use dss_nn::checkpoint::CheckpointMeta;
use dss_train::predict::{Query, predict};
use serde_json::json;

use super::inputs::InputFile;
use super::{AnswerForm, join, single};
use crate::failure::Failure;
use crate::output;

/// A CSV table with a row per step after the end, or one JSON object per file.
pub(super) fn lines(
    model: &Model,
    meta: &CheckpointMeta,
    encoder: &ForecastEncoder,
    files: &[InputFile],
    batch: usize,
    form: AnswerForm,
) -> Result<Vec<String>, Failure> {
    let read = |file: &InputFile| window(encoder, &file.path).map_err(|e| file.named(e));
    let windows = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for (file, window) in files.iter().zip(&windows) {
        output::log_line(file.own_note(&window.description));
    }
    let queries: Vec<Query> =
        windows.iter().map(|w| Query { input: w.input.clone(), second: None }).collect();
    let predictions = predict(model, meta, &queries, batch)?;
    let column = encoder.column.name.clone().unwrap_or_else(|| "value".into());
    let names = files.iter().map(|file| file.name.clone());
    let forecasts: Vec<(String, Vec<f64>)> = names
        .zip(windows.iter().zip(&predictions))
        .map(|(file, (window, prediction))| {
            let outputs: Vec<f64> = prediction.rows.iter().flatten().copied().collect();
            (file, encoder.forecast(window.origin, &outputs))
        })
        .collect();
    Ok(match form {
        AnswerForm::Json => forecasts
            .iter()
            .map(|(file, values)| {
                json!({"file": file, "column": column, "values": values}).to_string()
            })
            .collect(),
        AnswerForm::Plain | AnswerForm::Csv => table(&column, &forecasts),
    })
}

/// `step,COLUMN`, and the file first if there are several.
fn table(column: &str, forecasts: &[(String, Vec<f64>)]) -> Vec<String> {
    let several = forecasts.len() > 1;
    let row = |file: &str, step: String, value: String| {
        let cells = [file.to_owned(), step, value];
        join(&cells[usize::from(!several)..], true)
    };
    let head = row("file", "step".into(), column.to_owned());
    let rows = forecasts.iter().flat_map(|(file, values)| {
        let numbered = values.iter().enumerate();
        numbered.map(move |(i, x)| row(file, (i + 1).to_string(), single(*x)))
    });
    std::iter::once(head).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_one_and_of_several_files() {
        let one = [("a.csv".to_owned(), vec![1.5, -2.0])];
        assert_eq!(table("OT", &one), ["step,OT", "1,1.5", "2,-2"]);
        let two = [one[0].clone(), ("b.csv".to_owned(), vec![0.0])];
        let expected = ["file,step,\"O,T\"", "a.csv,1,1.5", "a.csv,2,-2", "b.csv,1,0"];
        assert_eq!(table("O,T", &two), expected);
    }
}
