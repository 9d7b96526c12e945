//! The page: the one in this program, or that of a folder.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

macro_rules! embedded {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../../page/", $name)) as &[u8])),*]
    };
}

/// The files of `page/`; `web/build` makes the two engines.
const EMBEDDED: &[(&str, &[u8])] = embedded![
    "index.html"
    "style.css"
    "page.js"
    "assets.js"
    "engine.js"
    "sound.js"
    "plot.js"
    "listen.js"
    "write.js"
    "kernels.js"
    "app.js"
    "worker.js"
    "tap.js"
    "dss-plain.wasm"
    "dss-simd.wasm"
    "models/speech.safetensors"
    "models/text.safetensors"
    "clips/no.wav"
    "clips/stop.wav"
    "clips/yes.wav"
];

/// Where the files of the page come from.
#[derive(Clone, Debug)]
pub enum Page {
    /// This program.
    Embedded,
    /// A folder, by its canonical path.
    Folder(PathBuf),
}

impl Page {
    /// The file that a path such as `models/text.safetensors` names; the empty path is `index.html`.
    pub fn file(&self, path: &Path) -> Option<(&'static str, Cow<'static, [u8]>)> {
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        match self {
            Self::Embedded => {
                let empty = path.as_os_str().is_empty();
                let path = if empty { Path::new("index.html") } else { path };
                let &(_, bytes) = EMBEDDED.iter().find(|(name, _)| Path::new(name) == path)?;
                Some((content_type(path), bytes.into()))
            }
            Self::Folder(folder) => {
                let mut path = folder.join(path).canonicalize().ok()?;
                if path.is_dir() {
                    path = path.join("index.html").canonicalize().ok()?;
                }
                // A link may lead out of the folder.
                if !path.starts_with(folder) {
                    return None;
                }
                Some((content_type(&path), std::fs::read(&path).ok()?.into()))
            }
        }
    }
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|x| x.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "wasm" => "application/wasm",
        "wav" => "audio/wav",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => "application/octet-stream",
    }
}
