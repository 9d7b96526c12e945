//! One step at a time gives what the whole sequence gives (§3.4).

use crate::common::random::Random;
use crate::common::{assert_close, values};
use burn::tensor::{DType, Device, Tensor, TensorData};
use dss_nn::config::{Delta, Discretisation, LambdaInit, MixerKind, Variant};
use dss_nn::{Error, SequenceMixer, SsmLayerConfig};

#[test]
fn step_by_step_is_the_whole_sequence() {
    let (b, l, h) = (2, 40, 5);
    let device = Device::flex();
    for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
        for lambda_init in [LambdaInit::SkewHippo, LambdaInit::Random] {
            for (delta, glu) in [(Delta::Separate, false), (Delta::Tied, true)] {
                let layer = SsmLayerConfig::new(h, 6, l)
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
fn other_mixers_too() {
    let (b, l, h) = (2, 40, 5);
    let device = Device::flex();
    let s4 = SsmLayerConfig::new(h, 6, l).with_mixer(MixerKind::S4).with_seed(3);
    let s4d = s4.clone().with_mixer(MixerKind::S4d);
    let bilinear = s4d.clone().with_discretisation(Discretisation::Bilinear);
    for config in [s4.clone(), s4.with_glu(true).with_kernel_len(l), s4d, bilinear] {
        let layer = config.init(&device).unwrap();
        // Beyond the training length too, but for a kernel that ends there.
        let l = if config.kernel_len == 0 { l + 10 } else { l };
        let u = Random::new(1, DType::F32).numbers(b * l * h);
        let u = Tensor::<3>::from_data(TensorData::new(u, [b, l, h]), &device);
        let whole = layer.forward(u.clone());
        let mut state = layer.state(b).unwrap();
        for t in 0..l {
            assert_eq!(state.position(), t);
            let mut fork = state.clone();
            let u = u.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
            let y = layer.step(&mut state, u.clone()).unwrap();
            let again = layer.step(&mut fork, u).unwrap();
            assert_eq!(values(&y), values(&again), "a cloned state goes its own way");
            let want = whole.clone().narrow(1, t, 1);
            let what = format!("{:?} {:?} t = {t}", config.mixer, config.discretisation);
            assert_close(&what, &values(&y), &values(&want), 1e-5);
        }
        let bad = Tensor::<2>::full([b, h], f32::NAN, &device);
        if config.mixer == MixerKind::S4 {
            assert!(layer.step(&mut state, bad).is_err());
        }
        assert_eq!(layer.growing_modes(), 0);
        assert!(layer.check_len(0).is_err());
    }
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let device = Device::flex();
    let config = SsmLayerConfig::new(4, 3, 20);
    for mixer in [MixerKind::Dss, MixerKind::S4, MixerKind::S4d] {
        let config = SsmLayerConfig::new(4, 4, 20).with_mixer(mixer);
        for config in [config.clone().with_bidirectional(true), config.with_kernel_len(5)] {
            let layer = config.init(&device).unwrap();
            assert!(matches!(layer.state(1), Err(Error::Invalid { .. })));
        }
    }
    let layer = config.init(&device).unwrap();
    let mut state = layer.state(2).unwrap();
    assert!(layer.step(&mut state, Tensor::zeros([3, 4], &device)).is_err());
    assert_eq!(state.position(), 0);
    for bad in [
        config.clone().with_delta_min(0.0),
        config.clone().with_delta_max(1e-4),
        SsmLayerConfig::new(0, 3, 20),
        SsmLayerConfig::new(4, 0, 20),
        SsmLayerConfig::new(4, 3, 0),
        SsmLayerConfig::new(1, 513, 20),
    ] {
        assert!(matches!(bad.init(&device), Err(Error::Config { .. })), "{bad:?}");
    }
}
