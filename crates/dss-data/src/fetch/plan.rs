//! From the name of a task to the files that are to be fetched.

use std::path::Path;

use super::{Download, FetchError};
use crate::catalogue::{Archive, entry};

/// The files of a task, to be put into the folder `to`.
///
/// `url` is another place of the file; for a task with several files, the folder that has them all under their own
/// names. The checksum stays the known one, unless `sha256` gives another.
pub fn plan(
    task: &str,
    to: &Path,
    url: Option<&str>,
    sha256: Option<&str>,
) -> Result<Vec<Download>, FetchError> {
    let wrong = |what: String| FetchError::Request { what };
    let entry = entry(task).ok_or_else(|| wrong(format!("{task} has no data of its own")))?;
    let nothing = || wrong(format!("{task} needs no data: its examples are generated"));
    let official = entry.official.as_ref().ok_or_else(nothing)?;
    if let Some(sum) = sha256
        && (sum.len() != 64 || !sum.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(wrong(format!("a SHA-256 has 64 hex digits, not `{sum}`")));
    }
    let one = |archive: &Archive, url: &str, sum: Option<&str>| Download {
        url: url.to_owned(),
        to: to.join(archive.name),
        sha256: sum.map(str::to_lowercase),
    };
    match official.archives {
        [archive] => {
            // Another version of the data set, by its name.
            let name = url.and_then(|url| url.split(['?', '#']).next()?.rsplit('/').next());
            let archive = name.and_then(|name| official.archive(name)).unwrap_or(archive);
            Ok(vec![one(archive, url.unwrap_or(archive.url), sha256.or(archive.sha256))])
        }
        archives => {
            if sha256.is_some() {
                return Err(wrong(format!(
                    "{task} has {} files: one SHA-256 is not enough",
                    archives.len()
                )));
            }
            let place = |archive: &Archive| match url {
                Some(url) => format!("{}/{}", url.trim_end_matches('/'), archive.name),
                None => archive.url.to_owned(),
            };
            Ok(archives.iter().map(|a| one(a, &place(a), a.sha256)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn downloads(task: &str, url: Option<&str>, sum: Option<&str>) -> Vec<Download> {
        plan(task, Path::new("d"), url, sum).unwrap()
    }

    #[test]
    fn one_archive() {
        let text = &downloads("text", None, None)[0];
        assert_eq!(text.to, Path::new("d/aclImdb_v1.tar.gz"));
        assert!(text.url.starts_with("https://ai.stanford.edu/"));
        let known = text.sha256.clone();
        let mirror = &downloads("text", Some("http://mirror/x?y=aclImdb"), None)[0];
        assert_eq!((&mirror.to, mirror.url.as_str()), (&text.to, "http://mirror/x?y=aclImdb"));
        assert_eq!(mirror.sha256, known, "another place, the same file");
        let other = &downloads("text", None, Some(&SUM.to_uppercase()))[0];
        assert_eq!(other.sha256.as_deref(), Some(SUM));
        assert_eq!(downloads("path-x", None, None)[0].sha256, None, "none is published");
    }

    #[test]
    fn another_version_by_its_name() {
        let url = "http://mirror/data/speech_commands_v0.01.tar.gz?raw=1";
        let old = &downloads("speech", Some(url), None)[0];
        assert_eq!(old.to, Path::new("d/speech_commands_v0.01.tar.gz"));
        assert!(old.sha256.as_ref().unwrap().starts_with("7439"));
        assert!(
            downloads("speech-mfcc", None, None)[0].to.ends_with("speech_commands_v0.02.tar.gz")
        );
    }

    #[test]
    fn several_files() {
        let four = downloads("pmnist", Some("http://mirror/mnist/"), None);
        assert_eq!(four.len(), 4);
        assert_eq!(four[3].url, "http://mirror/mnist/t10k-labels-idx1-ubyte.gz");
        assert!(four.iter().all(|d| d.sha256.is_some()));
    }

    #[test]
    fn requests_that_make_no_sense() {
        for (task, sum, part) in [
            ("listops", None, "generated"),
            ("delay", None, "generated"),
            ("files", None, "no data of its own"),
            ("smnist", Some(SUM), "4 files"),
            ("text", Some("abc"), "64 hex digits"),
        ] {
            let error = plan(task, Path::new("d"), None, sum).unwrap_err();
            assert!(
                matches!(&error, FetchError::Request { what } if what.contains(part)),
                "{error}"
            );
        }
    }
}
