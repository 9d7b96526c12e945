//! CKConv: the golden convolution, both precisions, lengths, and `dss-infer`.

use burn::module::Param;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use dss_infer as infer;
use dss_nn::config::{CkconvConfig, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool};
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::configs::small;
use crate::common::random::Random;
use crate::common::{Golden, assert_close, device, grad, tensor, values};

/// Rows [.., width] put at the places of `rows`, the others filled.
fn placed(x: &[f64], width: usize, rows: &[usize], count: usize, fill: f64) -> Vec<f64> {
    let mut all = vec![fill; count * width];
    for (x, &row) in x.chunks_exact(width).zip(rows) {
        all[row * width..][..width].copy_from_slice(x);
    }
    all
}

/// The golden layer has 3 inputs and 8 outputs: here the other 5 inputs are 0, and their kernels too.
#[test]
fn golden_convolution() {
    let golden = Golden::read("ckconv").unwrap();
    let ([batch, l, c, h], hidden) = ([2, 40, 3, 8], golden.usize("hidden"));
    let mixer = CkconvConfig { width: hidden, omega: 25.0 };
    let config = ModelConfig { layers: 1, h, mixer: mixer.into(), ..ModelConfig::default() };
    let Mixer::Ckconv(mut layer) = Mixer::new(&config, l, 0, &device()).unwrap() else {
        panic!("not CKConv")
    };
    let rows: Vec<usize> = (0..h * c).map(|i| i / c * h + i % c).collect();
    let sizes = [(1, hidden), (hidden, hidden), (hidden, h * h)];
    for (i, (inputs, outputs)) in sizes.into_iter().enumerate() {
        let get = |part: &str| golden.get(&format!("conv1.kernel.{i}.{part}"));
        let wide = |x: &[f64], width: usize, fill: f64| match i {
            2 => placed(x, width, &rows, outputs, fill),
            _ => x.to_vec(),
        };
        let v = tensor(&wide(get("v"), inputs, 1.0), [outputs, inputs]);
        let g = tensor(&wide(get("g"), 1, 0.0), [outputs]);
        let bias = tensor(&wide(get("bias"), 1, 0.0), [outputs]);
        let map = &mut layer.kernel[i];
        map.v = Param::from_tensor(v.require_grad());
        map.g = Param::from_tensor(g.require_grad());
        map.bias = Param::from_tensor(bias.require_grad());
    }
    layer.bias = Param::from_tensor(golden.tensor("conv1.bias", [h]).require_grad());
    let positions: Vec<usize> = (0..batch * l * c).map(|i| i / c * h + i % c).collect();
    let u = placed(golden.get("u"), 1, &positions, batch * l * h, 0.0);
    let u = tensor(&u, [batch, l, h]).require_grad();
    let kernels = Mixer::Ckconv(layer.clone()).get().kernel(l).unwrap();
    // The golden file has the lag 0 last.
    let backwards = values(&kernels.clone().flip([2]));
    let ours: Vec<f64> = rows.iter().flat_map(|row| &backwards[row * l..][..l]).copied().collect();
    assert_close("kernel", &ours, golden.get("kernel"), 1e-11);
    let y = layer.convolve(u.clone(), kernels);
    assert_close("y", &values(&y), golden.get("conv.y"), 1e-11);
    let gradients = (y * golden.tensor("g", [batch, l, h])).sum().backward();
    // Within 1e-10 of the larger of the tensor's maximum and a thousandth of the largest gradient: that of v in the
    // first map, which has one input, is 0 but for rounding.
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let all = golden.names().filter(|name| name.starts_with("conv.grad."));
    let all = all.map(|name| largest(golden.get(name))).fold(0.0, f64::max);
    let check = |name: &str, found: Vec<f64>| {
        let known = golden.get(&format!("conv.grad.{name}"));
        let error = found.iter().zip(known).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert_eq!(found.len(), known.len(), "{name}");
        assert!(error <= 1e-10 * largest(known).max(1e-3 * all), "{name}: off by {error:e}");
    };
    let picked = |x: Vec<f64>, width: usize, rows: &[usize]| -> Vec<f64> {
        rows.iter().flat_map(|row| &x[row * width..][..width]).copied().collect()
    };
    check("u", picked(grad(&u, &gradients), 1, &positions));
    check("conv1.bias", grad(&layer.bias.val(), &gradients));
    for (i, map) in layer.kernel.iter().enumerate() {
        let all = |x: Vec<f64>, width| if i == 2 { picked(x, width, &rows) } else { x };
        let width = if i == 0 { 1 } else { hidden };
        check(&format!("conv1.kernel.{i}.v"), all(grad(&map.v.val(), &gradients), width));
        check(&format!("conv1.kernel.{i}.g"), all(grad(&map.g.val(), &gradients), 1));
        check(&format!("conv1.kernel.{i}.bias"), all(grad(&map.bias.val(), &gradients), 1));
    }
}

fn model(l: usize) -> Model {
    let config = ModelConfig {
        pool: Pool::Last,
        norm: NormKind::Layer,
        ..small(5, CkconvConfig { width: 6, omega: 10.0 })
    };
    let io = ModelIo {
        input: InputKind::Values { channels: 2 },
        output: OutputKind::Sequence { outputs: 3 },
        len: l,
    };
    Model::new(&config, &io, 3, &Device::flex()).unwrap()
}

fn answer(model: &Model, x: &[f64], l: usize, length: usize) -> Vec<f64> {
    let data = TensorData::new(x[..2 * l].to_vec(), [1, l, 2]);
    let dtype = model.layers[0].norm.gamma.val().dtype();
    let input = Input::Values(Tensor::from_data(data, (&Device::flex(), dtype)));
    values(&model.forward(input, &[length], &model.prepare(l), Mode::Eval).logits)
}

#[test]
fn precisions_lengths_and_inference() {
    let l = 30;
    let x = Random::new(1, DType::F32).numbers(2 * l);
    let single = model(l);
    let precise = single.clone().cast(FloatDType::F64);
    let want = answer(&precise, &x, l, l);
    assert_close("f32", &answer(&single, &x, l, l), &want, 2e-5);
    assert_close("padding", &answer(&precise, &x, l, 17), &answer(&precise, &x, 17, 17), 1e-12);
    assert!(single.check_len(l + 1).is_err());
    assert!(single.layers[0].mixer.get().state(1).is_err());

    let folder = std::env::temp_dir().join(format!("dss-ckconv-{}", std::process::id()));
    dss_nn::save(&folder, &single, &single.meta()).unwrap();
    let runner = infer::Model::load(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let found: Vec<f64> =
        runner.forward(infer::Input::Values(&x)).unwrap().into_iter().map(f64::from).collect();
    assert_close("infer", &found, &want, 2e-5);
    assert!(runner.state().unwrap_err().to_string().contains("cannot run as a stream"));
}
