//! The configuration that a training left near its checkpoint: `NAME.config.yaml`, `config.yaml` or Hydra's
//! `.hydra/config.yaml`, in the checkpoint's folder or in one of the two above it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::settings::Settings;

/// How many folders above the checkpoint's own are looked into.
const PARENTS: usize = 2;

/// A configuration near a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearby {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub settings: Settings,
}

impl Nearby {
    /// The first configuration of a model that is near `checkpoint`: of `NAME.pt` first `NAME.config.yaml`, then
    /// `config.yaml`, then `.hydra/config.yaml`, first in its own folder. Files that say nothing about a model are
    /// passed over.
    pub fn find(checkpoint: &Path) -> Option<Self> {
        let whole = std::path::absolute(checkpoint).ok()?;
        let names = names(whole.file_name()?.to_str().unwrap_or_default());
        let folders = whole.ancestors().skip(1).take(1 + PARENTS);
        folders.flat_map(|folder| names.iter().map(|name| folder.join(name))).find_map(Self::read)
    }

    fn read(path: PathBuf) -> Option<Self> {
        let settings = Settings::from_yaml(&fs::read_to_string(&path).ok()?).ok()?;
        settings.describes_a_model().then_some(Self { path, settings })
    }
}

/// Of `a.b.pt`: `a.b.config.yaml`, `a.config.yaml`, and the names that do not depend on it.
fn names(file: &str) -> Vec<String> {
    let ends = file.rmatch_indices('.').map(|(at, _)| &file[..at]);
    let own = ends.filter(|name| !name.is_empty()).map(|name| format!("{name}.config.yaml"));
    own.chain(["config.yaml", ".hydra/config.yaml"].map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest one counts, its own name first, and what is not about a model does not.
    #[test]
    fn the_order_of_places() {
        let root = std::env::temp_dir().join(format!("dss-nearby-{}", std::process::id()));
        let run = root.join("run");
        fs::create_dir_all(run.join("checkpoints/.hydra")).unwrap();
        let checkpoint = run.join("checkpoints/last.v1.ckpt");
        let path = || Nearby::find(&checkpoint).map(|found| found.path);
        let places = [
            "config.yaml",
            "run/config.yaml",
            "run/checkpoints/.hydra/config.yaml",
            "run/checkpoints/config.yaml",
            "run/checkpoints/last.config.yaml",
            "run/checkpoints/last.v1.config.yaml",
        ];
        let mut before = path();
        assert_eq!(before, None);
        for place in places {
            let place = root.join(place);
            for other in ["no: model", "model: [", "layer: s4"] {
                fs::write(&place, other).unwrap();
                assert_eq!(path(), before, "{other}");
            }
            fs::write(&place, "model: {prenorm: true}").unwrap();
            before = Some(place);
            assert_eq!(path(), before);
        }
        // One folder further up is too far.
        let deep = run.join("checkpoints/a/b/c.pt");
        assert_eq!(
            Nearby::find(&deep).map(|found| found.path),
            Some(run.join("checkpoints/config.yaml"))
        );
        assert_eq!(Nearby::find(&run.join("checkpoints/a/b/c/d.pt")), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
