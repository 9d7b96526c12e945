use std::fs;

use burn::tensor::Device;
use dss_train::Scores;
use dss_train::answers::{Answer, Answers, InputOutline, Outcome};
use dss_train::config::{Config, Setting};
use dss_train::environment::Environment;
use dss_train::run_dir::{EvalRecord, Record, TrainRecord, TrainingState};

use super::*;
use crate::text::count;

/// A run directory under the system's folder for temporary files, or under `DSS_REPORT_DIR` to look at it.
struct TestRun {
    dir: PathBuf,
    keep: bool,
}

impl TestRun {
    fn new(name: &str, task: &str, sets: &[(&str, &str)]) -> Self {
        let keep = std::env::var_os("DSS_REPORT_DIR");
        let root = keep.clone().map_or_else(std::env::temp_dir, PathBuf::from);
        let name =
            if keep.is_some() { name.to_owned() } else { format!("{name}-{}", std::process::id()) };
        let dir = root.join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("last")).unwrap();
        let sets: Vec<_> = sets.iter().map(|(k, v)| Setting::typed(k, v)).collect();
        let config = Config::resolve(task, None, &[], &sets).unwrap();
        fs::write(dir.join("config.toml"), config.to_annotated_toml()).unwrap();
        Self { dir, keep: keep.is_some() }
    }

    fn metrics(&self, records: &[Record]) {
        let lines: String =
            records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect();
        fs::write(self.dir.join("metrics.jsonl"), lines).unwrap();
    }

    fn state(&self, step: u64, steps_per_epoch: u64) {
        let split_hash = "5f2d".repeat(16);
        let state = TrainingState { step, steps_per_epoch, split_hash, ..TrainingState::default() };
        fs::write(self.dir.join("last/state.json"), serde_json::to_string(&state).unwrap())
            .unwrap();
    }

    fn answers(&self, step: u64, worst: Vec<Answer>, sample: Vec<Answer>) {
        Answers { step, worst, sample }.write(&self.dir).unwrap();
    }

    fn report(&self) -> String {
        let path = write_report(&self.dir).unwrap();
        assert_eq!(path, self.dir.join("report.html"));
        let page = fs::read_to_string(path).unwrap();
        balanced(&page);
        page
    }
}

impl Drop for TestRun {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Every tag is closed, in order, and nothing is loaded from elsewhere.
fn balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.split("</style>").nth(1).unwrap();
    for part in body.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name =
            tag.trim_start_matches('/').split([' ', '\n']).next().unwrap().trim_end_matches('/');
        if tag.starts_with('/') {
            let last = open.pop();
            if !["head", "html"].contains(&name) {
                assert_eq!(last, Some(name), "in {tag}");
            } else if last.is_some() {
                open.extend(last);
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for foreign in ["http://", "https://", "<script", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

/// Noise in [-1, 1) that is the same each time.
fn noise(i: u64) -> f64 {
    let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ (x >> 29)) % 2000) as f64 / 1000.0 - 1.0
}

fn train(step: u64, classes: bool) -> Record {
    let falls = (-(step as f64) / 900.0).exp();
    Record::Train(TrainRecord {
        step,
        epoch: step / 400 + 1,
        loss: (0.6 + 1.7 * falls) * (1.0 + 0.12 * noise(step)),
        accuracy: classes.then(|| 0.78 - 0.66 * falls + 0.05 * noise(step + 7)),
        lr: if step < 2800 { 0.01 } else { 0.002 },
        samples_per_s: 210.0 + 8.0 * noise(step + 3),
        seconds: step as f64 * 0.09,
        peak_mb: Some(180.0 + step as f64 * 0.01),
    })
}

fn scores(step: u64, classes: bool) -> Scores {
    let falls = (-(step as f64) / 900.0).exp();
    let loss = 0.75 + 1.5 * falls;
    Scores {
        loss,
        accuracy: classes.then(|| 0.74 - 0.6 * falls + 0.01 * noise(step)),
        mse: (!classes).then_some(loss),
        examples: 1000,
        ..Scores::default()
    }
}

fn eval(step: u64, scores: Scores, best: bool) -> EvalRecord {
    let (epoch, seconds) = (step.div_ceil(400), step as f64 * 0.09 + 1.0);
    EvalRecord { step, epoch, scores, best, seconds, peak_mb: Some(222.0) }
}

/// Writes a small model of 11 layers; returns how many numbers of it are trained.
fn checkpoint(path: &Path, labels: &[String]) -> usize {
    use dss_nn::config::{DssConfig, InputKind, ModelConfig, ModelIo, NormKind, OutputKind};
    use dss_nn::{CheckpointMeta, Model};
    let mixer = DssConfig { n: 4, ..DssConfig::default() }.into();
    let norm = NormKind::Batch;
    let config = ModelConfig { layers: 11, h: 4, mixer, norm, ..ModelConfig::default() };
    let (input, output) = (InputKind::Tokens { vocab: 18 }, OutputKind::Sequence { outputs: 10 });
    let io = ModelIo { input, output, len: 200 };
    let model = Model::new(&config, &io, 0, &Device::flex()).unwrap();
    let meta = CheckpointMeta { labels: labels.to_vec(), ..model.meta() };
    dss_nn::checkpoint::save(path, &model, &meta).unwrap();
    let statistics = 11 * 2 * 4;
    config.tensor_elements(model.io()).unwrap() - statistics
}

#[test]
fn a_finished_classification() {
    let made =
        TestRun::new("listops-laptop-0", "listops", &[("task.dir", "<b>odd & \"strange\"</b>")]);
    let mut records = Vec::new();
    for step in 1..=4000 {
        if step % 4 == 0 {
            records.push(train(step, true));
        }
        if step % 400 == 0 {
            records.push(Record::Val(eval(step, scores(step, true), step <= 3600)));
        }
    }
    let matrix: Vec<Vec<u64>> = (0..10u64)
        .map(|i| {
            (0..10u64).map(|j| if i == j { 60 + 5 * i } else { (i * 7 + j * 3) % 9 }).collect()
        })
        .collect();
    let test = Scores { accuracy: Some(0.7234), confusion: Some(matrix), ..scores(3600, true) };
    records.push(Record::Test(eval(3600, test, true)));
    made.metrics(&records);
    made.state(4000, 400);
    Environment::current(2, None).write(&made.dir).unwrap();
    let labels: Vec<String> =
        (0..10).map(|i| if i == 3 { "<three>".to_owned() } else { i.to_string() }).collect();
    let trained = checkpoint(&made.dir.join("best.safetensors"), &labels);
    let outcome = Outcome::Class { class: 3, likeliest: vec![(7, 0.9), (3, 0.1)] };
    let inputs = vec![InputOutline::Text("[MAX 1 <2> ]".into())];
    made.answers(3600, vec![Answer { example: 41, loss: 2.3, inputs, outcome }], Vec::new());

    let page = made.report();
    assert!(page.contains("<pre class=\"input\">[MAX 1 &lt;2&gt; ]</pre>"));
    let judged = "Example 42: label <b>&lt;three&gt;</b>, answer 7 (90.00\u{a0}%), &lt;three&gt; (10.00\u{a0}%)";
    assert!(page.contains(judged), "{page}");
    assert!(page.contains("macro F1: "));
    assert!(page.contains("72.34\u{a0}%") && page.contains("Test accuracy"));
    assert!(page.contains("&lt;three&gt;") && !page.contains("<three>"));
    assert!(page.contains("&lt;b&gt;odd &amp; &quot;strange&quot;&lt;/b&gt;"));
    assert_eq!(page.matches("<svg class=\"picture\"").count(), 4 + 5);
    assert!(page.contains("most frequent class: "));
    assert!(!page.contains("not finished"));
    assert!(page.find("layers.2.mixer.w") < page.find("layers.10.mixer.w"));
    assert!(page.contains("layers.0.norm.running_mean</code> <span"));
    assert!(page.contains(&count(trained as u64)) && page.contains("L = 200"), "parameters");
    assert!(page.contains(dss_kernels::simd_name()) && page.contains(&"5f2d".repeat(16)));
    assert!(page.len() < 400_000, "{} bytes", page.len());
}

#[test]
fn an_interrupted_regression() {
    let made = TestRun::new("adding-laptop-0", "adding", &[("epochs", "20")]);
    let mut records: Vec<Record> = (1..=150).map(|i| train(4 * i, false)).collect();
    records.push(Record::Val(eval(400, scores(400, false), true)));
    made.metrics(&records);
    made.state(600, 200);
    let page = made.report();
    assert!(page.contains("not finished") && page.contains("step 600 of 4\u{202f}000"), "{page}");
    assert!(page.contains("Best validation mean squared error"));
    assert!(!page.contains("Accuracy") && !page.contains("Confusion matrix"));
    assert_eq!(page.matches("<svg class=\"picture\"").count(), 3);
}

fn values(example: usize, inputs: Vec<InputOutline>, positions: Vec<usize>) -> Answer {
    let shape = if positions.is_empty() { 1 } else { positions.len() };
    let targets: Vec<f32> = (0..shape).map(|i| (0.3 * (example + i) as f32).sin() + 1.0).collect();
    let outputs = targets.iter().map(|t| f64::from(*t) + 0.1 * noise(example as u64)).collect();
    Answer { example, loss: 0.01, inputs, outcome: Outcome::Values { positions, targets, outputs } }
}

fn wave(channels: usize, positions: usize) -> InputOutline {
    let data = (0..channels * positions).map(|i| (0.07 * i as f32).sin()).collect();
    InputOutline::Values { channels, positions, data }
}

#[test]
fn answers_of_a_regression() {
    let made = TestRun::new("adding-answers", "adding", &[]);
    made.metrics(&[train(4, false), Record::Test(eval(4, scores(4, false), true))]);
    let dots = || (0..300).map(|i| values(i, Vec::new(), Vec::new())).collect();
    let worst = [1, 2, 9].map(|channels| values(channels, vec![wave(channels, 80)], Vec::new()));
    made.answers(4, worst.to_vec(), dots());
    let page = made.report();
    assert!(page.contains("id=\"scatter\"") && page.matches("<circle").count() >= 300);
    // Lines of one and two channels, and rows of pixels of nine.
    assert_eq!(page.matches("<svg class=\"picture\" id=\"worst-").count(), 3);
    assert_eq!(page.matches("data:image/png").count(), 1);
    // Those of another model are not shown.
    made.answers(5, Vec::new(), dots());
    assert!(!made.report().contains("id=\"scatter\""));
    fs::write(made.dir.join("answers.json"), "{").unwrap();
    assert!(write_report(&made.dir).unwrap_err().to_string().contains("answers.json"));
}

#[test]
fn forecasts_beside_the_truth() {
    let made = TestRun::new("forecast-answers", "forecast", &[("task.path", "a.csv")]);
    made.metrics(&[train(4, false), Record::Test(eval(4, scores(4, false), true))]);
    let window = |i: usize| values(i, vec![wave(1, 60)], (48..60).collect());
    made.answers(4, vec![window(0)], vec![window(0), window(100)]);
    let page = made.report();
    assert_eq!(page.matches("<svg class=\"picture\" id=\"forecast-").count(), 2);
    assert_eq!(page.matches("<svg class=\"picture\" id=\"worst-0\"").count(), 1);
    assert!(
        page.contains("Forecast, test window 101") && page.contains("steps after the last known")
    );
}

#[test]
fn pictures_are_pictures() {
    let made = TestRun::new("smnist-answers", "smnist", &[]);
    made.metrics(&[train(4, true), Record::Test(eval(4, scores(4, true), true))]);
    let outcome = Outcome::Class { class: 1, likeliest: vec![(0, 1.0)] };
    let answer = |example, inputs| Answer { example, loss: 9.0, inputs, outcome: outcome.clone() };
    made.answers(4, vec![answer(0, vec![wave(1, 784)]), answer(1, vec![wave(0, 784)])], Vec::new());
    let page = made.report();
    assert_eq!(page.matches("data:image/png").count(), 1);
}

#[test]
fn a_language_model_writes() {
    use dss_nn::config::{DssConfig, InputKind, ModelConfig, ModelIo, OutputKind};
    let made = TestRun::new("lm-answers", "lm", &[("task.path", "a.txt")]);
    let mixer = DssConfig { n: 4, variant: dss_nn::config::Variant::Exp, ..DssConfig::default() };
    let config = ModelConfig { layers: 1, h: 4, mixer: mixer.into(), ..ModelConfig::default() };
    let output = OutputKind::Position { outputs: 3 };
    let io = ModelIo { input: InputKind::Tokens { vocab: 3 }, output, len: 32 };
    let model = dss_nn::Model::new(&config, &io, 0, &Device::flex()).unwrap();
    let mut meta = dss_nn::CheckpointMeta { labels: vec!["a".into(); 3], ..model.meta() };
    let encoder = r#"{"kind":"lm","unit":"char","symbols":["\n","<","b"],"len":32}"#;
    meta.extra.insert(dss_format::encoder::ENCODER.into(), encoder.into());
    dss_nn::checkpoint::save(made.dir.join("best.safetensors"), &model, &meta).unwrap();
    let page = made.report();
    let text = page.split("<pre class=\"input\">").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(text.replace("&lt;", "<").chars().count(), 600, "{text}");
    assert!(text.contains("&lt;") && text.contains('b'));
}

#[test]
fn a_run_that_has_hardly_begun() {
    let made = TestRun::new("delay-laptop-0", "delay", &[]);
    let page = made.report();
    assert!(page.contains("not finished") && !page.contains("<svg class=\"picture\""));
    made.metrics(&[train(1, true)]);
    assert!(made.report().contains("<circle"));
}

#[test]
fn no_run_is_an_error() {
    let error = write_report(Path::new("no-such-run")).unwrap_err().to_string();
    assert!(error.contains("config.toml"), "{error}");
}
