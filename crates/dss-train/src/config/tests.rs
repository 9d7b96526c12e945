use dss_format::mixer::ssm::SsmSettings;
use dss_nn::config::{Delta, DssConfig, LambdaInit, S4Config, S4dConfig, Variant};
use dss_nn::{MixerConfig, ModelConfig};

use super::*;

/// The mixer's settings, which must be DSS's.
fn dss(config: &Config) -> DssConfig {
    match &config.model.mixer {
        MixerConfig::Dss(dss) => *dss,
        other => panic!("{other:?}"),
    }
}

/// What all state spaces share.
fn ssm(config: &Config) -> SsmSettings {
    config.model.mixer.settings().ssm().unwrap()
}

fn set(text: &str) -> Setting {
    text.parse().unwrap()
}

fn resolve(sets: &[&str]) -> crate::Result<Config> {
    let sets: Vec<_> = sets.iter().map(|s| set(s)).collect();
    Config::resolve("listops", Some("paper"), &[], &sets)
}

fn message(sets: &[&str]) -> String {
    resolve(sets).unwrap_err().to_string()
}

/// A file that removes itself.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dss-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn every_preset_resolves_and_survives_the_round_trip() {
    for preset in PRESETS {
        let config = Config::resolve(preset.task, Some(preset.name), &[], &[])
            .unwrap_or_else(|e| panic!("{}-{}: {e}", preset.task, preset.name));
        assert_eq!(config.task.name(), preset.task);
        let text = config.to_annotated_toml();
        assert_eq!(Config::from_toml(&text, "text").unwrap(), config, "{text}");
        assert!(preset.text.starts_with("# ") && preset.about().len() > 10, "{}", preset.about());
        for line in text.lines().filter(|l| l.contains('=')) {
            assert!(line.contains("# "), "no comment: {line}");
        }
    }
    for task in TaskConfig::NAMES {
        assert!(presets_of(task).any(|p| p.name == DEFAULT_PRESET), "{task}");
    }
}

#[test]
fn later_layers_win() {
    let first = TempFile::new("first.toml", "[model]\nh = 32\nn = 8\n[train]\nlr = 0.5\n");
    let second = TempFile::new("second.toml", "[model]\nn = 16\n");
    let files = [first.0.clone(), second.0.clone()];
    let c = Config::resolve("listops", Some("paper"), &files, &[set("train.lr=0.25")]).unwrap();
    assert_eq!((c.model.layers, c.model.h, ssm(&c).n, c.train.lr), (6, 32, 16, 0.25));
}

#[test]
fn a_run_can_be_changed() {
    let own = resolve(&["h=32"]).unwrap();
    let longer = own.changed(&[], &[set("epochs=80")]).unwrap();
    assert_eq!((longer.model.h, longer.train.epochs), (32, 80));
    assert_eq!(longer.changed(&[], &[set("train.epochs=50")]).unwrap(), own);
    assert!(own.changed(&[], &[set("epoch=80")]).is_err());
}

#[test]
fn values_are_toml_and_bare_words_strings() {
    let c = resolve(&["variant=exp-no-scale", "model.norm=\"layer\"", "lr=1", "glu=true"]).unwrap();
    assert_eq!(dss(&c).variant, Variant::ExpNoScale);
    assert_eq!((c.model.norm, c.train.lr, dss(&c).glu), (dss_nn::NormKind::Layer, 1.0, true));
}

#[test]
fn unknown_names_bring_the_nearest_one() {
    for (given, nearest) in [
        ("learning_rate=1", "train.lr"),
        ("train.bacth=1", "train.batch"),
        ("model.lr=1", "train.lr"),
        ("modle.layers=1", "model.layers"),
        ("droput=0.1", "model.dropout"),
        ("d_model=64", "model.h"),
        ("model.variants=exp", "model.mixer.variant"),
    ] {
        let message = message(&[given]);
        let key = given.split('=').next().unwrap();
        assert!(message.contains(&format!("unknown key `{key}`")), "{message}");
        assert!(message.contains(&format!("did you mean `{nearest}`")), "{message}");
        assert!(message.starts_with(&format!("--set {given}")), "{message}");
    }
    let error = Config::resolve("lisptops", None, &[], &[]).unwrap_err().to_string();
    assert_eq!(error, "unknown task `lisptops`; did you mean `listops`?");
    let error = Config::resolve("listops", Some("papr"), &[], &[]).unwrap_err().to_string();
    assert_eq!(error, "task `listops` has no preset `papr`; it has: laptop, causal, paper");
}

#[test]
fn a_file_is_named_with_the_line() {
    let from = |text: &str| Config::from_toml(text, "my.toml").unwrap_err().to_string();
    let head = "[task]\nname = \"listops\"\n";
    assert_eq!(
        from(&format!("{head}[train]\n\nepoch = 3\n")),
        "my.toml, line 5: unknown key `train.epoch`; did you mean `train.epochs`?"
    );
    assert_eq!(
        from(&format!("{head}[trian]\nepochs = 3\n")),
        "my.toml, line 3: unknown section [trian]; did you mean `train`?"
    );
    assert_eq!(
        from(&format!("lr = 3\n{head}")),
        "my.toml, line 1: unknown key `lr`; did you mean `train.lr`?"
    );
    assert!(from(&format!("{head}[train]\nepochs = \n")).starts_with("my.toml, line 4: "));
    assert!(from("[train]\nepochs = 3\n").contains("names no task"));
    let file = TempFile::new("other.toml", "[task]\nd = 10\nname = \"delay\"\n");
    let error = Config::resolve("listops", None, std::slice::from_ref(&file.0), &[])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("this is a configuration of task `delay`, not of `listops`"),
        "{error}"
    );
    let missing = PathBuf::from("no-such-file.toml");
    let error = Config::resolve("listops", None, &[missing], &[]).unwrap_err().to_string();
    assert!(error.starts_with("cannot read no-such-file.toml"), "{error}");
}

#[test]
fn wrong_values_are_named_with_what_is_allowed() {
    for (given, parts) in [
        ("h=0", ["--set h=0: [model] h ", "0", "at least 1"]),
        ("delta_max=0.00001", ["--set delta_max=0.00001: [model] ", "delta_min", "delta_max"]),
        ("h=many", ["model.h", "many", "expected a whole number"]),
        ("norm=bach", ["model.norm", "bach", "`batch`"]),
        ("mixer=s9", ["--set mixer=s9", "model.mixer.kind", "dss, s4, s4d"]),
        ("layers=0", ["[model] layers ", "0", "at least 1"]),
        ("dropout=1.0", ["[model] dropout ", "1", "below 1"]),
        ("delta_min=0.5", ["delta_min", "0.5", "delta_max"]),
        ("batch=0", ["train.batch", "0", "at least 1"]),
        ("lr=-0.1", ["train.lr", "-0.1", "greater than 0"]),
        ("lr=nan", ["train.lr", "NaN", "greater than 0"]),
        ("lr_w=-1", ["train.lr_w", "-1", "at least 0"]),
        ("plateau_factor=1.5", ["train.plateau_factor", "1.5", "below 1"]),
        ("batch=-3", ["train.batch", "-3", "expected a whole number"]),
        ("batch=many", ["train.batch", "many", "expected a whole number"]),
        ("max_steps=many", ["train.max_steps", "many", "expected a whole number"]),
        ("task.train=0.5", ["task.train", "0.5", "expected a whole number"]),
        ("lr=many", ["train.lr", "many", "expected a number"]),
        ("variant=softmx", ["model.mixer.variant", "softmx", "`softmax`"]),
        ("schedule=cosin", ["train.schedule", "cosin", "`cosine`"]),
        ("average=1", ["train.average", "1", "below 1"]),
        ("depth_factor=0", ["train.depth_factor", "0", "at most 1"]),
        ("freeze=7", ["train.freeze", "7", "at most model.layers"]),
        ("objective=next", ["train.objective", "next", "`pretrain`"]),
    ] {
        let message = message(&[given]);
        assert!(parts.iter().all(|part| message.contains(part)), "{given}: {message}");
    }
}

/// The paper's table with its exceptions for DSS: depth, H, norm, pre-norm, dropout, learning rate, batch, epochs, weight
/// decay, patience, learning rate of Δ_log, pooling.
#[test]
fn paper_presets_are_the_papers_rows() {
    use dss_nn::NormKind::{Batch, Layer};
    use dss_nn::config::Pool::{Last, Mean};
    let rows = [
        ("listops", (6, 128, Batch, false, 0.0), (0.01, 50, 50, 0.01, 5, 0.02), Mean),
        ("text", (4, 128, Batch, true, 0.0), (0.01, 50, 40, 0.0, 10, 0.02), Last),
        ("retrieval", (6, 256, Batch, true, 0.0), (0.002, 64, 25, 0.0, 20, 0.001), Mean),
        ("image", (6, 512, Layer, false, 0.2), (0.004, 50, 200, 0.01, 10, 0.001), Mean),
        ("pathfinder", (6, 256, Batch, true, 0.1), (0.004, 100, 200, 0.0, 13, 0.001), Last),
        ("path-x", (6, 256, Batch, true, 0.0), (0.0005, 16, 35, 0.0, 40, 0.0001), Mean),
        ("speech", (6, 128, Batch, true, 0.1), (0.01, 20, 200, 0.0, 20, 0.001), Mean),
    ];
    for (task, model, train, pool) in rows {
        let Config { model: m, train: t, .. } =
            Config::resolve(task, Some("paper"), &[], &[]).unwrap();
        assert_eq!((m.layers, m.h, m.norm, m.prenorm, m.dropout), model, "{task}");
        let found = (t.lr, t.batch, t.epochs, t.weight_decay, t.patience, t.lr_delta);
        assert_eq!(found, train, "{task}");
        let mixer = m.mixer.settings().ssm().unwrap();
        assert_eq!((mixer.n, m.pool, t.lr_lambda, t.lr_w), (64, pool, 0.001, 0.001), "{task}");
        let range = if task == "path-x" { (0.0001, 0.01) } else { (0.001, 0.1) };
        assert_eq!((mixer.delta_min, mixer.delta_max), range, "{task}");
        assert_eq!((t.schedule, t.plateau_factor), (Schedule::Plateau, 0.2), "{task}");
    }
    let authors = Config::resolve("image", Some("authors"), &[], &[]).unwrap();
    assert_eq!(authors.model.norm, Batch);
}

#[test]
fn every_value_tells_where_it_comes_from() {
    let sets = [set("h=64")];
    let request = |preset: Option<&str>, sets: &[Setting]| {
        let preset = preset.map(str::to_owned);
        Request { task: "listops".into(), preset, sets: sets.to_vec(), ..Request::default() }
    };
    let (config, sources) = request(Some("paper"), &sets).resolve().unwrap();
    assert_eq!(sources.source("train.lr"), "paper's table");
    assert_eq!(sources.source("train.lr_delta"), "paper's exception for DSS");
    assert_eq!(sources.source("model.mixer.n"), "authors' code");
    assert_eq!(sources.source("model.h"), "--set");
    assert_eq!(sources.source("model.form"), "default");
    let text = config.to_sourced_toml(&sources);
    assert!(text.contains("[paper's table]") && text.contains("[default]"), "{text}");
    assert_eq!(Config::from_toml(&text, "text").unwrap(), config);
    let (_, laptop) = request(None, &[]).resolve().unwrap();
    assert_eq!(laptop.source("train.epochs"), "our choice");
    for preset in PRESETS.iter().filter(|p| p.name == "paper") {
        for line in preset.text.lines().filter(|line| line.contains('=')) {
            assert!(line.contains("  # "), "{} {line}", preset.task);
        }
    }
}

fn modelled(task: &str, preset: &str, model: &str, ablations: &[&str]) -> Request {
    Request {
        task: task.into(),
        preset: Some(preset.into()),
        model: (!model.is_empty()).then(|| model.into()),
        ablations: ablations.iter().map(|name| name.to_string()).collect(),
        ..Request::default()
    }
}

/// The Transformer looks ahead, but not as a language model.
#[test]
fn language_models_are_causal() {
    let mut request = modelled("lm", "laptop", "transformer", &[]);
    let (config, sources) = request.resolve().unwrap();
    assert!(!config.model.bidirectional);
    assert_eq!(sources.source("model.bidirectional"), "lm: must not look ahead");
    assert!(
        modelled("listops", "laptop", "transformer", &[]).resolve().unwrap().0.model.bidirectional
    );
    request.sets.push(set("bidirectional=true"));
    assert!(request.resolve().unwrap_err().to_string().contains("must not look ahead"));

    let error =
        |model| modelled("lm", "laptop", model, &[]).resolve().map_err(|e| e.to_string()).err();
    let causal = ["dss-softmax", "s4", "gru", "transformer"];
    for model in causal {
        assert_eq!(error(model), None, "{model}");
    }
    for model in ["luna", "fnet", "bigbird", "nystromformer", "wavegan-d"] {
        let error = error(model).unwrap();
        assert!(causal.iter().all(|causal| error.contains(causal)), "{error}");
        assert!(!error.contains("bidirectional"), "{error}");
    }
}

/// A wrong value of a setting of a mixer is named, with the values that it can have.
#[test]
fn kernels_of_performer_are_named() {
    let mut request = modelled("listops", "laptop", "performer", &[]);
    request.sets.push(set("kernel=softmax"));
    let message = request.resolve().unwrap_err().to_string();
    assert!(message.contains("kernel"), "{message}");
    assert!(message.contains("relu") && message.contains("favor"), "{message}");
    request.sets = vec![set("kernel=favor"), set("features=2")];
    let MixerConfig::Performer(mixer) = request.resolve().unwrap().0.model.mixer else { panic!() };
    assert_eq!((mixer.features, mixer.heads), (2, 4));
    request.sets = vec![set("heads=5")];
    let message = request.resolve().unwrap_err().to_string();
    assert!(message.contains("heads must divide the width 64, but is 5: try 4"), "{message}");
}

/// A length that does not fit is refused before any data are read, if the task knows how long its sequences are.
#[test]
fn lengths_are_checked_where_they_are_known() {
    for (rate, len) in [("16000", 16_000), ("8000", 8000)] {
        let mut request = modelled("speech", "laptop", "nystromformer", &[]);
        request.sets = vec![set(&format!("rate={rate}")), set("padded_len=4096")];
        let message = request.resolve().unwrap_err().to_string();
        assert!(message.starts_with("--set padded_len=4096: "), "{message}");
        assert!(message.contains(&format!("at least the {len} positions")), "{message}");
    }
}

/// Every model and ablation goes with every preset, and back through a file.
#[test]
fn models_and_ablations_go_with_any_preset() {
    for preset in PRESETS {
        let resolve = |model: &str, ablations: &[&str]| {
            let request = modelled(preset.task, preset.name, model, ablations);
            let (config, _) = request
                .resolve()
                .unwrap_or_else(|e| panic!("{}-{} {model}: {e}", preset.task, preset.name));
            let text = config.to_annotated_toml();
            assert_eq!(Config::from_toml(&text, "text").unwrap(), config, "{text}");
            config
        };
        for model in MODELS {
            let causal = ModelConfig {
                bidirectional: false,
                mixer: MixerConfig::default_for(model.mixers[0]).unwrap(),
                ..ModelConfig::default()
            };
            let refused = match preset.task {
                "lm" => causal.validate(1).is_err(),
                "delay" | "forecast" => model.name == "wavegan-d",
                _ => false,
            };
            if refused {
                let request = modelled(preset.task, preset.name, model.name, &[]);
                let error = request.resolve().unwrap_err().to_string();
                let reasons = ["language model", "not about every position"];
                assert!(reasons.iter().any(|why| error.contains(why)), "{}: {error}", model.name);
                continue;
            }
            let m = resolve(model.name, &[]).model;
            assert_eq!(m.mixer.settings().title(), model.label);
            assert!(model.mixers.contains(&m.mixer.kind()), "{}", model.name);
            if m.mixer.settings().ssm().is_some() {
                assert_eq!(ssm(&resolve(model.name, &["kernel-128"])).kernel_len, 128);
            }
        }
        let m = dss(&resolve("", &["random-init", "exp-no-scale", "tied-delta"]));
        assert_eq!(
            (m.lambda_init, m.variant, m.delta),
            (LambdaInit::Random, Variant::ExpNoScale, Delta::Tied)
        );
    }
    for overlay in MODELS.iter().chain(ABLATIONS) {
        assert!(overlay.text.starts_with("# ") && overlay.about().len() > 10, "{}", overlay.name);
    }
}

/// The paper's table without the exceptions for DSS: depth, H, learning rate, batch, epochs, weight decay, patience.
#[test]
fn s4_has_the_papers_rows() {
    for (task, row) in [
        ("listops", (6, 128, 0.01, 50, 50, 0.01, 5)),
        ("text", (4, 128, 0.01, 50, 40, 0.0, 10)),
        ("retrieval", (6, 256, 0.002, 64, 25, 0.0, 20)),
        ("image", (6, 512, 0.004, 50, 200, 0.01, 10)),
        ("pathfinder", (6, 256, 0.004, 100, 200, 0.0, 10)),
        ("path-x", (6, 256, 0.0005, 32, 100, 0.0, 40)),
        ("speech", (6, 128, 0.01, 20, 200, 0.0, 20)),
    ] {
        let (Config { model: m, train: t, .. }, sources) =
            modelled(task, "paper", "s4", &[]).resolve().unwrap();
        let found = (m.layers, m.h, t.lr, t.batch, t.epochs, t.weight_decay, t.patience);
        assert_eq!(found, row, "{task}");
        let s4 = S4Config { n: 64, delta_min: 0.001, delta_max: 0.1, ..S4Config::default() };
        assert_eq!((m.mixer, t.lr_lambda, t.lr_delta), (s4.into(), 1e-3, 1e-3), "{task}");
        assert_eq!(t.lr_w, t.lr, "{task}");
        for key in
            ["model.mixer.kind", "train.lr", "train.lr_w", "train.lr_delta", "train.patience"]
        {
            assert!(!sources.source(key).contains("DSS"), "{task} {key}: {}", sources.source(key));
        }
    }
}

#[test]
fn models_tell_where_their_values_come_from() {
    let mut request = modelled("path-x", "paper", "s4", &["kernel-128"]);
    request.sets.push(set("lr_delta=0.5"));
    let (_, sources) = request.resolve().unwrap();
    assert_eq!(sources.source("model.mixer.kind"), "--model s4");
    assert_eq!(sources.source("model.mixer.kernel_len"), "--ablation kernel-128");
    assert_eq!(sources.source("train.lr_lambda"), "S4's code");
    assert_eq!(sources.source("train.lr_w"), "S4's code: as lr");
    assert_eq!(sources.source("train.batch"), "paper's table");
    assert_eq!(sources.source("train.lr_delta"), "--set");
    assert_eq!(sources.source("model.h"), "paper's table");
    let (_, sources) = modelled("listops", "paper", "transformer", &[]).resolve().unwrap();
    assert_eq!(sources.source("model.mixer.heads"), "Long Range Arena's code");
    assert_eq!(sources.source("train.lr"), "Long Range Arena's code: 0.05/√warmup_steps");
    assert_eq!(sources.source("task.train"), "Long Range Arena");
    assert_eq!(sources.source("model.norm_eps"), "--model transformer");
}

#[test]
fn models_and_ablations_that_do_not_go_together_are_refused() {
    let refused = |model, ablations: &[&str], sets: &[&str]| {
        let mut request = modelled("listops", "paper", model, ablations);
        request.sets = sets.iter().map(|text| set(text)).collect();
        request.resolve().unwrap_err().to_string()
    };
    for ablation in ["random-init", "exp-no-scale", "tied-delta"] {
        for model in ["s4", "s4d"] {
            let error = refused(model, &[ablation], &[]);
            let what = format!("applies to mixer dss only, but the mixer is {model}");
            assert_eq!(error, format!("--ablation {ablation} {what}"));
        }
    }
    assert!(refused("s9", &[], &[]).contains("dss-exp-no-scale, s4, s4d"));
    assert!(refused("", &["no-kernel"], &[]).contains("random-init, kernel-128"));
    let error = refused("s4", &[], &["n=7"]);
    assert!(error.starts_with("--set n=7: [model] n must be even"), "{error}");
    let error = refused("s4", &[], &["variant=exp"]);
    assert!(error.starts_with("--set variant=exp: ") && error.contains("mixer is s4"), "{error}");
    let model = with_model(&dss_nn::ModelConfig::default(), "s4d", &[]).unwrap();
    let s4d = S4dConfig::default().into();
    assert_eq!(model, dss_nn::ModelConfig { mixer: s4d, ..Default::default() });
}

#[test]
fn settings_of_a_model_are_laid_over_it() {
    let with = |sets: &[&str]| {
        let sets: Vec<Setting> = sets.iter().map(|text| set(text)).collect();
        with_model(&ModelConfig::default(), "dss-softmax", &sets)
    };
    let model = with(&["ssms=128", "dropout=0.5"]).unwrap();
    let dss = DssConfig { ssms: 128, ..DssConfig::default() };
    assert_eq!((model.mixer, model.dropout), (dss.into(), 0.5));
    let error = with(&["ssms=5"]).unwrap_err().to_string();
    assert!(error.starts_with("--set ssms=5: ") && error.contains("try 4"), "{error}");
    let error = with(&["lr=0.5"]).unwrap_err().to_string();
    assert_eq!(error, "--set lr=0.5: expected a setting of [model] or [model.mixer]");
}

/// What version 0.1 wrote into run directories: the settings of all mixers flat in `[model]`.
fn version_0_1(mixer: &str) -> String {
    format!(
        r#"[task]
name = "delay"
d = 40

[model]
layers = 3
h = 24
n = 10
{mixer}
delta_min = 0.002
delta_max = 0.2
kernel_len = 30
bidirectional = true
glu = true
norm = "layer"
prenorm = true
last_gain = 1.0
dropout = 0.1
mask_padding = false
pool = "mean"
form = "auto"

[train]
lr = 0.004
"#
    )
}

#[test]
fn files_of_version_0_1_mean_the_same() {
    let others = "s4d_init = \"legs\"\ndiscretisation = \"zoh\"";
    let unused = "variant = \"softmax\"\ndelta = \"separate\"\nlambda_init = \"skew-hippo\"";
    for (flat, nested) in [
        // Before there were other mixers.
        (
            "variant = \"exp\"\ndelta = \"tied\"\nlambda_init = \"random\"".to_owned(),
            "kind = \"dss\"\nvariant = \"exp\"\ndelta = \"tied\"\nlambda_init = \"random\"",
        ),
        (
            format!("variant = \"exp-no-scale\"\nmixer = \"dss\"\n{others}"),
            "kind = \"dss\"\nvariant = \"exp-no-scale\"",
        ),
        (format!("{unused}\nmixer = \"s4\"\n{others}"), "kind = \"s4\""),
        (
            format!("{unused}\nmixer = \"s4d\"\ns4d_init = \"inv\"\ndiscretisation = \"bilinear\""),
            "kind = \"s4d\"\nlambda_init = \"inv\"\ndiscretisation = \"bilinear\"",
        ),
    ] {
        let nested = format!(
            r#"[task]
name = "delay"
d = 40

[model]
layers = 3
h = 24
bidirectional = true
norm = "layer"
prenorm = true
dropout = 0.1

[model.mixer]
{nested}
n = 10
delta_min = 0.002
delta_max = 0.2
kernel_len = 30
glu = true

[train]
lr = 0.004
"#
        );
        let old = Config::from_toml(&version_0_1(&flat), "config.toml").unwrap();
        assert_eq!(old, Config::from_toml(&nested, "config.toml").unwrap(), "{flat}");
        assert_eq!(Config::from_toml(&old.to_annotated_toml(), "text").unwrap(), old);
        let ssm = ssm(&old);
        assert_eq!((ssm.n, ssm.delta_min, ssm.kernel_len, ssm.glu), (10, 0.002, 30, true));
    }
    let wrong = version_0_1("variant = \"exp\"\nmixer = \"s4\"");
    let error = Config::from_toml(&wrong, "config.toml").unwrap_err().to_string();
    assert!(error.starts_with("config.toml, line 9: ") && error.contains("variant"), "{error}");
}

/// The settings that both mixers have stay; the others are those of the new one.
#[test]
fn another_mixer_keeps_what_both_have() {
    let old = resolve(&["n=10", "glu=true", "variant=exp", "model.mixer.lambda_init=random"]);
    for kind in ["s4", "s4d"] {
        let sets = [set(&format!("mixer={kind}"))];
        let new = old.as_ref().unwrap().changed(&[], &sets).unwrap();
        let expected = MixerConfig::default_for(kind).unwrap();
        assert_eq!((new.model.mixer.kind(), ssm(&new).n, ssm(&new).glu), (kind, 10, true));
        assert_eq!(new.model.h, old.as_ref().unwrap().model.h);
        if let (MixerConfig::S4d(new), MixerConfig::S4d(expected)) = (new.model.mixer, expected) {
            assert_eq!(new, S4dConfig { n: 10, glu: true, ..expected });
        }
    }
    let lin = resolve(&["mixer=s4d", "n=12", "model.mixer.lambda_init=lin"]).unwrap();
    let back = lin.changed(&[], &[set("mixer=dss")]).unwrap();
    assert_eq!(dss(&back), DssConfig { n: 12, ..DssConfig::default() });
    // In any order of the settings, and in a file too.
    let sets = ["variant=softmax", "n=12", "model.mixer.kind=s4", "model.kernel_len=9"];
    let s4 = S4Config { n: 12, kernel_len: 9, ..S4Config::default() };
    assert_eq!(resolve(&sets).unwrap().model.mixer, s4.into());
    let file = TempFile::new("mixer.toml", "[model.mixer]\nn = 6\nkind = \"s4d\"\n");
    let files = std::slice::from_ref(&file.0);
    let config = Config::resolve("listops", Some("paper"), files, &[]).unwrap();
    assert_eq!(config.model.mixer, S4dConfig { n: 6, ..S4dConfig::default() }.into());
}

/// `task.cache` of version 0.1: files and checkpoints may have it, nothing writes it, and it cannot be set.
#[test]
fn an_obsolete_key_is_accepted_in_files_only() {
    let old = "[task]\nname = \"listops\"\ncache = \"x\"\n";
    let config = Config::from_toml(old, "old.toml").unwrap();
    assert_eq!(config, Config::from_toml("[task]\nname = \"listops\"\n", "new.toml").unwrap());
    assert!(!config.flat().contains_key("task.cache"));
    let set = Config::resolve("listops", None, &[], &[set("task.cache=x")]).unwrap_err();
    assert!(set.to_string().contains("unknown key `task.cache`"), "{set}");
    let meta = serde_json::json!({ "name": "listops", "cache": "" });
    assert_eq!(serde_json::from_value::<dss_data::TaskConfig>(meta).unwrap(), config.task);
}
