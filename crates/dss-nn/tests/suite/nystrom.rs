//! Nyströmformer: golden values and gradients, the pseudo-inverse, plain attention as a special case, `dss-infer`.

use burn::module::Param;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_infer as infer;
use dss_nn::config::{
    AttentionConfig, InputKind, ModelConfig, ModelIo, NormKind, NystromConfig, OutputKind,
    Positions,
};
use dss_nn::mixer::{NystromLayer, Pass, pseudo_inverse};
use dss_nn::{Input, Linear, Mixer, Mode, Model};

use crate::common::configs::small;
use crate::common::gradients::assert_gradients;
use crate::common::random::Random;
use crate::common::{Golden, assert_close, device, grad, tensor, values};

fn layer(config: NystromConfig, h: usize, l: usize) -> NystromLayer {
    let model = ModelConfig { bidirectional: true, ..small(h, config) };
    match Mixer::new(&model, l, 0, &device()).unwrap() {
        Mixer::Nystrom(layer) => layer,
        _ => panic!("not Nyströmformer"),
    }
}

fn golden_map(golden: &Golden, name: &str, h: usize) -> Linear {
    let part = |part: &str| format!("{name}.{part}");
    Linear {
        weight: Param::from_tensor(golden.tensor(&part("weight"), [h, h]).require_grad()),
        bias: Param::from_tensor(golden.tensor(&part("bias"), [h]).require_grad()),
    }
}

#[test]
fn golden_values_and_gradients() {
    let golden = Golden::read("nystrom").unwrap();
    let [heads, m, taps] = ["heads", "landmarks", "conv"].map(|key| golden.usize(key));
    let (batch, l, h) = (golden.usize("B"), golden.usize("L"), golden.usize("H"));
    let config = NystromConfig { heads, landmarks: m, conv: taps, padded_len: 0 };
    let mut layer = layer(config, h, l);
    for (name, map) in
        [("q", &mut layer.q), ("k", &mut layer.k), ("v", &mut layer.v), ("out", &mut layer.out)]
    {
        *map = golden_map(&golden, name, h);
    }
    let conv = layer.conv.as_mut().unwrap();
    conv.weight = Param::from_tensor(golden.tensor("conv.weight", [heads, taps]).require_grad());
    let lengths: Vec<usize> = golden.get("lengths").iter().map(|&l| l as usize).collect();
    for (case, lengths) in [("", None), ("masked.", Some(lengths))] {
        let u = golden.tensor("u", [batch, l, h]).require_grad();
        let pass = Pass { lengths: lengths.clone().map(Into::into), ..Pass::default() };
        let mixer = Mixer::Nystrom(layer.clone());
        let y = mixer.get().mix(u.clone(), &mixer.get().prepare(l).unwrap(), &pass);
        // Positions at and beyond a length are not defined.
        let lengths = lengths.unwrap_or_else(|| vec![l; batch]);
        let mask = lengths
            .iter()
            .flat_map(|&len| (0..l * h).map(move |i| if i / h < len { 1.0 } else { 0.0 }));
        let y = y * tensor(&mask.collect::<Vec<f64>>(), [batch, l, h]);
        assert_close(case, &values(&y), golden.get(&format!("{case}y")), 1e-11);
        let gradients = (y * golden.tensor("g", [batch, l, h])).sum().backward();
        let conv = layer.conv.as_ref().unwrap();
        let mut found = vec![
            ("u", grad(&u, &gradients)),
            ("conv.weight", grad(&conv.weight.val(), &gradients)),
        ];
        for (weight, bias, map) in [
            ("q.weight", "q.bias", &layer.q),
            ("k.weight", "k.bias", &layer.k),
            ("v.weight", "v.bias", &layer.v),
            ("out.weight", "out.bias", &layer.out),
        ] {
            found.push((weight, grad(&map.weight.val(), &gradients)));
            found.push((bias, grad(&map.bias.val(), &gradients)));
        }
        assert_gradients(&golden, case, &found);
    }
}

#[test]
fn golden_pseudo_inverse() {
    let golden = Golden::read("nystrom").unwrap();
    let m = golden.usize("landmarks");
    let z = pseudo_inverse(golden.tensor("pinv.a", [3, 1, m, m]));
    assert_close("Z", &values(&z), golden.get("pinv.z"), 1e-11);
    // Six iterations have not reached it.
    let exact = golden.get("pinv.exact");
    assert!(values(&z).iter().zip(exact).any(|(a, b)| (a - b).abs() > 1e-3));
}

/// With as many landmarks as positions it is softmax attention.
#[test]
fn all_positions_as_landmarks_are_attention() {
    let (h, l) = (6, 9);
    let config = NystromConfig { heads: 2, landmarks: l, conv: 0, padded_len: 0 };
    let layer = layer(config, h, l);
    let attention = AttentionConfig { heads: 2, width: 0, bias: true };
    let model = ModelConfig { bidirectional: true, ..small(h, attention) };
    let Mixer::Attention(mut plain) = Mixer::new(&model, l, 0, &device()).unwrap() else {
        panic!("not attention")
    };
    for (to, from) in [
        (&mut plain.q, &layer.q),
        (&mut plain.k, &layer.k),
        (&mut plain.v, &layer.v),
        (&mut plain.out, &layer.out),
    ] {
        (to.weight, to.bias) = (from.weight.clone(), Some(from.bias.clone()));
    }
    let u = Random::new(3, DType::F32).numbers(2 * l * h);
    let u = Tensor::<3>::from_data(TensorData::new(u, [2, l, h]), &device());
    for lengths in [None, Some([9, 4].into())] {
        let pass = Pass { lengths, ..Pass::default() };
        let [a, b] =
            [Mixer::Nystrom(layer.clone()), Mixer::Attention(plain.clone())].map(|mixer| {
                let y = mixer.get().mix(u.clone(), &mixer.get().prepare(l).unwrap(), &pass);
                let [first, second] =
                    [y.clone().narrow(0, 0, 1), y.narrow(0, 1, 1).narrow(1, 0, 4)];
                [values(&first), values(&second)].concat()
            });
        assert_close("attention", &a, &b, 1e-5);
    }
}

#[test]
fn inference_and_limits() {
    for (landmarks, conv, padded_len) in [(4, 5, 0), (4, 0, 44), (30, 3, 0)] {
        let l = 30;
        let mixer = NystromConfig { heads: 3, landmarks, conv, padded_len };
        let config = ModelConfig {
            bidirectional: true,
            norm: NormKind::Layer,
            prenorm: true,
            ff: 7,
            positions: Positions::Fixed,
            ..small(6, mixer)
        };
        let io = ModelIo {
            input: InputKind::Values { channels: 2 },
            output: OutputKind::Sequence { outputs: 3 },
            len: l,
        };
        let model = Model::new(&config, &io, 3, &Device::flex()).unwrap();
        let folder = std::env::temp_dir()
            .join(format!("dss-nystrom-{landmarks}-{conv}-{}", std::process::id()));
        dss_nn::save(&folder, &model, &model.meta()).unwrap();
        let runner = infer::Model::load(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let precise = model.clone().cast(FloatDType::F64);
        for l in [1, 13, l] {
            let x = Random::new(1, DType::F32).numbers(2 * l);
            let data = TensorData::new(x.clone(), [1, l, 2]);
            let input = Input::Values(Tensor::from_data(data, (&Device::flex(), DType::F64)));
            let want =
                values(&precise.forward(input, &[l], &precise.prepare(l), Mode::Eval).logits);
            let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            let found = runner.forward(infer::Input::Values(&x)).unwrap();
            let found: Vec<f64> = found.into_iter().map(f64::from).collect();
            assert_close(&format!("{mixer:?} {l}"), &found, &want, 3e-5);
        }
        let most = if padded_len > 0 { padded_len } else { l.next_multiple_of(landmarks) };
        assert!(model.check_len(most).is_ok());
        assert!(model.check_len(most + 1).unwrap_err().to_string().contains("landmarks"));
        let why = model.layers[0].mixer.get().state(1).unwrap_err().to_string();
        assert!(why.contains("landmarks") && why.contains("whole sequences only"), "{why}");
        assert!(runner.state().unwrap_err().to_string().contains("landmarks"));
    }
}
