//! BigBird, Reformer and H-Transformer-1D: golden files, laws, padding, what is drawn at random, and `dss-infer`.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_infer as infer;
use dss_kernels::attention::gathered::{HashSizes, hash_buckets};
use dss_nn::config::{
    AttentionConfig, BigbirdConfig, Form, HTransformer1dConfig, InputKind, MixerConfig,
    ModelConfig, ModelIo, NormKind, OutputKind, Pool, ReformerConfig, ReformerVariant,
};
use dss_nn::{DropoutKey, Input, Mixer, Mode, Model};

use crate::common::configs::small;
use crate::common::layers::{check_golden, loaded, mixed, numbers};
use crate::common::random::Random;
use crate::common::saved::{inferred, runner, saved};
use crate::common::{FORMS, Golden, assert_close, device, grad, grads, values};

/// The longest sequences here.
const L: usize = 40;

const BIGBIRD: BigbirdConfig =
    BigbirdConfig { heads: 2, width: 0, bias: true, block: 4, random_blocks: 2 };
const REFORMER: ReformerConfig = ReformerConfig {
    variant: ReformerVariant::Paper,
    heads: 2,
    width: 4,
    rounds: 2,
    chunk: 4,
    buckets: 0,
};
const H_TRANSFORMER: HTransformer1dConfig =
    HTransformer1dConfig { heads: 2, width: 4, bias: true, block: 4 };

fn both_ways(mixer: impl Into<MixerConfig>) -> ModelConfig {
    ModelConfig { bidirectional: true, norm: NormKind::Layer, ..small(8, mixer) }
}

/// Each of them, looking ahead and, where there is such a form, causal.
fn all() -> Vec<ModelConfig> {
    let lra = ReformerConfig { variant: ReformerVariant::Lra, heads: 2, ..Default::default() };
    let causal = |config: ModelConfig| ModelConfig { bidirectional: false, ..config };
    vec![
        both_ways(BIGBIRD),
        both_ways(BigbirdConfig { random_blocks: 0, ..BIGBIRD }),
        both_ways(BigbirdConfig { block: 8, ..BIGBIRD }),
        both_ways(REFORMER),
        causal(both_ways(REFORMER)),
        both_ways(lra),
        both_ways(H_TRANSFORMER),
        causal(both_ways(H_TRANSFORMER)),
    ]
}

const IO: ModelIo = ModelIo {
    input: InputKind::Values { channels: 2 },
    output: OutputKind::Sequence { outputs: 3 },
    len: L,
};

fn model(config: &ModelConfig) -> Model {
    Model::new(config, &IO, 3, &device()).unwrap()
}

fn input(x: &[f64], l: usize, dtype: DType) -> Input {
    let data = TensorData::new(x.to_vec(), [x.len() / (2 * l), l, 2]);
    Input::Values(Tensor::from_data(data, (&device(), dtype)))
}

fn signal(count: usize, seed: u64) -> Vec<f64> {
    Random::new(seed, DType::F32).numbers(count)
}

fn train(step: u64) -> Mode {
    Mode::Train { dropout: DropoutKey { seed: 1, step, micro: 0 } }
}

#[test]
fn golden_bigbird() {
    let golden = Golden::read("bigbird").unwrap();
    for form in FORMS {
        let mixer = BigbirdConfig {
            heads: golden.usize("heads"),
            width: 0,
            bias: true,
            block: golden.usize("block"),
            random_blocks: golden.usize("random_blocks"),
        };
        let config = ModelConfig { h: golden.usize("H"), form, ..both_ways(mixer) };
        let name = |ours: &str| ours.replace("blocks", "random.blocks");
        check_golden(&golden, "", &config, false, name);
        check_golden(&golden, "masked.", &config, true, name);
    }
}

#[test]
fn golden_reformer() {
    let golden = Golden::read("reformer").unwrap();
    let name = |ours: &str| ours.replace("rotations", "random.rotations");
    for form in FORMS {
        let mixer = ReformerConfig {
            variant: ReformerVariant::Paper,
            heads: golden.usize("heads"),
            width: 0,
            rounds: golden.usize("rounds"),
            chunk: golden.usize("chunk"),
            buckets: golden.usize("buckets"),
        };
        let config = ModelConfig { h: golden.usize("H"), form, ..both_ways(mixer) };
        check_golden(&golden, "", &config, false, name);
        check_golden(&golden, "masked.", &config, true, name);
        let causal = ModelConfig { bidirectional: false, ..config };
        check_golden(&golden, "causal.", &causal, false, name);
    }
}

#[test]
fn golden_reformer_of_the_long_range_arena() {
    let golden = Golden::read("reformer_lra").unwrap();
    let name = |ours: &str| ours.replace("rotations", "random.rotations").replace("qk", "q");
    for form in FORMS {
        // Ten chunks and ten buckets by default.
        let (variant, heads) = (ReformerVariant::Lra, golden.usize("heads"));
        let mixer = ReformerConfig { variant, heads, ..ReformerConfig::default() };
        let config = ModelConfig { h: golden.usize("H"), form, ..both_ways(mixer) };
        check_golden(&golden, "", &config, false, name);
    }
}

/// The hashes themselves, in f64 and f32; what is padding, and so not hashed, is in the bucket behind the last one.
#[test]
fn golden_buckets() {
    fn check<T: dss_kernels::Real>(
        name: &str,
        projection: &str,
        cases: &[&str],
        of: impl Fn(f64) -> T,
    ) {
        let golden = Golden::read(name).unwrap();
        let [batch, l, width] = golden.shape("u").try_into().unwrap();
        let (heads, rounds) = (golden.usize("heads"), golden.usize("rounds"));
        let len = golden.shape("buckets")[3];
        let weight = golden.get(projection);
        let row =
            |t: usize, b: usize| (t < l).then(|| &golden.get("u")[(b * l + t) * width..][..width]);
        let positions = (0..batch).flat_map(|b| (0..len).map(move |t| (t, b)));
        let q = positions.flat_map(|(t, b)| {
            let u = row(t, b).map_or(vec![0.0; width], <[f64]>::to_vec);
            let dot = move |w: &[f64]| w.iter().zip(&u).map(|(w, u)| w * u).sum::<f64>();
            weight.chunks_exact(width).map(dot).collect::<Vec<_>>()
        });
        let q: Vec<T> = q.map(&of).collect();
        let rotations: Vec<T> = golden.get("random.rotations").iter().map(|&x| of(x)).collect();
        let buckets = golden.usize("buckets");
        let sizes = HashSizes { rounds, buckets, chunk: 8, chunks: 6 };
        let found = hash_buckets(&q, [len, heads, width / heads], &rotations, &sizes);
        for case in cases {
            let known = golden.get(&format!("{case}buckets"));
            for (i, (&found, &known)) in found.iter().zip(known).enumerate() {
                let beyond = *case == "masked."
                    && i % len >= golden.get("lengths")[i / (heads * rounds * len)] as usize;
                let expected = if beyond { buckets as u32 } else { found };
                assert_eq!(f64::from(expected), known, "{name} {case}buckets[{i}]");
            }
        }
    }
    check("reformer", "qk.weight", &["", "causal.", "masked."], |x| x);
    check("reformer", "qk.weight", &["", "causal.", "masked."], |x| x as f32);
    check("reformer_lra", "q.weight", &[""], |x| x);
    check("reformer_lra", "q.weight", &[""], |x| x as f32);
}

#[test]
fn golden_h_transformer_1d() {
    let golden = Golden::read("h_transformer_1d").unwrap();
    let mixer = HTransformer1dConfig {
        heads: golden.usize("heads"),
        width: 0,
        bias: true,
        block: golden.usize("nr"),
    };
    let config = ModelConfig { h: golden.usize("H"), ..both_ways(mixer) };
    let causal = ModelConfig { bidirectional: false, ..config.clone() };
    check_golden(&golden, "", &config, false, str::to_owned);
    check_golden(&golden, "masked.", &config, true, str::to_owned);
    check_golden(&golden, "causal.", &causal, false, str::to_owned);
    check_golden(&golden, "causal_masked.", &causal, true, str::to_owned);
}

/// Values and all gradients of whole models in f64, in evaluation and in a training pass.
#[test]
fn fused_equals_composed() {
    let x = signal(3 * L * 2, 1);
    for config in all() {
        for mode in [Mode::Eval, train(4)] {
            let [composed, fused] = FORMS.map(|form| {
                let config = ModelConfig { form, ..config.clone() };
                let model = model(&config).cast(FloatDType::F64);
                let input = input(&x, L, DType::F64);
                let y = model.forward(input, &[L, 5, 33], &model.prepare(L), mode).logits;
                let weights = Random::new(2, DType::F64).tensor([3, 3]);
                let gradients = (y.clone() * weights).sum().backward();
                (values(&y), grads(&model, &gradients))
            });
            let what = format!("{config:?} {mode:?}");
            assert_close(&what, &fused.0, &composed.0, 1e-12);
            assert_eq!(fused.1.len(), composed.1.len(), "{what}");
            let size = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let most = composed.1.values().map(|x| size(x)).fold(0.0, f64::max);
            for (name, known) in &composed.1 {
                let off = fused.1[name].iter().zip(known).map(|(a, b)| a - b).collect::<Vec<_>>();
                assert!(size(&off) <= 1e-11 * size(known).max(1e-3 * most), "{what} {name}");
            }
        }
    }
}

#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    let x = signal(L * 2, 1);
    for config in all() {
        for (form, pool) in [(Form::Fused, Pool::Mean), (Form::Composed, Pool::Last)] {
            let config = ModelConfig { form, pool, ..config.clone() };
            let model = model(&config).cast(FloatDType::F64);
            for mode in [Mode::Eval, train(2)] {
                let answer = |l: usize, lengths: &[usize]| {
                    let all: Vec<f64> = lengths.iter().flat_map(|_| x[..2 * l].to_vec()).collect();
                    let input = input(&all, l, DType::F64);
                    let y = model.forward(input, lengths, &model.prepare(l), mode).logits;
                    values(&y.narrow(0, 0, 1))
                };
                // Also where the last blocks and chunks are whole, or almost.
                for length in [1, 17, 36, 38] {
                    let alone = answer(length, &[length]);
                    for (l, lengths) in [(L, vec![length]), (39, vec![length, 39, 1])] {
                        let what = format!("{config:?} {mode:?} {length} of {l}");
                        assert_close(&what, &answer(l, &lengths), &alone, 1e-12);
                    }
                }
            }
        }
    }
}

/// A change of what follows changes nothing; in Reformer it may change the chunks, but no gradient comes from there.
#[test]
fn causal_forms_do_not_look_ahead() {
    let t = 21;
    for form in FORMS {
        let config = ModelConfig { bidirectional: false, form, ..both_ways(H_TRANSFORMER) };
        let layer = Mixer::new(&config, L, 2, &device()).unwrap();
        let u = Random::new(1, DType::F32).tensor([2, L, 8]);
        let later = Random::new(5, DType::F32).tensor([2, L - t, 8]);
        let other = Tensor::cat(vec![u.clone().narrow(1, 0, t), later], 1);
        let [a, b] = [u, other].map(|u| values(&layer.forward(u).narrow(1, 0, t)));
        assert_close("h-transformer-1d", &a, &b, 1e-6);

        let config = ModelConfig { bidirectional: false, form, ..both_ways(REFORMER) };
        let layer = Mixer::new(&config, L, 2, &device()).unwrap();
        let u = Random::new(1, DType::F32).leaf([2, L, 8]);
        let gradients = layer.forward(u.clone()).narrow(1, 0, t).sum().backward();
        let gradients = grad(&u, &gradients);
        let ahead = |i: usize| i / 8 % L >= t;
        assert!(gradients.iter().enumerate().all(|(i, g)| !ahead(i) || *g == 0.0));
        assert!(gradients.iter().enumerate().any(|(i, g)| !ahead(i) && *g != 0.0));
    }
}

fn attention(
    numbers: &std::collections::BTreeMap<String, Vec<f64>>,
    config: &ModelConfig,
) -> Mixer {
    let mixer = AttentionConfig { heads: 2, width: 4, bias: true };
    let config = ModelConfig { mixer: mixer.into(), ..config.clone() };
    let layer = Mixer::new(&config, L, 0, &device()).unwrap();
    loaded(layer, &|name| numbers[name].clone())
}

#[test]
fn two_blocks_of_an_h_transformer_are_attention() {
    for bidirectional in [true, false] {
        for (block, l) in [(4, 8), (4, 5), (10, 20), (10, 3)] {
            let mixer = HTransformer1dConfig { block, ..H_TRANSFORMER };
            let config = ModelConfig { bidirectional, ..both_ways(mixer) };
            let layer = Mixer::new(&config, l, 1, &device()).unwrap();
            let numbers = numbers(&layer);
            let layer = loaded(layer, &|name| numbers[name].clone());
            let attention = attention(&numbers, &config);
            let u = Random::new(1, DType::F64).tensor([2, l, 8]);
            for lengths in [None, Some([l, 3])] {
                let lengths = lengths.as_ref().map(<[usize; 2]>::as_slice);
                let [found, known] =
                    [&layer, &attention].map(|layer| values(&mixed(layer, u.clone(), lengths)));
                assert_close(&format!("{block} {l} {lengths:?}"), &found, &known, 1e-13);
            }
        }
    }
}

#[test]
fn few_blocks_of_bigbird_are_attention() {
    for form in FORMS {
        let mixer = BigbirdConfig { block: 7, random_blocks: 2, width: 4, ..BIGBIRD };
        let config = ModelConfig { form, ..both_ways(mixer) };
        let layer = Mixer::new(&config, L, 1, &device()).unwrap(); // six blocks
        let numbers = numbers(&layer);
        assert!(!numbers.contains_key("blocks"));
        let layer = loaded(layer, &|name| numbers[name].clone());
        let attention = attention(&numbers, &config);
        let u = Random::new(1, DType::F64).tensor([2, L, 8]);
        let [found, known] =
            [&layer, &attention].map(|layer| values(&mixed(layer, u.clone(), Some(&[L, 9]))));
        assert_close("bigbird", &found, &known, 1e-13);
    }
}

/// One round and one chunk: attention with keys of unit length, in which nothing sees itself.
#[test]
fn one_chunk_of_reformer_is_attention_without_oneself() {
    let (l, width) = (9, 4);
    for form in FORMS {
        let mixer = ReformerConfig { heads: 1, rounds: 1, chunk: L, ..REFORMER };
        let config = ModelConfig { form, ..both_ways(mixer) };
        let layer = Mixer::new(&config, L, 1, &device()).unwrap();
        let numbers = numbers(&layer);
        let layer = loaded(layer, &|name| numbers[name].clone());
        let u = Random::new(1, DType::F64).tensor([1, l, 8]);
        let x = values(&u);
        let rows = |name: &str| -> Vec<Vec<f64>> {
            let row = |u: &[f64]| {
                let weight = numbers[name].chunks_exact(8);
                weight.map(|w| w.iter().zip(u).map(|(w, u)| w * u).sum()).collect()
            };
            x.chunks_exact(8).map(row).collect()
        };
        let (q, v) = (rows("qk.weight"), rows("v.weight"));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut known = Vec::new();
        for i in 0..l {
            let weight = |j: usize| {
                let size = (dot(&q[j], &q[j]) / width as f64 + 1e-6).sqrt() * (width as f64).sqrt();
                if i == j { 0.0 } else { (dot(&q[i], &q[j]) / size).exp() }
            };
            let z: f64 = (0..l).map(weight).sum();
            let y: Vec<f64> =
                (0..width).map(|c| (0..l).map(|j| weight(j) * v[j][c] / z).sum()).collect();
            known.extend(numbers["out.weight"].chunks_exact(width).map(|w| dot(w, &y)));
        }
        assert_close(&format!("{form:?}"), &values(&mixed(&layer, u, None)), &known, 1e-13);
        // Alone, a position sees itself.
        let one = Random::new(3, DType::F64).tensor([1, 1, 8]);
        assert!(values(&mixed(&layer, one, None)).iter().any(|y| y.abs() > 1e-3));
    }
}

#[test]
fn random_blocks_are_drawn_once() {
    let draw = |seed: u64| {
        let model = Model::new(&both_ways(BIGBIRD), &IO, seed, &Device::flex()).unwrap();
        let mut layers =
            model.layers.into_iter().map(|block| numbers(&block.mixer)["blocks"].clone());
        [layers.next().unwrap(), layers.next().unwrap()]
    };
    let (first, blocks) = (draw(3), 10);
    assert_eq!(first, draw(3));
    assert!(first != draw(4) && first[0] != first[1]);
    for layer in &first {
        let [one, two] = [0, 1].map(|head| &layer[head * 16..][..16]);
        assert_ne!(one, two, "each head has its own");
        for head in [one, two] {
            for (i, drawn) in head.chunks_exact(2).enumerate() {
                assert_ne!(drawn[0], drawn[1]);
                let seen = |j: f64| {
                    j == 0.0 || j == f64::from(blocks - 1) || (j - (i + 1) as f64).abs() < 2.0
                };
                assert!(drawn.iter().all(|&j| !seen(j) && j < f64::from(blocks)), "{i}: {drawn:?}");
            }
        }
    }
}

/// Training draws new rotations for each step, micro-batch and layer; evaluation has those of the checkpoint. The Long
/// Range Arena's form has one set for all.
#[test]
fn rotations_of_passes() {
    let x = signal(2 * L, 1);
    let lra = ReformerConfig { variant: ReformerVariant::Lra, heads: 2, ..Default::default() };
    for (mixer, same) in [(REFORMER, false), (lra, true)] {
        let model = model(&both_ways(mixer)).cast(FloatDType::F64);
        let answer = |mode| {
            let y = model.forward(input(&x, L, DType::F64), &[L], &model.prepare(L), mode).logits;
            values(&y)
        };
        assert_eq!(answer(train(1)), answer(train(1)));
        assert_eq!(answer(train(1)) == answer(train(2)), same, "{mixer:?}");
        assert_eq!(answer(train(1)) == answer(Mode::Eval), same, "{mixer:?}");
        let rotations = |layer: usize| numbers(&model.layers[layer].mixer)["rotations"].clone();
        assert_eq!(rotations(0) == rotations(1), same, "{mixer:?}");
    }
}

/// f32 beside f64; files; and `dss-infer` on whole and on shorter sequences.
#[test]
fn precisions_files_and_inference() {
    let x = signal(2 * L, 1);
    for config in all() {
        let single = model(&config);
        let answer = |model: &Model, l: usize, dtype: DType| {
            let input = input(&x[..2 * l], l, dtype);
            values(&model.forward(input, &[l], &model.prepare(l), Mode::Eval).logits)
        };
        let (again, _) = saved(&single, |path| dss_nn::load(path, &device()).unwrap());
        let runner = runner(&single);
        let precise = single.clone().cast(FloatDType::F64);
        for l in [L, 31, 1] {
            let what = format!("{config:?} {l}");
            let want = answer(&precise, l, DType::F64);
            assert_close(&what, &answer(&single, l, DType::F32), &want, 2e-5);
            assert_eq!(answer(&single, l, DType::F32), answer(&again, l, DType::F32), "{what}");
            assert_close(&what, &inferred(&runner, &x[..2 * l]), &want, 2e-5);
        }
        let error = runner.state().unwrap_err().to_string();
        assert!(error.contains("cannot run as a stream"), "{error}");
        assert!(single.layers[0].mixer.get().state(1).is_err());
        assert!(single.layers[0].mixer.get().at_step(2.0).is_err());
        let any_length = matches!(config.mixer, MixerConfig::HTransformer1d(_));
        assert_eq!(single.check_len(L + 1).is_ok(), any_length);
        let longer = vec![0.5f32; 2 * (L + 1)];
        assert_eq!(runner.forward(infer::Input::Values(&longer)).is_ok(), any_length);
    }
}

#[test]
fn blocks_that_do_not_exist_are_refused() {
    let model = model(&both_ways(BIGBIRD));
    for wrong in [10.0, -1.0, 2.5] {
        let tensors = model.named_tensors().into_iter().map(|(name, data)| match &*name {
            "layers.1.mixer.blocks" => {
                let mut numbers: Vec<f64> = data.iter::<f64>().collect();
                numbers[3] = wrong;
                (name, TensorData::new(numbers, data.shape().clone()))
            }
            _ => (name, data),
        });
        let error = model.clone().load_named(tensors.collect()).unwrap_err().to_string();
        assert!(error.contains("layers.1.mixer.blocks") && error.contains("below 10"), "{error}");
    }
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let reformer = ReformerConfig::default();
    let lra = ReformerConfig { variant: ReformerVariant::Lra, ..reformer };
    let cases: [(MixerConfig, &str, &str); 11] = [
        (BigbirdConfig { heads: 3, ..BIGBIRD }.into(), "heads must divide the width 8", "try 2"),
        (BigbirdConfig { heads: 0, ..BIGBIRD }.into(), "heads", "at least 1"),
        (BigbirdConfig { block: 0, ..BIGBIRD }.into(), "block must be at least 1", "try 64"),
        (ReformerConfig { heads: 5, ..reformer }.into(), "heads must divide", "try 4"),
        (ReformerConfig { buckets: 7, ..reformer }.into(), "buckets must be even", "try 8"),
        (ReformerConfig { rounds: 2, ..lra }.into(), "rounds is 2", "try 1"),
        (ReformerConfig { width: 4, ..lra }.into(), "width must be h = 8", "try 0"),
        (HTransformer1dConfig { heads: 9, ..H_TRANSFORMER }.into(), "width 4", "try 4"),
        (HTransformer1dConfig { block: 0, ..H_TRANSFORMER }.into(), "block must be even", "try 2"),
        (HTransformer1dConfig { block: 1, ..H_TRANSFORMER }.into(), "block must be even", "try 2"),
        (HTransformer1dConfig { block: 5, ..H_TRANSFORMER }.into(), "block must be even", "try 6"),
    ];
    for (mixer, what, hint) in cases {
        let error = both_ways(mixer).validate(L).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains(hint), "{error}");
    }
    for mixer in [MixerConfig::from(BIGBIRD), lra.into()] {
        let config = ModelConfig { bidirectional: false, ..both_ways(mixer) };
        let error = config.validate(L).unwrap_err().to_string();
        assert!(error.contains("set bidirectional to true"), "{error}");
    }
}
