//! One step at a time gives what the whole sequence gives (§3.4).

mod common;

use burn::tensor::{DType, Device, Tensor, TensorData};
use common::random::Random;
use common::{assert_close, values};
use dss::config::{Delta, LambdaInit, Variant};
use dss::{DssLayerConfig, Error, SequenceMixer};

#[test]
fn step_by_step_is_the_whole_sequence() {
    let (b, l, h) = (2, 40, 5);
    let device = Device::flex();
    for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
        for lambda_init in [LambdaInit::SkewHippo, LambdaInit::Random] {
            for (delta, glu) in [(Delta::Separate, false), (Delta::Tied, true)] {
                let layer = DssLayerConfig::new(h, 6, l)
                    .with_variant(variant)
                    .with_lambda_init(lambda_init)
                    .with_delta(delta)
                    .with_glu(glu)
                    .with_seed(3)
                    .init(&device)
                    .unwrap();
                let u = Random::new(1, DType::F32).numbers(b * l * h);
                let u = Tensor::<3>::from_data(TensorData::new(u, [b, l, h]), &device);
                let whole = layer.forward(u.clone());
                let mut state = layer.state(b).unwrap();
                for t in 0..l {
                    assert_eq!(state.position(), t);
                    let y =
                        layer.step(&mut state, u.clone().narrow(1, t, 1).squeeze_dim(1)).unwrap();
                    let want = whole.clone().narrow(1, t, 1);
                    let what = format!("{variant:?} {lambda_init:?} {delta:?} t = {t}");
                    assert_close(&what, &values(&y), &values(&want), 1e-5);
                }
                // Modes that grow end with the kernel; the others go on.
                let growing = variant == Variant::Softmax && lambda_init == LambdaInit::Random;
                let next = layer.step(&mut state, Tensor::zeros([b, h], &device));
                assert_eq!(next.is_err(), growing, "{variant:?} {lambda_init:?}");
                assert_eq!(layer.check_len(l + 1).is_err(), growing);
            }
        }
    }
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let device = Device::flex();
    let config = DssLayerConfig::new(4, 3, 20);
    for config in [config.clone().with_bidirectional(true), config.clone().with_kernel_len(5)] {
        let layer = config.init(&device).unwrap();
        assert!(matches!(layer.state(1), Err(Error::Invalid { .. })));
    }
    let layer = config.init(&device).unwrap();
    let mut state = layer.state(2).unwrap();
    assert!(layer.step(&mut state, Tensor::zeros([3, 4], &device)).is_err());
    assert_eq!(state.position(), 0);
    for bad in [
        config.clone().with_delta_min(0.0),
        config.clone().with_delta_max(1e-4),
        DssLayerConfig::new(0, 3, 20),
        DssLayerConfig::new(4, 0, 20),
        DssLayerConfig::new(4, 3, 0),
        DssLayerConfig::new(1, 513, 20),
    ] {
        assert!(matches!(bad.init(&device), Err(Error::Config { .. })), "{bad:?}");
    }
}
