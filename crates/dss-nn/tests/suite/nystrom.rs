//! Nyströmformer: golden values and gradients, the pseudo-inverse, plain attention as a special case, `dss-infer`.

use burn::module::Param;
use burn::tensor::activation::softmax;
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

fn golden_layer(golden: &Golden) -> NystromLayer {
    let [heads, landmarks, taps] = ["heads", "landmarks", "conv"].map(|key| golden.usize(key));
    let h = golden.usize("H");
    let config = NystromConfig { heads, landmarks, conv: taps, padded_len: 0 };
    let mut layer = layer(config, h, golden.usize("L"));
    for (name, map) in
        [("q", &mut layer.q), ("k", &mut layer.k), ("v", &mut layer.v), ("out", &mut layer.out)]
    {
        *map = golden_map(golden, name, h);
    }
    let conv = layer.conv.as_mut().unwrap();
    conv.weight = Param::from_tensor(golden.tensor("conv.weight", [heads, taps]).require_grad());
    layer
}

/// Compares y and all gradients with a case of the golden file.
fn compare(golden: &Golden, case: &str, layer: &NystromLayer, u: &Tensor<3>, y: Tensor<3>) {
    assert_close(case, &values(&y), golden.get(&format!("{case}y")), 1e-11);
    let gradients = (y.clone() * golden.tensor("g", y.dims())).sum().backward();
    let conv = layer.conv.as_ref().unwrap();
    let mut found =
        vec![("u", grad(u, &gradients)), ("conv.weight", grad(&conv.weight.val(), &gradients))];
    for (weight, bias, map) in [
        ("q.weight", "q.bias", &layer.q),
        ("k.weight", "k.bias", &layer.k),
        ("v.weight", "v.bias", &layer.v),
        ("out.weight", "out.bias", &layer.out),
    ] {
        found.push((weight, grad(&map.weight.val(), &gradients)));
        found.push((bias, grad(&map.bias.val(), &gradients)));
    }
    assert_gradients(golden, case, &found);
}

#[test]
fn golden_values_and_gradients() {
    let golden = Golden::read("nystrom").unwrap();
    let (batch, l, h) = (golden.usize("B"), golden.usize("L"), golden.usize("H"));
    let layer = golden_layer(&golden);
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
        compare(&golden, case, &layer, &u, y);
    }
}

/// The equations, of sequences that landmarks divide. `whole_batch`: A⁺ begins with one scale for all sequences and heads,
/// as in the authors' program, so that an answer depends on its batch there.
fn literal(
    layer: &NystromLayer,
    u: Tensor<3>,
    [heads, m]: [usize; 2],
    whole_batch: bool,
) -> Tensor<3> {
    let [batch, l, h] = u.dims();
    let d = h / heads;
    let rows = u.reshape([batch * l, h]);
    let project = |map: &Linear| -> Tensor<4> {
        map.forward(rows.clone()).reshape([batch, l, heads, d]).swap_dims(1, 2)
    };
    let means = |x: &Tensor<4>| -> Tensor<4> {
        let x: Tensor<5> = x.clone().reshape([batch, heads, m, l / m, d]);
        (x.sum_dim(3) * (m as f64 / l as f64)).squeeze_dim(3)
    };
    let scale = (d as f64).powf(-0.25);
    let (q, k, v) = (project(&layer.q) * scale, project(&layer.k) * scale, project(&layer.v));
    let (q_means, k_means) = (means(&q), means(&k));
    let weights =
        |q: &Tensor<4>, k: &Tensor<4>| softmax(q.clone().matmul(k.clone().swap_dims(2, 3)), 3);
    let a = weights(&q_means, &k_means);
    let mut largest = a.clone().sum_dim(2).max_dim(3);
    if whole_batch {
        largest = largest.max().reshape([1, 1, 1, 1]);
    }
    let eye = Tensor::<2>::eye(m, &device()).cast(DType::F64).unsqueeze::<4>();
    let mut z = a.clone().swap_dims(2, 3) * largest.recip();
    for _ in 0..6 {
        let az = a.clone().matmul(z.clone());
        let less = |c: f64, x: Tensor<4>| eye.clone() * c - x;
        z = z.matmul(less(13.0, az.clone().matmul(less(15.0, az.clone().matmul(less(7.0, az))))))
            * 0.25;
    }
    let mut y = weights(&q, &k_means).matmul(z).matmul(weights(&q_means, &k).matmul(v.clone()));
    let taps: Tensor<2> = layer.conv.as_ref().unwrap().weight.val();
    let half = taps.dims()[1] / 2;
    let zeros = Tensor::zeros([batch, heads, half, d], (&device(), DType::F64));
    let v = Tensor::cat(vec![zeros.clone(), v, zeros], 2);
    for j in 0..taps.dims()[1] {
        y = y + v.clone().narrow(2, j, l) * taps.clone().narrow(1, j, 1).reshape([1, heads, 1, 1]);
    }
    layer.out.forward(y.swap_dims(1, 2).reshape([batch * l, h])).reshape([batch, l, h])
}

#[test]
fn golden_equations_with_either_scale() {
    let golden = Golden::read("nystrom").unwrap();
    let shape = ["B", "L", "H"].map(|key| golden.usize(key));
    let sizes = ["heads", "landmarks"].map(|key| golden.usize(key));
    for (case, whole_batch) in [("", false), ("whole_batch.", true)] {
        let layer = golden_layer(&golden);
        let u = golden.tensor("u", shape).require_grad();
        let y = literal(&layer, u.clone(), sizes, whole_batch);
        compare(&golden, case, &layer, &u, y);
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
