//! From bytes to positions.

use dss_data::audio::{Coding, SoundReader, mono};
use dss_data::delimited::RowReader;
use dss_data::files::unlabelled;
use dss_data::npy;
use dss_format::encoder::speech::RATE;
use dss_format::feed::{Fault, Feed, NumberFeed, SoundFeed, TokenFeed};
use dss_infer::Input;

use super::arrivals::{Arrivals, Event};
use crate::args::{Format, StreamArgs, clap_name};
use crate::failure::Failure;
use crate::output;

/// The most bytes of an array, which is read as a whole.
const ARRAY_BYTES: usize = 1 << 30;
/// How a gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of sound files that cannot be read but are certainly not raw samples: MP3 with tags, AIFF, Ogg, AU,
/// CAF, 64-bit WAV (RF64 and W64), WAV of big-endian samples, Matroska.
const OTHER_SOUND: [&[u8]; 9] =
    [b"ID3", b"FORM", b"OggS", b".snd", b"caff", b"RF64", b"riff", b"RIFX", b"\x1a\x45\xdf\xa3"];
/// The number of bytes needed to recognise a sound file.
const SOUND_MARK: usize = 8;

/// Whether these are the first bytes of an unsupported sound file.
fn is_other_sound(first: &[u8]) -> bool {
    let is_mp4 = first.get(4..8) == Some(&b"ftyp"[..]);
    is_mp4 || is_mp3_frame(first) || OTHER_SOUND.iter().any(|mark| first.starts_with(mark))
}

/// Whether bytes are the header of an MP3 frame: eleven ones, a version, layer III, a bit rate and a sampling rate.
fn is_mp3_frame(first: &[u8]) -> bool {
    let &[sync, kind, rates, ..] = first else { return false };
    let (version, layer) = ((kind >> 3) & 3, (kind >> 1) & 3);
    let (bit_rate, sampling_rate) = (rates >> 4, (rates >> 2) & 3);
    sync == 0xff
        && kind >> 5 == 7
        && version != 1
        && layer == 1
        && (1..15).contains(&bit_rate)
        && sampling_rate != 3
}

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
    piped: bool,
    /// Bytes that were looked at and are still to be taken.
    first: Vec<u8>,
    /// Whether all bytes were taken.
    ended: bool,
    /// Whether it has been printed how a table is read.
    described: bool,
}

enum Kind {
    Sound(Sound),
    Table(NumberFeed, Box<RowReader>),
    /// The bytes of an `.npy` file so far.
    Array(NumberFeed, Vec<u8>),
    RawNumbers(NumberFeed, SoundReader),
    Tokens(TokenFeed),
}

struct Sound {
    feed: SoundFeed,
    reader: SoundReader,
    /// Whether the rate is that of the file, and not one that was given.
    own_rate: bool,
    /// Samples so far.
    taken: usize,
}

impl Sound {
    /// Of how many samples one is read: as `dss predict` does, a model of every second sample leaves the others out.
    fn stride(&self) -> usize {
        let rate = self.reader.format().map(|format| format.rate);
        let sparse = self.own_rate && rate == Some(RATE);
        if sparse { ((f64::from(RATE) / self.feed.rate) as usize).max(1) } else { 1 }
    }

    /// Adds the model's input of the samples that the reader gives, the mean of the channels.
    fn take(
        &mut self,
        values: &mut Vec<f32>,
        take: impl FnOnce(&mut SoundReader, &mut Vec<f32>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut samples = Vec::new();
        let taken = take(&mut self.reader, &mut samples);
        if let Some(format) = self.reader.format() {
            let (start, stride) = (self.taken, self.stride());
            self.taken += samples.len() / format.channels;
            let first = start.next_multiple_of(stride) - start;
            let kept = mono(&samples, format.channels).skip(first).step_by(stride);
            values.extend(kept.map(|x| self.feed.value(x)));
        }
        taken
    }
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
        let format = if args.raw { Format::S16le } else { args.format };
        let refused = |reads: &str| {
            Failure::usage(format!("this model reads {reads}, not {}", clap_name(&format)))
                .hint("leave --format out")
        };
        let kind = match (feed, format) {
            (Feed::Sound(_), Format::Text | Format::Npy) => return Err(refused("sound")),
            (Feed::Sound(feed), _) => {
                let reader = match format {
                    Format::S16le => SoundReader::raw(Coding::S16, feed.rate as u32),
                    Format::F32le => SoundReader::raw(Coding::F32, feed.rate as u32),
                    _ => SoundReader::new(),
                };
                Kind::Sound(Sound { feed, reader, own_rate: args.rate.is_none(), taken: 0 })
            }
            (Feed::Numbers(feed), Format::F32le) => {
                Kind::RawNumbers(feed, SoundReader::raw(Coding::F32, 1))
            }
            (Feed::Numbers(feed), Format::Npy) => Kind::Array(feed, Vec::new()),
            (Feed::Numbers(feed), Format::Auto | Format::Text) => {
                let reader = RowReader::for_dialect(feed.shape().dialect, &args.input);
                Kind::Table(feed, Box::new(reader))
            }
            (Feed::Numbers(_), _) => return Err(refused("numbers")),
            (Feed::Tokens(feed), Format::Auto | Format::Text) => Kind::Tokens(feed),
            (Feed::Tokens(_), _) => return Err(refused("text")),
        };
        let mut source = Self {
            kind,
            rate: args.rate,
            ratio: None,
            tokens: Vec::new(),
            values: Vec::new(),
            name: arrivals.name().to_owned(),
            piped: arrivals.is_piped(),
            first: Vec::new(),
            ended: false,
            described: false,
        };
        let begun = source.recognise(format, arrivals)?;
        Ok(begun.then_some(source))
    }

    /// Takes bytes until it is known what they are. False if there was an interruption.
    fn recognise(&mut self, format: Format, arrivals: &mut Arrivals) -> Result<bool, Failure> {
        let mut first = Vec::new();
        let wanted = match (&self.kind, format) {
            (Kind::Sound(..), Format::Auto | Format::Wav | Format::Flac) => SOUND_MARK,
            (Kind::Table(..), Format::Auto) => npy::MAGIC.len(),
            (Kind::Tokens(_), Format::Auto) => GZIP.len(),
            _ => 0,
        };
        // The first byte distinguishes text from arrays and gzips, so that live input is not kept waiting.
        let undecided = |first: &[u8]| match &self.kind {
            Kind::Table(..) => npy::MAGIC.starts_with(first) || GZIP.starts_with(first),
            Kind::Tokens(_) => GZIP.starts_with(first),
            _ => true,
        };
        while first.len() < wanted && undecided(&first) {
            match arrivals.next()? {
                Event::Bytes(more) => first.extend(more),
                Event::End => break,
                Event::Interrupted => return Ok(false),
            }
        }
        self.ended = wanted > 0 && first.is_empty();
        if format == Format::Auto && first.starts_with(&GZIP) {
            return Err(self.wrong("gzipped").hint("unpack it: zcat FILE | dss stream RUN -"));
        }
        match &mut self.kind {
            _ if first.is_empty() => {}
            Kind::Sound(..) if format == Format::Wav && !first.starts_with(b"RIFF") => {
                return Err(self.wrong("not a WAV file"));
            }
            Kind::Sound(..) if format == Format::Flac && !first.starts_with(b"fLaC") => {
                return Err(self.wrong("not a FLAC file"));
            }
            Kind::Sound(..)
                if wanted > 0
                    && !SoundReader::knows(&first)
                    && (!self.piped || is_other_sound(&first)) =>
            {
                return Err(self
                    .wrong("neither WAV nor FLAC")
                    .hint("convert the file; if it holds raw 16-bit samples, add --raw"));
            }
            Kind::Sound(Sound { feed, reader, .. })
                if wanted > 0 && !SoundReader::knows(&first) =>
            {
                *reader = SoundReader::raw(Coding::S16, feed.rate as u32);
                let rate = self.rate.unwrap_or(feed.rate);
                output::log_line(format_args!(
                    "{}: neither WAV nor FLAC; read as raw 16-bit samples, {rate} per second",
                    self.name
                ));
            }
            Kind::Table(feed, _) if wanted > 0 && first.starts_with(npy::MAGIC) => {
                self.kind = Kind::Array(feed.clone(), Vec::new());
            }
            _ => {}
        }
        match &self.kind {
            Kind::Sound(_) if !first.is_empty() => self.push(&first)?,
            _ => self.first = first,
        }
        // The rate of a sound decides about the model.
        while let Kind::Sound(Sound { reader, .. }) = &self.kind
            && reader.format().is_none()
            && !self.ended
        {
            match arrivals.next()? {
                Event::Bytes(more) => self.push(&more)?,
                Event::End => self.finish()?,
                Event::Interrupted => return Ok(false),
            }
        }
        if let Kind::Sound(sound) = &self.kind {
            let (feed, format) = (&sound.feed, sound.reader.format());
            let found = format.map_or(feed.rate, |f| f64::from(f.rate) / sound.stride() as f64);
            let rate = self.rate.unwrap_or(found);
            self.rate = Some(rate);
            self.ratio = (rate != feed.rate).then_some(feed.rate / rate);
        }
        Ok(true)
    }

    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
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

    /// Takes the bytes that told what the input is.
    pub fn push_first(&mut self) -> Result<(), Failure> {
        let first = std::mem::take(&mut self.first);
        if first.is_empty() { Ok(()) } else { self.push(&first) }
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { kind, values, tokens, .. } = self;
        let pushed = match kind {
            Kind::Sound(sound) => sound.take(values, |reader, out| reader.push(bytes, out)),
            Kind::RawNumbers(feed, reader) => {
                let mut numbers = Vec::new();
                let pushed = reader.push(bytes, &mut numbers);
                values.extend(numbers.into_iter().map(|x| feed.scaled(x)));
                pushed
            }
            Kind::Table(feed, reader) => table(feed, reader, bytes, values),
            Kind::Array(_, all) if all.len() + bytes.len() > ARRAY_BYTES => {
                Err("an array of over 1 GiB; give its numbers as rows of text".into())
            }
            Kind::Array(_, all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
            Kind::Tokens(feed) => feed.push(bytes, tokens).map_err(text),
        };
        self.describe();
        pushed.map_err(|what| self.wrong(what))
    }

    /// Prints how a table is read, once that is known.
    fn describe(&mut self) {
        if let Kind::Table(feed, _) = &self.kind
            && let Some(columns) = feed.description().filter(|_| !self.described)
        {
            let rows =
                if feed.shape().by_row { "all rows are one stream" } else { "a step per row" };
            output::log_line(format_args!("{}: {rows}, {columns}", self.name));
            self.described = true;
        }
    }

    /// At the end of the bytes.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let Self { kind, values, tokens, .. } = self;
        let finished = match kind {
            Kind::Sound(sound) => sound.take(values, SoundReader::finish),
            Kind::RawNumbers(_, reader) => reader.finish(&mut Vec::new()),
            Kind::Table(feed, reader) => loop {
                match reader.finish() {
                    Ok(Some(row)) => {
                        if let Err(what) = take_row(feed, row, values) {
                            break Err(what);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(what) => break Err(what),
                }
            },
            Kind::Array(feed, all) => array(feed, all, values),
            Kind::Tokens(feed) => feed.finish(tokens).map_err(text),
        };
        self.describe();
        match (finished, &self.kind) {
            // A recording that was stopped has a header that promises more than came.
            (Err(what), Kind::Sound(sound)) if self.piped && sound.reader.format().is_some() => {
                output::log_line(format_args!(
                    "{}: {what}; the answer is for what arrived",
                    self.name
                ));
                Ok(())
            }
            (finished, _) => finished.map_err(|what| self.wrong(what)),
        }
    }

    /// What has arrived since the last [`Self::clear`].
    pub fn positions(&self) -> Positions<'_> {
        match &self.kind {
            Kind::Tokens(_) => Positions { input: Input::Tokens(&self.tokens), channels: 1 },
            Kind::Sound(..) => Positions { input: Input::Values(&self.values), channels: 1 },
            Kind::Table(feed, _) | Kind::Array(feed, _) | Kind::RawNumbers(feed, _) => {
                Positions { input: Input::Values(&self.values), channels: feed.channels() }
            }
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

fn text(fault: Fault) -> String {
    fault.to_string()
}

fn table(
    feed: &mut NumberFeed,
    reader: &mut RowReader,
    mut bytes: &[u8],
    values: &mut Vec<f32>,
) -> Result<(), String> {
    while let Some(row) = reader.next(&mut bytes)? {
        take_row(feed, row, values)?;
    }
    Ok(())
}

fn take_row(
    feed: &mut NumberFeed,
    row: dss_data::delimited::Row<'_>,
    values: &mut Vec<f32>,
) -> Result<(), String> {
    let cells = row.text().ok_or_else(|| format!("line {}: not UTF-8 text", row.line))?;
    feed.row(row.line, &cells, values).map_err(text)
}

/// The one sequence of an array.
fn array(feed: &mut NumberFeed, bytes: &[u8], values: &mut Vec<f32>) -> Result<(), String> {
    let sequences = unlabelled(npy::from_bytes(bytes)?, feed.shape())?;
    match &sequences[..] {
        [one] => {
            values.extend(one.iter().map(|&x| feed.scaled(x)));
            Ok(())
        }
        many => Err(format!(
            "contains {} sequences, but a stream is a single one; `dss predict` reads them all",
            many.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_that_is_not_read_is_known() {
        let others: [&[u8]; 8] = [
            b"\0\0\0\x20ftypM4A ",
            b"RIFX\0\0\0\x24WAVE",
            b"riff\x2e\x91\xcf\x11",
            b"\xff\xfb\x90\x64\0\0\0\0",
            b"\xff\xf3\x40\xc4\0\0\0\0",
            b"ID3\x04\0\0\0\0",
            b"OggS\0\x02\0\0",
            b"FORM\0\0\0\0",
        ];
        for other in others {
            assert!(is_other_sound(other), "{other:?}");
        }
        // Silence, with noise of one unit.
        let samples: [&[u8]; 4] =
            [&[0; 8], &[0xff; 8], b"\0\0\xff\xff\x01\0\xfe\xff", b"\xff\xff\0\0\xff\xff\0\0"];
        for raw in samples {
            assert!(!is_other_sound(raw), "{raw:?}");
        }
        assert!(!is_other_sound(b"") && !is_other_sound(b"\xff\xfb"));
    }
}
