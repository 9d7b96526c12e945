//! From text or numbers to model input, in training and in prediction alike.

use std::collections::BTreeMap;
use std::path::Path;

use dss_format::encoder::{EOS, FilesEncoder, Form, SPECIALS, Scaling, Vocabulary};
use dss_format::feed::NumberFeed;

use super::record::Content;
use super::{TokenChoice, arrays, folders, texts};
use crate::encoder::{ReadFile, SequencePlace, numbers};
use crate::{Error, Input, InputKind, Result, io};

/// Mean and standard deviation of sequences `[len, channels]`, by channel.
pub(super) fn scaling<'a>(
    sequences: impl Iterator<Item = &'a [f32]> + Clone,
    channels: usize,
) -> Scaling {
    let mut count = 0.0;
    let mut mean = vec![0.0; channels];
    let mut square = vec![0.0; channels];
    for step in sequences.clone().flat_map(|sequence| sequence.chunks(channels)) {
        count += 1.0;
        mean.iter_mut().zip(step).for_each(|(m, &x)| *m += f64::from(x));
    }
    mean.iter_mut().for_each(|m| *m /= count);
    for step in sequences.flat_map(|sequence| sequence.chunks(channels)) {
        let parts = square.iter_mut().zip(step).zip(&mean);
        parts.for_each(|((s, &x), m)| *s += (f64::from(x) - m).powi(2));
    }
    let sd = |s: f64| if s > 0.0 { (s / count).sqrt() as f32 } else { 1.0 };
    Scaling {
        mean: mean.into_iter().map(|m| m as f32).collect(),
        sd: square.into_iter().map(sd).collect(),
    }
}

/// The vocabulary of the first `most` characters of each training text.
pub(super) fn characters<'a>(texts: impl Iterator<Item = &'a str>, most: usize) -> Vocabulary {
    let mut counts: BTreeMap<char, u64> = BTreeMap::new();
    texts.flat_map(|text| text.chars().take(most)).for_each(|c| *counts.entry(c).or_default() += 1);
    Vocabulary::from_counts(counts.into_iter().map(|(c, count)| (c.to_string(), count)))
}

/// Positions that a sequence takes.
pub(super) fn positions(content: &Content, tokens: TokenChoice, channels: usize) -> usize {
    match content {
        Content::Text(text) if tokens == TokenChoice::Characters => text.chars().count() + 1,
        Content::Text(text) => text.len() + 1,
        Content::Numbers(numbers) => numbers.len() / channels,
    }
}

/// What the model reads.
pub(super) fn input_kind(encoder: &FilesEncoder) -> InputKind {
    match &encoder.form {
        Form::Numbers { channels, .. } => InputKind::Values { channels: *channels },
        _ => InputKind::Tokens { vocab: encoder.vocabulary().map_or(0, |symbols| symbols.len()) },
    }
}

/// Encodes one sequence; `Err` says why it does not fit.
pub(super) fn encode(
    encoder: &FilesEncoder,
    content: &Content,
) -> std::result::Result<Input, String> {
    match (&encoder.form, content) {
        (Form::Characters(vocabulary), Content::Text(text)) => {
            let mut buffer = [0; 4];
            let ids = text.chars().map(|c| vocabulary.id(c.encode_utf8(&mut buffer)));
            tokens(encoder, ids)
        }
        (Form::Bytes, Content::Text(text)) => {
            tokens(encoder, text.bytes().map(|b| u32::from(b) + SPECIALS.len() as u32))
        }
        (Form::Numbers { channels, scaling, .. }, Content::Numbers(numbers)) => {
            let mut values = numbers.clone();
            if let Some(Scaling { mean, sd }) = scaling {
                for step in values.chunks_mut(*channels) {
                    let scaled = step.iter_mut().zip(mean.iter().zip(sd));
                    scaled.for_each(|(x, (mean, sd))| *x = (*x - mean) / sd);
                }
            }
            fitting(encoder, values, *channels)
        }
        (Form::Numbers { .. }, Content::Text(_)) => Err("expected numbers, found text".into()),
        (_, Content::Numbers(_)) => Err("expected text, found numbers".into()),
    }
}

fn tokens(
    encoder: &FilesEncoder,
    ids: impl Iterator<Item = u32>,
) -> std::result::Result<Input, String> {
    let mut ids: Vec<u32> = ids.collect();
    check_length(encoder, ids.len() + 1)?;
    ids.truncate(encoder.len.saturating_sub(1));
    ids.push(EOS);
    Ok(Input::Tokens(ids))
}

/// Scaled numbers, cut to the length of the model.
fn fitting(
    encoder: &FilesEncoder,
    mut values: Vec<f32>,
    channels: usize,
) -> std::result::Result<Input, String> {
    check_length(encoder, values.len() / channels)?;
    values.truncate(encoder.len.saturating_mul(channels));
    Ok(Input::Values(values))
}

fn check_length(encoder: &FilesEncoder, positions: usize) -> std::result::Result<(), String> {
    if encoder.cut || positions <= encoder.len {
        return Ok(());
    }
    Err(format!(
        "the sequence takes {positions} positions, but the model was trained with at most {}; shorten it, or train \
         with task.max_length set",
        encoder.len
    ))
}

impl ReadFile for FilesEncoder {
    /// Reads a text, a table or an array without labels.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        self.read_noted(path, &mut |_| {})
    }

    fn read_noted(
        &self,
        path: &Path,
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<(SequencePlace, Input)>> {
        let found: Vec<(SequencePlace, std::result::Result<Input, String>)> = match (
            &self.form,
            self.shape(),
            io::extension(path).as_str(),
        ) {
            (_, Some(shape), "npy") => {
                let sequences = arrays::read_unlabelled(path, &shape)?;
                let length = |numbers: &Vec<f32>| numbers.len() / shape.channels;
                let lengths: Vec<usize> = sequences.iter().map(|(_, n)| length(n)).collect();
                let sizes = folders::sizes(["sequence", "step"], &lengths, shape.channels);
                if self.len > 1 && lengths.len() > 1 && lengths.iter().all(|l| *l == 1) {
                    let n = lengths.len();
                    let what = format!(
                        "holds {sizes}, but the model was trained on sequences of up to {} steps; one sequence of \
                             {n} steps is an array of the shape [{n}]",
                        self.len
                    );
                    return Err(Error::content(path, what));
                }
                note(format!("{}: {sizes}", io::file_name(path)));
                let sequences = sequences.into_iter();
                let encode = |(place, numbers)| (place, encode(self, &Content::Numbers(numbers)));
                sequences.map(encode).collect()
            }
            (Form::Numbers { channels, scaling, .. }, Some(shape), _) => {
                let feed = NumberFeed::new(shape, scaling.clone());
                let feed = feed.map_err(|what| Error::content(path, what))?;
                let fitting = |(place, values)| (place, fitting(self, values, *channels));
                numbers(path, feed, note)?.into_iter().map(fitting).collect()
            }
            (_, _, "csv" | "tsv" | "tab") => {
                let found = texts::read(self, path, note)?.into_iter();
                found.map(|(place, text)| (place, encode(self, &Content::Text(text)))).collect()
            }
            _ => {
                let text = folders::document(path)?;
                if text.is_empty() {
                    return Err(Error::content(path, "the text is empty"));
                }
                let text = Content::Text(text);
                vec![(SequencePlace::File, encode(self, &text))]
            }
        };
        let checked = |(place, input): (SequencePlace, std::result::Result<Input, String>)| {
            let fault = |what| {
                let place = format!(" ({}{place})", io::file_name(path));
                Error::Content { path: path.to_owned(), place, what }
            };
            Ok((place, input.map_err(fault)?))
        };
        found.into_iter().map(checked).collect()
    }
}
