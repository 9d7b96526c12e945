//! Whole inspections of small models.

use std::fs;
use std::path::PathBuf;

use burn::tensor::{Device, TensorData};
use dss_nn::config::{
    BigbirdConfig, Delta, DssConfig, HTransformer1dConfig, LambdaInit, ReformerConfig, S4Config,
    S4dConfig, Variant,
};
use dss_nn::{InputKind, MixerConfig, ModelIo, OutputKind};

use super::*;

fn dss() -> DssConfig {
    DssConfig { n: 4, ..DssConfig::default() }
}

fn with_mixer(mixer: impl Into<MixerConfig>) -> ModelConfig {
    ModelConfig { layers: 2, h: 5, mixer: mixer.into(), ..ModelConfig::default() }
}

fn config() -> ModelConfig {
    with_mixer(dss())
}

fn s4() -> MixerConfig {
    S4Config { n: 4, ..S4Config::default() }.into()
}

fn s4d() -> MixerConfig {
    S4dConfig { n: 4, ..S4dConfig::default() }.into()
}

/// A model with some of its tensors replaced.
fn inspection(config: ModelConfig, len: usize, change: impl Fn(&str, &mut [f64])) -> Inspection {
    let io = ModelIo {
        input: InputKind::Values { channels: 1 },
        output: OutputKind::Sequence { outputs: 3 },
        len,
    };
    let model = Model::new(&config, &io, 5, &Device::flex()).unwrap().cast(FloatDType::F64);
    let tensors = model.named_tensors().into_iter().map(|(name, data)| {
        let shape = data.shape().clone();
        let mut values: Vec<f64> = data.iter::<f64>().collect();
        change(&name, &mut values);
        (name, TensorData::new(values, shape))
    });
    let tensors = tensors.collect();
    let model = model.load_named(tensors).unwrap();
    let meta = model.meta();
    Inspection::new(model, meta)
}

/// Every tag is closed in order, attributes are quoted, and `&` and `<` are only where they may be.
fn well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut parts = xml.split('<');
    assert_eq!(parts.next(), Some(""));
    for part in parts {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        for entity in text.split('&').skip(1).chain(tag.split('&').skip(1)) {
            let name = entity.split(';').next().unwrap();
            assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "{entity}");
        }
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    // Images are letters of any kind.
    let mut parts = xml.split("base64,");
    let first = parts.next().unwrap();
    let text: String =
        parts.map(|part| part.split_once('"').expect("an attribute ends").1).collect();
    for text in [first, &text] {
        assert!(!text.contains("NaN") && !text.contains("inf\""), "a number is not finite");
    }
}

#[test]
fn kernels_made_by_hand_give_their_numbers() {
    // exp-no-scale with one mode: K = Re(W·e^{λΔl}), λ = −1, Δ = ln 2, so K halves at every step. W = 1 in channel 0.
    let (variant, delta) = (Variant::ExpNoScale, Delta::Tied);
    let mixer = DssConfig { n: 1, variant, delta, ..dss() };
    let config = ModelConfig { layers: 1, h: 2, ..with_mixer(mixer) };
    let found = inspection(config, 64, |name, values| match name {
        "layers.0.mixer.lambda" => values.copy_from_slice(&[0.0, 0.0]),
        "layers.0.mixer.delta_log" => values.fill(2f64.ln().ln()),
        "layers.0.mixer.w" => values.copy_from_slice(&[1.0, 0.0, 0.0, 0.0]),
        _ => {}
    });
    let k = &found.layers[0].kernels;
    for (l, x) in k.values[..64].iter().enumerate() {
        assert!((x - 0.5f64.powi(l as i32)).abs() < 1e-12, "{l}: {x}");
    }
    let report = found.report().unwrap();
    let layer = &report.layers[0];
    let half_life = layer.half_life_steps.unwrap();
    assert!((half_life.median - 1.0).abs() < 1e-12, "{half_life:?}");
    assert_eq!((layer.growing, layer.half_life_seconds, layer.delta_im.clone()), (0, None, None));
    assert_eq!((report.peaks.kernels, report.peaks.silent, report.peaks.argmax_95), (2, 1, 0.0));
    assert!(report.past_end.allowed && report.past_end.why.contains("does not depend"));
    assert!(matches!(report.causality, Causality::Causal { .. }));
}

#[test]
fn a_growing_mode_peaks_at_the_end_and_forbids_longer_sequences() {
    let grow = |name: &str, values: &mut [f64]| {
        if name.ends_with("lambda") {
            values.chunks_exact_mut(2).for_each(|z| z.copy_from_slice(&[2.0, 0.0]));
        } else if name.ends_with("delta_log") {
            values.fill(-1.0);
        }
    };
    let report = inspection(config(), 300, grow).report().unwrap();
    assert_eq!((report.layers[0].growing, report.layers[0].half_life_steps), (4, None));
    assert_eq!((report.peaks.argmax_95, report.peaks.long), (299.0, 1.0));
    assert!(!report.past_end.allowed && report.past_end.why.contains("Re λ > 0"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["peaks"]["argmax_95"], 299.0);
    assert_eq!(json["causality"]["verdict"], "causal");
    // Cut to its first 100 taps, the same model has no end.
    let cut = with_mixer(DssConfig { kernel_len: 100, ..dss() });
    let cut = inspection(cut, 300, grow).report().unwrap();
    assert!(cut.past_end.allowed, "{:?}", cut.past_end);
}

#[test]
fn pictures_are_xml_and_png_whatever_the_model() {
    let exp = DssConfig { variant: Variant::Exp, ..dss() };
    let tied = DssConfig { n: 1, delta: Delta::Tied, ..dss() };
    let random = DssConfig { lambda_init: LambdaInit::Random, ..dss() };
    let models = [
        (config(), 40),
        (ModelConfig { bidirectional: true, ..with_mixer(exp) }, 2000),
        (ModelConfig { layers: 1, h: 1, ..with_mixer(tied) }, 1),
        (with_mixer(s4()), 300),
        (ModelConfig { bidirectional: true, ..with_mixer(s4d()) }, 30),
        (ModelConfig { layers: 14, h: 2, ..with_mixer(random) }, 9),
    ];
    for (config, len) in models {
        let found = inspection(config, len, |_, _| ());
        for scene in pictures(&found) {
            well_formed(&scene.svg());
            well_formed(&scene.inline_svg());
            assert!(!scene.summary.is_empty() && !scene.inline_svg().contains("http"));
            let png = scene.png();
            let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!(info.width, (2.0 * scene.width) as u32);
            assert!(pixels.iter().any(|x| *x < 128) && pixels[0] == 255, "{}", scene.name);
        }
    }
}

#[test]
fn silent_and_extreme_models_have_pictures_too() {
    let silent = inspection(config(), 30, |name, x| {
        if name.ends_with(".w") {
            x.fill(0.0);
        }
    });
    let extreme = inspection(config(), 30, |name, x| match name {
        _ if name.ends_with("delta_log") => x[0] = 90.0,
        _ if name.ends_with("lambda") => x[0] = -1e30,
        _ => {}
    });
    for found in [silent, extreme] {
        found.report().unwrap();
        for scene in pictures(&found) {
            well_formed(&scene.svg());
            scene.png();
        }
    }
}

#[test]
fn s4_and_s4d_have_numbers() {
    for (mixer, has_half_lives) in [(s4(), false), (s4d(), true)] {
        let report = inspection(with_mixer(mixer), 40, |_, _| ()).report().unwrap();
        let layer = &report.layers[0];
        assert_eq!((layer.modes, layer.growing), (2, 0));
        assert!((layer.lambda_re.median + 0.5).abs() < 1e-6 && layer.delta_im.is_none());
        assert_eq!(layer.half_life_steps.is_some(), has_half_lives);
        assert!(report.past_end.allowed, "{:?}", report.past_end);
        assert!(matches!(report.causality, Causality::Causal { .. }), "{:?}", report.causality);
    }
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dss-inspect-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn exports_hold_kernels_and_parameters() {
    let found = inspection(config(), 20, |_, _| ());
    let dir = folder("export");
    let files = export::export(&found, &dir, export::Format::Safetensors).unwrap();
    let bytes = fs::read(&files[0]).unwrap();
    let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.tensor("layers.1.kernel").unwrap().shape(), [1, 5, 20]);
    assert_eq!(read.tensor("layers.0.eigenvalues").unwrap().shape(), [4, 2]);
    assert_eq!(read.tensor("layers.0.mixer.w").unwrap().shape(), [1, 5, 4, 2]);
    for format in [export::Format::Npy, export::Format::Csv] {
        let files = export::export(&found, &dir, format).unwrap();
        assert_eq!(files.len(), read.len());
        assert!(files.iter().all(|f| f.is_file()));
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn damaged_checkpoints_are_errors() {
    let dir = folder("damaged");
    let path = dir.join("model.safetensors");
    let device = Device::flex();
    let refused = |part: &str| {
        let error = Inspection::load(&path, &device).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused("No such file");
    fs::write(&path, b"no checkpoint").unwrap();
    refused("not a safetensors file");
    let found = inspection(config(), 20, |_, _| ());
    dss_nn::save(&path, &found.model, &found.meta).unwrap();
    assert!(Inspection::load(&path, &device).is_ok());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    refused("damaged");
    // The file promises kernels that nobody can hold.
    let text = String::from_utf8_lossy(&bytes[8..]).into_owned();
    let long = text.find(r#"\"len\":20"#).unwrap();
    let mut huge = bytes[..8 + long].to_vec();
    huge.extend(br#"\"len\":20000000000000000"#);
    huge.extend(&bytes[8 + long + r#"\"len\":20"#.len()..]);
    let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) + 15;
    huge[..8].copy_from_slice(&size.to_le_bytes());
    fs::write(&path, &huge).unwrap();
    refused("MB of memory");
    fs::remove_dir_all(&dir).unwrap();
}

/// Mixers that are not state spaces show attention, spectra or kernels, whichever they have, in numbers, pictures and
/// files.
#[test]
fn every_kind_of_model_has_something_to_show() {
    for kind in MixerConfig::KINDS {
        let mixer = MixerConfig::default_for(kind).unwrap();
        let of = |bidirectional| ModelConfig { h: 8, bidirectional, ..with_mixer(mixer.clone()) };
        let config = [false, true].map(of).into_iter().find(|config| config.validate(20).is_ok());
        let config = config.unwrap_or_else(|| panic!("{kind} in a model of 8 channels"));
        let found = inspection(config, 20, |_, _| ());
        let (report, scenes) = (found.report().unwrap(), pictures(&found));
        for scene in &scenes {
            well_formed(&scene.svg());
            assert!(!scene.summary.is_empty() && scene.png().len() > 1000, "{kind} {}", scene.name);
        }
        let mut names: Vec<&str> = scenes.iter().map(|scene| scene.name.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{kind}: two pictures of a name");
        serde_json::to_string(&report).unwrap();
        let of_portraits = [".attention.", ".spectrum.", ".kernels.", ".frequencies."];
        let exported = export::arrays(&found);
        let exported =
            exported.iter().filter(|a| of_portraits.iter().any(|part| a.name.contains(part)));
        assert_eq!(exported.count(), report.portraits.len(), "{kind}");
        let expected: &[&str] = match *kind {
            "dss" | "s4" | "s4d" => &["delta-log", "gallery", "kernels", "lambda", "lambda-re"],
            "mega-ema" => &["gallery", "half-lives", "kernels"],
            "luna" => &["attention", "attention-2"],
            "gru" | "lstm" | "lru" | "s5" | "exp-rnn" | "lipschitz-rnn" | "ode-rnn" | "nrde" => {
                &["spectra"]
            }
            "ckconv" | "wavegan-d" => &["gallery", "kernels"],
            "fnet" => &["frequencies"],
            _ => &["attention"],
        };
        assert_eq!(names, expected, "{kind}");
        assert_eq!(report.layers.is_empty(), !report.portraits.is_empty(), "{kind}");
    }
}

/// As they are trained: whatever `--model` names shows something, in the terminal and as a picture.
#[test]
fn no_model_gives_an_empty_inspection() {
    for model in dss_train::config::MODELS {
        let request = dss_train::config::Request {
            task: "smnist".into(),
            model: Some(model.name.into()),
            ..Default::default()
        };
        let (config, _) = request.resolve().unwrap();
        let found = inspection(ModelConfig { h: 16, ..config.model }, 50, |_, _| ());
        let report = found.report().unwrap();
        let shown = report.layers.len() + report.portraits.len();
        assert!(shown >= report.model.layers, "{}: {shown}", model.name);
        assert!(!pictures(&found).is_empty(), "{}", model.name);
        // Words, without the names of types.
        let why = &report.past_end.why;
        assert!(!why.contains("Mixer") && !why.contains("Layer:"), "{}: {why}", model.name);
    }
}

/// A rotation keeps the size of a state, and rows of attention sum to 1.
#[test]
fn portraits_have_the_numbers_of_their_mixers() {
    let exp_rnn = MixerConfig::default_for("exp-rnn").unwrap();
    let report = inspection(with_mixer(exp_rnn), 20, |_, _| ()).report().unwrap();
    for portrait in &report.portraits {
        let portraits::PortraitNumbers::Step { radius, growing, eigenvalues } = &portrait.numbers
        else {
            panic!("{portrait:?}")
        };
        assert!((radius - 1.0).abs() < 1e-9 && (*growing, *eigenvalues) == (0, 5), "{portrait:?}");
    }
    let bigbird = BigbirdConfig { heads: 2, block: 2, random_blocks: 1, ..Default::default() };
    let reformer = ReformerConfig { heads: 2, chunk: 4, ..Default::default() };
    let h_transformer = HTransformer1dConfig { heads: 2, block: 4, ..Default::default() };
    let mixers = [
        MixerConfig::default_for("attention").unwrap(),
        MixerConfig::default_for("luna").unwrap(),
        MixerConfig::default_for("linear-attention").unwrap(),
        MixerConfig::default_for("performer").unwrap(),
        bigbird.into(),
        reformer.into(),
        h_transformer.into(),
    ];
    for mixer in mixers {
        let kind = mixer.kind();
        let of = |bidirectional| ModelConfig { h: 8, bidirectional, ..with_mixer(mixer.clone()) };
        for config in [false, true].map(of).into_iter().filter(|c| c.validate(20).is_ok()) {
            let causal = !config.bidirectional;
            for portrait in inspection(config, 20, |_, _| ()).portraits {
                let portraits::View::Attention(weights) = portrait.view else { panic!("{kind}") };
                for (i, row) in weights.values.chunks_exact(weights.columns).enumerate() {
                    // Linear attention adds 10⁻⁶ to the sum that it divides by.
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{kind}: {row:?}");
                    assert!(row.iter().all(|x| *x >= 0.0), "{kind}: {row:?}");
                    let later = &row[i % weights.rows + 1..];
                    assert!(!causal || later.iter().all(|x| *x == 0.0), "{kind} {i}: {later:?}");
                }
                let zeros = weights.values.iter().filter(|x| **x == 0.0).count();
                assert!(kind != "bigbird" || zeros > weights.values.len() / 4, "{zeros}");
            }
        }
    }
}

/// The modes of moving averages are decays, which have half-lives.
#[test]
fn moving_averages_have_half_lives() {
    let mixer = MixerConfig::default_for("mega-ema").unwrap();
    let found = inspection(with_mixer(mixer), 20, |_, _| ());
    assert!(found.layers.iter().all(|layer| layer.modes.are_decays()));
    let half_lives = found.layers[0].modes.half_lives();
    // (1 − αδ)^t of α, δ = σ(N(0, 0.2²)): about ¾ in a step.
    let mean = half_lives.iter().sum::<f64>() / half_lives.len() as f64;
    assert!((2.0..3.0).contains(&mean), "{mean}");
    assert!(!inspection(config(), 20, |_, _| ()).layers[0].modes.are_decays());
}
