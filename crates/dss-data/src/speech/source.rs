//! Finding the clips: in a folder or an archive.

use std::fs;
use std::path::{Path, PathBuf};

use super::words::ALL;
use crate::catalogue::CLIPS;
use crate::task::Split;
use crate::{Error, Result, io};

/// The beginning of the official archives' names, before the version.
const OFFICIAL: &str = "speech_commands_v";

/// `dir` is a setting: a folder or an archive; empty = look in the data folder.
pub(super) fn find(dir: &str, data_dir: Option<&Path>) -> Result<PathBuf> {
    let top = match dir.is_empty() {
        true => data_dir.map(Path::to_owned),
        false => Some(io::resolve(dir, data_dir)),
    };
    if let Some(path) = top.as_ref().filter(|path| path.is_file()) {
        return Ok(path.clone());
    }
    let looked: Vec<PathBuf> =
        top.iter().flat_map(|top| CLIPS.iter().map(move |folder| top.join(folder))).collect();
    for (i, folder) in looked.iter().enumerate() {
        if has_clips(folder) {
            return Ok(folder.clone());
        }
        // The data folder itself may hold the archives of other tasks.
        let any = i > 0 || !dir.is_empty();
        if let Some(archive) = archive(folder, any)? {
            return Ok(archive);
        }
    }
    Err(Error::Missing {
        what: "Speech Commands (speech_commands_v0.02.tar.gz, or a folder with a subfolder for each word)".into(),
        looked,
        hint: "`dss data get speech --data DIR` fetches the official archive; or name the folder or archive with --set \
               task.dir=PATH."
            .into(),
    })
}

/// Whether there is a folder of some word, or one inside `train`, `val` or `test`.
fn has_clips(folder: &Path) -> bool {
    let words = |folder: &Path| ALL.iter().any(|word| folder.join(word).is_dir());
    words(folder) || Split::ALL.iter().any(|split| words(&folder.join(split.name())))
}

/// The archive of a folder: the newest official one, or the only one (if `any` will do).
fn archive(folder: &Path, any: bool) -> Result<Option<PathBuf>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(None) };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_archive = |name: &String| {
        [".tar", ".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end))
            && !name.contains("test_set")
    };
    let mut names: Vec<String> = names.filter(is_archive).collect();
    names.sort();
    if let Some(official) = names.iter().rfind(|name| name.starts_with(OFFICIAL)) {
        return Ok(Some(folder.join(official)));
    }
    match &names[..] {
        [one] if any => Ok(Some(folder.join(one))),
        [_, _, ..] if any => {
            let what = format!("several archives: {}; name one with task.dir", names.join(", "));
            Err(Error::content(folder, what))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_archives_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let data = Some(dir.path());
        let missing = find("", data).unwrap_err().message_and_hint();
        assert!(missing.contains("dss data get speech") && missing.contains("speech_commands10"));
        fs::write(dir.path().join("cifar-10-binary.tar.gz"), "").unwrap();
        assert!(find("", data).is_err(), "the archive of another task");

        let inside = dir.path().join("speech_commands");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("speech_commands_test_set_v0.02.tar.gz"), "").unwrap();
        assert!(find("", data).is_err(), "the test set alone");
        fs::write(inside.join("mine.tar"), "").unwrap();
        assert_eq!(find("", data).unwrap(), inside.join("mine.tar"));
        fs::write(inside.join("other.tgz"), "").unwrap();
        let several = find("speech_commands", data).unwrap_err().to_string();
        assert!(several.contains("mine.tar, other.tgz"), "{several}");
        assert_eq!(find("speech_commands/mine.tar", data).unwrap(), inside.join("mine.tar"));
        for version in ["speech_commands_v0.01.tar.gz", "speech_commands_v0.02.tar.gz"] {
            fs::write(inside.join(version), "").unwrap();
            assert_eq!(find("", data).unwrap(), inside.join(version));
        }
        fs::create_dir_all(inside.join("train/yes")).unwrap();
        assert_eq!(find("", data).unwrap(), inside);
    }
}
