//! A summary of the data of a task: whether they are present, what is missing, how to get them.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Official, entry};
use crate::units::bytes;
use crate::{TaskConfig, make};

/// Whether a task can be trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// Its data are generated on the fly.
    Generated,
    /// Its data are present.
    There,
    /// Its data are missing.
    Missing,
    /// It reads the user's own files.
    Own,
}

/// The data of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Name of the task.
    pub task: &'static str,
    /// What the task is.
    pub about: &'static str,
    /// Whether it can be trained on.
    pub state: Availability,
    /// The files or folders that were found.
    pub files: Vec<PathBuf>,
    /// Their form.
    pub form: Option<&'static str>,
    /// The sets of files of which one is needed.
    pub wanted: Vec<String>,
    /// Files that are missing of the set that is nearest to complete.
    pub missing: Vec<&'static str>,
    /// Whether some files of that set are there.
    pub partly: bool,
    /// Every folder that was searched.
    pub looked: Vec<PathBuf>,
    /// Files that were downloaded in part.
    pub parts: Vec<PathBuf>,
    /// How to fetch them.
    pub get: Option<Publication>,
    /// The command that generates them.
    pub make: Option<String>,
}

/// A published data set.
#[derive(Clone, Debug, Serialize)]
pub struct Publication {
    /// The command that fetches it.
    pub command: String,
    /// A short description.
    pub about: &'static str,
    /// Its size, at least approximately.
    pub bytes: u64,
    /// Its licence.
    pub licence: &'static str,
    /// Where it is.
    pub urls: Vec<&'static str>,
    /// Whether that was done.
    pub fetched: bool,
    /// The next command after that.
    pub then: Option<String>,
}

/// Looks for the data of every task.
pub fn list(data_dir: Option<&Path>) -> Vec<Status> {
    TaskConfig::NAMES.iter().map(|task| status(task, data_dir)).collect()
}

fn status(task: &'static str, data_dir: Option<&Path>) -> Status {
    let mut status = Status {
        task,
        about: TaskConfig::about(task).unwrap_or_default(),
        state: Availability::Own,
        files: Vec::new(),
        form: None,
        wanted: Vec::new(),
        missing: Vec::new(),
        partly: false,
        looked: Vec::new(),
        parts: Vec::new(),
        get: None,
        make: make::is_made(task).then(|| format!("dss data make {task}")),
    };
    let Some(entry) = entry(task) else { return status };
    status.get =
        entry.official.as_ref().map(|official| Publication::describe(task, official, data_dir));
    if entry.generated {
        status.state = Availability::Generated;
        return status;
    }
    status.state = Availability::Missing;
    status.wanted = entry.wanted();
    let Some(top) = data_dir else { return status };
    let presence = entry.find_in(top);
    status.looked = presence.looked;
    (status.missing, status.partly) = (presence.missing, presence.partly);
    if let Some(found) = presence.found {
        status.state = Availability::There;
        status.form = Some(found.form.about);
        status.files = found.files;
        return status;
    }
    let archives = entry.official.iter().flat_map(|official| official.archives);
    let parts = archives.flat_map(|archive| {
        let name = format!("{}.part", archive.name);
        status.looked.iter().map(move |folder| folder.join(&name))
    });
    status.parts = parts.filter(|part| part.is_file()).collect();
    status
}

impl Publication {
    fn describe(task: &str, official: &Official, data_dir: Option<&Path>) -> Self {
        let dir = data_dir.unwrap_or(Path::new("DIR"));
        let there = |dir: &Path| official.archives.iter().all(|a| dir.join(a.name).is_file());
        Self {
            command: format!("dss data get {task} --data {}", dir.display()),
            about: official.about,
            bytes: official.bytes(),
            licence: official.licence,
            urls: official.archives.iter().map(|archive| archive.url).collect(),
            fetched: data_dir.is_some_and(there),
            then: official.then_in(dir),
        }
    }
}

impl Display for Status {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const NAME: usize = 13;
        let mut lines = Vec::new();
        match self.state {
            Availability::Generated => lines.push("generated; nothing to fetch".to_owned()),
            Availability::Own => lines.push("your own files: dss train files FILE".to_owned()),
            Availability::There => {
                let form = self.form.unwrap_or_default();
                lines.push(format!("there: {form}"));
                lines.extend(self.files.iter().map(|file| format!("  {}", file.display())));
            }
            Availability::Missing => {
                lines.push("missing; one of these is needed:".to_owned());
                lines.extend(self.wanted.iter().map(|files| format!("  {files}")));
                let looked: Vec<_> = self.looked.iter().map(|p| p.display().to_string()).collect();
                lines.push(match looked.is_empty() {
                    true => {
                        "no data folder was given; use --data DIR or the environment variable DSS_DATA".to_owned()
                    }
                    false => format!("looked in {}", looked.join(", ")),
                });
                if self.partly {
                    lines.push(format!("only this is missing: {}", self.missing.join(", ")));
                }
                for part in &self.parts {
                    let size = part.metadata().map_or(0, |m| m.len());
                    lines.push(format!("{} already downloaded: {}", bytes(size), part.display()));
                }
            }
        }
        if self.state != Availability::There
            && let Some(get) = &self.get
        {
            let what = match (get.fetched, self.state) {
                (true, _) => "fetched already",
                (_, Availability::Generated) => "the published one",
                _ => "fetch it",
            };
            lines.push(format!("{what}: {} ({})", get.command, bytes(get.bytes)));
            lines.push(format!("  {}; licence: {}", get.about, get.licence));
            lines.extend(get.urls.iter().map(|url| format!("  {url}")));
            lines.extend(get.then.iter().map(|then| format!("  then {then}")));
        }
        lines.extend(self.make.as_ref().map(|make| format!("as files: {make}")));
        for (i, line) in lines.iter().enumerate() {
            writeln!(f, "{:<NAME$}{line}", if i == 0 { self.task } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn missing_then_in_part_then_there() {
        let dir = tempfile::tempdir().unwrap();
        let of = |task: &'static str| status(task, Some(dir.path()));
        let missing = of("smnist");
        assert_eq!((missing.state, missing.missing.len()), (Availability::Missing, 4));
        let text = missing.to_string();
        for part in [
            "smnist       missing",
            " train-images-idx3-ubyte, ",
            "looked in",
            "data get smnist",
            "CC BY-SA",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let part = dir.path().join("train-images-idx3-ubyte.gz.part");
        fs::write(&part, [0; 1234]).unwrap();
        assert!(of("smnist").to_string().contains("1.2 kB already downloaded"));
        fs::write(dir.path().join("train-images-idx3-ubyte"), "").unwrap();
        let text = of("smnist").to_string();
        assert!(
            text.contains("only this is missing: train-labels-idx1-ubyte, t10k-images"),
            "{text}"
        );
        for archive in entry("smnist").unwrap().official.as_ref().unwrap().archives {
            fs::write(dir.path().join(archive.name), "").unwrap();
        }
        let there = of("pmnist");
        assert_eq!((there.state, there.files.len()), (Availability::There, 4));
        assert!(there.to_string().contains("t10k-labels-idx1-ubyte.gz"));
    }

    #[test]
    fn every_task_has_a_line() {
        let list = list(None);
        assert_eq!(list.len(), TaskConfig::NAMES.len());
        let state = |task| list.iter().find(|s| s.task == task).unwrap().state;
        assert_eq!(
            [state("listops"), state("delay"), state("files")],
            [Availability::Generated, Availability::Generated, Availability::Own]
        );
        for status in &list {
            let text = status.to_string();
            assert!(text.starts_with(status.task) && text.ends_with('\n'), "{text}");
            if status.state == Availability::Missing {
                assert!(text.contains("DSS_DATA"), "{text}");
            }
            let json = serde_json::to_value(status).unwrap();
            assert_eq!(json["task"], status.task);
        }
    }
}
