//! Padding never changes a result.

use crate::common::{FORMS, assert_close, device, values};
use burn::tensor::{Int, Tensor, TensorData};
use dss_nn::config::{Form, InputKind, Io, MixerKind, ModelConfig, NormKind, OutputKind, Pool};
use dss_nn::{DropoutKey, Input, Mode, Model};

const LENGTHS: [usize; 4] = [9, 4, 1, 7];

/// The same sequences padded to l positions, with `filler` beyond their ends.
fn padded(l: usize, filler: i64) -> Input {
    let ids = LENGTHS.iter().enumerate().flat_map(|(b, &len)| {
        (0..l).map(move |t| if t < len { ((7 * b + 3 * t) % 5) as i64 } else { filler })
    });
    let ids = TensorData::new(ids.collect::<Vec<_>>(), [LENGTHS.len(), l]);
    Input::Tokens(Tensor::<2, Int>::from_data(ids, &device()))
}

fn configs(form: Form) -> Vec<ModelConfig> {
    let mut all = Vec::new();
    for mixer in [MixerKind::S4, MixerKind::S4d] {
        for (bidirectional, kernel_len) in [(false, 0), (true, 0), (false, 3), (true, 3)] {
            all.push(ModelConfig {
                layers: 2,
                h: 6,
                n: 4,
                mixer,
                mask_padding: true,
                bidirectional,
                kernel_len,
                form,
                ..ModelConfig::default()
            });
        }
    }
    for pool in [Pool::Mean, Pool::Last] {
        for norm in [NormKind::Batch, NormKind::Layer] {
            for bits in 0..8 {
                all.push(ModelConfig {
                    layers: 2,
                    h: 6,
                    n: 4,
                    dropout: 0.2,
                    mask_padding: true,
                    pool,
                    norm,
                    prenorm: bits & 1 == 1,
                    bidirectional: bits & 2 == 2,
                    glu: bits & 4 == 4,
                    kernel_len: if bits == 7 { 3 } else { 0 },
                    form,
                    ..ModelConfig::default()
                });
            }
        }
    }
    all
}

fn logits(model: &Model, l: usize, filler: i64, mode: Mode) -> Vec<f64> {
    let kernels = model.kernels(l);
    values(&model.forward(padded(l, filler), &LENGTHS, &kernels, mode).logits)
}

#[test]
fn more_of_it_changes_nothing() {
    let train = Mode::Train { dropout: DropoutKey { seed: 1, step: 2, micro: 0 } };
    for form in FORMS {
        for output in [OutputKind::Sequence { outputs: 3 }, OutputKind::Pair { outputs: 3 }] {
            for config in configs(form) {
                let io = Io { input: InputKind::Tokens { vocab: 5 }, output, len: 24 };
                let model = config.init(&io, 5, &device()).unwrap();
                for mode in [Mode::Eval, train] {
                    let least = logits(&model, 9, 0, mode);
                    for (l, filler) in [(9, 4), (10, 0), (24, 2)] {
                        let what = format!("{config:?} {mode:?} L = {l}");
                        assert_close(&what, &logits(&model, l, filler, mode), &least, 1e-5);
                    }
                }
            }
        }
    }
}

/// Statistics of BatchNorm: the same with padding out of the way, others with padding counted.
#[test]
fn statistics_with_and_without_it() {
    let train = Mode::Train { dropout: DropoutKey { seed: 1, step: 2, micro: 0 } };
    for form in FORMS {
        for (mask_padding, same) in [(true, true), (false, false)] {
            let config =
                ModelConfig { layers: 2, h: 6, n: 4, mask_padding, form, ..ModelConfig::default() };
            let output = OutputKind::Sequence { outputs: 3 };
            let io = Io { input: InputKind::Tokens { vocab: 5 }, output, len: 24 };
            let model = config.init(&io, 5, &device()).unwrap();
            let variance = |l| {
                let stats = model.forward(padded(l, 0), &LENGTHS, &model.kernels(l), train).stats;
                assert_eq!(stats.len(), 2);
                values(&stats[1].var)
            };
            let (short, long) = (variance(9), variance(24));
            let error =
                short.iter().zip(&long).fold(0.0f64, |m, (a, b)| m.max((a / b - 1.0).abs()));
            assert_eq!(error < 1e-4, same, "mask_padding {mask_padding}: {short:?} {long:?}");
        }
    }
}
