//! Recurrent nets, moving averages and several Λ: both forms, steps, batches, and literal forms of LRU, S5 and Mega.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_nn::config::{
    CkconvConfig, DssConfig, Form, Gelu, InputKind, LruConfig, MegaEmaConfig, MixerConfig,
    ModelConfig, ModelIo, NormKind, NrdeConfig, OutputKind, Pool, S4Config, S4dConfig, S5Config,
    Variant,
};
use dss_nn::mixer::{Pass, log_signatures};
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::configs::{recurrent_mixers, small};
use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, device, grads, values};

const H: usize = 6;

fn several_systems() -> Vec<MixerConfig> {
    let mut all = Vec::new();
    for ssms in [1, 2, H] {
        all.push(S4Config { n: 4, ssms, ..S4Config::default() }.into());
        all.push(S4dConfig { n: 4, ssms, ..S4dConfig::default() }.into());
        for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
            let ssm_gelu = if ssms == H { Gelu::Tanh } else { Gelu::Erf };
            all.push(DssConfig { n: 3, ssms, variant, ssm_gelu, ..DssConfig::default() }.into());
        }
    }
    all
}

fn numbers(count: usize, seed: u64) -> Vec<f64> {
    Random::new(seed, DType::F64).numbers(count)
}

fn io(l: usize) -> ModelIo {
    ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: l,
    }
}

fn input(x: &[f64], l: usize) -> Input {
    let data = TensorData::new(x.to_vec(), [x.len() / (2 * l), l, 2]);
    Input::Values(Tensor::from_data(data, (&device(), DType::F64)))
}

/// Values and all gradients of whole models in f64.
#[test]
fn fused_equals_composed() {
    let (batch, l) = (3, 11);
    let x = numbers(batch * l * 2, 1);
    for mixer in recurrent_mixers().into_iter().chain(several_systems()) {
        let [composed, fused] = FORMS.map(|form| {
            let config = ModelConfig { form, norm: NormKind::Layer, ..small(H, mixer.clone()) };
            let model = Model::new(&config, &io(l), 7, &device()).unwrap().cast(FloatDType::F64);
            let output = model.forward(input(&x, l), &[l, 5, l], &model.prepare(l), Mode::Eval);
            let weights = Tensor::from_data(
                TensorData::new(numbers(batch * 3, 2), [batch, 3]),
                (&device(), DType::F64),
            );
            let gradients = (output.logits.clone() * weights).sum().backward();
            (values(&output.logits), grads(&model, &gradients))
        });
        assert_close(&format!("{mixer:?}"), &fused.0, &composed.0, 1e-12);
        assert_eq!(fused.1.len(), composed.1.len(), "{mixer:?}");
        for (name, known) in &composed.1 {
            let largest = known.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            if largest > 1e-12 {
                assert_close(&format!("{mixer:?} {name}"), &fused.1[name], known, 1e-9);
            }
        }
    }
}

#[test]
fn step_by_step_is_the_whole_sequence() {
    let (b, l) = (2, 20);
    let device = Device::flex();
    for mixer in recurrent_mixers().into_iter().chain(several_systems()) {
        let layer = Mixer::new(&small(H, mixer.clone()), l, 3, &device).unwrap();
        let u = TensorData::new(numbers(b * l * H, 1), [b, l, H]);
        let u = Tensor::<3>::from_data(u, &device);
        let whole = layer.forward(u.clone());
        let mut state = layer.get().state(b).unwrap();
        for t in 0..l {
            let u = u.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
            let y = layer.get().step(&mut state, u).unwrap();
            let want = values(&whole.clone().narrow(1, t, 1));
            assert_close(&format!("{mixer:?} {t}"), &values(&y), &want, 2e-5);
        }
        assert!(layer.get().check_len(0).is_err());
    }
}

#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    let x = numbers(40 * 2, 1);
    for mixer in recurrent_mixers().into_iter().chain(several_systems()) {
        for (form, pool) in [(Form::Fused, Pool::Mean), (Form::Composed, Pool::Last)] {
            let config =
                ModelConfig { form, pool, norm: NormKind::Layer, ..small(H, mixer.clone()) };
            let model = Model::new(&config, &io(40), 3, &device()).unwrap().cast(FloatDType::F64);
            let answer = |l: usize, lengths: &[usize]| {
                let all: Vec<f64> = lengths.iter().flat_map(|_| x[..2 * l].to_vec()).collect();
                let y = model.forward(input(&all, l), lengths, &model.prepare(l), Mode::Eval);
                values(&y.logits.narrow(0, 0, 1))
            };
            let alone = answer(17, &[17]);
            for (l, lengths) in [(40, vec![17]), (30, vec![17, 30, 1])] {
                let what = format!("{mixer:?} {form:?} {l}");
                assert_close(&what, &answer(l, &lengths), &alone, 1e-12);
            }
        }
    }
}

/// The parameters of a layer in f64, by name.
fn parameters(mixer: MixerConfig, l: usize) -> (Model, impl Fn(&str) -> Vec<f64>) {
    let config = ModelConfig { layers: 1, h: 2, mixer, ..ModelConfig::default() };
    let model = Model::new(&config, &io(l), 5, &device()).unwrap().cast(FloatDType::F64);
    let tensors: std::collections::HashMap<_, _> = model.named_tensors().into_iter().collect();
    let get = move |name: &str| {
        let data = tensors[&format!("layers.0.mixer.{name}")].clone();
        data.convert::<f64>().try_into_vec().unwrap()
    };
    (model, get)
}

/// The layer's output for u [L, 2].
fn mixed(model: &Model, u: &[f64]) -> Vec<f64> {
    let l = u.len() / 2;
    let mixer = model.layers[0].mixer.get();
    let u = TensorData::new(u.to_vec(), [1, l, 2]);
    let u = Tensor::from_data(u, (&device(), DType::F64));
    values(&mixer.mix(u, &mixer.prepare(l).unwrap(), &Pass::default()))
}

/// Out(GELU(y + D·u)) of y, u [L, 2], without GLU.
fn read_out(get: &impl Fn(&str) -> Vec<f64>, y: &[f64], u: &[f64]) -> Vec<f64> {
    let (d, w, b) = (get("d"), get("out.weight"), get("out.bias"));
    let gelu = |x: f64| {
        let mut x = [x];
        dss_kernels::frozen::gelu(&mut x);
        x[0]
    };
    let rows = y.chunks_exact(2).zip(u.chunks_exact(2));
    rows.flat_map(|(y, u)| {
        let z = [gelu(y[0] + d[0] * u[0]), gelu(y[1] + d[1] * u[1])];
        [0, 1].map(|o| b[o] + w[2 * o] * z[0] + w[2 * o + 1] * z[1])
    })
    .collect()
}

/// x' = λ·x + B̄·u, y = scale·Re(C·x), number by number.
fn literal(
    lambda: &[[f64; 2]],
    input: impl Fn(usize, &[f64]) -> [f64; 2],
    c: &[f64],
    scale: f64,
    u: &[f64],
) -> Vec<f64> {
    let n = lambda.len();
    let mut x = vec![[0.0; 2]; n];
    let mut y = Vec::new();
    for u in u.chunks_exact(2) {
        for (i, x) in x.iter_mut().enumerate() {
            let ([re, im], [z_re, z_im]) = (lambda[i], input(i, u));
            *x = [re * x[0] - im * x[1] + z_re, re * x[1] + im * x[0] + z_im];
        }
        for h in 0..2 {
            let c = &c[h * 2 * n..][..2 * n];
            let sum: f64 = (0..n).map(|i| c[i] * x[i][0] + c[n + i] * x[i][1]).sum();
            y.push(scale * sum);
        }
    }
    y
}

#[test]
fn lru_number_by_number() {
    let (n, l) = (3, 9);
    let (model, get) = parameters(LruConfig { n, glu: false, ..LruConfig::default() }.into(), l);
    let u = numbers(2 * l, 4);
    let (nu, theta, gamma, b) = (get("nu_log"), get("theta_log"), get("gamma_log"), get("b"));
    let lambda: Vec<[f64; 2]> = (0..n)
        .map(|i| {
            let (size, angle) = ((-nu[i].exp()).exp(), theta[i].exp());
            assert!((gamma[i].exp() - (1.0 - size * size).sqrt()).abs() < 1e-6, "initial γ");
            assert!((0.5..0.99).contains(&size), "initial |λ|");
            [size * angle.cos(), size * angle.sin()]
        })
        .collect();
    let input = |i: usize, u: &[f64]| {
        [i, n + i].map(|row| gamma[i].exp() * (b[2 * row] * u[0] + b[2 * row + 1] * u[1]))
    };
    let y = literal(&lambda, input, &get("c"), 1.0, &u);
    assert_close("lru", &mixed(&model, &u), &read_out(&get, &y, &u), 1e-12);
}

#[test]
fn s5_number_by_number() {
    let (n, l) = (6, 9);
    let (model, get) = parameters(S5Config { n, glu: false, ..S5Config::default() }.into(), l);
    let u = numbers(2 * l, 4);
    let (re, im, delta, b) = (get("lambda_re"), get("lambda_im"), get("delta_log"), get("b"));
    let pairs = n / 2;
    let lambda = |i: usize| [-re[i].exp(), im[i]];
    let stepped = |i: usize| {
        let ([re, im], delta) = (lambda(i), delta[i].exp());
        [(re * delta).exp() * (im * delta).cos(), (re * delta).exp() * (im * delta).sin()]
    };
    let input = |i: usize, u: &[f64]| {
        // (λ̄ − 1)/λ·(B u)
        let ([re, im], [a, b_im]) = (lambda(i), stepped(i));
        let norm = re * re + im * im;
        let q = [((a - 1.0) * re + b_im * im) / norm, (b_im * re - (a - 1.0) * im) / norm];
        let [x, y] = [i, pairs + i].map(|row| b[2 * row] * u[0] + b[2 * row + 1] * u[1]);
        [q[0] * x - q[1] * y, q[0] * y + q[1] * x]
    };
    let steps: Vec<_> = (0..pairs).map(stepped).collect();
    let y = literal(&steps, input, &get("c"), 2.0, &u);
    assert_close("s5", &mixed(&model, &u), &read_out(&get, &y, &u), 1e-12);
}

#[test]
fn moving_averages_number_by_number() {
    let (n, l) = (3, 9);
    for bidirectional in [false, true] {
        let mixer = MegaEmaConfig { n, ..MegaEmaConfig::default() };
        let config = ModelConfig {
            layers: 1,
            h: 2,
            mixer: mixer.into(),
            bidirectional,
            ..ModelConfig::default()
        };
        let model = Model::new(&config, &io(l), 5, &device()).unwrap().cast(FloatDType::F64);
        let tensors: std::collections::HashMap<_, _> = model.named_tensors().into_iter().collect();
        let get = |name: &str| -> Vec<f64> {
            let data = tensors[&format!("layers.0.mixer.{name}")].clone();
            data.convert::<f64>().try_into_vec().unwrap()
        };
        let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (alpha, delta, beta, eta) = (get("alpha"), get("delta"), get("beta"), get("eta"));
        let u = numbers(2 * l, 4);
        let mut y = vec![0.0; 2 * l];
        for direction in 0..1 + usize::from(bidirectional) {
            for h in 0..2 {
                for at in (direction * 2 + h) * n..(direction * 2 + h + 1) * n {
                    let (a, d, mut x) = (sigma(alpha[at]), sigma(delta[at]), 0.0);
                    for t in 0..l {
                        // Backwards the average sees what follows a position.
                        let t = if direction == 0 { t } else { l - 1 - t };
                        let out = eta[at] / (n as f64).sqrt();
                        if direction == 1 {
                            y[2 * t + h] += out * x;
                        }
                        x = (1.0 - a * d) * x + a * beta[at] * u[2 * t + h];
                        if direction == 0 {
                            y[2 * t + h] += out * x;
                        }
                    }
                }
            }
        }
        assert_close("mega", &mixed(&model, &u), &read_out(&get, &y, &u), 1e-12);
    }
}

#[test]
fn bad_settings_name_the_setting_and_a_valid_value() {
    let error =
        |config: ModelConfig| Mixer::new(&config, 20, 0, &Device::flex()).unwrap_err().to_string();
    for (mixer, parts) in [
        (MixerConfig::from(DssConfig { n: 4, ssms: 5, ..DssConfig::default() }), ["ssms", "try 4"]),
        (S4dConfig { n: 4, ssms: 0, ..S4dConfig::default() }.into(), ["ssms", "try 1"]),
        (S4Config { n: 4, ssms: 3, ..S4Config::default() }.into(), ["ssms", "try 2"]),
        (S4Config { n: 0, ..S4Config::default() }.into(), ["n must be even", "try 2"]),
        (DssConfig { n: 0, ..DssConfig::default() }.into(), ["n must be at least", "try 1"]),
        (S5Config { n: 7, ..S5Config::default() }.into(), ["n must be even", "try 8"]),
        (S5Config { n: 8, blocks: 3, ..S5Config::default() }.into(), ["blocks", "try 2"]),
        (LruConfig { r_max: 1.0, ..LruConfig::default() }.into(), ["< 1", "try r_max = 0.99"]),
        (LruConfig { r_min: -0.1, ..LruConfig::default() }.into(), ["0 <=", "try r_min = 0"]),
        (NrdeConfig { field_layers: 1, ..NrdeConfig::default() }.into(), ["field_layers", "try 2"]),
        (NrdeConfig { depth: 4, ..NrdeConfig::default() }.into(), ["depth", "try 3"]),
        (MegaEmaConfig { n: 0, ..MegaEmaConfig::default() }.into(), ["n must be", "try 1"]),
        (NrdeConfig { window: 0, ..NrdeConfig::default() }.into(), ["window must be", "try 1"]),
        (CkconvConfig { omega: -2.0, ..CkconvConfig::default() }.into(), ["omega", "try 2"]),
        (LruConfig { max_phase: 0.0, ..LruConfig::default() }.into(), ["max_phase", "try 6.28"]),
    ] {
        let text = error(small(4, mixer));
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let forwards = |mixer: &MixerConfig| mixer.settings().ssm().is_none() && mixer.kind() != "nrde";
    for mixer in recurrent_mixers().into_iter().filter(forwards) {
        let config = ModelConfig { bidirectional: true, ..small(4, mixer) };
        assert!(error(config).contains("set bidirectional to false"));
    }
}

/// Log-signatures of the golden path, and what they must satisfy.
#[test]
fn log_signatures_of_paths() {
    let golden = Golden::read("nrde").unwrap();
    let ([batch, l, c], window) = ([2, 41, 4], golden.usize("step"));
    let x = golden.tensor("x", [batch, l, c]);
    let d = x.clone().narrow(1, 1, l - 1) - x.narrow(1, 0, l - 1);
    for depth in [1, 2, 3] {
        let found = log_signatures(d.clone(), window, depth);
        let known = golden.get(&format!("logsig.d{depth}"));
        assert_close(&format!("depth {depth}"), &values(&found), known, 1e-11);
    }
    let words: Vec<f64> = NrdeConfig::triples(c).flatten().map(|letter| letter as f64).collect();
    assert_eq!(words, golden.get("lyndon")[3 * 10..]);
    // A straight line has no area and nothing beyond it, however it is sampled.
    let line: Tensor<3> = Tensor::ones([1, 8, c], &device());
    let areas = values(&log_signatures(line * 0.25, 8, 3));
    assert!(areas[..c].iter().all(|x| (x - 2.0).abs() < 1e-6));
    assert!(areas[c..].iter().all(|x| x.abs() < 1e-6), "{areas:?}");
}

/// A layer of NRDE that looks ahead has the state at the end of the window a position is in; padding adds nothing.
#[test]
fn nrde_looks_to_the_end_of_its_window() {
    let x = numbers(40 * 2, 1);
    let mixer = NrdeConfig { path: 2, window: 4, width: 5, ..NrdeConfig::default() };
    for form in FORMS {
        let config = ModelConfig {
            form,
            bidirectional: true,
            pool: Pool::Last,
            norm: NormKind::Layer,
            ..small(H, mixer)
        };
        let model = Model::new(&config, &io(40), 3, &device()).unwrap().cast(FloatDType::F64);
        let answer = |l: usize, length: usize| {
            let y = model.forward(input(&x[..2 * l], l), &[length], &model.prepare(l), Mode::Eval);
            values(&y.logits)
        };
        assert_close("padding", &answer(40, 18), &answer(18, 18), 1e-12);
        let changed = answer(18, 18).iter().zip(answer(17, 17)).any(|(a, b)| (a - b).abs() > 1e-9);
        assert!(changed, "the last step counts although its window is not full");
        assert!(model.layers[0].mixer.get().state(1).is_err());
    }
}

/// Every parameter's gradient against central differences in f64.
#[test]
fn gradients_are_differences() {
    let (batch, l) = (2, 7);
    let x = numbers(batch * l * 2, 1);
    for mixer in recurrent_mixers() {
        let config = ModelConfig { layers: 1, norm: NormKind::Layer, ..small(H, mixer.clone()) };
        let model = Model::new(&config, &io(l), 7, &device()).unwrap().cast(FloatDType::F64);
        let loss = |model: &Model| {
            let prepared = model.prepare(l);
            let y = model.forward(input(&x, l), &[l, l], &prepared, Mode::Eval).logits;
            let weights = TensorData::new(numbers(batch * 3, 2), [batch, 3]);
            (y * Tensor::from_data(weights, (&device(), DType::F64))).sum()
        };
        let found = grads(&model, &loss(&model).backward());
        let tensors: std::collections::BTreeMap<_, _> = model.named_tensors().into_iter().collect();
        for (name, gradient) in found.iter().filter(|(name, _)| name.contains(".mixer.")) {
            let scale = gradient.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
            for at in (0..gradient.len()).step_by(gradient.len() / 3 + 1) {
                let value = |step: f64| {
                    let mut tensors = tensors.clone();
                    let data = tensors.get_mut(name).unwrap();
                    let shape = data.shape().clone();
                    let mut numbers: Vec<f64> = data.clone().try_into_vec().unwrap();
                    numbers[at] += step;
                    *data = TensorData::new(numbers, shape);
                    values(&loss(&model.clone().load_named(tensors).unwrap()))[0]
                };
                let step = 1e-4;
                let difference = (8.0 * (value(step) - value(-step)) - value(2.0 * step)
                    + value(-2.0 * step))
                    / (12.0 * step);
                let error = (difference - gradient[at]).abs() / scale;
                let what = format!("{mixer:?} {name}[{at}]");
                assert!(error < 1e-7, "{what}: {} but differences give {difference}", gradient[at]);
            }
        }
    }
}
