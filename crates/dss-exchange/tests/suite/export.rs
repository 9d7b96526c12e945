//! What is written for other programs can be read back, or is refused with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use dss_exchange::export::{onnx, torch};
use dss_exchange::{ImportOptions, Settings, import};
use dss_infer::ModelFile;

use crate::golden::settings;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn imported(folder: &str, name: &str, ending: &str) -> ModelFile {
    let config = settings(&golden(&format!("{folder}/{name}.config.yaml")));
    let options = ImportOptions { settings: config, ..Default::default() };
    let bytes = fs::read(golden(&format!("{folder}/{name}.{ending}"))).unwrap();
    import(&bytes, &options).unwrap().file
}

const DSS: [&str; 7] = [
    "softmax_bn_post",
    "softmax_tied_bn_pre_last",
    "exp_bidir_glu",
    "exp_no_scale_ln_scalar_pre",
    "softmax_ln_affine_post",
    "exp_retrieval_wide",
    "softmax_trunc",
];

#[test]
fn authors_names_come_back_as_the_same_model() {
    let models =
        DSS.map(|name| ("ag1988", name, "pt")).into_iter().chain([("s4", "s4d_pre", "pth")]);
    for (folder, name, ending) in models {
        let model = imported(folder, name, ending);
        let files = torch::to_torch(&model).unwrap_or_else(|e| panic!("{name}: {e}"));
        let settings = Some(Settings::from_yaml(&files.config).unwrap());
        let options =
            ImportOptions { settings, len: Some(model.meta().io.len), ..Default::default() };
        let back = import(&files.tensors, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(back.file, model, "{name}");
    }
}

#[test]
fn models_that_their_programs_lack_are_refused() {
    let refused = [
        ("block_nplr_s1", "s4"),
        ("block_diag_bilinear_s2", "zoh"),
        ("block_diag_zoh_s1_bidirectional", "direction"),
    ];
    for (name, word) in refused {
        let error = torch::to_torch(&imported("s4", name, "pth")).err().expect(name).to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
}

#[test]
fn steps_are_written_where_there_are_steps() {
    let refused = [
        ("ag1988", "exp_bidir_glu", "pt", "bidirectional"),
        ("ag1988", "exp_retrieval_wide", "pt", "two sequences"),
        ("ag1988", "softmax_trunc", "pt", "kernel_len"),
        ("s4", "block_nplr_s1", "pth", "s4"),
    ];
    for (folder, name, ending, word) in refused {
        let error = onnx::to_onnx(&imported(folder, name, ending)).expect_err(name).to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
    for (folder, name, ending) in
        [("ag1988", "softmax_bn_post", "pt"), ("s4", "block_diag_zoh_s2_softplus", "pth")]
    {
        let bytes = onnx::to_onnx(&imported(folder, name, ending)).unwrap();
        // ir_version = 8, and the names of the state.
        assert!(bytes.starts_with(&[0x08, 0x08]));
        let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        assert!(has(b"next_state") && has(b"next_pool") && has(b"dss_step"), "{name}");
    }
}
