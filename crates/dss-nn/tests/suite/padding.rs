//! Padding never changes a result.

use crate::common::configs::{dss, mixers, small};
use crate::common::{FORMS, assert_close, device, values};
use burn::tensor::{Int, Tensor, TensorData};
use dss_nn::config::{
    DssConfig, Form, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool, Positions,
};
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
    for (bidirectional, kernel_len) in [(false, 0), (true, 0), (false, 3), (true, 3)] {
        for mixer in mixers(4, kernel_len) {
            all.push(ModelConfig { mask_padding: true, bidirectional, form, ..small(6, mixer) });
        }
    }
    for positions in [Positions::Fixed, Positions::Learned] {
        for norm in [NormKind::Batch, NormKind::Layer] {
            for prenorm in [false, true] {
                all.push(ModelConfig {
                    ff: 5,
                    dropout: 0.2,
                    mask_padding: true,
                    positions,
                    pool: Pool::Cls,
                    norm,
                    prenorm,
                    bidirectional: true,
                    form,
                    ..small(6, dss(4))
                });
            }
        }
    }
    for pool in [Pool::Mean, Pool::Last] {
        for norm in [NormKind::Batch, NormKind::Layer] {
            for bits in 0..8 {
                let (glu, kernel_len) = (bits & 4 == 4, if bits == 7 { 3 } else { 0 });
                all.push(ModelConfig {
                    dropout: 0.2,
                    mask_padding: true,
                    pool,
                    norm,
                    prenorm: bits & 1 == 1,
                    bidirectional: bits & 2 == 2,
                    form,
                    ..small(6, DssConfig { glu, kernel_len, ..dss(4) })
                });
            }
        }
    }
    all
}

fn logits(model: &Model, l: usize, filler: i64, mode: Mode) -> Vec<f64> {
    values(&model.forward(padded(l, filler), &LENGTHS, &model.prepare(l), mode).logits)
}

#[test]
fn more_of_it_changes_nothing() {
    let train = Mode::Train { dropout: DropoutKey { seed: 1, step: 2, micro: 0 } };
    for form in FORMS {
        for output in [OutputKind::Sequence { outputs: 3 }, OutputKind::Pair { outputs: 3 }] {
            for config in configs(form) {
                let io = ModelIo { input: InputKind::Tokens { vocab: 5 }, output, len: 24 };
                let model = Model::new(&config, &io, 5, &device()).unwrap();
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
            let config = ModelConfig { mask_padding, form, ..small(6, dss(4)) };
            let output = OutputKind::Sequence { outputs: 3 };
            let io = ModelIo { input: InputKind::Tokens { vocab: 5 }, output, len: 24 };
            let model = Model::new(&config, &io, 5, &device()).unwrap();
            let variance = |l| {
                let stats = model.forward(padded(l, 0), &LENGTHS, &model.prepare(l), train).stats;
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
