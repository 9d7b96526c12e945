//! From bytes to positions.

use dss_data::feed::{Feed, NumberFeed, SoundFeed, TokenFeed};
use dss_infer::Input;

use super::arrivals::{Arrivals, Event};
use super::sound::{Samples, wav};
use crate::args::{Format, StreamArgs};
use crate::failure::Failure;

/// The most bytes of a FLAC file, which is decoded as a whole.
const FLAC: usize = 1 << 28;

/// Where positions come from.
pub struct Source {
    kind: Kind,
    /// Positions per second of the input.
    rate: Option<f64>,
    /// The model's rate over the input's, if they differ.
    ratio: Option<f64>,
    tokens: Vec<u32>,
    values: Vec<f32>,
    name: String,
}

enum Kind {
    Sound(SoundFeed, Samples),
    /// Decoded already.
    Decoded,
    Numbers(NumberFeed),
    Raw(NumberFeed, Samples),
    Tokens(TokenFeed),
}

/// Positions that have arrived.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    input: Input<'a>,
    channels: usize,
}

impl<'a> Positions<'a> {
    pub fn count(&self) -> usize {
        match self.input {
            Input::Tokens(tokens) => tokens.len(),
            Input::Values(values) => values.len() / self.channels,
        }
    }

    pub fn part(&self, start: usize, count: usize) -> Input<'a> {
        match self.input {
            Input::Tokens(tokens) => Input::Tokens(&tokens[start..start + count]),
            Input::Values(values) => {
                Input::Values(&values[start * self.channels..(start + count) * self.channels])
            }
        }
    }
}

impl Source {
    /// Looks at the first bytes. `None` if there was an interruption.
    pub fn new(
        feed: Feed,
        args: &StreamArgs,
        arrivals: &mut Arrivals,
    ) -> Result<Option<Self>, Failure> {
        let name = arrivals.name().to_owned();
        let mut source = Self {
            kind: Kind::Decoded,
            rate: args.rate,
            ratio: None,
            tokens: Vec::new(),
            values: Vec::new(),
            name,
        };
        match (feed, args.format) {
            (Feed::Sound(feed), format) => return source.sound(feed, format, arrivals),
            (Feed::Numbers(feed), Format::F32le) => source.kind = Kind::Raw(feed, Samples::f32le()),
            (Feed::Numbers(feed), Format::Auto | Format::Text) => source.kind = Kind::Numbers(feed),
            (Feed::Tokens(feed), Format::Auto | Format::Text) => source.kind = Kind::Tokens(feed),
            (_, format) => {
                let message = format!("this model does not read {format:?}").to_lowercase();
                return Err(Failure::usage(message).hint("leave --format out"));
            }
        }
        Ok(Some(source))
    }

    /// Finds out what kind of sound it is.
    fn sound(
        mut self,
        feed: SoundFeed,
        format: Format,
        arrivals: &mut Arrivals,
    ) -> Result<Option<Self>, Failure> {
        let mut bytes = Vec::new();
        let mut ended = false;
        let (format, found, rest) = loop {
            let format = match (format, bytes.first_chunk::<4>()) {
                (Format::Auto, Some(b"RIFF")) => Some(Format::Wav),
                (Format::Auto, Some(b"fLaC")) => Some(Format::Flac),
                (Format::Auto, Some(_)) => Some(Format::S16le),
                (Format::Auto, None) => ended.then_some(Format::S16le),
                (Format::Text, _) => {
                    let message = "this model reads sound, not text";
                    return Err(Failure::usage(message).hint("leave --format out"));
                }
                (format, _) => Some(format),
            };
            match format {
                Some(Format::Wav) => {
                    if let Some(found) = wav(&bytes).map_err(|what| self.wrong(what))? {
                        let rest = bytes.split_off(found.start);
                        break (Format::Wav, Some((found.samples, found.rate)), rest);
                    }
                    if ended {
                        return Err(self.wrong("cut short in its header".into()));
                    }
                }
                Some(Format::Flac) if ended => break (Format::Flac, None, bytes),
                Some(Format::Flac) if bytes.len() > FLAC => {
                    return Err(self.wrong("FLAC of over 256 MB; convert it to WAV".into()));
                }
                Some(format @ (Format::S16le | Format::F32le)) => break (format, None, bytes),
                _ => {}
            }
            match arrivals.next()? {
                Event::Bytes(more) => bytes.extend(more),
                Event::End => ended = true,
                Event::Interrupted => return Ok(None),
            }
        };
        let (samples, rate) = match (format, found) {
            (Format::Wav, Some((samples, rate))) => (Some(samples), rate),
            (Format::F32le, _) => (Some(Samples::f32le()), feed.rate),
            (Format::Flac, _) => {
                if !rest.starts_with(b"fLaC") {
                    return Err(self.wrong("this is no FLAC".into()));
                }
                let audio = dss_data::audio::from_bytes(&rest).map_err(|what| self.wrong(what))?;
                let steps = audio.samples.chunks_exact(audio.channels);
                let mean = |x: &[f32]| x.iter().sum::<f32>() / audio.channels as f32;
                self.values = steps.map(|x| feed.value(mean(x))).collect();
                (None, audio.rate.into())
            }
            _ => (Some(Samples::s16le()), feed.rate),
        };
        let rate = self.rate.unwrap_or(rate);
        self.rate = Some(rate);
        if rate != feed.rate {
            self.ratio = Some(feed.rate / rate);
        }
        if let Some(samples) = samples {
            self.kind = Kind::Sound(feed, samples);
            self.push(&rest)?;
        }
        Ok(Some(self))
    }

    fn wrong(&self, what: String) -> Failure {
        Failure::failed(eyre::eyre!("{}: {what}", self.name))
    }

    /// Positions per second, if the input has a rate.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// The model's rate over the input's, if they differ.
    pub fn rate_ratio(&self) -> Option<f64> {
        self.ratio
    }

    /// What follows the last token.
    pub fn end_token(&self) -> Option<u32> {
        match &self.kind {
            Kind::Tokens(feed) => feed.end,
            _ => None,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { kind, values, tokens, .. } = self;
        let pushed = match kind {
            Kind::Decoded => Ok(()),
            Kind::Sound(feed, samples) => samples.push(bytes, |x| values.push(feed.value(x))),
            Kind::Raw(feed, samples) => samples.push(bytes, |x| values.push(feed.scaled(x))),
            Kind::Numbers(feed) => feed.push(bytes, values),
            Kind::Tokens(feed) => feed.push(bytes, tokens),
        };
        pushed.map_err(|what| self.wrong(what))
    }

    /// At the end of the bytes.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let Self { kind, values, tokens, .. } = self;
        let finished = match kind {
            Kind::Decoded => Ok(()),
            Kind::Sound(_, samples) | Kind::Raw(_, samples) => samples.finish(),
            Kind::Numbers(feed) => feed.finish(values),
            Kind::Tokens(feed) => feed.finish(tokens),
        };
        finished.map_err(|what| self.wrong(what))
    }

    /// What has arrived since the last [`Self::clear`].
    pub fn positions(&self) -> Positions<'_> {
        match &self.kind {
            Kind::Tokens(_) => Positions { input: Input::Tokens(&self.tokens), channels: 1 },
            Kind::Numbers(feed) | Kind::Raw(feed, _) => {
                Positions { input: Input::Values(&self.values), channels: feed.channels() }
            }
            _ => Positions { input: Input::Values(&self.values), channels: 1 },
        }
    }

    /// Forgets whole positions that were taken.
    pub fn clear(&mut self) {
        let channels = self.positions().channels;
        let whole = self.values.len() / channels * channels;
        self.values.drain(..whole);
        self.tokens.clear();
    }
}
