//! S4 and S4D as layers: golden kernels, initial values, longer sequences, other rates.

use crate::common::configs::{kernel_len, s4, s4d, small};
use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, channels_last, device, grad, tensor, values};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use dss_kernels::{C64, init, s4 as numerics};
use dss_nn::config::{
    Discretisation, Form, InputKind, MixerConfig, ModelConfig, ModelIo, OutputKind, S4Config,
    S4dConfig, S4dInit,
};
use dss_nn::mixer::S4Layer;
use dss_nn::{HasContext, Mixer, Model, SequenceMixer};

fn as_s4(layer: &mut Mixer) -> &mut S4Layer {
    let Mixer::S4(layer) = layer else { panic!("not S4") };
    layer
}

/// A layer of a small model.
fn layer(config: &ModelConfig, len: usize) -> Mixer {
    Mixer::new(config, len, 0, &Device::flex()).unwrap()
}

/// A layer whose numbers are f64.
fn precise(config: &ModelConfig, len: usize) -> Mixer {
    struct Cast;
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|x| x.cast(FloatDType::F64).detach().require_grad())
        }
    }
    Mixer::new(config, len, 0, &device()).unwrap().map(&mut Cast)
}

/// The golden kernel through a layer in both forms: K, y = K * u, and the gradients of Σ y·g.
#[test]
fn golden_kernels() {
    for file in ["s4_small", "s4_medium"] {
        let Some(golden) = Golden::read(file) else { continue };
        let (h, pairs, l) = (golden.usize("H"), golden.usize("d_state") / 2, golden.usize("L"));
        for form in FORMS {
            let mut layer = precise(&ModelConfig { form, ..small(h, s4(2 * pairs)) }, l);
            let layer = as_s4(&mut layer);
            fn set<const D: usize>(param: &mut Param<Tensor<D>>, golden: &Golden, name: &str) {
                let new = tensor(golden.get(name), param.val().dims()).require_grad();
                *param = Param::from_tensor(new);
            }
            set(&mut layer.lambda_re, &golden, "log_w_real");
            set(&mut layer.lambda_im, &golden, "w_imag");
            set(&mut layer.p, &golden, "P");
            set(&mut layer.b, &golden, "B");
            set(&mut layer.c, &golden, "C");
            set(&mut layer.delta_log, &golden, "log_dt");

            let check = |what: &str, got: &[f64], want: &str| {
                let name = format!("{} {form:?} {what}", golden.name);
                assert_close(&name, got, golden.get(want), 1e-10);
            };
            let k = layer.kernel(l).unwrap();
            check("K", &values(&k), "K");
            check("K by the recurrence", &values(&k), "K_dense");
            let batch = golden.shape("u")[0];
            let series = |name: &str| tensor(&channels_last(golden.get(name), h, l), [batch, l, h]);
            let y = dss_nn::composed::conv(series("u"), k, false);
            let grads = (y * series("g")).sum().backward();
            check("Λ_re", &grad(&layer.lambda_re.val(), &grads), "grad.log_w_real");
            check("Λ_im", &grad(&layer.lambda_im.val(), &grads), "grad.w_imag");
            check("P", &grad(&layer.p.val(), &grads), "grad.P");
            check("B", &grad(&layer.b.val(), &grads), "grad.B");
            check("C", &grad(&layer.c.val(), &grads), "grad.C");
            check("Δ", &grad(&layer.delta_log.val(), &grads), "grad.log_dt");
        }
    }
}

/// The parameters of a layer in f64, with C in place of C̃, and its sizes.
fn definition(layer: &S4Layer) -> (numerics::KernelConfig, [Vec<f64>; 6]) {
    let mut numbers = [
        values(&layer.lambda_re.val()),
        values(&layer.lambda_im.val()),
        values(&layer.p.val()),
        values(&layer.b.val()),
        values(&layer.c.val()),
        values(&layer.delta_log.val()),
    ];
    let len = layer.context().len;
    let [channels, h, norm_len] = layer.kernel(len).unwrap().dims();
    let n = 2 * numbers[0].len();
    let sizes = numerics::KernelConfig::new(h, n, norm_len).channels(channels);
    numbers[4] = numerics::uncorrect_length(&sizes, &params(&numbers)).unwrap();
    (sizes, numbers)
}

fn params([lambda_re, lambda_im, p, b, c, delta_log]: &[Vec<f64>; 6]) -> numerics::Params<'_, f64> {
    numerics::Params { lambda_re, lambda_im, p, b, c, delta_log }
}

#[test]
fn s4_starts_as_legs_with_a_corrected_c() {
    for (kernel_len, bidirectional) in [(0, false), (20, true)] {
        let mixer = S4Config { kernel_len, ..s4(16) };
        let mut layer = layer(&ModelConfig { bidirectional, ..small(50, mixer) }, 64);
        let layer = as_s4(&mut layer);
        let legs = init::nplr_legs(16).unwrap();
        let flat = |x: &[C64]| x.iter().flat_map(|z| [z.re, z.im]).collect::<Vec<f64>>();
        let im: Vec<f64> = legs.lambda.iter().map(|z| z.im).collect();
        assert_close("Λ_re", &values(&layer.lambda_re.val()), &[0.5f64.ln(); 8], 1e-6);
        assert_close("Λ_im", &values(&layer.lambda_im.val()), &im, 1e-6);
        assert_close("P", &values(&layer.p.val()), &flat(&legs.p), 1e-6);
        assert_close("B", &values(&layer.b.val()), &flat(&legs.b), 1e-6);
        let range = 0.001f64.ln() - 1e-6..=0.1f64.ln() + 1e-6;
        assert!(values(&layer.delta_log.val()).iter().all(|x| range.contains(x)));
        // C itself is complex standard normal, and K is C·Ā^l·B̄.
        let (sizes, numbers) = definition(layer);
        let c = &numbers[4];
        let variance = c.iter().map(|x| x * x).sum::<f64>() / c.len() as f64;
        assert!((variance - 0.5).abs() < 5.0 / (c.len() as f64).sqrt(), "{variance}");
        let k = numerics::kernel_dense(&sizes, &params(&numbers));
        assert_close("K", &values(&layer.kernel(64).unwrap()), &k, 1e-5);
    }
}

#[test]
fn s4d_starts_as_told() {
    for (lambda_init, im) in [
        (S4dInit::Legs, init::nplr_legs(8).unwrap().lambda.iter().map(|z| z.im).collect()),
        (S4dInit::Lin, (0..4).map(|n| std::f64::consts::PI * n as f64).collect::<Vec<_>>()),
        (
            S4dInit::Inv,
            [7.0, 5.0 / 3.0, 0.6, 1.0 / 7.0].map(|x| 8.0 / std::f64::consts::PI * x).into(),
        ),
    ] {
        let layer = layer(&small(400, S4dConfig { lambda_init, ..s4d(8) }), 30);
        let Mixer::S4d(layer) = &layer else { panic!("not S4D") };
        assert_close("Λ_re", &values(&layer.lambda_re.val()), &[0.5f64.ln(); 4], 1e-6);
        assert_close(&format!("{lambda_init:?}"), &values(&layer.lambda_im.val()), &im, 1e-6);
        let c = values(&layer.c.val());
        let variance = c.iter().map(|x| x * x).sum::<f64>() / c.len() as f64;
        assert!((variance - 0.5).abs() < 5.0 / (c.len() as f64).sqrt(), "{variance}");
    }
}

/// Beyond the training length the kernel of S4 continues as the same system.
#[test]
fn kernels_continue_beyond_the_training_length() {
    for form in [Form::Fused, Form::Composed] {
        let mut layer = precise(&ModelConfig { form, ..small(3, s4(8)) }, 40);
        let layer = as_s4(&mut layer);
        let (sizes, numbers) = definition(layer);
        for l in [1, 39, 40, 41, 200] {
            layer.check_len(l).unwrap();
            let sizes = numerics::KernelConfig { len: l, norm_len: l.max(40), ..sizes };
            let want = numerics::kernel_dense(&sizes, &params(&numbers));
            let k = values(&layer.kernel(l).unwrap());
            assert_close(&format!("{form:?} {l}"), &k, &want, 1e-9);
        }
        assert!(layer.check_len(1 << 30).unwrap_err().to_string().contains("16777216"));
    }
    // A system so slow that I − Ā^L is 0 in f64.
    let mut layer = layer(&small(1, s4(4)), 5);
    let layer = as_s4(&mut layer);
    let device = Device::flex();
    layer.p = Param::from_tensor(Tensor::zeros([2, 2], &device));
    layer.lambda_im = Param::from_tensor(Tensor::zeros([2], &device));
    layer.delta_log = Param::from_tensor(Tensor::full([1], -40.0, &device));
    assert!(layer.check_len(5).is_ok());
    assert!(layer.check_len(6).unwrap_err().to_string().contains("shorten the sequence"));
    assert!(layer.state(1).is_err());
}

/// At half the rate: S4 is the same continuous system with 2Δ; S4D by zero-order hold adds up pairs of taps.
#[test]
fn models_run_at_another_rate() {
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Position { outputs: 3 },
        len: 30,
    };
    let kernel = |model: &Model, l| values(&model.layers[1].mixer.get().kernel(l).unwrap());
    let zoh = S4dConfig { kernel_len: 20, ..s4d(4) };
    let bilinear = S4dConfig { discretisation: Discretisation::Bilinear, ..zoh };
    let s4 = S4Config { kernel_len: 20, ..s4(4) };
    // The bilinear rule is exact for slow modes only.
    for (mixer, tolerance) in [
        (MixerConfig::from(s4), 0.1),
        (MixerConfig::from(zoh), 1e-5),
        (MixerConfig::from(bilinear), 0.1),
    ] {
        let what = format!("{mixer:?}");
        let model = Model::new(&small(8, mixer), &io, 3, &Device::flex()).unwrap();
        let mut model = model.cast(FloatDType::F64);
        let full = kernel(&model, 30);
        let half = model.clone().at_rate(2.0).unwrap();
        assert_eq!((half.io().len, kernel_len(half.config())), (15, 10));
        let pairs: Vec<f64> = full.chunks(2).map(|two| two[0] + two[1]).collect();
        assert_close(&what, &kernel(&half, 15), &pairs, tolerance);
        if let Mixer::S4(layer) = &mut model.layers[1].mixer {
            let (sizes, mut numbers) = definition(layer);
            numbers[5].iter_mut().for_each(|delta| *delta += 2f64.ln());
            let sizes = numerics::KernelConfig { len: 10, norm_len: 10, ..sizes };
            let want = numerics::kernel_dense(&sizes, &params(&numbers));
            assert_close(&what, &kernel(&half, 15), &want, 1e-6);
        }
        let back = half.at_rate(0.5).unwrap();
        assert_close(&format!("{what} and back"), &kernel(&back, 30), &full, 1e-5);
    }
}

/// All parameters of both mixers get gradients in a layer, and what is not a number does not pass for one.
#[test]
fn a_layer_learns_and_shows_what_is_not_a_number() {
    for mixer in [MixerConfig::from(s4(6)), MixerConfig::from(s4d(6))] {
        for form in FORMS {
            let config = ModelConfig { form, ..small(4, mixer.clone()) };
            let layer = Mixer::new(&config, 20, 0, &device()).unwrap();
            let u = Random::new(2, burn::tensor::DType::F32).tensor([2, 20, 4]);
            let grads = layer.forward(u).square().sum().backward();
            let found = match &layer {
                Mixer::S4(s) => vec![
                    grad(&s.lambda_re.val(), &grads),
                    grad(&s.lambda_im.val(), &grads),
                    grad(&s.p.val(), &grads),
                    grad(&s.b.val(), &grads),
                    grad(&s.c.val(), &grads),
                    grad(&s.delta_log.val(), &grads),
                ],
                Mixer::S4d(s) => vec![
                    grad(&s.lambda_re.val(), &grads),
                    grad(&s.lambda_im.val(), &grads),
                    grad(&s.c.val(), &grads),
                    grad(&s.delta_log.val(), &grads),
                ],
                _ => unreachable!(),
            };
            assert!(found.iter().all(|g| g.iter().any(|x| *x != 0.0)), "{mixer:?} {form:?}");
        }
    }
    let mut layer = layer(&small(1, s4(2)), 5);
    let layer = as_s4(&mut layer);
    let nan = TensorData::new(vec![f64::NAN], [1]);
    layer.lambda_im = Param::from_tensor(Tensor::from_data(nan, &Device::flex()));
    assert!(values(&layer.kernel(5).unwrap()).iter().all(|x| x.is_nan()));
}
