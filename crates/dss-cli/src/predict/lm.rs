//! How well a language model predicts a text.

use dss_data::lm::{LmEncoder, score};
use dss_nn::Model;
use dss_train::Scores;
use dss_train::evaluate::evaluate;
use serde_json::json;

use super::inputs::InputFile;
use super::{AnswerForm, join};
use crate::failure::Failure;
use crate::text;

/// A line per file: its name, scored tokens, nats and bits per token.
pub(super) fn lines(
    model: &Model,
    encoder: &LmEncoder,
    files: &[InputFile],
    batch: usize,
    form: AnswerForm,
) -> Result<Vec<String>, Failure> {
    let head = ["file", "tokens", "nats_per_token", "bits_per_token"].map(str::to_owned);
    let mut lines = if form == AnswerForm::Csv { vec![join(&head, true)] } else { Vec::new() };
    for file in files {
        let text = score(encoder, &file.path).map_err(|e| file.named(e))?;
        let scores = evaluate(model, &text.windows, &text.spec, batch)?;
        lines.push(line(&file.name, text.tokens, &scores, form));
    }
    Ok(lines)
}

fn line(file: &str, tokens: usize, scores: &Scores, form: AnswerForm) -> String {
    let (nats, bits) = (scores.loss, scores.bits.unwrap_or_default());
    let numbers =
        |show: fn(f64) -> String| vec![file.to_owned(), tokens.to_string(), show(nats), show(bits)];
    match form {
        AnswerForm::Json => json!({
            "file": file, "tokens": tokens, "nats_per_token": nats, "bits_per_token": bits,
        })
        .to_string(),
        AnswerForm::Csv => join(&numbers(|x| format!("{x:.6}")), true),
        AnswerForm::Plain => {
            let [file, tokens, nats, bits] = [0, 1, 2, 3].map(|i| numbers(text::number)[i].clone());
            format!("{file}\t{tokens} tokens\t{nats} nats/token\t{bits} bits/token")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_file() {
        let scores = Scores { loss: 1.5, bits: Some(2.164), ..Scores::default() };
        let show = |form| line("a,b.txt", 99, &scores, form);
        assert_eq!(
            show(AnswerForm::Plain),
            "a,b.txt\t99 tokens\t1.5000 nats/token\t2.1640 bits/token"
        );
        assert_eq!(show(AnswerForm::Csv), "\"a,b.txt\",99,1.500000,2.164000");
        let object: serde_json::Value = serde_json::from_str(&show(AnswerForm::Json)).unwrap();
        assert_eq!((&object["tokens"], &object["nats_per_token"]), (&json!(99), &json!(1.5)));
    }
}
