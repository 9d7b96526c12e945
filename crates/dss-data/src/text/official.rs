//! The official layout: `aclImdb/SPLIT/CLASS/INDEX_RATING.txt`, as a folder or in a tar archive.

use std::path::Path;

use super::reviews::{Review, Visit};
use super::tables::check_rating;
use crate::source::for_each_file;
use crate::task::Split;
use crate::{Error, Result};

/// Split, class and file name of a path of the layout; `None` for everything else (such as `train/unsup`).
fn parse(path: &str) -> Option<(Split, u32, &str)> {
    let mut parts = path.rsplit('/');
    let (file, class, split) = (parts.next()?, parts.next()?, parts.next()?);
    let split = match split {
        "train" => Split::Train,
        "test" => Split::Test,
        _ => return None,
    };
    let class = match class {
        "neg" => 0,
        "pos" => 1,
        _ => return None,
    };
    (file.ends_with(".txt") && !file.starts_with('.')).then_some((split, class, file))
}

/// Index and rating of a file name.
fn name(file: &str) -> Option<(u64, u32)> {
    let (index, rating) = file.strip_suffix(".txt")?.split_once('_')?;
    Some((index.parse().ok()?, rating.parse().ok()?))
}

/// Visits every review of the folder or archive.
pub(super) fn for_each(path: &Path, visit: &mut Visit<'_>) -> Result<()> {
    let wanted = |file: &str| parse(file).is_some();
    for_each_file(path, &wanted, &mut |file, text| {
        let Some((split, class, short)) = parse(file) else { return Ok(()) };
        let place = path.join(file);
        let fault = |what: String| Error::content(&place, what);
        let review = match name(short) {
            None => Err(fault("expected a name such as 12_9.txt: index and rating".into())),
            Some((index, rating)) => check_rating(class, rating).map_err(fault).map(|()| Review {
                split,
                class,
                index: Some(index),
                text: trim(text),
                place: (&place, None),
            }),
        };
        visit(review)
    })
}

/// A text without its last line ends.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| !matches!(b, b'\n' | b'\r')).map_or(0, |i| i + 1);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_layout() {
        assert_eq!(parse("aclImdb/train/pos/0_9.txt"), Some((Split::Train, 1, "0_9.txt")));
        assert_eq!(parse("test/neg/12_1.txt"), Some((Split::Test, 0, "12_1.txt")));
        for other in [
            "aclImdb/train/unsup/0_0.txt",
            "aclImdb/train/labeledBow.feat",
            "aclImdb/test/urls_pos.txt",
            "aclImdb/train/pos/._0_9.txt",
            "0_9.txt",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert_eq!(name("127_10.txt"), Some((127, 10)));
        assert_eq!(name("127.txt"), None);
        assert_eq!(name("x_1.txt"), None);
        assert_eq!(trim(b"a\n b\r\n\n"), b"a\n b");
        assert_eq!(trim(b"\n"), b"");
    }
}
