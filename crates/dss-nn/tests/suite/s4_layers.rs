//! S4 and S4D as layers: golden kernels, initial values, longer sequences, other rates.

use crate::common::random::Random;
use crate::common::{FORMS, Golden, assert_close, channels_last, device, grad, tensor, values};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use dss_kernels::{C64, init, s4};
use dss_nn::config::{
    Discretisation, Form, InputKind, Io, MixerKind, ModelConfig, OutputKind, S4dInit,
};
use dss_nn::ssm::S4Ssm;
use dss_nn::{Model, SequenceMixer, Ssm, SsmLayer, SsmLayerConfig};

fn s4_of(layer: &SsmLayer) -> &S4Ssm {
    let Ssm::S4(ssm) = &layer.ssm else { panic!("not S4") };
    ssm
}

/// A layer whose numbers are f64.
fn precise(config: &SsmLayerConfig, device: &Device) -> SsmLayer {
    struct Cast;
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|x| x.cast(FloatDType::F64).detach().require_grad())
        }
    }
    config.init(device).unwrap().map(&mut Cast)
}

/// The golden kernel through a layer in both forms: K, y = K * u, and the gradients of Σ y·g.
#[test]
fn golden_kernels() {
    for file in ["s4_small", "s4_medium"] {
        let Some(golden) = Golden::read(file) else { continue };
        let (h, pairs, l) = (golden.usize("H"), golden.usize("d_state") / 2, golden.usize("L"));
        for form in FORMS {
            let config =
                SsmLayerConfig::new(h, 2 * pairs, l).with_mixer(MixerKind::S4).with_form(form);
            let mut layer = precise(&config, &device());
            let Ssm::S4(ssm) = &mut layer.ssm else { panic!("not S4") };
            fn set<const D: usize>(param: &mut Param<Tensor<D>>, golden: &Golden, name: &str) {
                let new = tensor(golden.get(name), param.val().dims()).require_grad();
                *param = Param::from_tensor(new);
            }
            set(&mut ssm.lambda_re, &golden, "log_w_real");
            set(&mut ssm.lambda_im, &golden, "w_imag");
            set(&mut ssm.p, &golden, "P");
            set(&mut ssm.b, &golden, "B");
            set(&mut ssm.c, &golden, "C");
            set(&mut ssm.delta_log, &golden, "log_dt");

            let check = |what: &str, got: &[f64], want: &str| {
                let name = format!("{} {form:?} {what}", golden.name);
                assert_close(&name, got, golden.get(want), 1e-10);
            };
            let k = layer.kernel(l);
            check("K", &values(&k), "K");
            check("K by the recurrence", &values(&k), "K_dense");
            let batch = golden.shape("u")[0];
            let series = |name: &str| tensor(&channels_last(golden.get(name), h, l), [batch, l, h]);
            let y = dss_nn::composed::conv(series("u"), k, false);
            let grads = (y * series("g")).sum().backward();
            let ssm = s4_of(&layer);
            check("Λ_re", &grad(&ssm.lambda_re.val(), &grads), "grad.log_w_real");
            check("Λ_im", &grad(&ssm.lambda_im.val(), &grads), "grad.w_imag");
            check("P", &grad(&ssm.p.val(), &grads), "grad.P");
            check("B", &grad(&ssm.b.val(), &grads), "grad.B");
            check("C", &grad(&ssm.c.val(), &grads), "grad.C");
            check("Δ", &grad(&ssm.delta_log.val(), &grads), "grad.log_dt");
        }
    }
}

/// The parameters of a layer in f64, with C in place of C̃, and its sizes.
fn definition(layer: &SsmLayer) -> (s4::KernelConfig, [Vec<f64>; 6]) {
    let ssm = s4_of(layer);
    let mut numbers = [
        values(&ssm.lambda_re.val()),
        values(&ssm.lambda_im.val()),
        values(&ssm.p.val()),
        values(&ssm.b.val()),
        values(&ssm.c.val()),
        values(&ssm.delta_log.val()),
    ];
    let config = layer.config();
    let sizes = s4::KernelConfig::new(config.h, config.n, config.norm_len());
    let sizes = sizes.channels(config.channels());
    numbers[4] = s4::uncorrect_length(&sizes, &params(&numbers)).unwrap();
    (sizes, numbers)
}

fn params([lambda_re, lambda_im, p, b, c, delta_log]: &[Vec<f64>; 6]) -> s4::Params<'_, f64> {
    s4::Params { lambda_re, lambda_im, p, b, c, delta_log }
}

#[test]
fn s4_starts_as_legs_with_a_corrected_c() {
    for (kernel_len, bidirectional) in [(0, false), (20, true)] {
        let config = SsmLayerConfig::new(50, 16, 64)
            .with_mixer(MixerKind::S4)
            .with_kernel_len(kernel_len)
            .with_bidirectional(bidirectional);
        let layer = config.init(&Device::flex()).unwrap();
        let ssm = s4_of(&layer);
        let legs = init::nplr_legs(16).unwrap();
        let flat = |x: &[C64]| x.iter().flat_map(|z| [z.re, z.im]).collect::<Vec<f64>>();
        let im: Vec<f64> = legs.lambda.iter().map(|z| z.im).collect();
        assert_close("Λ_re", &values(&ssm.lambda_re.val()), &[0.5f64.ln(); 8], 1e-6);
        assert_close("Λ_im", &values(&ssm.lambda_im.val()), &im, 1e-6);
        assert_close("P", &values(&ssm.p.val()), &flat(&legs.p), 1e-6);
        assert_close("B", &values(&ssm.b.val()), &flat(&legs.b), 1e-6);
        let range = 0.001f64.ln() - 1e-6..=0.1f64.ln() + 1e-6;
        assert!(values(&ssm.delta_log.val()).iter().all(|x| range.contains(x)));
        // C itself is complex standard normal, and K is C·Ā^l·B̄.
        let (sizes, numbers) = definition(&layer);
        let c = &numbers[4];
        let variance = c.iter().map(|x| x * x).sum::<f64>() / c.len() as f64;
        assert!((variance - 0.5).abs() < 5.0 / (c.len() as f64).sqrt(), "{variance}");
        let k = s4::kernel_dense(&sizes, &params(&numbers));
        assert_close("K", &values(&layer.kernel(64)), &k, 1e-5);
    }
}

#[test]
fn s4d_starts_as_told() {
    for (s4d_init, im) in [
        (S4dInit::Legs, init::nplr_legs(8).unwrap().lambda.iter().map(|z| z.im).collect()),
        (S4dInit::Lin, (0..4).map(|n| std::f64::consts::PI * n as f64).collect::<Vec<_>>()),
        (
            S4dInit::Inv,
            [7.0, 5.0 / 3.0, 0.6, 1.0 / 7.0].map(|x| 8.0 / std::f64::consts::PI * x).into(),
        ),
    ] {
        let config =
            SsmLayerConfig::new(400, 8, 30).with_mixer(MixerKind::S4d).with_s4d_init(s4d_init);
        let layer = config.init(&Device::flex()).unwrap();
        let Ssm::S4d(ssm) = &layer.ssm else { panic!("not S4D") };
        assert_close("Λ_re", &values(&ssm.lambda_re.val()), &[0.5f64.ln(); 4], 1e-6);
        assert_close(&format!("{s4d_init:?}"), &values(&ssm.lambda_im.val()), &im, 1e-6);
        let c = values(&ssm.c.val());
        let variance = c.iter().map(|x| x * x).sum::<f64>() / c.len() as f64;
        assert!((variance - 0.5).abs() < 5.0 / (c.len() as f64).sqrt(), "{variance}");
    }
}

/// Beyond the training length the kernel of S4 goes on as the same system.
#[test]
fn kernels_go_on_beyond_the_training_length() {
    for form in [Form::Fused, Form::Composed] {
        let config = SsmLayerConfig::new(3, 8, 40).with_mixer(MixerKind::S4).with_form(form);
        let layer = precise(&config, &device());
        let (sizes, numbers) = definition(&layer);
        for l in [1, 39, 40, 41, 200] {
            layer.check_len(l).unwrap();
            let sizes = s4::KernelConfig { len: l, norm_len: l.max(40), ..sizes };
            let want = s4::kernel_dense(&sizes, &params(&numbers));
            assert_close(&format!("{form:?} {l}"), &values(&layer.kernel(l)), &want, 1e-9);
        }
        assert!(layer.check_len(1 << 30).unwrap_err().to_string().contains("16777216"));
    }
    // A system so slow that I − Ā^L is 0 in f64.
    let config = SsmLayerConfig::new(1, 4, 5).with_mixer(MixerKind::S4);
    let mut layer = config.init(&Device::flex()).unwrap();
    let Ssm::S4(ssm) = &mut layer.ssm else { panic!("not S4") };
    let device = Device::flex();
    ssm.p = Param::from_tensor(Tensor::zeros([2, 2], &device));
    ssm.lambda_im = Param::from_tensor(Tensor::zeros([2], &device));
    ssm.delta_log = Param::from_tensor(Tensor::full([1], -40.0, &device));
    assert!(layer.check_len(5).is_ok());
    assert!(layer.check_len(6).unwrap_err().to_string().contains("shorten the sequence"));
    assert!(layer.state(1).is_err());
}

/// At half the rate: S4 is the same continuous system with 2Δ; S4D by zero-order hold adds up pairs of taps.
#[test]
fn models_run_at_another_rate() {
    let io = Io {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Position { outputs: 3 },
        len: 30,
    };
    let small = ModelConfig { layers: 2, h: 8, n: 4, ..ModelConfig::default() };
    let kernel = |model: &Model, l| values(&model.layers[1].mixer.kernel(l));
    for (mixer, discretisation) in [
        (MixerKind::S4, Discretisation::Zoh),
        (MixerKind::S4d, Discretisation::Zoh),
        (MixerKind::S4d, Discretisation::Bilinear),
    ] {
        let config = ModelConfig { mixer, discretisation, kernel_len: 20, ..small.clone() };
        let model = config.init(&io, 3, &Device::flex()).unwrap().cast(FloatDType::F64);
        let full = kernel(&model, 30);
        let half = model.clone().at_rate(2.0).unwrap();
        assert_eq!((half.io().len, half.config().kernel_len), (15, 10));
        let pairs: Vec<f64> = full.chunks(2).map(|two| two[0] + two[1]).collect();
        let what = format!("{mixer:?} {discretisation:?}");
        // The bilinear rule is exact for slow modes only.
        let tolerance = if discretisation == Discretisation::Zoh && mixer == MixerKind::S4d {
            1e-5
        } else {
            0.1
        };
        assert_close(&what, &kernel(&half, 15), &pairs, tolerance);
        if mixer == MixerKind::S4 {
            let (sizes, mut numbers) = definition(&model.layers[1].mixer);
            numbers[5].iter_mut().for_each(|delta| *delta += 2f64.ln());
            let sizes = s4::KernelConfig { len: 10, norm_len: 10, ..sizes };
            let want = s4::kernel_dense(&sizes, &params(&numbers));
            assert_close(&what, &kernel(&half, 15), &want, 1e-6);
        }
        let back = half.at_rate(0.5).unwrap();
        assert_close(&format!("{what} and back"), &kernel(&back, 30), &full, 1e-5);
    }
}

/// All parameters of both mixers get gradients in a layer, and what is not a number does not pass for one.
#[test]
fn a_layer_learns_and_shows_what_is_not_a_number() {
    for mixer in [MixerKind::S4, MixerKind::S4d] {
        for form in FORMS {
            let config = SsmLayerConfig::new(4, 6, 20).with_mixer(mixer).with_form(form);
            let layer = config.init(&device()).unwrap();
            let u = Random::new(2, burn::tensor::DType::F32).tensor([2, 20, 4]);
            let grads = layer.forward(u).square().sum().backward();
            let found = match &layer.ssm {
                Ssm::S4(s) => vec![
                    grad(&s.lambda_re.val(), &grads),
                    grad(&s.lambda_im.val(), &grads),
                    grad(&s.p.val(), &grads),
                    grad(&s.b.val(), &grads),
                    grad(&s.c.val(), &grads),
                    grad(&s.delta_log.val(), &grads),
                ],
                Ssm::S4d(s) => vec![
                    grad(&s.lambda_re.val(), &grads),
                    grad(&s.lambda_im.val(), &grads),
                    grad(&s.c.val(), &grads),
                    grad(&s.delta_log.val(), &grads),
                ],
                Ssm::Dss(_) => unreachable!(),
            };
            assert!(found.iter().all(|g| g.iter().any(|x| *x != 0.0)), "{mixer:?} {form:?}");
        }
    }
    let config = SsmLayerConfig::new(1, 2, 5).with_mixer(MixerKind::S4);
    let mut layer = config.init(&Device::flex()).unwrap();
    let Ssm::S4(ssm) = &mut layer.ssm else { panic!("not S4") };
    let nan = TensorData::new(vec![f64::NAN], [1]);
    ssm.lambda_im = Param::from_tensor(Tensor::from_data(nan, &Device::flex()));
    assert!(values(&layer.kernel(5)).iter().all(|x| x.is_nan()));
}
