//! `dss inspect` on a model of a few seconds.

use crate::common::Folder;
use serde_json::Value;

fn trained(folder: &Folder, more: &[&str]) {
    let sets =
        "task.train=40 task.val=20 task.test=20 length=40 layers=2 h=6 n=4 batch=20 epochs=1";
    let mut args = vec!["train", "adding", "--threads", "1", "--quiet", "--out", "run"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    args.extend(more);
    folder.run(&args).ok();
}

#[test]
fn a_run_gives_tables_pictures_and_a_report() {
    let folder = Folder::new();
    trained(&folder, &[]);
    let ran = folder.run(&["inspect", "run"]).ok();
    for part in [
        "DSS-softmax, 2 layers of H = 6",
        "half-life",
        "95th percentile",
        "causal",
        "beyond L = 40",
    ] {
        assert!(ran.out.contains(part), "no {part} in {ran:#?}");
    }
    for name in ["kernels", "lambda", "lambda-re", "delta-log", "gallery"] {
        let png = std::fs::read(folder.path(format!("run/inspect/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
        let svg = std::fs::read_to_string(folder.path(format!("run/inspect/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
    let page = std::fs::read_to_string(folder.path("run/report.html")).unwrap();
    // Five of the model, three of the training, seven of the answers.
    assert_eq!(page.matches("<svg class=\"picture\"").count(), 15);

    let ran = folder.run(&["inspect", "run", "--json", "--no-pictures"]).ok();
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["layers"].as_array().unwrap().len(), 2);
    assert_eq!(found["causality"]["verdict"], "causal");
    assert!(ran.err.is_empty(), "{ran:?}");
}

/// A run of a stranger may have links in it.
#[cfg(unix)]
#[test]
fn nothing_is_written_through_links() {
    let folder = Folder::new();
    trained(&folder, &[]);
    std::fs::write(folder.path("precious"), "mine").unwrap();
    std::fs::create_dir_all(folder.path("run/inspect")).unwrap();
    for name in ["kernels.svg", "kernels.png"] {
        let link = folder.path("run/inspect").join(name);
        std::os::unix::fs::symlink(folder.path("precious"), link).unwrap();
    }
    folder.run(&["inspect", "run"]).ok();
    assert_eq!(std::fs::read_to_string(folder.path("precious")).unwrap(), "mine");

    std::fs::rename(folder.path("run/inspect"), folder.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.path("elsewhere"), folder.path("run/inspect")).unwrap();
    std::fs::write(folder.path("elsewhere/kernels.svg"), "mine").unwrap();
    folder.run(&["inspect", "run"]).fails(2, &["inspect is a link", "--out"]);
    let kept = std::fs::read_to_string(folder.path("elsewhere/kernels.svg")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn a_checkpoint_alone_needs_an_output_folder() {
    let folder = Folder::new();
    trained(&folder, &["--set", "bidirectional=true"]);
    let checkpoint = "run/last/model.safetensors";
    let ran = folder.run(&["inspect", checkpoint]).ok();
    assert!(ran.out.contains("no, by design") && ran.err.is_empty(), "{ran:?}");
    folder.run(&["inspect", checkpoint, "--export", "npy"]).fails(2, &["--out"]);
    folder.run(&["inspect", checkpoint, "--export", "npy", "--out", "a", "--no-pictures"]).ok();
    assert!(folder.path("a/layers.1.kernel.npy").is_file());
    assert!(!folder.path("a/kernels.svg").exists());
    folder.run(&["inspect", checkpoint, "--export", "safetensors", "--out", "b"]).ok();
    assert!(
        folder.path("b/inspect.safetensors").is_file() && folder.path("b/kernels.png").is_file()
    );
}

#[test]
fn files_that_are_not_models_are_refused() {
    let folder = Folder::new();
    folder.run(&["inspect", "nowhere"]).fails(2, &["neither a run directory nor a file", "hint"]);
    std::fs::write(folder.path("file"), b"{}").unwrap();
    folder.run(&["inspect", "file"]).fails(1, &["not a safetensors file"]);
    std::fs::write(folder.path("taken"), b"").unwrap();
    trained(&folder, &[]);
    folder.run(&["inspect", "run", "--out", "taken"]).fails(1, &["taken", "--out"]);
}
