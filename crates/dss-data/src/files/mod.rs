//! Your own labelled sequences: a table, a folder per class, or NumPy arrays. `docs/own-data.md` is the user's guide.

mod arrays;
mod config;
mod encoder;
mod folders;
mod labels;
mod record;
mod split;
mod tables;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use dss_format::encoder::Encoder;
pub use dss_format::encoder::{Column, FilesEncoder, Form, Scaling};

pub use self::arrays::unlabelled;
pub use self::config::{FilesConfig, Format, InputChoice, Scale, TargetChoice, TokenChoice};
use self::labels::Labels;
use self::record::{Content, Found, Layout, Record};
use self::split::Item;
use crate::config::TaskSource;
use crate::hash::SplitHash;
pub use crate::table::Header;
use crate::task::Split;
use crate::{Dataset, Error, Example, Note, Result, Target, Task, TaskSpec, io};

impl TaskSource for FilesConfig {
    fn place(&self) -> &str {
        &self.path
    }

    fn locate(&mut self, data_dir: Option<&Path>) {
        io::locate(&mut self.path, data_dir);
    }

    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        self.check()?;
        let path = io::resolve(&self.path, data_dir);
        if !path.exists() {
            let what = "there is no such file or folder; say where it is: --set task.path=PATH";
            return Err(Error::setting("path", &self.path, what));
        }
        progress(&format!("reading {}", path.display()));
        let parts = folders::read(self, &path)?;
        let layout = common_layout(&path, &parts)?;
        let labels = Labels::of(self, &path, parts.iter().flat_map(|(_, found)| &found.records))?;
        let mut notes: Vec<Note> =
            parts.iter().flat_map(|(_, found)| found.notes.clone()).collect();
        let splits = self.split(&path, parts, &labels)?;
        notes.extend(repeated(&splits));

        let encoder = self.encoder(&layout, &splits)?;
        let mut hash = SplitHash::new(name);
        for (split, items) in Split::ALL.iter().zip(&splits) {
            for item in items {
                hash.bytes(split.name(), item.record.name.as_bytes());
                hash.bytes("content", &item.digest);
                hash.bytes("label", item.record.label.to_string().as_bytes());
            }
        }
        let spec = TaskSpec {
            name: name.to_owned(),
            input: encoder::input_kind(&encoder),
            target: labels.kind(),
            len: encoder.len,
            pair: false,
        };
        let encoder = Arc::new(encoder);
        let [train, val, test] = splits.map(|items| -> Arc<dyn Dataset> {
            let pairs = items.into_iter().map(|item| {
                let target = labels.target(&item.record.label);
                (item.record, target)
            });
            Arc::new(Part { records: pairs.collect(), encoder: encoder.clone() })
        });
        Ok(Task {
            spec,
            train,
            val,
            test,
            split_hash: hash.hex(),
            vocabulary: encoder.vocabulary(),
            encoder: Encoder::Files(FilesEncoder::clone(&encoder)),
            notes,
        })
    }
}

impl FilesConfig {
    fn check(&self) -> Result<()> {
        if self.path.is_empty() {
            let what = "say where the data are: --set task.path=FILE (a table or a folder)";
            return Err(Error::setting("path", "\"\"", what));
        }
        let fractions =
            [("val_fraction", self.val_fraction), ("test_fraction", self.test_fraction)];
        for (key, fraction) in fractions {
            if !(fraction > 0.0 && fraction < 1.0) {
                return Err(Error::setting(key, fraction, "must lie between 0 and 1"));
            }
        }
        if self.val_fraction + self.test_fraction >= 1.0 {
            let what =
                format!("with val_fraction = {} nothing is left to train on", self.val_fraction);
            return Err(Error::setting("test_fraction", self.test_fraction, what));
        }
        Ok(())
    }

    /// Train, val and test: as the data are divided, the missing parts cut from train.
    fn split(
        &self,
        path: &Path,
        parts: Vec<(Option<Split>, Found)>,
        labels: &Labels,
    ) -> Result<[Vec<Item>; 3]> {
        let mut splits = [Vec::new(), Vec::new(), Vec::new()];
        for (split, found) in parts {
            let items = &mut splits[split.unwrap_or(Split::Train) as usize];
            items.extend(found.records.into_iter().map(|record| Item {
                digest: record.digest(self.split_seed),
                class: labels.class(&record.label),
                record,
            }));
            split::sort(items);
        }
        let [train, val, test] = &mut splits;
        let all = train.len() as f64;
        let shares = [("test", test, self.test_fraction), ("val", val, self.val_fraction)];
        for (name, part, fraction) in shares {
            if part.is_empty() {
                *part = split::take(train, fraction * all / train.len() as f64);
            }
            if part.is_empty() {
                let what = format!(
                    "too few sequences ({all}) to set some aside for {name}; add more, or set task.{name}_fraction higher"
                );
                return Err(Error::content(path, what));
            }
        }
        Ok(splits)
    }

    fn encoder(&self, layout: &Layout, splits: &[Vec<Item>; 3]) -> Result<FilesEncoder> {
        let contents = splits.iter().flatten().map(|item| &item.record.content);
        let channels = layout.channels().unwrap_or(1);
        let longest =
            contents.map(|content| encoder::positions(content, self.tokens, channels)).max();
        let longest = longest.unwrap_or(1);
        let len = if self.max_length == 0 { longest } else { longest.min(self.max_length) };
        let train = splits[0].iter().map(|item| &item.record.content);
        let form = if layout.channels().is_none() {
            if self.scale != Scale::None {
                return Err(Error::setting(
                    "scale",
                    "standardise",
                    "the data are text, not numbers",
                ));
            }
            match self.tokens {
                TokenChoice::Bytes => Form::Bytes,
                TokenChoice::Characters => {
                    let texts = train.filter_map(Content::text);
                    Form::Characters(encoder::characters(texts, len - 1))
                }
            }
        } else {
            if self.tokens != TokenChoice::Characters {
                return Err(Error::setting("tokens", "bytes", "the data are numbers, not text"));
            }
            let used = |numbers: &'_ [f32]| numbers.len().min(len * channels);
            let numbers = train.filter_map(Content::numbers).map(|n| &n[..used(n)]);
            let standardise = self.scale == Scale::Standardise;
            Form::Numbers {
                channels,
                scaling: standardise.then(|| encoder::scaling(numbers, channels)),
                rows: matches!(layout, Layout::Rows(_)),
                stacked: matches!(layout, Layout::Steps { stacked: true, .. }),
            }
        };
        let columns = encoder::columns(layout);
        Ok(FilesEncoder { form, columns, len, cut: self.max_length != 0 })
    }
}

/// The layout of all parts, which must be of one kind.
fn common_layout(path: &Path, parts: &[(Option<Split>, Found)]) -> Result<Layout> {
    let mut layouts = parts.iter().map(|(_, found)| &found.layout);
    let first = layouts.next().expect("there is at least one part");
    let channels = first.channels();
    match layouts.find(|layout| layout.channels() != channels) {
        None => Ok(first.clone()),
        Some(other) => {
            let name = |layout: &Layout| match layout.channels() {
                None => "text".to_owned(),
                Some(n) => format!("numbers with {n} channels"),
            };
            let what = format!("train holds {}, but another part {}", name(first), name(other));
            Err(Error::content(path, what))
        }
    }
}

/// A remark when sequences of val or test also stand in train.
fn repeated(splits: &[Vec<Item>; 3]) -> Option<Note> {
    let train: HashSet<&[u8; 32]> = splits[0].iter().map(|item| &item.digest).collect();
    let again = splits[1..].iter().flatten().filter(|item| train.contains(&item.digest)).count();
    (again > 0).then(|| format!("{again} sequences of val and test are also in train").into())
}

/// A split: the records as they were read; they are encoded when asked for.
struct Part {
    records: Vec<(Record, Target)>,
    encoder: Arc<FilesEncoder>,
}

impl Dataset for Part {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn example(&self, i: usize) -> Result<Example> {
        let (record, target) = &self.records[i];
        let input = encoder::encode(&self.encoder, &record.content);
        let input = input.map_err(|what| Error::content(Path::new(&record.name), what))?;
        Ok(Example { input, second: None, target: target.clone() })
    }
}
