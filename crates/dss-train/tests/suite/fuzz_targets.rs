//! What is fuzzed: every reader of a file that may come from a stranger or from a damaged disk. None may panic; what
//! they answer does not matter. Used by the targets of `cargo fuzz` and by the test that replays their corpus.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use dss_data::files::FilesConfig;
use dss_data::image::ImageConfig;
use dss_data::{
    Encoder, ForecastConfig, ListopsConfig, LmConfig, MnistConfig, ReadFile, TaskConfig,
};
use dss_exchange::{ImportOptions, Settings};
use dss_infer::{Input, State};
use dss_nn::{CheckpointMeta, InputKind, MixerConfig, ModelConfig, ModelIo, OutputKind};
use dss_train::Config;
use dss_train::answers::Answers;
use dss_train::run_dir::Record;

/// What reads bytes.
type Target = fn(&[u8]);

/// Everything there is, by the name of its folder in `corpus`.
pub const ALL: [(&str, Target); 14] = [
    ("checkpoint", checkpoint),
    ("state", state),
    ("metrics", metrics),
    ("answers", answers),
    ("config", config),
    ("texts", texts),
    ("table", table),
    ("sound", sound),
    ("array", array),
    ("pictures", pictures),
    ("datasets", datasets),
    ("archive", archive),
    ("import", import),
    ("stream_state", stream_state),
];

/// A file of these bytes.
struct Temporary(PathBuf);

impl Temporary {
    fn new(extension: &str, bytes: &[u8]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dss-fuzz-{}-{number}.{extension}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

/// A folder, such as that of a run, with these files.
fn folder_with(files: &[(&str, &[u8])]) -> Temporary {
    let folder = Temporary::new("folder", b"");
    std::fs::remove_file(&folder.0).unwrap();
    std::fs::create_dir(&folder.0).unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.0.join(name), bytes).unwrap());
    folder
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

fn read_as(encoder: &str, path: &Path) {
    let encoder: Encoder = serde_json::from_str(encoder).unwrap();
    let _ = encoder.read(path);
}

/// A model file: its description, its tensors, and how files become its input.
pub fn checkpoint(bytes: &[u8]) {
    let file = Temporary::new("safetensors", bytes);
    if let Ok((_, meta)) = dss_nn::checkpoint::load(&file.0, &burn::tensor::Device::flex()) {
        let _ = dss_train::predict::encoder(&meta);
    }
}

/// `last/state.json`.
pub fn state(bytes: &[u8]) {
    let file = Temporary::new("json", bytes);
    if let Ok(state) = dss_train::run_dir::TrainingState::load(&file.0) {
        let _ = state.epoch();
    }
}

/// `metrics.jsonl`, and what is computed from its scores.
pub fn metrics(bytes: &[u8]) {
    let records = dss_train::run_dir::read_metrics(&Temporary::new("jsonl", bytes).0);
    for record in records.into_iter().flatten() {
        if let Record::Val(record) | Record::Test(record) = record {
            let scores = record.scores;
            let _ = (scores.majority(), scores.macro_f1(), scores.with_baselines());
        }
    }
}

/// `answers.json`.
pub fn answers(bytes: &[u8]) {
    let _ = Answers::read(&folder_with(&[("answers.json", bytes)]).0);
}

/// `config.toml` of a run.
pub fn config(bytes: &[u8]) {
    let _ = Config::from_run(&folder_with(&[("config.toml", bytes)]).0);
}

/// Texts for a classifier, a language model and ListOps, and the table of a forecast.
pub fn texts(bytes: &[u8]) {
    let file = Temporary::new("txt", bytes);
    read_as(r#"{"kind":"text","alphabet":"bytes","len":50}"#, &file.0);
    read_as(r#"{"kind":"lm","unit":"char","symbols":["a","b"],"len":8}"#, &file.0);
    read_as(r#"{"kind":"listops","vocabulary":["<pad>","<unk>","<eos>","1"],"len":9}"#, &file.0);
    let forecast = r#"{"kind":"forecast","column":{"name":"OT","index":1},"input":4,"horizon":2,
        "mean":1.5,"deviation":2.0,"relative":true}"#;
    if let Ok(Encoder::Forecast(encoder)) = serde_json::from_str(forecast) {
        let _ = dss_data::forecast::window(&encoder, &Temporary::new("csv", bytes).0);
    }
}

/// Tables of numbers, tokens and texts, plain and gzipped, for prediction and with labels for training.
pub fn table(bytes: &[u8]) {
    let rows = r#"{"kind":"files","form":{"numbers":{"channels":1,"scaling":null,"rows":true,"stacked":false}},
        "columns":[{"name":"a","index":1},{"name":"b","index":2}],"len":30,"cut":false}"#;
    let texts = r#"{"kind":"files","form":"bytes","columns":[{"name":"text","index":1}],"len":9,"cut":true}"#;
    for extension in ["csv", "tsv"] {
        let file = Temporary::new(extension, bytes);
        read_as(r#"{"kind":"value-steps","channels":2,"len":50}"#, &file.0);
        read_as(r#"{"kind":"token-rows","vocab":10,"len":50}"#, &file.0);
        read_as(rows, &file.0);
        read_as(texts, &file.0);
        let path = file.0.to_string_lossy().into_owned();
        let labelled = FilesConfig { path, ..FilesConfig::default() };
        let _ = TaskConfig::Files(labelled).load(None, &|_| {});
    }
}

/// WAV and FLAC.
pub fn sound(bytes: &[u8]) {
    let encoder = r#"{"kind":"speech","form":"wave","rate":16000,"mean":[0.1],"divisor":[0.5]}"#;
    for extension in ["wav", "flac"] {
        read_as(encoder, &Temporary::new(extension, bytes).0);
    }
}

/// NPY.
pub fn array(bytes: &[u8]) {
    let encoder = r#"{"kind":"files","form":{"numbers":{"channels":1,"scaling":null,"rows":true,
        "stacked":false}},"columns":[],"len":30,"cut":false}"#;
    read_as(encoder, &Temporary::new("npy", bytes).0);
}

/// PNG and IDX.
pub fn pictures(bytes: &[u8]) {
    let encoder = r#"{"kind":"grey","mean":122.6,"sd":61.0}"#;
    for extension in ["png", "idx3-ubyte", "bin"] {
        read_as(encoder, &Temporary::new(extension, bytes).0);
    }
}

/// The files of data sets: labelled expressions, pictures with the labels of two, a text, a series.
pub fn datasets(bytes: &[u8]) {
    let labels = [0, 0, 8, 1, 0, 0, 0, 2, 3, 7];
    let expressions = ["basic_train.tsv", "basic_val.tsv", "basic_test.tsv"];
    let pictures = ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"].map(|name| (name, bytes));
    let labels =
        ["train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"].map(|name| (name, &labels[..]));
    let folder =
        folder_with(&[&expressions.map(|name| (name, bytes))[..], &pictures, &labels].concat());
    let dir = folder.0.to_string_lossy().into_owned();
    let path = folder.0.join(expressions[0]).to_string_lossy().into_owned();
    let tasks = [
        TaskConfig::Listops(ListopsConfig { dir: dir.clone(), ..Default::default() }),
        TaskConfig::Smnist(MnistConfig { dir, ..Default::default() }),
        TaskConfig::Lm(LmConfig { path: path.clone(), ..Default::default() }),
        TaskConfig::Forecast(ForecastConfig { path, ..Default::default() }),
    ];
    for task in tasks {
        let _ = task.load(None, &|_| {});
    }
}

/// A tar archive, plain or gzipped.
pub fn archive(bytes: &[u8]) {
    let file = Temporary::new("tar", bytes);
    let config = ImageConfig { dir: file.0.to_string_lossy().into_owned(), ..Default::default() };
    let _ = TaskConfig::Image(config).load(None, &|_| {});
}

/// Checkpoints of other programs (pickles in zip files, safetensors), and their configurations in YAML.
pub fn import(bytes: &[u8]) {
    let settings = std::str::from_utf8(bytes).ok().and_then(|text| Settings::from_yaml(text).ok());
    let _ = dss_exchange::import(bytes, &ImportOptions { settings, ..Default::default() });
}

/// The file of `dss stream --state`, for several kinds of state: the bytes in the place of the content, and the content
/// with the bytes added to its own. The marks of the model and the checksum are right, or nothing behind them would be
/// reached.
pub fn stream_state(bytes: &[u8]) {
    static MODELS: LazyLock<Vec<dss_infer::Model>> = LazyLock::new(|| {
        ["dss", "attention", "linear-attention", "nrde", "lstm"].map(small_model).into()
    });
    for model in &*MODELS {
        let fresh = model.state().and_then(|state| state.to_bytes(model)).unwrap();
        // Magic number, version and hash of the model; then the content; then the checksum.
        let (marks, rest) = fresh.split_at(20);
        let mut mixed = rest[..rest.len() - 8].to_vec();
        mixed.iter_mut().zip(bytes).for_each(|(own, byte)| *own = own.wrapping_add(*byte));
        for content in [bytes, &mixed] {
            let mut all = [marks, content].concat();
            let fnv = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let sum = all.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
            all.extend(sum.to_le_bytes());
            match State::from_bytes(model, &all) {
                Ok(mut state) => {
                    let _ = model.step(&mut state, Input::Values(&[0.5]), &mut [0.0; 2]);
                }
                Err(error) => assert_ne!(all, fresh, "{error}"),
            }
        }
    }
}

fn small_model(mixer: &str) -> dss_infer::Model {
    let mixer = MixerConfig::default_for(mixer).unwrap();
    let config = ModelConfig { layers: 1, h: 4, mixer, ..ModelConfig::default() };
    let io = ModelIo {
        input: InputKind::Values { channels: 1 },
        output: OutputKind::Sequence { outputs: 2 },
        len: 16,
    };
    let model = dss_nn::Model::new(&config, &io, 0, &burn::tensor::Device::flex()).unwrap();
    let file = Temporary::new("safetensors", b"");
    dss_nn::save(&file.0, &model, &CheckpointMeta::new(&config, &io)).unwrap();
    dss_infer::Model::load(&file.0).unwrap()
}
