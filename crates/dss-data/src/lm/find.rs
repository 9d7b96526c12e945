//! Finding the file with the text.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{Error, Result, io};

/// The largest text.
const LIMIT: u64 = 1 << 30;
/// Folders below a data folder that may hold texts.
const FOLDERS: [&str; 3] = ["", "text_lm", "tinyshakespeare"];
/// The text that is used if a folder has several.
const KNOWN: [&str; 3] = ["tinyshakespeare_input.txt", "tinyshakespeare.txt", "input.txt"];

/// The text: named by `path`, or by the data folder, which may be the file itself.
pub(super) fn text(path: &str, data_dir: Option<&Path>) -> Result<PathBuf> {
    let missing = |looked| {
        Error::Missing {
        what: "a text to learn from".into(),
        looked,
        hint: "Give any text file with --data FILE (or --set task.path=FILE); tiny Shakespeare, 1.1 MB, comes \
               with `dss data get lm --data DIR`."
            .into(),
    }
    };
    let given = if path.is_empty() {
        data_dir.map(Path::to_owned)
    } else {
        Some(io::resolve(path, data_dir))
    };
    let Some(given) = given else { return Err(missing(Vec::new())) };
    if !given.is_dir() {
        return if given.exists() { Ok(given) } else { Err(missing(vec![given])) };
    }
    let mut looked = Vec::new();
    for folder in FOLDERS.map(|name| if name.is_empty() { given.clone() } else { given.join(name) })
    {
        if let Some(found) = io::find(&folder, &KNOWN) {
            return Ok(found);
        }
        let texts = texts(&folder);
        match texts.len() {
            0 => looked.push(folder),
            1 => return Ok(folder.join(&texts[0])),
            _ => {
                let what =
                    format!("several texts ({}); choose one with --data FILE", texts.join(", "));
                return Err(Error::content(&folder, what));
            }
        }
    }
    Err(missing(looked))
}

/// The names of the text files of a folder, in their order.
fn texts(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|e| e.path().is_file() && io::extension(&e.path()) == "txt");
    let mut names: Vec<String> = files.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The whole text.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = io::open(path)?.take(LIMIT + 1).read_to_end(&mut text);
    match read.map_err(Error::io("read", path))? as u64 <= LIMIT {
        true => Ok(text),
        false => Err(Error::content(path, "longer than 1 GiB; train on a part of it")),
    }
}
