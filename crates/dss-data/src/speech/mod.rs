//! Speech Commands: which word is spoken in a clip of one second, from its 16,000 samples (`speech`) or from MFCC
//! features (`speech-mfcc`).
//!
//! The official archives and folders (`word/clip.wav` and two lists) and folders or archives of the form
//! `train|val|test/word/clip` are read, WAV or FLAC; the same clips give the same task.

mod clips;
mod encoder;
mod form;
mod layout;
mod mfcc;
mod source;
mod split;
mod words;

use std::path::Path;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use clips::Clips;
pub use dss_format::encoder::SpeechEncoder;
use dss_format::encoder::speech::{RATE, SAMPLES};
use dss_format::encoder::{Encoder, SoundForm};
pub use encoder::read_sound;
pub use words::{ALL, SC10, Words};

use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::subset::{limit_all, select};
use crate::task::Split;
use crate::{Error, Example, InputKind, Note, Result, Task, TaskSpec};

/// Samples per second of the test at another rate.
pub const HALF_RATE: u32 = 8_000;

/// Which clips are for training, validation and test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitChoice {
    /// 70, 15 and 15 % of every word at random; speakers occur in several splits.
    #[default]
    Paper,
    /// By the official lists or the folders; no speaker occurs in two splits of the official lists.
    Official,
}

/// Treatment of clips of less than 16,000 samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShortClips {
    /// They are left out.
    #[default]
    Drop,
    /// They are padded with silence.
    Pad,
}

/// Settings of the tasks `speech` and `speech-mfcc`. The defaults are those of the paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct SpeechConfig {
    /// Folder or archive of Speech Commands; empty = the data folder or its subfolder speech_commands.
    pub dir: String,
    /// Words to classify: sc10 (the ten commands of the paper) or all (35 words).
    pub words: Words,
    /// How clips are split: paper (70/15/15 % of each word at random) or official (by the lists, or by folders train,
    /// val, test).
    pub split: SplitChoice,
    /// What to do with clips shorter than 16,000 samples: drop (as the paper does) or pad with zeros.
    pub short: ShortClips,
    /// Samples per second: 16000, or 8000 to keep every second sample (not for speech-mfcc).
    pub rate: u32,
    /// Training clips; 0 = all.
    pub train: usize,
    /// Validation clips; 0 = all.
    pub val: usize,
    /// Test clips; 0 = all.
    pub test: usize,
    /// Random seed of the split, and of the choice of clips where not all are used.
    pub split_seed: u64,
    /// Skip faulty files and report how many, instead of stopping at the first.
    pub skip_bad: bool,
}

impl Default for SpeechConfig {
    fn default() -> Self {
        Self {
            dir: String::new(),
            words: Words::default(),
            split: SplitChoice::default(),
            short: ShortClips::default(),
            rate: RATE,
            train: 0,
            val: 0,
            test: 0,
            split_seed: 42,
            skip_bad: false,
        }
    }
}

impl TaskSource for SpeechConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        let form =
            if name == form::task(SoundForm::Mfcc) { SoundForm::Mfcc } else { SoundForm::Wave };
        self.check(form)?;
        let path = source::find(&self.dir, data_dir)?;
        let clips = Clips::load(&path, self.words, form, self.skip_bad, progress)?;
        let mut notes: Vec<Note> = clips.note.clone().into_iter().collect();
        let labels = self.labels(&path, &clips, &mut notes)?;
        let splits = self.split(&path, &clips, &mut notes)?;

        // What a clip is, not how it is read: the same model can be tried at half rate on the same splits.
        let mut hash = SplitHash::new(name);
        for (split, numbers) in Split::ALL.iter().zip(&splits) {
            for clip in numbers.iter().map(|&i| &clips.list[i as usize]) {
                hash.bytes(split.name(), &clip.digest);
                hash.bytes("word", self.words.list()[clip.word as usize].as_bytes());
            }
        }
        let moments = splits[0].iter().map(|&i| &clips.list[i as usize].moments);
        let (mean, divisor) = form::scaling(form, moments);
        let encoder = SpeechEncoder { form, rate: self.rate, mean, divisor };

        // The label of every word, by its number.
        let words = self.words.list().iter();
        let numbers =
            words.map(|word| labels.iter().position(|label| label == word).unwrap_or(0) as u32);
        let words: Vec<u32> = numbers.collect();
        let (store, decoder) = (clips.store.clone(), encoder.clone());
        let splits = select(splits, move |i| {
            let bytes = store.bytes(i)?;
            let input = match decoder.form {
                SoundForm::Wave => {
                    let (samples, _) = bytes.as_chunks();
                    encoder::wave(&decoder, samples.iter().map(|s| i16::from_le_bytes(*s)))
                }
                SoundForm::Mfcc => {
                    let (features, _) = bytes.as_chunks();
                    encoder::features(&decoder, features.iter().map(|f| f32::from_le_bytes(*f)))
                }
            };
            Ok(Example::classified(input, words[store.label(i) as usize]))
        });
        let input = InputKind::Values { channels: form.channels() };
        let spec = TaskSpec::classes(name, input, labels, encoder.steps());
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::Speech(encoder)) })
    }
}

impl SpeechConfig {
    fn check(&self, form: SoundForm) -> Result<()> {
        match (self.rate, form) {
            (RATE, _) | (HALF_RATE, SoundForm::Wave) => Ok(()),
            (HALF_RATE, SoundForm::Mfcc) => Err(Error::setting(
                "rate",
                self.rate,
                "the features are those of 16000 samples per second",
            )),
            _ => Err(Error::setting("rate", self.rate, "must be 16000 or 8000")),
        }
    }

    /// The words that occur. The ten commands must all be there; of the 35, an older version has 30.
    fn labels(&self, path: &Path, clips: &Clips, notes: &mut Vec<Note>) -> Result<Vec<String>> {
        let words = self.words.list();
        let mut there = vec![false; words.len()];
        clips.list.iter().for_each(|clip| there[clip.word as usize] = true);
        let select = |present: bool| {
            let words = words.iter().zip(&there).filter(move |(_, there)| **there == present);
            words.map(|(word, _)| (*word).to_owned()).collect::<Vec<_>>()
        };
        let (labels, missing) = (select(true), select(false));
        if labels.is_empty() || (self.words == Words::Sc10 && !missing.is_empty()) {
            let what =
                format!("no clips (WORD/*.wav or *.flac) of the words {}", missing.join(", "));
            return Err(Error::content(path, what));
        }
        if !missing.is_empty() {
            notes.push(
                format!(
                    "{} of the {} words were found; missing: {}",
                    labels.len(),
                    words.len(),
                    missing.join(", ")
                )
                .into(),
            );
        }
        Ok(labels)
    }

    fn split(&self, path: &Path, clips: &Clips, notes: &mut Vec<Note>) -> Result<[Vec<u32>; 3]> {
        let list = &clips.list;
        let mut kept: Vec<u32> = (0..list.len() as u32).collect();
        if self.short == ShortClips::Drop {
            kept.retain(|&i| list[i as usize].samples == SAMPLES);
            let short = list.len() - kept.len();
            if short > 0 {
                notes.push(format!(
                    "{short} clips of less than {SAMPLES} samples left out; task.short = \"pad\" keeps them"
                ).into());
            }
        }
        let mut splits = match self.split {
            SplitChoice::Paper => split::random(list, &kept, self.split_seed),
            SplitChoice::Official => {
                split::official(list, &kept, self.split_seed).ok_or_else(|| {
                    let what = "no official split: found neither validation_list.txt and testing_list.txt nor folders train, val, test; task.split = \"paper\" splits at random";
                    Error::content(path, what)
                })?
            }
        };
        limit_all([self.train, self.val, self.test], &mut splits)?;
        Ok(splits)
    }
}
