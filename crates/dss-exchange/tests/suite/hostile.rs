//! Broken and malicious files: refused, or read without harm as `expected.tsv` allows.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dss_exchange::{ImportOptions, import};
use dss_infer::{Input, Model, Precision};

use crate::golden::{Tensors, distance, roots, settings};
use crate::memory::most_held;

/// What reading a file may hold, whatever it says about itself.
const MOST_BYTES: usize = 100 << 20;

#[test]
fn nothing_runs_and_nothing_breaks() {
    for root in roots() {
        let folder = root.join("hostile");
        let expected = fs::read_to_string(folder.join("expected.tsv")).unwrap();
        let io = Tensors::read(&root.join("ag1988/softmax_bn_post.io.safetensors"));
        let config = settings(&folder.join("hostile.config.yaml"));
        let mut count = 0;
        for line in expected.lines().skip(1) {
            let mut cells = line.split('\t');
            let (file, expect) = (cells.next().unwrap(), cells.next().unwrap());
            let Ok(bytes) = fs::read(folder.join(file)) else { continue };
            count += 1;
            let options = ImportOptions { settings: config.clone(), ..Default::default() };
            let begin = Instant::now();
            let (imported, held) = most_held(|| import(&bytes, &options));
            assert!(held < MOST_BYTES, "{file}: {} MB", held >> 20);
            assert!(begin.elapsed() < Duration::from_secs(5), "{file}: {:?}", begin.elapsed());
            match (expect, imported) {
                (_, Err(error)) => {
                    let text = error.to_string();
                    assert!(!text.is_empty() && !text.contains('\n'), "{file}: {text}");
                }
                ("refuse", Ok(_)) => panic!("{file} was imported"),
                ("either", Ok(imported)) => {
                    let bytes = imported.file.to_bytes(Precision::Full).unwrap();
                    let model = Model::from_bytes(&bytes).unwrap();
                    let worst = distance(&model, &io, "", "logits");
                    assert!(worst < 2e-6, "{file}: {worst:e}");
                }
                ("finite", Ok(imported)) => {
                    let bytes = imported.file.to_bytes(Precision::Full).unwrap();
                    let logits =
                        Model::from_bytes(&bytes).unwrap().forward(Input::Tokens(&[1, 2, 3]));
                    assert!(logits.unwrap().iter().all(|x| x.is_finite()), "{file}");
                }
                (other, _) => panic!("{other} is not an expectation"),
            }
        }
        assert!(count >= 20, "{count} files in {}", folder.display());
        assert!(!Path::new("PWNED").exists() && !folder.join("PWNED").exists());
    }
}

/// What the messages must say.
#[test]
fn messages_name_what_is_wrong() {
    let said = [
        ("missing_tensor.pt", "missing"),
        ("nan_weight.pt", "NaN"),
        ("inf_log_dt.pt", "log_dt"),
        ("negative_running_var.pt", "running_var"),
        ("unknown_extra_tensor.pt", "does not have"),
        ("w_wrong_n.pt", "but is ["),
        ("torchscript.pt", "TorchScript"),
        ("whole_module.pt", "state_dict()"),
        ("exec_in_place_of_a_tensor.pt", "which is not made"),
        ("huge_declaration.pt", "must be [8, 8]"),
    ];
    for root in roots() {
        let folder = root.join("hostile");
        let config = settings(&folder.join("hostile.config.yaml"));
        for (file, word) in said {
            let Ok(bytes) = fs::read(folder.join(file)) else { continue };
            let options = ImportOptions { settings: config.clone(), ..Default::default() };
            let error = import(&bytes, &options).expect_err(file).to_string();
            assert!(error.contains(word), "{file}: {error}");
        }
    }
}
