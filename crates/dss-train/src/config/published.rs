//! The settings that models were published with, in `presets/paper`: they resolve, they are sourced, and their models
//! have as many parameters as the published ones.

use dss_data::TaskConfig;
use dss_nn::ModelConfig;
use dss_nn::config::{InputKind, ModelIo, OutputKind, Positions};

use super::presets::PUBLISHED;
use super::{Config, MODELS, Request, Schedule};

fn paper(task: &str, model: &str) -> Config {
    let request = Request {
        task: task.into(),
        preset: Some("paper".into()),
        model: Some(model.into()),
        ..Request::default()
    };
    request.resolve().unwrap_or_else(|error| panic!("{task} {model}: {error}")).0
}

#[test]
fn files_are_tables_of_tasks_with_a_source_for_every_value() {
    for published in PUBLISHED {
        let about = published.text.lines().next().unwrap();
        assert!(about.starts_with("# ") && about.len() > 10, "{about}");
        let root: toml::Table = published.text.parse().unwrap();
        for (task, table) in &root {
            assert!(TaskConfig::NAMES.contains(&task.as_str()), "{}: {task}", published.name);
            assert!(table.is_table(), "{}: {task}", published.name);
        }
        for line in published.text.lines().filter(|line| line.contains('=')) {
            assert!(line.contains("  # "), "{}: {line}", published.name);
        }
        for model in published.models {
            assert!(MODELS.iter().any(|known| known.name == *model), "{model}");
        }
    }
}

/// `--preset paper` is the published model, not DSS's sizes with another mixer.
#[test]
fn the_transformer_of_listops_is_that_of_the_long_range_arena() {
    let Config { model: m, train: t, .. } = paper("listops", "transformer");
    assert_eq!((m.layers, m.h, m.ff, m.dropout), (4, 512, 1024, 0.1));
    assert_eq!((t.batch, t.max_steps, t.warmup_steps), (32, 5000, 1000));
    assert_eq!((t.schedule, t.weight_decay, t.beta2, t.eps), (Schedule::Rsqrt, 0.1, 0.98, 1e-9));
    assert!((t.lr - 0.05 / 1000f64.sqrt()).abs() < 1e-9);
    // Another preset of the task has the model's own overlay only.
    let laptop =
        Request { task: "listops".into(), model: Some("transformer".into()), ..Request::default() };
    assert_eq!(laptop.resolve().unwrap().0.model.h, 64);
}

/// No limit of epochs cuts the published number of steps.
#[test]
fn all_steps_are_made() {
    let examples = [
        ("listops", 96_000),
        ("text", 25_000),
        ("retrieval", 147_086),
        ("image", 45_000),
        ("pathfinder", 160_000),
        ("path-x", 160_000),
    ];
    for (task, examples) in examples {
        for model in MODELS {
            let train = paper(task, model.name).train;
            if train.max_steps > 0 {
                let steps = train.total_steps(train.steps_per_epoch(examples));
                assert_eq!(steps, train.max_steps, "{task} {}", model.name);
            }
        }
    }
}

/// Trained numbers of the parts whose names begin with one of `parts`.
fn count(model: &ModelConfig, io: &ModelIo, parts: &[&str]) -> usize {
    let tensors = model.tensors(io).into_iter().filter(|tensor| tensor.trained);
    let counted = tensors.filter(|tensor| parts.iter().any(|part| tensor.name.starts_with(part)));
    counted.map(|tensor| tensor.elements().unwrap()).sum()
}

fn tokens(len: usize, outputs: usize) -> ModelIo {
    ModelIo {
        input: InputKind::Tokens { vocab: 20 },
        output: OutputKind::Sequence { outputs },
        len,
    }
}

fn values(len: usize, channels: usize) -> ModelIo {
    let output = OutputKind::Sequence { outputs: 10 };
    ModelIo { input: InputKind::Values { channels }, output, len }
}

/// Everything but what turns the input into H channels, which for pictures is another map here (real numbers, not 256
/// tokens).
const WITHOUT_ENCODER: &[&str] =
    &["layers.", "stages.", "norm.", "cls", "positions", "head.", "side."];

/// The Long Range Arena's models, without their token tables.
#[test]
fn models_of_the_long_range_arena_have_the_published_parameters() {
    let image = |h: usize| 256 * h;
    for (task, model, io, published) in [
        ("listops", "transformer", tokens(2000, 10), 8_940_042),
        ("listops", "bigbird", tokens(2000, 10), 8_940_042),
        ("listops", "linear-transformer", tokens(2000, 10), 8_940_042),
        ("listops", "performer", tokens(2000, 10), 8_940_042),
        ("listops", "reformer", tokens(2000, 10), 6_842_890),
        ("text", "transformer", tokens(2048, 2), 3_420_930),
        ("text", "bigbird", tokens(2048, 2), 3_420_930),
        ("text", "linear-transformer", tokens(2048, 2), 3_420_930),
        ("text", "performer", tokens(2048, 2), 3_420_930),
        ("text", "reformer", tokens(2048, 2), 2_896_642),
        ("image", "transformer", values(1024, 1), 248_458 - image(128)),
        ("image", "bigbird", values(1024, 1), 248_458 - image(128)),
        ("image", "linear-transformer", values(1024, 1), 248_458 - image(128)),
        ("image", "performer", values(1024, 1), 248_458 - image(128)),
        ("image", "reformer", values(1024, 1), 154_058 - image(64)),
    ] {
        let found = count(&paper(task, model).model, &io, WITHOUT_ENCODER);
        assert_eq!(found, published, "{task} {model}");
    }
    for (model, published) in [
        ("transformer", 26_530 - image(32)),
        ("performer", 26_530 - image(32)),
        ("bigbird", 87_874 - image(64)),
        ("linear-transformer", 116_098 - image(128)),
        ("reformer", 54_338 - image(64)),
    ] {
        let io = ModelIo { output: OutputKind::Sequence { outputs: 2 }, ..values(1024, 1) };
        let found = count(&paper("pathfinder", model).model, &io, WITHOUT_ENCODER);
        assert_eq!(found, published, "pathfinder {model}");
    }
}

/// Heads of pairs differ: theirs maps [a, b] to M, M/2 and 2 numbers, ours [a, b, a·b, a − b] to M and 2.
#[test]
fn models_of_retrieval_have_the_published_parameters_before_their_heads() {
    let (h, m) = (128, 512);
    let head = (2 * h * m + m) + (m * m / 2 + m / 2) + (2 * m / 2 + 2);
    let io = ModelIo { output: OutputKind::Pair { outputs: 2 }, ..tokens(4000, 2) };
    for (model, published) in [
        ("transformer", 1_054_850),
        ("bigbird", 1_054_850),
        ("linear-transformer", 1_054_850),
        ("performer", 1_054_850),
        ("reformer", 923_778),
    ] {
        let found = count(&paper("retrieval", model).model, &io, &["layers.", "norm.", "cls"]);
        assert_eq!(found + head, published, "{model}");
    }
}

/// Published without heads and, for Nyströmformer, apart from positions, whose table is longer there than the sequences.
#[test]
fn nystromformer_and_luna_have_the_published_parameters() {
    for (task, luna) in [
        ("listops", 4_074_496),
        ("text", 4_017_152),
        ("retrieval", 1_025_536),
        ("image", 62_720),
        ("pathfinder", 182_656),
    ] {
        let io = tokens(1024, 10);
        let nystromformer = paper(task, "nystromformer").model;
        assert_eq!(nystromformer.positions, Positions::Learned);
        assert_eq!(count(&nystromformer, &io, &["layers.", "norm."]), 67_212, "{task}");
        assert_eq!(count(&paper(task, "luna").model, &io, &["layers.", "side."]), luna, "{task}");
    }
}

#[test]
fn models_of_speech_have_the_published_parameters() {
    let (mfcc, raw) = (values(161, 20), values(16_000, 1));
    let all = |task: &str, model: &str, io: &ModelIo| count(&paper(task, model).model, io, &[""]);
    assert_eq!(all("speech-mfcc", "transformer", &mfcc), 797_322);
    assert_eq!(all("speech-mfcc", "performer", &mfcc), 533_130);
    assert_eq!(all("speech", "performer", &raw), 530_698);
    assert_eq!(all("speech", "wavegan-d", &raw), 26_286_310);
    let mut original = paper("speech", "wavegan-d").model;
    original.mixer =
        toml::from_str("kind = \"wavegan-d\"\nvariant = \"original\"\nconvs = 1").unwrap();
    assert_eq!(count(&original, &raw, &[""]), 17_575_434);
}

/// Recurrent nets read H channels here, the encoder's, and are followed by norms: with what that adds they are the
/// published ones. (CKConv has one convolution per block here and two there, Neural CDE matrices of its own.)
#[test]
fn recurrent_nets_of_speech_have_the_published_cells() {
    let (io, channels) = (values(161, 20), 20);
    let cell = |model: &str| count(&paper("speech-mfcc", model).model, &io, &["layers.0.mixer."]);
    let head = |h: usize| 10 * h + 10;
    let h = 128;
    assert_eq!(cell("ode-rnn"), 87_946 - head(h) + 3 * h * (h - channels));
    let n = 256;
    // A, and the map of the input with its bias, as in S4's code, and modReLU's.
    assert_eq!(cell("exp-rnn"), 65_536 + (n * n + n) + 256);
    assert_eq!(cell("lipschitz-rnn"), 32_768 + (h * h + h));
}
