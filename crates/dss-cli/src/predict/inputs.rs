//! The files to read: those named, those in folders, and standard input.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dss_data::{Encoder, npy};

use crate::args::PipedKind;
use crate::failure::Failure;
use crate::interrupt;

/// The files of a command line, in its order.
pub(super) struct Inputs {
    pub files: Vec<InputFile>,
    /// A folder for what came through pipes.
    temporary: Option<PathBuf>,
}

/// A file and its name in answers.
pub(super) struct InputFile {
    pub name: String,
    pub path: PathBuf,
}

impl InputFile {
    /// The name in answers, without folders.
    pub fn base_name(&self) -> String {
        Path::new(&self.name).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A note about the file; it begins with the name of what was read.
    pub fn own_note(&self, note: &str) -> String {
        let read = self.path.file_name().unwrap_or_default().to_string_lossy();
        match note.strip_prefix(&*read) {
            Some(rest) if self.name == "-" => format!("standard input{rest}"),
            _ => note.to_owned(),
        }
    }

    /// An error about the file; one about a pipe names the pipe and not the temporary file.
    pub fn named(&self, error: dss_data::Error) -> dss_data::Error {
        match self.name.as_str() {
            "-" => error.with_file_name("standard input"),
            name if self.path != Path::new(name) => error.with_file_name(name),
            _ => error,
        }
    }
}

impl Inputs {
    /// A folder means the files below it that suit the encoder.
    pub fn new(
        paths: &[PathBuf],
        encoder: &Encoder,
        piped: Option<PipedKind>,
    ) -> Result<Self, Failure> {
        if piped.is_some() && !paths.iter().any(|path| path == Path::new("-")) {
            let message = "--format is for standard input, which is not among the files";
            return Err(Failure::usage(message).hint("name - instead of a file"));
        }
        let mut inputs = Self { files: Vec::new(), temporary: None };
        for path in paths {
            let start = inputs.files.len();
            if path == Path::new("-") {
                inputs.read_standard_input(piped).map_err(|e| fault("standard input", e))?;
            } else if path.is_dir() {
                inputs.walk(path, encoder).map_err(|e| fault(path.display(), e))?;
            } else if is_pipe(path) {
                inputs.read_pipe(path).map_err(|e| fault(path.display(), e))?;
            } else {
                inputs.push(path.clone());
            }
            if inputs.files.len() == start {
                let message = format!("{}: no files for this model in this folder", path.display());
                return Err(Failure::usage(message).hint("name the files"));
            }
        }
        Ok(inputs)
    }

    fn push(&mut self, path: PathBuf) {
        self.files.push(InputFile { name: path.display().to_string(), path });
    }

    fn walk(&mut self, folder: &Path, encoder: &Encoder) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, hidden) =
                (entry.path(), entry.file_name().to_string_lossy().starts_with('.'));
            // Links to folders are not followed: they may lead back.
            if entry.file_type()?.is_dir() {
                self.walk(&path, encoder)?;
            } else if path.is_file() && !hidden && suits(encoder, &path) {
                self.push(path);
            }
        }
        Ok(())
    }

    fn read_standard_input(&mut self, kind: Option<PipedKind>) -> io::Result<()> {
        if self.files.iter().any(|file| file.name == "-") {
            return Err(io::Error::other("can only be read once"));
        }
        let folder = self.folder()?;
        let (mut input, mut start) = (io::stdin().lock(), Vec::new());
        (&mut input).take(npy::MAGIC.len() as u64).read_to_end(&mut start)?;
        let path = folder.join(match kind {
            Some(kind) => format!("-.{}", kind.ending()),
            None if start.starts_with(npy::MAGIC) => "-.npy".to_owned(),
            None => "-".to_owned(),
        });
        io::copy(&mut start.as_slice().chain(input), &mut File::create_new(&path)?)?;
        self.files.push(InputFile { name: "-".to_owned(), path });
        Ok(())
    }

    fn read_pipe(&mut self, pipe: &Path) -> io::Result<()> {
        // The ending of its name counts, and several may have the same.
        let folder = self.folder()?.join(self.files.len().to_string());
        private().create(&folder)?;
        let path = folder.join(pipe.file_name().unwrap_or_default());
        io::copy(&mut File::open(pipe)?, &mut File::create_new(&path)?)?;
        self.files.push(InputFile { name: pipe.display().to_string(), path });
        Ok(())
    }

    /// The folder for what comes through pipes: readers take files, some of them twice.
    fn folder(&mut self) -> io::Result<PathBuf> {
        if let Some(folder) = &self.temporary {
            return Ok(folder.clone());
        }
        let free = |i: u32| {
            let folder =
                std::env::temp_dir().join(format!("dss-predict-{}-{i}", std::process::id()));
            private().create(&folder).map(|()| folder)
        };
        let folder = (0..100)
            .map(free)
            .find(|made| !made.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AlreadyExists));
        let folder = folder.unwrap_or_else(|| Err(io::Error::other("no free folder for it")))?;
        self.temporary = Some(folder.clone());
        interrupt::remove_first(folder.clone()).map_err(io::Error::other)?;
        Ok(folder)
    }
}

/// Whether a path is that of a pipe: `<(command)`, for example.
fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Makes folders that only their owner can look into.
fn private() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

impl Drop for Inputs {
    fn drop(&mut self) {
        if let Some(folder) = &self.temporary {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn fault(name: impl std::fmt::Display, error: io::Error) -> Failure {
    Failure::failed(eyre::eyre!("{name}: {error}"))
}

/// Whether a file of a folder is one that the encoder reads, by its name; any may hold text or numbers.
fn suits(encoder: &Encoder, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    match encoder {
        Encoder::Speech(_) => ends(&[".wav", ".flac"]),
        Encoder::Images(_) | Encoder::Grey(_) | Encoder::Pathfinder(_) => {
            ends(&[".png", ".bin"]) || name.contains("idx3")
        }
        _ => true,
    }
}
