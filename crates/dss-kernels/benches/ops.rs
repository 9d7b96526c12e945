//! `cargo bench -p dss-kernels`: every operation at the sizes of the paper's tasks.

use divan::{Bencher, black_box};
use dss_kernels::block::{Block, BlockConfig, BlockParams, Gelu, Norm, NormParams};
use dss_kernels::kernel::{Delta, Kernel, KernelConfig, ParamGrads, Params, Variant};
use dss_kernels::{Conv, Recurrence, Scan, init};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn main() {
    divan::main();
}

fn normal(len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(len as u64);
    init::w(1, 1, len.div_ceil(2), &mut rng)[..len].iter().map(|&x| x as f32).collect()
}

/// A layer as initialised.
struct Layer {
    config: KernelConfig,
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    delta_log: Vec<f32>,
    w: Vec<f32>,
}

impl Layer {
    fn new(h: usize, n: usize, l: usize) -> Self {
        let lambda = init::skew_hippo(n).unwrap();
        let (lo, hi) = (init::DT_MIN.ln(), init::DT_MAX.ln());
        Self {
            config: KernelConfig::new(Variant::Softmax, h, n, l).delta(Delta::Tied),
            lambda_re: lambda.iter().map(|z| z.re as f32).collect(),
            lambda_im: lambda.iter().map(|z| z.im as f32).collect(),
            delta_log: (0..h).map(|i| (lo + (hi - lo) * i as f64 / h as f64) as f32).collect(),
            w: normal(2 * h * n),
        }
    }

    fn params(&self) -> Params<'_, f32> {
        Params {
            lambda_re: &self.lambda_re,
            lambda_im: &self.lambda_im,
            delta_log: &self.delta_log,
            w: &self.w,
        }
    }
}

/// (H, N, L) of ListOps, Image, and Path-X or Speech.
const KERNELS: [(usize, usize, usize); 3] = [(128, 64, 2048), (512, 64, 1024), (128, 64, 16384)];

#[divan::bench(args = KERNELS)]
fn kernel_forward(bencher: Bencher, (h, n, l): (usize, usize, usize)) {
    let layer = Layer::new(h, n, l);
    let mut plan = Kernel::new(layer.config).unwrap();
    let mut k = vec![0.0; h * l];
    bencher.bench_local(|| plan.forward(black_box(&layer.params()), &mut k).unwrap());
}

#[divan::bench(args = KERNELS)]
fn kernel_backward(bencher: Bencher, (h, n, l): (usize, usize, usize)) {
    let layer = Layer::new(h, n, l);
    let mut plan = Kernel::new(layer.config).unwrap();
    let dk = normal(h * l);
    let [mut re, mut im] = [vec![0.0; n], vec![0.0; n]];
    let (mut delta_log, mut w) = (layer.delta_log.clone(), layer.w.clone());
    bencher.bench_local(|| {
        let grads = ParamGrads {
            lambda_re: &mut re,
            lambda_im: &mut im,
            delta_log: &mut delta_log,
            w: &mut w,
        };
        plan.backward(black_box(&layer.params()), &dk, grads).unwrap();
    });
}

/// (B, L, H).
const CONVOLUTIONS: [(usize, usize, usize); 3] =
    [(16, 2048, 128), (8, 1024, 512), (16, 16384, 128)];

#[divan::bench(args = CONVOLUTIONS)]
fn conv_forward(bencher: Bencher, (b, l, h): (usize, usize, usize)) {
    let (u, k) = (normal(b * l * h), normal(h * l));
    let mut y = vec![0.0; u.len()];
    let mut conv = Conv::new(b, l, h).unwrap();
    bencher.bench_local(|| {
        conv.set_kernel(black_box(&k)).unwrap();
        conv.forward(&u, &mut y).unwrap();
    });
}

#[divan::bench(args = CONVOLUTIONS)]
fn conv_backward(bencher: Bencher, (b, l, h): (usize, usize, usize)) {
    let (u, k, dy) = (normal(b * l * h), normal(h * l), normal(b * l * h));
    let (mut du, mut dk) = (vec![0.0; u.len()], vec![0.0; k.len()]);
    let mut conv = Conv::new(b, l, h).unwrap();
    conv.set_kernel(&k).unwrap();
    bencher.bench_local(|| conv.backward(black_box(&u), &dy, &mut du, &mut dk).unwrap());
}

/// One layer of H = 128, N = 64: one stream, and 16 at once.
/// (B, L, H) of whole blocks: ListOps, Image, Speech.
const BLOCKS: [(usize, usize, usize); 3] = [(16, 2048, 128), (8, 1024, 512), (4, 16000, 128)];

/// The block's parameters, with a batch norm.
struct BlockData {
    config: BlockConfig,
    tensors: [Vec<f32>; 7],
}

impl BlockData {
    fn new((b, l, h): (usize, usize, usize)) -> Self {
        let gelu = Gelu::Erf;
        let config = BlockConfig { l, h, prenorm: false, glu: false, bidirectional: false, gelu };
        let tensors = [b * l * h, h * l, h, h * h, h, h, h].map(normal);
        Self { config, tensors }
    }

    fn params(&self) -> BlockParams<'_, f32> {
        let [_, k, d, out_weight, out_bias, gamma, beta] = &self.tensors;
        let norm = NormParams { gamma, beta, eps: 1e-5, norm: Norm::BatchTrain { counted: None } };
        BlockParams { k, d, out_weight, out_bias, norm, masks: None, lengths: None, past: None }
    }
}

#[divan::bench(args = BLOCKS)]
fn block_forward(bencher: Bencher, size: (usize, usize, usize)) {
    let data = BlockData::new(size);
    let mut plan = Block::new(data.config).unwrap();
    let x = &data.tensors[0];
    let mut y = vec![0.0; x.len()];
    bencher.bench_local(|| {
        plan.forward(black_box(x), &data.params(), &mut y, true).unwrap();
    });
}

#[divan::bench(args = BLOCKS)]
fn block_forward_and_backward(bencher: Bencher, size: (usize, usize, usize)) {
    let data = BlockData::new(size);
    let mut plan = Block::new(data.config).unwrap();
    let x = &data.tensors[0];
    let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    bencher.bench_local(|| {
        let (saved, _) = plan.forward(black_box(x), &data.params(), &mut y, true).unwrap();
        plan.backward(x, &data.params(), saved.unwrap(), &y, &mut dx).unwrap()
    });
}

#[divan::bench(args = [1, 16])]
fn step(bencher: Bencher, streams: usize) {
    let layer = Layer::new(128, 64, 16384);
    let model = Recurrence::new(layer.config, &layer.params()).unwrap();
    let mut states = vec![model.state(); streams];
    let u = normal(streams * 128);
    let mut y = vec![0.0; u.len()];
    bencher.bench_local(|| model.step_batch(&mut states, black_box(&u), &mut y).unwrap());
}

/// 160 steps of one stream of one layer of H = 128, N = 64.
#[divan::bench]
fn run_160(bencher: Bencher) {
    let layer = Layer::new(128, 64, 16384);
    let model = Recurrence::new(layer.config, &layer.params()).unwrap();
    let mut state = model.state();
    let u = normal(160 * 128);
    let mut y = vec![0.0; u.len()];
    bencher.bench_local(|| model.run(&mut state, black_box(&u), &mut y).unwrap());
}

/// A chunk of 1024 steps of one layer of H = 128, N = 64.
#[divan::bench]
fn scan_forward(bencher: Bencher) {
    let layer = Layer::new(128, 64, 16384);
    let mut scan = Scan::new(layer.config, 1, 1024).unwrap();
    scan.set_params(&layer.params()).unwrap();
    let mut state = scan.state();
    let u = normal(1024 * 128);
    let mut y = vec![0.0; u.len()];
    bencher.bench_local(|| scan.forward(&mut state, black_box(&u), &mut y).unwrap());
}

/// Skew-HiPPO eigenvalues.
#[divan::bench(args = [64, 512])]
fn skew_hippo(n: usize) -> Vec<dss_kernels::C64> {
    init::skew_hippo(black_box(n)).unwrap()
}
