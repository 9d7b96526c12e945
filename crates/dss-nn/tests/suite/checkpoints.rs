//! Checkpoints come back as they were, and damaged or foreign files are refused with a reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::configs::{self, dss, s4, s4d};
use burn::tensor::{Device, FloatDType, TensorData};
use dss_nn::checkpoint;
use dss_nn::config::{
    Delta, Discretisation, DssConfig, InputKind, ModelConfig, ModelIo, NormKind, OutputKind,
    S4dConfig, S4dInit, Variant,
};
use dss_nn::{Error, Model, ParamGroup};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

/// A directory that goes away with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dss-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn io(input: InputKind, output: OutputKind) -> ModelIo {
    ModelIo { input, output, len: 20 }
}

fn small() -> ModelConfig {
    configs::small(4, dss(3))
}

fn models() -> Vec<Model> {
    let tokens = InputKind::Tokens { vocab: 5 };
    let numbers = InputKind::Values { channels: 2 };
    let (sequence, position) =
        (OutputKind::Sequence { outputs: 3 }, OutputKind::Position { outputs: 1 });
    let pair = OutputKind::Pair { outputs: 2 };
    let layer_norm = ModelConfig { norm: NormKind::Layer, prenorm: true, ..small() };
    let tied = DssConfig { variant: Variant::Exp, delta: Delta::Tied, glu: true, ..dss(3) };
    let all = ModelConfig { mixer: tied.into(), bidirectional: true, prenorm: true, ..small() };
    let s4 = configs::small(4, s4(6));
    let lin = S4dConfig {
        lambda_init: S4dInit::Lin,
        discretisation: Discretisation::Bilinear,
        glu: true,
        ..s4d(6)
    };
    let s4d = ModelConfig { mixer: lin.into(), bidirectional: true, ..small() };
    let scalar = ModelConfig { norm: NormKind::LayerScalar, ..small() };
    let make = |config, io| Model::new(&config, &io, 3, &Device::flex()).unwrap();
    vec![
        make(small(), io(tokens, sequence)),
        make(layer_norm, io(numbers, position)),
        make(all, io(tokens, pair)),
        make(scalar, io(numbers, sequence)),
        make(s4.clone(), io(tokens, sequence)),
        make(ModelConfig { h: 1, bidirectional: true, ..s4 }, io(numbers, pair)),
        make(s4d, io(numbers, position)),
    ]
}

fn bytes(model: &Model) -> Vec<(String, TensorData)> {
    model.named_tensors()
}

#[test]
fn comes_back_bit_for_bit() {
    let directory = Directory::new("round-trip");
    for (i, model) in models().into_iter().enumerate() {
        for model in [model.clone(), model.cast(FloatDType::F64)] {
            let mut meta = model.meta();
            meta.task = serde_json::json!({"name": "listops", "digits": 10});
            meta.labels = (0..model.io().output.outputs()).map(|i| format!("class {i}")).collect();
            meta.seed = u64::MAX;
            meta.step = 17;
            meta.extra = BTreeMap::from([("best".into(), "0.5".into())]);
            let path = directory.0.join(format!("{i}.safetensors"));
            checkpoint::save(&path, &model, &meta).unwrap();
            let first = std::fs::read(&path).unwrap();
            let (back, back_meta) = checkpoint::load(&path, &Device::flex()).unwrap();
            assert_eq!(meta, back_meta);
            assert_eq!(meta, checkpoint::load_meta(&path).unwrap());
            assert_eq!(bytes(&model), bytes(&back));
            checkpoint::save(&path, &back, &back_meta).unwrap();
            assert_eq!(first, std::fs::read(&path).unwrap());
        }
    }
    let left: Vec<_> = std::fs::read_dir(&directory.0).unwrap().collect();
    assert_eq!(left.len(), models().len(), "no temporary file stays behind");
}

#[test]
fn names_and_shapes_are_the_documented_ones() {
    let of = |model: &Model| -> BTreeMap<String, Vec<usize>> {
        bytes(model).into_iter().map(|(n, d)| (n, d.shape().as_slice().to_vec())).collect()
    };
    let models = models();
    let plain = of(&models[0]);
    let expect = [
        ("encoder.weight", vec![5, 4]),
        ("layers.1.mixer.lambda", vec![3, 2]),
        ("layers.1.mixer.delta_log", vec![4, 2]),
        ("layers.1.mixer.w", vec![1, 4, 3, 2]),
        ("layers.1.mixer.d", vec![4]),
        ("layers.1.mixer.out.weight", vec![4, 4]),
        ("layers.1.mixer.out.bias", vec![4]),
        ("layers.1.norm.gamma", vec![4]),
        ("layers.1.norm.beta", vec![4]),
        ("layers.1.norm.running_mean", vec![4]),
        ("layers.1.norm.running_var", vec![4]),
        ("head.weight", vec![3, 4]),
        ("head.bias", vec![3]),
    ];
    for (name, shape) in &expect {
        assert_eq!(plain.get(*name), Some(shape), "{name}");
    }
    assert_eq!(plain.len(), 1 + 2 * 10 + 2);
    let numbers = of(&models[1]);
    assert_eq!(numbers["encoder.weight"], [4, 2]);
    assert_eq!(numbers["encoder.bias"], [4]);
    assert_eq!(numbers["norm.gamma"], [4]);
    let all = of(&models[2]);
    assert_eq!(all["layers.0.mixer.delta_log"], [4]);
    assert_eq!(all["layers.0.mixer.w"], [2, 4, 3, 2]);
    assert_eq!(all["layers.0.mixer.out.weight"], [8, 4]);
    assert_eq!(all["norm.running_var"], [4]);
    assert_eq!(all["head.hidden.weight"], [4, 16]);
    assert_eq!(all["head.out.weight"], [2, 4]);
    assert_eq!(of(&models[3])["layers.0.norm.gamma"], [1]);
    let s4 = of(&models[4]);
    for (name, shape) in [
        ("lambda_re", vec![3]),
        ("lambda_im", vec![3]),
        ("p", vec![3, 2]),
        ("b", vec![3, 2]),
        ("c", vec![1, 4, 3, 2]),
        ("delta_log", vec![4]),
        ("d", vec![4]),
        ("out.weight", vec![4, 4]),
        ("out.bias", vec![4]),
    ] {
        assert_eq!(s4.get(&format!("layers.1.mixer.{name}")), Some(&shape), "{name}");
    }
    assert_eq!(s4.len(), 1 + 2 * 13 + 2);
    assert_eq!(of(&models[5])["layers.0.mixer.delta_log"], [1]);
    let s4d = of(&models[6]);
    assert_eq!(s4d["layers.1.mixer.c"], [2, 4, 3, 2]);
    assert_eq!(s4d["layers.1.mixer.lambda_im"], [3]);
    assert_eq!(s4d.len(), 2 + 2 * 11 + 2);
    for model in &models {
        let elements: usize = of(model).values().map(|s| s.iter().product::<usize>()).sum();
        assert_eq!(model.config().tensor_elements(model.io()), Some(elements));
        for p in model.parameters() {
            let group = match p.name.rsplit('.').next().unwrap() {
                "lambda" | "lambda_re" | "lambda_im" | "p" | "b" => ParamGroup::Lambda,
                "delta_log" => ParamGroup::Delta,
                "w" | "c" => ParamGroup::W,
                _ => ParamGroup::Other,
            };
            assert_eq!(p.group, group);
            assert_eq!(p.trained, !p.name.contains("running"));
        }
    }
}

#[test]
fn damage_is_named() {
    let directory = Directory::new("damage");
    let path = directory.0.join("model.safetensors");
    let model = &models()[0];
    checkpoint::save(&path, model, &model.meta()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8], reason: &str| {
        std::fs::write(&path, bytes).unwrap();
        let error = checkpoint::load(&path, &Device::flex()).unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(reason) && text.contains("model.safetensors"), "{text}");
    };
    refused(b"hello", "safetensors");
    refused(&whole[..whole.len() - 1], "damaged");
    refused(&[], "safetensors");

    // The same file with other tensors or another text.
    let file = SafeTensors::deserialize(&whole).unwrap();
    let text = SafeTensors::read_metadata(&whole).unwrap().1.metadata().clone().unwrap();
    type Change<'a> = &'a dyn Fn(&str, Vec<u8>) -> Option<(String, Vec<u8>)>;
    let rewrite = |change: Change, text: &str| {
        let mut tensors = Vec::new();
        for (name, view) in file.iter() {
            if let Some((name, data)) = change(name, view.data().to_vec()) {
                tensors.push((name, view.shape().to_vec(), data));
            }
        }
        let views = tensors.iter().map(|(name, shape, data)| {
            (name, TensorView::new(safetensors::Dtype::F32, shape.clone(), data).unwrap())
        });
        safetensors::serialize(views, Some([("dss".to_string(), text.to_string())].into())).unwrap()
    };
    let keep = |name: &str, data: Vec<u8>| Some((name.to_string(), data));
    let json = &text["dss"];
    refused(
        &rewrite(&|name, data| (name != "head.bias").then(|| (name.into(), data)), json),
        "tensors",
    );
    let renamed = |name: &str, data| Some((name.replace("head.bias", "head.offset"), data));
    refused(&rewrite(&renamed, json), "head.bias");
    let poisoned = |name: &str, mut data: Vec<u8>| {
        if name == "layers.1.mixer.d" {
            data[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        Some((name.to_string(), data))
    };
    refused(&rewrite(&poisoned, json), "layers.1.mixer.d has the number NaN at index 1");
    refused(&rewrite(&keep, &json.replace("dss-1", "dss-9")), "dss-9");
    refused(&rewrite(&keep, &json.replace("\"layers\":2", "\"layers\":3")), "layers.2.");
    refused(&rewrite(&keep, &json.replace("\"h\":4", "\"h\":4000000000000")), "4000000000000");
    refused(&rewrite(&keep, &json.replace("\"glu\"", "\"glue\"")), "glue");
    refused(&safetensors::serialize(file.iter(), None).unwrap(), "no key `dss`");
}

/// Whichever bit of the file changes; a file without a checksum, from an older version, is read as it is.
#[test]
fn a_flipped_bit_is_noticed() {
    let directory = Directory::new("bits");
    let path = directory.0.join("model.safetensors");
    let model = &models()[0];
    checkpoint::save(&path, model, &model.meta()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let key = whole.windows(6).position(|bytes| bytes == b"sha256").unwrap();
    for at in (0..whole.len()).step_by(13).filter(|at| !(key..key + 6).contains(at)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 7);
        std::fs::write(&path, bytes).unwrap();
        assert!(checkpoint::load(&path, &Device::flex()).is_err(), "byte {at}");
    }
    let file = SafeTensors::deserialize(&whole).unwrap();
    let text = SafeTensors::read_metadata(&whole).unwrap().1.metadata().clone().unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text["dss"]).unwrap();
    assert!(json["extra"].as_object_mut().unwrap().remove("sha256").is_some());
    let old = safetensors::serialize(file.iter(), Some([("dss".into(), json.to_string())].into()));
    std::fs::write(&path, old.unwrap()).unwrap();
    checkpoint::load(&path, &Device::flex()).unwrap();
}

/// Sizes that do not fit the tensors, or that no S4 can have, are refused before anything is made of them.
#[test]
fn damaged_settings_of_s4_are_named() {
    let directory = Directory::new("s4-damage");
    let path = directory.0.join("model.safetensors");
    let model = &models()[4];
    checkpoint::save(&path, model, &model.meta()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let json = SafeTensors::read_metadata(&whole).unwrap().1.metadata().clone().unwrap();
    let json = &json["dss"];
    assert!(json.contains(r#""mixer":{"kind":"s4","n":6,"#), "{json}");
    let file = SafeTensors::deserialize(&whole).unwrap();
    for (from, to, reason) in [
        (r#""s4""#, r#""s4d""#, "configuration"),
        (r#""s4""#, r#""s9""#, "s9"),
        (r#""s4""#, r#""dss""#, "mixer.delta_log"),
        (r#""n":6"#, r#""n":7"#, "even"),
        (r#""n":6"#, r#""n":8"#, "mixer.b"),
        (r#""n":6"#, r#""n":60000000000"#, "from 2 to 1024"),
        (r#""len":20"#, r#""len":2000000000000"#, "at most"),
        (r#""s4""#, r#""s4","variant":"exp""#, "variant"),
        (r#""s4""#, r#""s4d","discretisation":"euler""#, "euler"),
    ] {
        let text = json.replace(from, to);
        assert_ne!(&text, json, "{from}");
        let meta = Some([("dss".to_string(), text)].into());
        std::fs::write(&path, safetensors::serialize(file.iter(), meta).unwrap()).unwrap();
        let error = checkpoint::load(&path, &Device::flex()).unwrap_err().to_string();
        assert!(error.contains(reason), "{from} {to}: {error}");
    }
}

/// The file of a model with this description in place of its own.
fn described(model: &Model, path: &Path, change: impl Fn(&mut serde_json::Value)) {
    checkpoint::save(path, model, &model.meta()).unwrap();
    let whole = std::fs::read(path).unwrap();
    let meta = SafeTensors::read_metadata(&whole).unwrap().1.metadata().clone().unwrap();
    let mut json = serde_json::from_str(&meta["dss"]).unwrap();
    change(&mut json);
    let file = SafeTensors::deserialize(&whole).unwrap();
    let meta = Some([("dss".to_string(), json.to_string())].into());
    std::fs::write(path, safetensors::serialize(file.iter(), meta).unwrap()).unwrap();
}

/// Version 0.1 wrote the settings of all mixers flat into the model, and no checksum.
#[test]
fn files_of_version_0_1_load() {
    let directory = Directory::new("version-0.1");
    let path = directory.0.join("model.safetensors");
    let common = r#""delta_min":0.001,"delta_max":0.1,"kernel_len":0,"dropout":0.0,"norm":"batch",
        "pool":"mean","mask_padding":false,"last_gain":1.0,"form":"auto","layers":2,"h":4"#;
    let models = models();
    for (model, own) in [
        (
            &models[0],
            r#""mixer":"dss","n":3,"variant":"softmax","delta":"separate","lambda_init":"skew-hippo",
               "s4d_init":"legs","discretisation":"zoh","bidirectional":false,"glu":false,"prenorm":false"#,
        ),
        (
            &models[2],
            r#""n":3,"variant":"exp","delta":"tied","lambda_init":"skew-hippo","bidirectional":true,
               "glu":true,"prenorm":true"#,
        ),
        (
            &models[4],
            r#""mixer":"s4","n":6,"variant":"softmax","delta":"separate","lambda_init":"skew-hippo",
               "s4d_init":"legs","discretisation":"zoh","bidirectional":false,"glu":false,"prenorm":false"#,
        ),
        (
            &models[6],
            r#""mixer":"s4d","n":6,"variant":"softmax","delta":"separate","lambda_init":"skew-hippo",
               "s4d_init":"lin","discretisation":"bilinear","bidirectional":true,"glu":true,"prenorm":false"#,
        ),
    ] {
        described(model, &path, |json| {
            json["model"] = serde_json::from_str(&format!("{{{own},{common}}}")).unwrap();
            json["extra"].as_object_mut().unwrap().remove("sha256");
        });
        let (back, meta) = checkpoint::load(&path, &Device::flex()).unwrap();
        assert_eq!((&meta.model, &meta.io), (model.config(), model.io()));
        assert_eq!(back.named_tensors(), model.named_tensors());
    }
}

/// A file that version 0.1 wrote.
#[test]
fn a_file_from_version_0_1() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dss-cli");
    if !program.is_dir() {
        return; // A package has no workspace around it.
    }
    let path = program.join("tests/data/words.safetensors");
    let (model, meta) = checkpoint::load(&path, &Device::flex()).unwrap();
    assert_eq!(model.meta().model, meta.model);
    assert_eq!(meta.model.mixer.kind(), "dss");
    assert_eq!(meta.labels.len(), meta.io.output.outputs());
}

/// Files from before there were other mixers.
#[test]
fn settings_without_a_mixer_are_those_of_dss() {
    let text = r#"{"layers": 2, "variant": "exp"}"#;
    let config: ModelConfig = serde_json::from_str(text).unwrap();
    let mixer = DssConfig { variant: Variant::Exp, ..DssConfig::default() }.into();
    assert_eq!(config, ModelConfig { layers: 2, mixer, ..ModelConfig::default() });
}

#[test]
fn unwritable_places_are_errors_and_leave_nothing() {
    let directory = Directory::new("unwritable");
    let model = &models()[0];
    let meta = model.meta();
    let missing = directory.0.join("nowhere").join("model.safetensors");
    assert!(matches!(checkpoint::save(missing, model, &meta), Err(Error::Io { .. })));
    // A directory cannot be replaced by a file.
    let taken = directory.0.join("taken");
    std::fs::create_dir(&taken).unwrap();
    assert!(matches!(checkpoint::save(&taken, model, &meta), Err(Error::Io { .. })));
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 1);
    let other = models()[1].meta();
    assert!(matches!(checkpoint::save(taken, model, &other), Err(Error::Invalid { .. })));
}
