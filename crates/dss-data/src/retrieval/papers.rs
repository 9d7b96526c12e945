//! AAN as the Long Range Arena has it: label, two ids, two texts, with tabs between and no quoting.

use std::path::PathBuf;

use super::builder::{Builder, Pair};
use super::class;
use crate::characters::{digest, rows};
use crate::skip::Skips;
use crate::task::Split;
use crate::{Error, Result};

const COLUMNS: usize = 5;

/// Stores all documents and pairs of the three files.
pub(super) fn build(
    files: &[PathBuf; 3],
    builder: &mut Builder<'_>,
    skips: &mut Skips,
    progress: &dyn Fn(&str),
) -> Result<()> {
    for (path, split) in files.iter().zip(Split::ALL) {
        progress(&format!("retrieval: reading {}", path.display()));
        rows::for_each_line(path, &mut |line, text| {
            let checked = || {
                let cells: Vec<&[u8]> = text.splitn(COLUMNS + 1, |&b| b == b'\t').collect();
                let [label, _, _, first, second] = cells[..] else {
                    let more = if cells.len() > COLUMNS { " or more" } else { "" };
                    let what = format!("expected {COLUMNS} columns, found {}{more}", cells.len());
                    return Err(Error::line(path, line, what));
                };
                let class = class(label).map_err(|what| Error::cell(path, line, 1, what))?;
                let cut = |text, column| {
                    builder.texts.cut(text).map_err(|what| Error::cell(path, line, column, what))
                };
                Ok((class, [(first, cut(first, 4)?), (second, cut(second, 5)?)]))
            };
            let Some((class, documents)) = skips.check(checked())? else { return Ok(()) };
            let [first, second] = documents.map(|(text, cut)| {
                if split == Split::Train {
                    builder.texts.count(cut, 1);
                }
                builder.document(cut, digest(text))
            });
            builder.pair(split, Pair { class, first: first?, second: second? });
            Ok(())
        })?;
    }
    Ok(())
}
