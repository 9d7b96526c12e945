//! What is written for other programs can be read back, or is refused with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use dss_exchange::export::{onnx, torch};
use dss_exchange::{ImportOptions, Settings, import};
use dss_format::mixer::S4Config;
use dss_format::{
    Array, CheckpointMeta, InputKind, MixerConfig, ModelConfig, ModelFile, ModelIo, Numbers,
    OutputKind,
};

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
    ];
    for (folder, name, ending, word) in refused {
        let error = onnx::to_onnx(&imported(folder, name, ending)).expect_err(name).to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
    for (folder, name, ending) in [
        ("ag1988", "softmax_bn_post", "pt"),
        ("s4", "block_diag_zoh_s2_softplus", "pth"),
        ("s4", "block_nplr_s1", "pth"),
        ("s4", "block_nplr_s2_softplus", "pth"),
        ("s4", "block_nplr_sH", "pth"),
    ] {
        let bytes = onnx::to_onnx(&imported(folder, name, ending)).unwrap();
        assert_step(name, &bytes);
    }
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

/// ir_version = 8, and the names of the state.
fn assert_step(name: &str, bytes: &[u8]) {
    assert!(bytes.starts_with(&[0x08, 0x08]), "{name}");
    assert!(
        has(bytes, "next_state") && has(bytes, "next_pool") && has(bytes, "dss_step"),
        "{name}"
    );
}

/// A model of this mixer whose numbers are all 0.1.
fn model(mixer: MixerConfig) -> ModelFile {
    let model = ModelConfig { layers: 1, h: 16, mixer, ..ModelConfig::default() };
    let input = InputKind::Values { channels: 1 };
    let io = ModelIo { input, output: OutputKind::Sequence { outputs: 2 }, len: 32 };
    let arrays = model.tensors(&io).into_iter().map(|spec| {
        let numbers = Numbers::F32(vec![0.1; spec.shape.iter().product()]);
        (spec.name, Array { shape: spec.shape, numbers })
    });
    ModelFile::new(CheckpointMeta::new(&model, &io), arrays.collect()).unwrap()
}

/// The reason why another mixer has no step names those that have one.
#[test]
fn the_mixers_with_a_step() {
    let export = |kind| onnx::to_onnx(&model(MixerConfig::default_for(kind).unwrap()));
    for kind in ["dss", "s4d", "s4", "lru", "s5", "gru", "lstm"] {
        assert_step(kind, &export(kind).unwrap_or_else(|e| panic!("{kind}: {e}")));
    }
    for kind in ["attention", "mega-ema", "exp-rnn"] {
        let error = export(kind).expect_err(kind).to_string();
        let said = format!("its mixer is {kind}; dss, s4d, s4, lru, s5, gru and lstm are written");
        assert!(error.contains(&said), "{error}");
    }
}

/// A kernel that is cut at the training length or later does not matter before, and the file says where it ends.
#[test]
fn kernels_that_are_cut_late_have_a_last_step() {
    let export = |kernel_len| {
        let s4 = S4Config { n: 4, kernel_len, ..S4Config::default() };
        onnx::to_onnx(&model(s4.into()))
    };
    assert!(!has(&export(0).unwrap(), "max_steps"));
    assert!(has(&export(32).unwrap(), "max_steps"));
    assert!(export(31).unwrap_err().to_string().contains("kernel_len"));
}
