//! What file names tell: the word, and the split by folder or by list.

use std::collections::HashMap;
use std::path::Path;

use crate::task::Split;
use crate::{Error, Result};

/// The two official lists, with their splits; what neither names is for training.
const LISTS: [(&str, Split); 2] =
    [("validation_list.txt", Split::Val), ("testing_list.txt", Split::Test)];

/// A clip by its name: `[.../][train|val|test/]word/clip.wav`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClipName<'a> {
    pub split: Option<Split>,
    pub word: &'a str,
    /// The last part, without its extension.
    stem: &'a str,
}

impl<'a> ClipName<'a> {
    /// `None` for what is not a WAV or FLAC file in a folder, and for hidden files.
    pub fn parse(name: &'a str) -> Option<Self> {
        let mut parts = name.rsplit('/');
        let (stem, extension) = parts.next()?.rsplit_once('.')?;
        if stem.starts_with('.')
            || !["wav", "flac"].iter().any(|known| extension.eq_ignore_ascii_case(known))
        {
            return None;
        }
        let word = parts.next()?;
        let folder = parts.next();
        let split = Split::ALL.into_iter().find(|split| Some(split.name()) == folder);
        Some(Self { split, word, stem })
    }

    /// The name that the lists have for the clip, without its extension.
    pub fn key(&self) -> String {
        format!("{}/{}", self.word, self.stem)
    }
}

/// The split of a list, if the file is one of the two.
pub(super) fn list_of(name: &str) -> Option<Split> {
    let file = name.rsplit('/').next();
    LISTS.iter().find(|(list, _)| Some(*list) == file).map(|(_, split)| *split)
}

/// The two official lists.
#[derive(Default)]
pub(super) struct Lists {
    splits: HashMap<String, Split>,
    found: Vec<Split>,
}

impl Lists {
    /// Adds the list of a split: a clip per line, such as `yes/004ae714_nohash_0.wav`.
    pub fn add(&mut self, path: &Path, split: Split, bytes: &[u8]) -> Result<()> {
        if self.found.contains(&split) {
            return Err(Error::content(path, "there are two lists of this name"));
        }
        self.found.push(split);
        for (line, number) in bytes.split(|&b| b == b'\n').zip(1..) {
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let name = str::from_utf8(text).ok().and_then(ClipName::parse).ok_or_else(|| {
                let what = "expected a clip such as yes/004ae714_nohash_0.wav, found";
                Error::line(path, number, format!("{what} \"{}\"", text.escape_ascii()))
            })?;
            if self.splits.insert(name.key(), split).is_some() {
                return Err(Error::line(path, number, format!("{} is listed twice", name.key())));
            }
        }
        Ok(())
    }

    /// Whether both lists were there.
    pub fn complete(&self) -> bool {
        self.found.len() == LISTS.len()
    }

    /// The split of a clip by its [`ClipName::key`].
    pub fn split(&self, key: &str) -> Split {
        self.splits.get(key).copied().unwrap_or(Split::Train)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_both_layouts() {
        let clip = |split, word, stem| Some(ClipName { split, word, stem });
        assert_eq!(ClipName::parse("yes/a_nohash_0.wav"), clip(None, "yes", "a_nohash_0"));
        assert_eq!(ClipName::parse("v2/yes/a.FLAC"), clip(None, "yes", "a"));
        assert_eq!(ClipName::parse("x/test/no/a.b.flac"), clip(Some(Split::Test), "no", "a.b"));
        for other in ["yes/README.md", "yes/._a.wav", "a.wav", "yes/wav", "", "/"] {
            assert_eq!(ClipName::parse(other), None, "{other}");
        }
        assert_eq!(list_of("v2/testing_list.txt"), Some(Split::Test));
        assert_eq!(list_of("my_testing_list.txt"), None);
    }

    #[test]
    fn lists_say_the_split() {
        let path = Path::new("list.txt");
        let mut lists = Lists::default();
        lists.add(path, Split::Val, b"yes/a.wav\r\n\nno/b.wav").unwrap();
        assert!(!lists.complete());
        lists.add(path, Split::Test, b"up/a.wav\n").unwrap();
        assert!(lists.complete());
        let splits = ["yes/a", "no/b", "up/a", "up/b"].map(|key| lists.split(key));
        assert_eq!(splits, [Split::Val, Split::Val, Split::Test, Split::Train]);

        let add = |bytes: &[u8]| {
            let mut lists = Lists::default();
            lists.add(path, Split::Val, b"yes/a.wav")?;
            lists.add(path, Split::Test, bytes)
        };
        let twice = add(b"no/a.wav\nyes/a.wav").unwrap_err().to_string();
        assert_eq!(twice, "list.txt, line 2: yes/a is listed twice");
        let odd = add(b"\xff\n").unwrap_err().to_string();
        assert!(odd.contains("line 1") && odd.contains("\\xff"), "{odd}");
    }

    proptest! {
        #[test]
        fn no_list_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), name in ".{0,40}") {
            let _ = Lists::default().add(Path::new("list.txt"), Split::Val, &bytes);
            let _ = ClipName::parse(&name);
        }
    }
}
