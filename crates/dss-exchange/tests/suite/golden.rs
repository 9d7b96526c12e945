//! Every stored checkpoint gives the logits of its own program, or is refused by the name of an option.
//!
//! A few are in `tests/golden`; the whole collection is used too where it is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dss_exchange::{ImportOptions, Imported, Settings, import};
use dss_infer::{Input, Model, Precision};
use safetensors::SafeTensors;

/// Distance from their program's logits in f64.
const TOLERANCE: f64 = 2e-6;
/// Of a half-precision file the logits of the rounded weights are stored; the same tolerance.
const ENDINGS: [&str; 5] = ["pt", "pth", "ckpt", "safetensors", "msgpack"];

/// The folders with checkpoints: ours, and the whole collection.
pub fn roots() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut roots = vec![here.join("tests/golden")];
    let all = here.join("../../../shared/golden/public/torch");
    let all = if all.exists() { all } else { here.join("../../../../shared/golden/public/torch") };
    if all.exists() {
        roots.push(all);
    } else {
        eprintln!("skipped: the whole collection of checkpoints is not at {}", all.display());
    }
    roots
}

pub fn settings(path: &Path) -> Option<Settings> {
    let text = fs::read_to_string(path).ok()?;
    Some(Settings::from_yaml(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// The checkpoints of a folder, with the name of their model.
fn checkpoints(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let other = [".io.", ".expected."].iter().any(|part| name.contains(part));
        if ENDINGS.contains(&ending.as_str()) && !other {
            all.push((name.split('.').next().unwrap().to_owned(), path));
        }
    }
    all.sort();
    all
}

pub struct Tensors(BTreeMap<String, (Vec<usize>, Vec<f64>)>);

impl Tensors {
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.iter().map(|(name, view)| {
            let bytes = view.data();
            let numbers = match format!("{:?}", view.dtype()).as_str() {
                "F64" => {
                    bytes.chunks(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect()
                }
                "F32" => bytes
                    .chunks(4)
                    .map(|x| f32::from_le_bytes(x.try_into().unwrap()).into())
                    .collect(),
                "I64" => bytes
                    .chunks(8)
                    .map(|x| i64::from_le_bytes(x.try_into().unwrap()) as f64)
                    .collect(),
                other => panic!("{name} is {other}"),
            };
            (name.to_owned(), (view.shape().to_vec(), numbers))
        });
        Self(tensors.collect())
    }

    pub fn get(&self, name: &str) -> Option<&(Vec<usize>, Vec<f64>)> {
        self.0.get(name)
    }
}

/// The length L of a batch.
fn batch_len(io: &Tensors, prefix: &str) -> usize {
    let input = io.get(&format!("{prefix}tokens")).or_else(|| io.get(&format!("{prefix}values")));
    input.expect("an input").0[1]
}

/// The greatest distance of a model's logits from those of `prefix` in the file.
pub fn distance(model: &Model, io: &Tensors, prefix: &str, logits: &str) -> f64 {
    let name = |part: &str| format!("{prefix}{part}");
    let tokens = io.get(&name("tokens"));
    let (shape, input) = tokens.or_else(|| io.get(&name("values"))).expect("an input");
    let (batch, l) = (shape[0], shape[1]);
    let width: usize = shape[1..].iter().product();
    let lengths = io.get(&name("lengths")).map(|(_, lengths)| lengths.clone());
    let (_, wanted) = io.get(logits).expect("logits");
    let sequence = |i: usize| {
        let length = lengths.as_ref().map_or(l, |lengths| lengths[i] as usize);
        &input[i * width..][..length * width / l]
    };
    let run = |rows: &[usize]| -> Vec<f32> {
        let ids: Vec<Vec<u32>> =
            rows.iter().map(|&i| sequence(i).iter().map(|&x| x as u32).collect()).collect();
        let values: Vec<Vec<f32>> =
            rows.iter().map(|&i| sequence(i).iter().map(|&x| x as f32).collect()).collect();
        let inputs: Vec<Input<'_>> = match tokens {
            Some(_) => ids.iter().map(|x| Input::Tokens(x)).collect(),
            None => values.iter().map(|x| Input::Values(x)).collect(),
        };
        match inputs[..] {
            [one] => model.forward(one).unwrap(),
            [first, second] => model.forward_pair(first, second).unwrap(),
            _ => unreachable!(),
        }
    };
    let outputs = model.outputs();
    let pairs = wanted.len() / outputs * 2 == batch;
    let count = wanted.len() / outputs;
    let mut worst = 0f64;
    for i in 0..count {
        let found = if pairs { run(&[i, count + i]) } else { run(&[i]) };
        for (found, wanted) in found.iter().zip(&wanted[i * outputs..]) {
            worst = worst.max((f64::from(*found) - wanted).abs());
        }
    }
    worst
}

fn model(imported: &Imported) -> Model {
    Model::from_bytes(&imported.file.to_bytes(Precision::Full).unwrap()).unwrap()
}

#[test]
fn the_logits_of_their_programs() {
    let mut count = 0;
    for root in roots() {
        for folder in ["ag1988", "s4", "annotated-s4"] {
            for (name, path) in checkpoints(&root.join(folder)) {
                count += 1;
                let shown = path.display();
                let config = path.with_file_name(format!("{name}.config.yaml"));
                let io = Tensors::read(&path.with_file_name(format!("{name}.io.safetensors")));
                let bytes = fs::read(&path).unwrap();
                for prefix in ["", "short."] {
                    let logits = format!("{prefix}logits");
                    if io.get(&logits).is_none() {
                        continue;
                    }
                    let len = Some(batch_len(&io, prefix));
                    let options =
                        ImportOptions { settings: settings(&config), len, ..Default::default() };
                    let imported = import(&bytes, &options);
                    let imported = imported.unwrap_or_else(|e| panic!("{shown}: {e}"));
                    let worst = distance(&model(&imported), &io, prefix, &logits);
                    assert!(worst < TOLERANCE, "{shown} {prefix}: {worst:e}");
                }
            }
        }
    }
    assert!(count >= 10, "{count}");
}

/// A Lightning file says everything itself.
#[test]
fn lightning_files_need_no_other_configuration() {
    for root in roots() {
        for folder in ["ag1988", "s4"] {
            for (name, path) in checkpoints(&root.join(folder)) {
                if path.extension().unwrap() != "ckpt" {
                    continue;
                }
                let io = Tensors::read(&path.with_file_name(format!("{name}.io.safetensors")));
                let imported = import(&fs::read(&path).unwrap(), &ImportOptions::default());
                let imported = imported.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let worst = distance(&model(&imported), &io, "", "logits");
                assert!(worst < TOLERANCE, "{}: {worst:e}", path.display());
            }
        }
    }
}

#[test]
fn unusual_but_legal_files() {
    for root in roots() {
        let folder = root.join("unusual");
        for (_, path) in checkpoints(&folder) {
            let io = Tensors::read(&folder.join("unusual.io.safetensors"));
            let stem = path.file_name().unwrap().to_string_lossy().into_owned();
            let stem = stem.trim_end_matches(".pt").trim_end_matches(".safetensors").to_owned();
            let options = ImportOptions {
                settings: settings(&folder.join("unusual.config.yaml")),
                ..Default::default()
            };
            let imported = import(&fs::read(&path).unwrap(), &options);
            let imported = imported.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let names =
                [format!("logits.{stem}"), format!("logits.{}", stem.replace(".legacy", ""))];
            let logits = names.iter().find(|name| io.get(name).is_some());
            let logits = logits.unwrap_or_else(|| panic!("no logits for {stem}"));
            let worst = distance(&model(&imported), &io, "", logits);
            assert!(worst < TOLERANCE, "{}: {worst:e}", path.display());
        }
    }
}

/// Sound checkpoints of models that we do not have: the option is named.
#[test]
fn refused_by_the_name_of_the_option() {
    let words = [
        ("hyper_act", "hyper_act"),
        ("channels_2", "channels"),
        ("bidirectional_truncated", "max_kernel_length"),
        ("clip", "version: clip"),
        ("exp_re_im", "version: exp-re-im"),
        ("affine_residual", "residual"),
        ("pool_4", "pool.pool: 4"),
        ("retrieval_relu", "activation: relu"),
        ("retrieval_not_nli", "nli"),
        ("decoder_sum", "decoder.mode: sum"),
    ];
    // Those that leave tensors behind need no configuration.
    let by_tensors =
        ["hyper_act", "channels_2", "exp_re_im", "affine_residual", "retrieval_not_nli"];
    for root in roots() {
        for (name, path) in checkpoints(&root.join("refuse")) {
            let (_, word) = words.iter().find(|(known, _)| *known == name).expect("a known file");
            let bytes = fs::read(&path).unwrap();
            let config = settings(&path.with_file_name(format!("{name}.config.yaml")));
            let with = ImportOptions { settings: config, len: Some(20), ..Default::default() };
            let error = import(&bytes, &with).expect_err(&name).to_string();
            assert!(error.contains(word), "{name}: {error}");
            let without = ImportOptions { len: Some(20), ..Default::default() };
            match import(&bytes, &without) {
                Err(error) => assert!(by_tensors.contains(&&*name), "{name}: {error}"),
                Ok(imported) => {
                    assert!(!by_tensors.contains(&&*name), "{name}");
                    assert!(!imported.notes.is_empty(), "{name}: nothing is said to be assumed");
                }
            }
        }
    }
}

/// What annotated-s4 has and ours do not, and what its tensors do not say.
#[test]
fn other_models_of_annotated_s4() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/annotated-s4");
    let bytes = fs::read(folder.join("s4d_pre.safetensors")).unwrap();
    let import_with = |bytes: &[u8], text: &str| {
        let settings = Some(Settings::from_yaml(text).unwrap());
        import(bytes, &ImportOptions { settings, ..Default::default() })
    };
    for (text, word) in [
        ("classification: false", "classification: false"),
        ("model: {embedding: true}", "embedding: true"),
    ] {
        let error = import_with(&bytes, text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    // A low-rank layer has P beside C.
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<_> = file.iter().collect();
    let p = file.tensor("layers_0.seq.B_re").unwrap();
    tensors.push(("layers_0.seq.P", p));
    let low_rank = safetensors::serialize(tensors, None).unwrap();
    let error = import_with(&low_rank, "layer: s4").unwrap_err().to_string();
    assert!(error.contains("layer: s4") && error.contains("low-rank"), "{error}");
    // Nothing is known but the tensors: all is assumed but the length of a softmax.
    let imported = import(&bytes, &ImportOptions::default()).unwrap();
    assert_eq!(imported.notes.len(), 3, "{:?}", imported.notes);
    let dss = fs::read(folder.join("dss_pre.msgpack")).unwrap();
    let error = import(&dss, &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--len"), "{error}");
}
