//! Checkpoints of other programs in, models for them out.

use std::path::Path;

use crate::common::Folder;

fn golden(name: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../dss-exchange/tests/golden").join(name).to_str().unwrap().to_owned()
}

fn stored(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/models").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_imported_checkpoint_predicts() {
    let folder = Folder::new();
    let ckpt = golden("ag1988/softmax_bn_post.omegaconf.ckpt");
    let ran = folder.run(&["import", &ckpt, "--out", "model.safetensors"]).ok();
    assert!(ran.err.contains("note: assumed that the softmax is normalised over"), "{}", ran.err);
    std::fs::write(folder.path("rows.csv"), "1,2,3,4\n5,6,7\n").unwrap();
    let said = folder.run(&["predict", "model.safetensors", "rows.csv"]).ok().out;
    assert_eq!(said.lines().count(), 2, "{said}");
    folder.run(&["inspect", "model.safetensors", "--no-pictures"]).ok();
    // And out again with the names it had.
    folder.run(&["export", "model.safetensors", "--to", "torch"]).ok();
    let args = ["import", "model.torch.safetensors", "--config", "model.torch.config.yaml"];
    folder.run(&[&args[..], &["--to", "again.safetensors"]].concat()).ok();
    let [first, again] = ["model", "again"]
        .map(|name| std::fs::read(folder.path(format!("{name}.safetensors"))).unwrap());
    assert!(first == again);
}

#[test]
fn settings_that_cannot_be_found_are_asked_for() {
    let folder = Folder::new();
    std::fs::copy(golden("ag1988/softmax_bn_post.pt"), folder.path("plain.pt")).unwrap();
    let ran = folder.run(&["import", "plain.pt", "--to", "m.safetensors"]);
    ran.fails(2, &["--len"]);
    assert!(!folder.path("m.safetensors").exists());
    let args = ["import", "plain.pt", "--len", "40", "--pool", "last", "--to", "m.safetensors"];
    let ran = folder.run(&args).ok();
    assert!(ran.err.contains("variant = softmax") && !ran.err.contains("pool"), "{}", ran.err);
    let clip = golden("refuse/clip.pt");
    let config = golden("refuse/clip.config.yaml");
    let ran = folder.run(&["import", &clip, "--config", &config, "--to", "x.safetensors"]);
    ran.fails(1, &["version: clip"]);
    let own = folder.run(&["import", "m.safetensors", "--len", "9", "--to", "x.safetensors"]);
    own.fails(2, &["leave out --len"]);
    assert!(!folder.path("x.safetensors").exists());
}

#[test]
fn a_configuration_near_a_checkpoint_is_announced() {
    let folder = Folder::new();
    let (plain, config) =
        (golden("ag1988/softmax_bn_post.pt"), golden("ag1988/softmax_bn_post.config.yaml"));
    std::fs::create_dir_all(folder.path("run/.hydra")).unwrap();
    std::fs::create_dir_all(folder.path("run/checkpoints")).unwrap();
    std::fs::copy(&plain, folder.path("run/checkpoints/last.pt")).unwrap();
    std::fs::copy(&config, folder.path("run/.hydra/config.yaml")).unwrap();
    let import = |name: &str, more: &[&str]| {
        let args = ["import", "run/checkpoints/last.pt", "--to", name];
        folder.run(&[&args[..], more].concat())
    };
    let err = import("near.safetensors", &[]).ok().err;
    let hydra = Path::new(".hydra").join("config.yaml").display().to_string();
    assert!(
        err.contains(&hydra) && err.contains("--config") && !err.contains("assumed pool"),
        "{err}"
    );
    let err = import("given.safetensors", &["--config", &config]).ok().err;
    assert!(!err.contains(&hydra), "{err}");
    let [near, given] = ["near", "given"]
        .map(|name| std::fs::read(folder.path(format!("{name}.safetensors"))).unwrap());
    assert!(near == given);
    // What is wrong in it is said with its name; another one goes before it.
    std::fs::write(folder.path("run/.hydra/config.yaml"), "model: {n_layers: 7}\n").unwrap();
    import("x.safetensors", &[]).fails(1, &["n_layers", &hydra, "--config"]);
    import("x.safetensors", &["--config", &config]).ok();
}

#[test]
fn an_onnx_step_or_the_reason_why_not() {
    let folder = Folder::new();
    let (text, speech) = (stored("text.safetensors"), stored("speech.safetensors"));
    folder.run(&["export", &text, "--to", "onnx", "--out", "text.onnx"]).ok();
    assert!(std::fs::metadata(folder.path("text.onnx")).unwrap().len() > 1000);
    // Its modes with Re λ > 0 end at the training length.
    folder.run(&["export", &speech, "--to", "onnx"]).ok();
    let onnx = std::fs::read(folder.path("speech.onnx")).unwrap();
    for word in ["next_position", "max_steps", "16000"] {
        assert!(onnx.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
    folder.run(&["export", &text, "--to", "onnx", "--f16"]).fails(2, &["--f16"]);
    folder.run(&["export", &text, "--to", "a.safetensors", "--out", "b"]).fails(2, &["--out"]);
    let (file, config) =
        (golden("ag1988/exp_bidir_glu.pt"), golden("ag1988/exp_bidir_glu.config.yaml"));
    folder.run(&["import", &file, "--config", &config, "--out", "two.safetensors"]).ok();
    folder.run(&["export", "two.safetensors", "--to", "onnx"]).fails(1, &["bidirectional"]);
}
