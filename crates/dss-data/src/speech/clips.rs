//! The clips, decoded once into a store, and facts about each that need no access to its samples.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use dss_format::encoder::SoundForm;
use dss_format::encoder::speech::{RATE, SAMPLES};

use super::form::{self, ClipMoments};
use super::layout::{ClipName, Lists, list_of};
use super::words::Words;
use crate::skip::Skips;
use crate::source::for_each_file;
use crate::store::{Store, StoreKey, Writer};
use crate::task::Split;
use crate::{Error, Note, Result, audio};

/// Files that are decoded together.
const TOGETHER: usize = 256;
/// The most samples that are decoded before a clip is found too long.
pub(super) const MOST: usize = 1 << 20;

/// Facts about a clip.
pub(super) struct Clip {
    /// SHA-256 of its samples (16 bits each, little-endian).
    pub digest: [u8; 32],
    /// Its word, by number.
    pub word: u32,
    /// Its split by folder or list; `None` where there are neither.
    pub official: Option<Split>,
    /// How many samples it has.
    pub samples: usize,
    /// Sums for the scaling.
    pub moments: ClipMoments,
}

/// All clips of the wanted words. Clip `i` is example `i` of the store; its last example is the table of clips.
pub(super) struct Clips {
    pub store: Arc<Store>,
    pub list: Vec<Clip>,
    /// Which faulty files were skipped.
    pub note: Option<Note>,
}

#[derive(Serialize, Deserialize)]
struct About {
    note: Option<Note>,
}

impl Clips {
    /// Opens the store of a folder or archive, or makes it.
    pub fn load(
        path: &Path,
        words: Words,
        form: SoundForm,
        skip_bad: bool,
        progress: &dyn Fn(&str),
    ) -> Result<Self> {
        let key = StoreKey::new(form::task(form), 1).settings(&(words, skip_bad)).source(path)?;
        let store = Store::open_or_build(key, |writer| {
            progress(&format!("Speech Commands: decoding {}", path.display()));
            let mut build = Build {
                path,
                words: words.list(),
                form,
                progress,
                skips: Skips::new(skip_bad),
                lists: Lists::default(),
                waiting: Vec::new(),
                found: Vec::new(),
            };
            build.run(writer)
        })?;
        let About { note } = store.info()?;
        let list = read_table(&store, form).ok_or_else(|| {
            let what =
                "its cache file is damaged; delete the files of the cache folder (DSS_CACHE)";
            Error::content(path, what)
        })?;
        Ok(Self { store, list, note })
    }
}

/// The samples of a WAV or FLAC file; `Err` says what is wrong with it.
pub(super) fn samples(bytes: &[u8]) -> std::result::Result<Vec<i16>, String> {
    let audio = audio::decode(bytes, MOST)?;
    if (audio.rate, audio.channels, audio.bits) != (RATE, 1, 16) {
        return Err(format!(
            "{} Hz, {} channel(s), {} bits; {RATE} Hz, 1 channel and 16 bits are expected: convert the file",
            audio.rate, audio.channels, audio.bits
        ));
    }
    match audio.samples.len() {
        0 => Err("no samples in this file".into()),
        n if n > SAMPLES => Err(format!("{n} samples; a clip has at most {SAMPLES}: cut the file")),
        _ => Ok(audio.samples.iter().map(|s| (s * 32768.0) as i16).collect()),
    }
}

/// The work on a folder or archive.
struct Build<'a> {
    path: &'a Path,
    words: &'a [&'a str],
    form: SoundForm,
    progress: &'a dyn Fn(&str),
    skips: Skips,
    lists: Lists,
    /// Names and bytes of files that are read but not decoded yet.
    waiting: Vec<(String, Vec<u8>)>,
    /// Names of the decoded clips, and the clips.
    found: Vec<(String, Clip)>,
}

impl Build<'_> {
    fn run(&mut self, writer: &mut Writer) -> Result<()> {
        let words = self.words;
        let word = |name: &str| {
            let clip = ClipName::parse(name)?;
            words.iter().position(|word| *word == clip.word)
        };
        let wanted = |name: &str| list_of(name).is_some() || word(name).is_some();
        for_each_file(self.path, &wanted, &mut |name, bytes| {
            if let Some(split) = list_of(name) {
                return self.lists.add(&self.path.join(name), split, bytes);
            }
            self.waiting.push((name.to_owned(), bytes.to_vec()));
            if self.waiting.len() < TOGETHER { Ok(()) } else { self.decode(writer) }
        })?;
        self.decode(writer)?;

        let mut table = Vec::new();
        for (name, clip) in &mut self.found {
            let name = ClipName::parse(name).expect("only clips are decoded");
            let listed = self.lists.complete().then(|| self.lists.split(&name.key()));
            clip.official = name.split.or(listed);
            write_entry(clip, &mut table);
        }
        writer.push(0, &table)?;
        writer.info(&About { note: self.skips.note() });
        Ok(())
    }

    /// Decodes what is waiting.
    fn decode(&mut self, writer: &mut Writer) -> Result<()> {
        let (form, path, words) = (self.form, self.path, self.words);
        let waiting = std::mem::take(&mut self.waiting);
        let decode = |(name, bytes): (String, Vec<u8>)| {
            let samples =
                samples(&bytes).map_err(|what| Error::content(&path.join(&name), what))?;
            let pcm: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
            let word =
                ClipName::parse(&name).and_then(|clip| words.iter().position(|w| *w == clip.word));
            let (record, moments) = form::record(form, &samples, &pcm);
            let clip = Clip {
                digest: Sha256::digest(&pcm).into(),
                word: word.expect("only clips of the words are read") as u32,
                official: None,
                samples: samples.len(),
                moments,
            };
            Ok((name, clip, record))
        };
        let decoded: Vec<Result<_>> = waiting.into_par_iter().map(decode).collect();
        for result in decoded {
            if let Some((name, clip, record)) = self.skips.check(result)? {
                writer.push(clip.word, &record)?;
                self.found.push((name, clip));
            }
        }
        (self.progress)(&format!("Speech Commands: {} clips decoded", self.found.len()));
        Ok(())
    }
}

/// An entry of the table: digest, split (3 = none), samples (u32), moments (f64); little-endian.
fn write_entry(clip: &Clip, table: &mut Vec<u8>) {
    table.extend_from_slice(&clip.digest);
    table.push(clip.official.map_or(3, |split| split as u8));
    table.extend_from_slice(&(clip.samples as u32).to_le_bytes());
    clip.moments.iter().flatten().for_each(|m| table.extend_from_slice(&m.to_le_bytes()));
}

fn read_table(store: &Store, form: SoundForm) -> Option<Vec<Clip>> {
    let clips = store.len().checked_sub(1)?;
    let table = store.bytes(clips).ok()?;
    let size = 32 + 1 + 4 + 16 * form.channels();
    let read = |(i, entry): (usize, &[u8])| {
        let (digest, rest) = entry.split_first_chunk()?;
        let (&[split], rest) = rest.split_first_chunk()?;
        let (samples, rest) = rest.split_first_chunk()?;
        let number = |eight: &[u8]| Some(f64::from_le_bytes(eight.try_into().ok()?));
        let moments = rest.chunks_exact(16).map(|m| Some([number(&m[..8])?, number(&m[8..])?]));
        Some(Clip {
            digest: *digest,
            word: store.label(i),
            official: Split::ALL.get(usize::from(split)).copied(),
            samples: u32::from_le_bytes(*samples) as usize,
            moments: moments.collect::<Option<_>>()?,
        })
    };
    let whole = table.len() == clips * size;
    whole.then(|| table.chunks_exact(size).enumerate().map(read).collect())?
}
