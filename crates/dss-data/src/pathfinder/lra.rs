//! The Long Range Arena's release: a folder or an archive of PNG pictures with a list of labels per batch.
//!
//! `.../pathfinder32/curv_contour_length_14/imgs/<batch>/sample_<i>.png` and `.../metadata/<batch>.npy`, which is plain
//! text: a row per picture, of which columns 0, 1 and 3 are its folder, its file and its label.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::collect::ImageCollector;
use super::{ImageSet, grey};
use crate::skip::Skips;
use crate::source::for_each_file;
use crate::{Error, Result};

/// The column of the label in a row of metadata.
const LABEL: usize = 3;

impl ImageSet {
    /// Where the release keeps such images, such as `pathfinder32` and `curv_contour_length_14`.
    pub(super) fn folders(&self) -> [String; 2] {
        let difficulty = match self.contour {
            6 => "curv_baseline".into(),
            contour => format!("curv_contour_length_{contour}"),
        };
        [format!("pathfinder{}", self.size), difficulty]
    }

    /// Whether the folders that a name goes through are not those of another set.
    fn agrees<'a>(&self, folders: impl DoubleEndedIterator<Item = &'a str> + Clone) -> bool {
        let [size, difficulty] = self.folders();
        let sized = |name: &&str| {
            let number = name.strip_prefix("pathfinder");
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let mut last_first = folders.rev();
        last_first.clone().find(sized).is_none_or(|name| name == size)
            && last_first.find(|name| name.starts_with("curv_")).is_none_or(|n| n == difficulty)
    }
}

/// The folder of a set, with `imgs` and `metadata`, in or below a folder.
pub(super) fn find(dir: &Path, set: &ImageSet) -> Option<PathBuf> {
    let [size, difficulty] = set.folders();
    let tops = [dir.to_owned(), dir.join("lra_release"), dir.join("lra_release/lra_release")];
    let below = tops.iter().flat_map(|top| {
        [top.clone(), top.join(&difficulty), top.join(&size), top.join(&size).join(&difficulty)]
    });
    let whole = |folder: &PathBuf| {
        let names = folder.components().filter_map(|part| part.as_os_str().to_str());
        folder.join("imgs").is_dir() && folder.join("metadata").is_dir() && set.agrees(names)
    };
    below.into_iter().find(whole)
}

/// A file of a set.
#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    /// `imgs/<batch>/<file>`.
    Picture(&'a str),
    /// A list of labels.
    Metadata,
}

/// What a name stands for, and where the set starts; `None` for what does not belong to it.
fn entry<'a>(name: &'a str, set: &ImageSet) -> Option<(&'a str, Entry<'a>)> {
    let (folders, file) = name.rsplit_once('/')?;
    let (top, entry) = if file.ends_with(".png") {
        let imgs = folders.rsplit_once('/')?.0;
        let top = imgs.strip_suffix("imgs")?;
        (top, Entry::Picture(&name[top.len()..]))
    } else if file.ends_with(".npy") {
        (folders.strip_suffix("metadata")?, Entry::Metadata)
    } else {
        return None;
    };
    let whole = top.is_empty() || top.ends_with('/');
    (whole && set.agrees(top.split('/'))).then_some((top, entry))
}

/// A picture that the metadata name.
struct ListedPicture {
    label: u32,
    seen: bool,
}

/// Reads all pictures of a set from its folder or from an archive. `false` when there is no list of labels.
pub(super) fn read(
    path: &Path,
    set: &ImageSet,
    skips: &mut Skips,
    out: &mut ImageCollector<'_>,
    progress: &dyn Fn(&str),
) -> Result<bool> {
    progress(&format!("Pathfinder: reading the labels in {}", path.display()));
    let mut listed: HashMap<String, ListedPicture> = HashMap::new();
    let mut top: Option<String> = None;
    let mut same_top = |name: &str, found: &str| match &top {
        Some(top) if top != found => {
            let what = format!("two data sets in one archive: {name} and the one in {top:?}");
            Err(Error::content(path, what))
        }
        Some(_) => Ok(()),
        None => {
            top = Some(found.to_owned());
            Ok(())
        }
    };
    let wanted = |name: &str| matches!(entry(name, set), Some((_, Entry::Metadata)));
    for_each_file(path, &wanted, &mut |name, bytes| {
        if let Some((top, _)) = entry(name, set) {
            same_top(name, top)?;
        }
        let file = path.join(name);
        let Some(text) = skips.check(text(&file, bytes))? else { return Ok(()) };
        for (line, row) in (1..).zip(text.lines()).filter(|(_, row)| !row.trim().is_empty()) {
            let parsed = parse_row(row).map_err(|what| Error::line(&file, line, what));
            let Some((picture, label)) = skips.check(parsed)? else { continue };
            match listed.get(&picture) {
                Some(before) if before.label != label => {
                    let what =
                        format!("conflicting labels for {picture}: {} and {label}", before.label);
                    skips.check::<()>(Err(Error::line(&file, line, what)))?;
                }
                Some(_) => {}
                None => {
                    listed.insert(picture, ListedPicture { label, seen: false });
                }
            }
        }
        Ok(())
    })?;
    if listed.is_empty() {
        return Ok(false);
    }

    let total = listed.len();
    let mut unlisted = 0;
    let wanted = |name: &str| matches!(entry(name, set), Some((_, Entry::Picture(_))));
    for_each_file(path, &wanted, &mut |name, bytes| {
        let Some((top, Entry::Picture(picture))) = entry(name, set) else { return Ok(()) };
        same_top(name, top)?;
        let Some(listed) = listed.get_mut(picture) else {
            unlisted += 1;
            return Ok(());
        };
        let file = path.join(name);
        let decoded = match listed.seen {
            true => Err("duplicate name".into()),
            false => grey::decode(bytes, set.size),
        };
        listed.seen = true;
        let decoded = decoded.map_err(|what| Error::content(&file, what));
        if let Some(levels) = skips.check(decoded)? {
            out.push(listed.label, &levels)?;
            if out.len().is_multiple_of(10_000) {
                progress(&format!("Pathfinder: {} of {total} images read", out.len()));
            }
        }
        Ok(())
    })?;
    let mut gone: Vec<&String> =
        listed.iter().filter(|(_, l)| !l.seen).map(|(name, _)| name).collect();
    gone.sort_unstable();
    for name in gone {
        let file = path.join(top.as_deref().unwrap_or("")).join(name);
        skips.check::<()>(Err(Error::content(&file, "listed in the metadata, but missing")))?;
    }
    if unlisted > 0 {
        let what = "pictures left out because no row of the metadata names them";
        out.note(format!("{what}: {unlisted}").into());
    }
    Ok(true)
}

fn text<'a>(file: &Path, bytes: &'a [u8]) -> Result<&'a str> {
    if bytes.starts_with(b"\x93NUMPY") {
        let what =
            "a binary NumPy array; the metadata of the release are plain text, one row per picture";
        return Err(Error::content(file, what));
    }
    std::str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        Error::line(file, line as u64, "not UTF-8 text")
    })
}

/// The picture of a row, such as `imgs/0/sample_0.png`, and its label.
fn parse_row(row: &str) -> std::result::Result<(String, u32), String> {
    let cells: Vec<&str> = row.split_whitespace().take(LABEL + 1).collect();
    let [folder, file, _, label] = cells[..] else {
        let found = cells.len();
        return Err(format!("{found} columns; at least folder, file, number and label are needed"));
    };
    match label {
        "0" | "1" => Ok((format!("{}/{file}", folder.trim_matches('/')), u32::from(label == "1"))),
        _ => Err(format!("label {label:?} in column {}; it must be 0 or 1", LABEL + 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HARD: ImageSet = ImageSet { size: 32, contour: 14, seed: 0 };

    #[test]
    fn names_of_the_release() {
        let easy = ImageSet { contour: 6, ..HARD };
        assert_eq!(easy.folders(), ["pathfinder32", "curv_baseline"]);
        let picture = |top, name| Some((top, Entry::Picture(name)));
        let cases = [
            ("imgs/0/sample_1.png", picture("", "imgs/0/sample_1.png")),
            (
                "lra/pathfinder32/curv_contour_length_14/imgs/7/a.png",
                picture("lra/pathfinder32/curv_contour_length_14/", "imgs/7/a.png"),
            ),
            (
                "curv_contour_length_14/metadata/3.npy",
                Some(("curv_contour_length_14/", Entry::Metadata)),
            ),
            ("metadata/3.npy", Some(("", Entry::Metadata))),
            ("curv_contour_length_9/imgs/0/a.png", None),
            ("pathfinder128/curv_contour_length_14/imgs/0/a.png", None),
            ("pathfinder128/imgs/0/a.png", None),
            ("myimgs/0/a.png", None),
            ("imgs/a.png", None),
            ("a.png", None),
            ("imgs/0/a.txt", None),
        ];
        for (name, expected) in cases {
            assert_eq!(entry(name, &HARD), expected, "{name}");
        }
        assert!(entry("pathfinder/curv_baseline/imgs/0/a.png", &easy).is_some());
    }

    #[test]
    fn rows_of_metadata() {
        let row = "imgs/12 sample_3.png 3 1 1.0 14 4 2 0.5 1 1";
        assert_eq!(parse_row(row), Ok(("imgs/12/sample_3.png".into(), 1)));
        assert!(parse_row("imgs/12 sample_3.png 3").unwrap_err().contains("3 columns"));
        assert!(parse_row("imgs/12 sample_3.png 3 2").unwrap_err().contains("label \"2\""));
        let file = Path::new("m.npy");
        assert!(text(file, b"\x93NUMPY\x01").unwrap_err().to_string().contains("binary NumPy"));
        assert!(text(file, b"a\nb\xff").unwrap_err().to_string().contains("line 2"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn nothing_makes_it_panic(name in "(pathfinder|32|imgs|metadata|/|\\.png|\\.npy|é|a){0,12}", row in ".{0,60}") {
            let _ = entry(&name, &HARD);
            let _ = parse_row(&row);
        }
    }
}
