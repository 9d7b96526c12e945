//! CKConv: the golden convolution and block, both precisions, lengths, and `dss-infer`.

use burn::module::Param;
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, FloatDType, Gradients, Tensor, TensorData};
use dss_infer as infer;
use dss_nn::config::{CkconvConfig, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool};
use dss_nn::mixer::CkconvLayer;
use dss_nn::{Input, Mixer, Mode, Model};

use crate::common::configs::small;
use crate::common::gradients::assert_gradients;
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

/// Channels of the golden outputs.
const H: usize = 8;

/// Where the kernels of a golden layer of `c` inputs are among ours, of H: its other inputs are 0, and their kernels too.
fn kernel_rows(c: usize) -> Vec<usize> {
    (0..H * c).map(|i| i / c * H + i % c).collect()
}

fn golden_layer(golden: &Golden, name: &str, c: usize) -> CkconvLayer {
    let (l, hidden) = (golden.usize("L"), golden.usize("hidden"));
    let mixer = CkconvConfig { width: hidden, omega: 25.0 };
    let config = ModelConfig { layers: 1, h: H, mixer: mixer.into(), ..ModelConfig::default() };
    let Mixer::Ckconv(mut layer) = Mixer::new(&config, l, 0, &device()).unwrap() else {
        panic!("not CKConv")
    };
    let rows = kernel_rows(c);
    let sizes = [(1, hidden), (hidden, hidden), (hidden, H * H)];
    for (i, (inputs, outputs)) in sizes.into_iter().enumerate() {
        let get = |part: &str| golden.get(&format!("{name}.kernel.{i}.{part}"));
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
    layer.bias = Param::from_tensor(golden.tensor(&format!("{name}.bias"), [H]).require_grad());
    layer
}

/// The gradients of such a layer, by the file's names.
fn layer_gradients(
    layer: &CkconvLayer,
    name: &str,
    c: usize,
    grads: &Gradients,
) -> Vec<(String, Vec<f64>)> {
    let mut all = vec![(format!("{name}.bias"), grad(&layer.bias.val(), grads))];
    for (i, map) in layer.kernel.iter().enumerate() {
        let inputs = map.v.val().dims()[1];
        let picked = |x: Vec<f64>, width: usize| -> Vec<f64> {
            match i {
                2 => kernel_rows(c)
                    .iter()
                    .flat_map(|row| &x[row * width..][..width])
                    .copied()
                    .collect(),
                _ => x,
            }
        };
        let mut add = |part: &str, x: Vec<f64>| all.push((format!("{name}.kernel.{i}.{part}"), x));
        add("v", picked(grad(&map.v.val(), grads), inputs));
        add("g", picked(grad(&map.g.val(), grads), 1));
        add("bias", picked(grad(&map.bias.val(), grads), 1));
    }
    all
}

fn compare(golden: &Golden, case: &str, found: &[(String, Vec<f64>)]) {
    let found: Vec<_> = found.iter().map(|(name, x)| (&name[..], x.clone())).collect();
    assert_gradients(golden, case, &found);
}

/// u [B, L, C] with channels of zeros up to H.
fn widened(u: &Tensor<3>) -> Tensor<3> {
    let [batch, l, c] = u.dims();
    let zeros = Tensor::zeros([batch, l, H - c], (&device(), DType::F64));
    Tensor::cat(vec![u.clone(), zeros], 2)
}

#[test]
fn golden_convolution() {
    let golden = Golden::read("ckconv").unwrap();
    let [batch, l, c] = ["B", "L", "C"].map(|key| golden.usize(key));
    let layer = golden_layer(&golden, "conv1", c);
    let kernels = Mixer::Ckconv(layer.clone()).get().kernel(l).unwrap();
    // The golden file has the lag 0 last.
    let backwards = values(&kernels.flip([2]));
    let rows = kernel_rows(c);
    let ours: Vec<f64> = rows.iter().flat_map(|row| &backwards[row * l..][..l]).copied().collect();
    assert_close("kernel", &ours, golden.get("kernel"), 1e-11);
    let u = golden.tensor("u", [batch, l, c]).require_grad();
    let y = layer.convolve(widened(&u), layer.functions(l));
    assert_close("y", &values(&y), golden.get("conv.y"), 1e-11);
    let grads = (y * golden.tensor("g", [batch, l, H])).sum().backward();
    let mut found = layer_gradients(&layer, "conv1", c, &grads);
    found.push(("u".into(), grad(&u, &grads)));
    compare(&golden, "conv.", &found);
}

/// The published block: two convolutions, norms over the true positions and the channels of a sequence, a shortcut.
#[test]
fn golden_block() {
    let golden = Golden::read("ckconv").unwrap();
    let [batch, l, c] = ["B", "L", "C"].map(|key| golden.usize(key));
    let all = vec![l as f64; batch];
    for (case, lengths) in [("block.", &all[..]), ("block_masked.", golden.get("lengths"))] {
        let first = golden_layer(&golden, "conv1", c);
        let second = golden_layer(&golden, "conv2", H);
        let own = ["norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta", "shortcut.bias"];
        let own = own.map(|name| (name, golden.tensor(name, [1, 1, H]).require_grad()));
        let of = |name: &str| own.iter().find(|(own, _)| *own == name).unwrap().1.clone();
        let shortcut = golden.tensor("shortcut.weight", [H, c]).require_grad();
        let mask = lengths.iter().flat_map(|&len| (0..l).map(move |t| f64::from(t < len as usize)));
        let mask: Tensor<3> = tensor(&mask.collect::<Vec<_>>(), [batch, l, 1]);
        let norm = |x: Tensor<3>, name: &str| {
            let mean = |x: Tensor<3>| {
                let sum = (x * mask.clone()).sum_dim(1).sum_dim(2);
                sum * mask.clone().sum_dim(1).recip() * (1.0 / H as f64)
            };
            let x = x.clone() - mean(x);
            let variance = mean(x.clone().square()) + 1e-12;
            x * variance.sqrt().recip() * of(&format!("{name}.gamma")) + of(&format!("{name}.beta"))
        };
        let u = golden.tensor("u", [batch, l, c]).require_grad();
        let convolve = |layer: &CkconvLayer, x| layer.convolve(x, layer.functions(l));
        let x = relu(norm(convolve(&first, widened(&u)), "norm1"));
        let x = relu(norm(convolve(&second, x), "norm2"));
        let beside =
            u.clone().matmul(shortcut.clone().transpose().unsqueeze()) + of("shortcut.bias");
        let y = relu(x + beside) * mask.clone();
        assert_close(case, &values(&y), golden.get(&format!("{case}y")), 1e-11);
        let grads = (y * golden.tensor("g", [batch, l, H])).sum().backward();
        let mut found = layer_gradients(&first, "conv1", c, &grads);
        found.extend(layer_gradients(&second, "conv2", H, &grads));
        found.extend(own.iter().map(|(name, x)| ((*name).to_owned(), grad(x, &grads))));
        found.push(("shortcut.weight".into(), grad(&shortcut, &grads)));
        found.push(("u".into(), grad(&u, &grads)));
        compare(&golden, case, &found);
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
