//! Pairs of film reviews, same film or not: label and two ids such as `pos_123`, which name reviews of the task `text`
//! by class and index. Pairs of train and val are of training reviews, pairs of test of test reviews.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::builder::{Builder, Pair};
use super::class;
use crate::characters::{digest, rows};
use crate::skip::Skips;
use crate::task::Split;
use crate::text::{Review, Reviews};
use crate::{Error, Result};
use dss_format::encoder::quoted;

/// A review: whether it is of the test set, its class, its index.
type Name = (bool, u32, u64);

/// A review that pairs name.
#[derive(Default)]
struct NamedReview {
    /// How often in training pairs.
    times: u64,
    /// Its number as a document, once it is found.
    number: Option<u32>,
}

/// Two reviews and their class, and the line that has them.
struct Row {
    split: Split,
    line: u64,
    class: u32,
    names: [Name; 2],
}

/// Stores all pairs and the documents that they name.
pub(super) fn build(
    files: &[PathBuf; 3],
    reviews: &Reviews,
    builder: &mut Builder<'_>,
    skips: &mut Skips,
    progress: &dyn Fn(&str),
) -> Result<()> {
    let mut wanted: HashMap<Name, NamedReview> = HashMap::new();
    let mut pairs = Vec::new();
    for (path, split) in files.iter().zip(Split::ALL) {
        rows::for_each_line(path, &mut |line, text| {
            let Some(row) = skips.check(parse(path, split, line, text))? else { return Ok(()) };
            for name in row.names {
                wanted.entry(name).or_default().times += u64::from(split == Split::Train);
            }
            pairs.push(row);
            Ok(())
        })?;
    }

    progress(&format!("retrieval: reading {}", reviews.place().display()));
    reviews.for_each(&mut |review| {
        let named = |review: Review<'_>| match review.index {
            None => Err(review.fault("these reviews have no index, so pairs cannot name them")),
            Some(index) => Ok((review.split == Split::Test, review.class, index)),
        };
        let checked = review.and_then(|review| {
            let (text, fault) = (review.text, |what| review.fault(what));
            let cut = builder.texts.cut(text).map_err(fault)?;
            Ok((named(review)?, text, cut))
        });
        let Some((name, text, cut)) = skips.check(checked)? else { return Ok(()) };
        if let Some(used) = wanted.get_mut(&name) {
            builder.texts.count(cut, used.times);
            used.number = Some(builder.document(cut, digest(text))?);
        }
        Ok(())
    })?;

    for Row { split, line, class, names } in pairs {
        let number = |name| {
            wanted.get(&name).and_then(|used| used.number).ok_or_else(|| {
                let what =
                    format!("there is no review {} in {}", show(name), reviews.place().display());
                Error::line(&files[split as usize], line, what)
            })
        };
        let found = || Ok(Pair { class, first: number(names[0])?, second: number(names[1])? });
        if let Some(pair) = skips.check(found())? {
            builder.pair(split, pair);
        }
    }
    Ok(())
}

fn parse(path: &Path, split: Split, line: u64, text: &[u8]) -> Result<Row> {
    let cells: Vec<&[u8]> = text.splitn(4, |&b| b == b'\t').collect();
    let [label, first, second] = cells[..] else {
        let what = format!("expected 3 columns (label, id, id), found {}", cells.len());
        return Err(Error::line(path, line, what));
    };
    let class = class(label).map_err(|what| Error::cell(path, line, 1, what))?;
    let name = |cell: &[u8], column| {
        let found = std::str::from_utf8(cell).ok().and_then(|cell| {
            let (class, index) = cell.trim().split_once('_')?;
            let class = ["neg", "pos"].iter().position(|name| *name == class)?;
            Some((split == Split::Test, class as u32, index.parse().ok()?))
        });
        found.ok_or_else(|| {
            let cell = String::from_utf8_lossy(&cell[..cell.len().min(40)]);
            Error::cell(
                path,
                line,
                column,
                format!("expected an id such as pos_123, found {}", quoted(&cell)),
            )
        })
    };
    Ok(Row { split, line, class, names: [name(first, 2)?, name(second, 3)?] })
}

fn show((test, class, index): Name) -> String {
    format!("{}/{}_{index}", if test { "test" } else { "train" }, ["neg", "pos"][class as usize])
}
