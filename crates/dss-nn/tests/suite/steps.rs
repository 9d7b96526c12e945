//! One step at a time gives what the whole sequence gives (§3.4).

use crate::common::configs::{dss, kernel_len, mixers, s4, s4d, small};
use crate::common::random::Random;
use crate::common::{assert_close, values};
use burn::tensor::{DType, Device, Tensor, TensorData};
use dss_nn::config::{
    Delta, Discretisation, DssConfig, LambdaInit, MixerConfig, ModelConfig, S4Config, S4dConfig,
    Variant,
};
use dss_nn::{Block, Error, Mixer};

#[test]
fn step_by_step_is_the_whole_sequence() {
    let (b, l, h) = (2, 40, 5);
    let device = Device::flex();
    for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
        for lambda_init in [LambdaInit::SkewHippo, LambdaInit::Random] {
            for (delta, glu) in [(Delta::Separate, false), (Delta::Tied, true)] {
                let mixer = DssConfig { variant, lambda_init, delta, glu, ..dss(6) };
                let layer = Mixer::new(&small(h, mixer), l, 3, &device).unwrap();
                let u = Random::new(1, DType::F32).numbers(b * l * h);
                let u = Tensor::<3>::from_data(TensorData::new(u, [b, l, h]), &device);
                let whole = layer.forward(u.clone());
                let layer = layer.get();
                let mut state = layer.state(b).unwrap();
                for t in 0..l {
                    assert_eq!(state.position(), t);
                    let y =
                        layer.step(&mut state, u.clone().narrow(1, t, 1).squeeze_dim(1)).unwrap();
                    let want = whole.clone().narrow(1, t, 1);
                    let what = format!("{variant:?} {lambda_init:?} {delta:?} t = {t}");
                    assert_close(&what, &values(&y), &values(&want), 1e-5);
                }
                // Modes that grow end with the kernel; the others continue.
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
    let cut = S4Config { glu: true, kernel_len: l, ..s4(6) };
    let bilinear = S4dConfig { discretisation: Discretisation::Bilinear, ..s4d(6) };
    for config in [small(h, s4(6)), small(h, cut), small(h, s4d(6)), small(h, bilinear)] {
        let layer = Mixer::new(&config, l, 3, &device).unwrap();
        // Beyond the training length too, but for a kernel that ends there.
        let l = if kernel_len(&config) == 0 { l + 10 } else { l };
        let u = Random::new(1, DType::F32).numbers(b * l * h);
        let u = Tensor::<3>::from_data(TensorData::new(u, [b, l, h]), &device);
        let whole = layer.forward(u.clone());
        let layer = layer.get();
        let mut state = layer.state(b).unwrap();
        for t in 0..l {
            assert_eq!(state.position(), t);
            let mut fork = state.clone();
            let u = u.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
            let y = layer.step(&mut state, u.clone()).unwrap();
            let again = layer.step(&mut fork, u).unwrap();
            assert_eq!(values(&y), values(&again), "a cloned state goes its own way");
            let want = whole.clone().narrow(1, t, 1);
            let what = format!("{:?} t = {t}", config.mixer);
            assert_close(&what, &values(&y), &values(&want), 1e-5);
        }
        let bad = Tensor::<2>::full([b, h], f32::NAN, &device);
        if matches!(config.mixer, MixerConfig::S4(_)) {
            assert!(layer.step(&mut state, bad).is_err());
        }
        assert_eq!(layer.modes().unwrap().growing(), 0);
        assert!(layer.check_len(0).is_err());
    }
}

#[test]
fn impossible_requests_are_refused() {
    let device = Device::flex();
    for (bidirectional, kernel_len) in [(true, 0), (false, 5)] {
        for mixer in mixers(4, kernel_len) {
            let config = ModelConfig { bidirectional, ..small(4, mixer) };
            let layer = Mixer::new(&config, 20, 0, &device).unwrap();
            assert!(matches!(layer.get().state(1), Err(Error::Refused(_))));
        }
    }
    let layer = Mixer::new(&small(4, dss(3)), 20, 0, &device).unwrap();
    let layer = layer.get();
    let mut state = layer.state(2).unwrap();
    assert!(layer.step(&mut state, Tensor::zeros([3, 4], &device)).is_err());
    assert_eq!(state.position(), 0);
    for (bad, len) in [
        (small(4, DssConfig { delta_min: 0.0, ..dss(3) }), 20),
        (small(4, DssConfig { delta_max: 1e-4, ..dss(3) }), 20),
        (small(0, dss(3)), 20),
        (small(4, dss(0)), 20),
        (small(4, dss(3)), 0),
        (small(1, dss(513)), 20),
    ] {
        let setting = |error| matches!(error, Error::Format(dss_format::Error::Setting { .. }));
        assert!(Mixer::new(&bad, len, 0, &device).is_err_and(setting), "{bad:?}");
        assert!(Block::new(&bad, len, 0, &device).is_err_and(setting), "{bad:?}");
    }
}
