//! Your own labelled sequences: a table, a folder per class, or NumPy arrays. `docs/own-data.md` is the user's guide.

mod arrays;
mod baselines;
mod config;
mod encoder;
mod folders;
mod labels;
mod record;
mod split;
mod statistics;
mod tables;
mod texts;

use std::path::Path;
use std::sync::Arc;

use dss_format::encoder::Encoder;
pub use dss_format::encoder::{Column, Dialect, FilesEncoder, Form, Scaling};

pub use self::arrays::unlabelled;
use self::baselines::Baselines;
pub use self::config::{
    Delimiter, FilesConfig, Format, InputChoice, Scale, TargetChoice, TokenChoice,
};
use self::labels::Labels;
use self::record::{Content, Layout, Record, Records};
use self::split::Item;
use crate::config::TaskSource;
use crate::note::coarse;
pub use crate::table::{Decimal, Header};
use crate::task::Split;
use crate::{
    Baseline, Dataset, Error, Example, Note, Result, Target, TargetKind, TargetScaling, Task,
    TaskSpec, io, units,
};

impl TaskSource for FilesConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        self.check()?;
        let path = match data_dir.filter(|file| file.is_file()) {
            Some(file) if self.path.is_empty() => file.to_owned(),
            _ if self.path.is_empty() => {
                let what = "no data were given; use dss train files FILE (a table or a folder)";
                return Err(Error::setting("path", "\"\"", what));
            }
            _ => io::resolve(&self.path, data_dir),
        };
        if !path.exists() {
            let what = "no such file or folder; say where it is with --set task.path=PATH";
            return Err(Error::setting("path", &self.path, what));
        }
        progress(&format!("reading {}", path.display()));
        let parts = folders::read(self, &path)?;
        let layout = common_layout(&path, &parts)?;
        let decimal_comma = parts.iter().any(|(_, part)| part.decimal_comma);
        let dialect = Dialect { delimiter: self.delimiter.character(), decimal_comma };
        let labels = Labels::read(self, &path, parts.iter().flat_map(|(_, part)| &part.records))?;
        let mut notes: Vec<Note> = parts.iter().flat_map(|(_, part)| part.notes.clone()).collect();
        notes.extend(labels.rare(parts.iter().flat_map(|(_, part)| &part.records)));
        let splits = split::divide(self, &path, parts, &labels)?;
        notes.extend(split::repeated(&splits));

        let encoder = self.encoder(&layout, dialect, &splits)?;
        let hash = split::hash(name, &splits);
        let earlier_split_hash = Some(split::hash_with_names(name, &splits).hex());
        let spec = TaskSpec {
            name: name.to_owned(),
            input: encoder::input_kind(&encoder),
            target: labels.kind(),
            len: encoder.len,
            pair: false,
        };
        let shared = Arc::new(encoder.clone());
        let mut splits = splits.map(|items| {
            let records = items.into_iter().map(|item| {
                let target = labels.target(&item.record.label);
                (item.record, target)
            });
            let (records, encoder) = (records.collect(), shared.clone());
            RecordSplit { records, encoder, baselines: Vec::new() }
        });
        let values = splits[0].records.iter().filter_map(|(_, target)| match target {
            Target::Values(values) => Some(values.as_slice()),
            _ => None,
        });
        let is_regression = matches!(spec.target, TargetKind::Values { .. });
        let target_scaling = is_regression.then(|| TargetScaling::of_targets(values));
        if let Some(TargetScaling { mean, sd }) = &target_scaling {
            let numbers = mean.iter().zip(sd);
            notes.extend(numbers.filter_map(|(mean, sd)| coarse("the labels", *mean, *sd)));
        }
        if let Form::Numbers { scaling: Some(Scaling { mean, sd }), .. } = &shared.form {
            let channels = mean.len();
            for (channel, (mean, sd)) in mean.iter().zip(sd).enumerate() {
                let what = match channels {
                    1 => "the numbers".to_owned(),
                    _ => format!("the numbers of channel {}", channel + 1),
                };
                notes.extend(coarse(&what, (*mean).into(), (*sd).into()));
            }
        }
        progress("fitting the linear baseline");
        let baselines = Baselines::fit(&spec, &splits[0], &splits[1])?;
        for split in &mut splits[1..] {
            split.baselines = baselines.score(split)?;
        }
        let splits = splits.map(|split| -> Arc<dyn Dataset> { Arc::new(split) });
        let task = Task::new(spec, splits, hash, Encoder::Files(encoder));
        Ok(Task { notes, earlier_split_hash, target_scaling, ..task })
    }
}

impl FilesConfig {
    fn check(&self) -> Result<()> {
        let fractions =
            [("val_fraction", self.val_fraction), ("test_fraction", self.test_fraction)];
        for (key, fraction) in fractions {
            if !(0.0..1.0).contains(&fraction) {
                return Err(Error::setting(key, fraction, "must be a share such as 0.2, or 0"));
            }
        }
        if self.val_fraction + self.test_fraction >= 1.0 {
            let what =
                format!("with val_fraction = {}, nothing is left to train on", self.val_fraction);
            return Err(Error::setting("test_fraction", self.test_fraction, what));
        }
        Ok(())
    }

    fn encoder(
        &self,
        layout: &Layout,
        dialect: Dialect,
        splits: &[Vec<Item>; 3],
    ) -> Result<FilesEncoder> {
        let contents = splits.iter().flatten().map(|item| &item.record.content);
        let channels = layout.channels().unwrap_or(1);
        let longest =
            contents.map(|content| encoder::positions(content, self.tokens, channels)).max();
        let longest = longest.unwrap_or(1);
        let len = if self.max_length == 0 { longest } else { longest.min(self.max_length) };
        let train = splits[0].iter().map(|item| &item.record.content);
        let form = if layout.channels().is_none() {
            if self.scale == Scale::Standardise {
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
            let standardise = self.scale != Scale::None;
            Form::Numbers {
                channels,
                scaling: standardise.then(|| encoder::scaling(numbers, channels)),
                rows: matches!(layout, Layout::Rows(_)),
                stacked: matches!(layout, Layout::Steps { stacked: true, .. }),
            }
        };
        let columns = layout.columns().to_vec();
        let cut = self.max_length != 0;
        Ok(FilesEncoder { form, columns, dialect, len, cut, classes: Vec::new() })
    }
}

/// The layout of all parts, which must be of one kind.
fn common_layout(path: &Path, parts: &[(Option<Split>, Records)]) -> Result<Layout> {
    let mut layouts = parts.iter().map(|(_, part)| &part.layout);
    let first = layouts.next().expect("there is at least one part");
    let channels = first.channels();
    match layouts.find(|layout| layout.channels() != channels) {
        None => Ok(first.clone()),
        Some(other) => {
            let name = |layout: &Layout| match layout.channels() {
                None => "text".to_owned(),
                Some(n) => format!("numbers with {}", units::plural(n as u64, "channel")),
            };
            let what = format!("train holds {}, but another part {}", name(first), name(other));
            Err(Error::content(path, what))
        }
    }
}

/// A split: the records as they were read; they are encoded when asked for.
struct RecordSplit {
    records: Vec<(Record, Target)>,
    encoder: Arc<FilesEncoder>,
    baselines: Vec<Baseline>,
}

impl Dataset for RecordSplit {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn example(&self, i: usize) -> Result<Example> {
        let (record, target) = &self.records[i];
        let input = encoder::encode(&self.encoder, &record.content);
        let input = input.map_err(|what| Error::content(Path::new(&record.name), what))?;
        Ok(Example { input, second: None, target: target.clone() })
    }

    fn baselines(&self) -> Vec<Baseline> {
        self.baselines.clone()
    }
}
