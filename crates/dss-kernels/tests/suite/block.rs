//! The block against its definition, and its gradients against finite differences.

use dss_kernels::block::{
    Block, BlockConfig, BlockGrads, BlockParams, Gelu, Norm, NormParams, Pool, norm_backward,
    norm_forward, pool_backward, pool_forward,
};
use dss_kernels::conv::convolve_direct;

/// One case: sizes, options and parameters in f64.
#[derive(Clone)]
struct Case {
    config: BlockConfig,
    b: usize,
    taps: usize,
    norm: &'static str,
    dropout: bool,
    lengths: Option<Vec<usize>>,
    past: bool,
    /// x, K, D, weight, bias, γ, β, past.
    tensors: [Vec<f64>; 8],
    masks: [Vec<f64>; 2],
    running: [Vec<f64>; 2],
}

/// Of one direction, with the exact GELU.
fn config(l: usize, h: usize, prenorm: bool, glu: bool) -> BlockConfig {
    BlockConfig { l, h, prenorm, glu, bidirectional: false, gelu: Gelu::Erf }
}

fn wave(n: usize, seed: f64) -> Vec<f64> {
    (0..n).map(|i| ((i as f64 + 1.0) * (1.3 + seed)).sin() * 0.8 + 0.1 * seed).collect()
}

impl Case {
    fn new(b: usize, config: BlockConfig, taps: usize, norm: &'static str) -> Self {
        let BlockConfig { l, h, bidirectional, .. } = config;
        let o = config.outputs();
        let halves = if bidirectional { 2 } else { 1 };
        let sizes = [b * l * h, halves * h * taps, h, o * h, o, h, h, b * l * h];
        let mut seed = 0.0;
        let tensors = sizes.map(|n| {
            seed += 0.37;
            wave(n, seed)
        });
        let mask = |k: usize| {
            let keep = move |i: usize| if (i * 7 + k).is_multiple_of(3) { 0.0 } else { 1.5 };
            (0..b * h).map(keep).collect()
        };
        let running = [wave(h, 0.2), wave(h, 0.9).iter().map(|x| x * x + 0.3).collect()];
        Self {
            config,
            b,
            taps,
            norm,
            dropout: false,
            lengths: None,
            past: false,
            tensors,
            masks: [mask(0), mask(1)],
            running,
        }
    }

    fn norm(&self) -> Norm<'_, f64> {
        match self.norm {
            "layer" => Norm::Layer,
            "batch" => Norm::BatchTrain { counted: None },
            "batch counted" => Norm::BatchTrain { counted: self.lengths.as_deref() },
            "eval" => Norm::BatchEval { mean: &self.running[0], var: &self.running[1] },
            _ => unreachable!(),
        }
    }

    fn params(&self) -> BlockParams<'_, f64> {
        let [_, k, d, out_weight, out_bias, gamma, beta, past] = &self.tensors;
        BlockParams {
            k,
            d,
            out_weight,
            out_bias,
            norm: NormParams { gamma, beta, eps: 1e-5, norm: self.norm() },
            masks: self.dropout.then_some([&self.masks[0][..], &self.masks[1][..]]),
            lengths: self.lengths.as_deref(),
            past: self.past.then_some(past),
        }
    }

    /// The block as the paper's §3.2 says it, one number at a time.
    fn literal(&self) -> Vec<f64> {
        let BlockConfig { l, h, prenorm, glu, .. } = self.config;
        let (b, o) = (self.b, self.config.outputs());
        let [x, k, d, weight, bias, .., past] = &self.tensors;
        let mut u = if prenorm { self.literal_norm(x) } else { x.clone() };
        if let Some(lengths) = &self.lengths {
            for (i, u) in u.iter_mut().enumerate() {
                if i / h % l >= lengths[i / (l * h)] {
                    *u = 0.0;
                }
            }
        }
        let mut v = convolve_direct(&u, k, b, l, h, self.taps);
        for (i, v) in v.iter_mut().enumerate() {
            *v += d[i % h] * u[i] + if self.past { past[i] } else { 0.0 };
        }
        let mask = |which: usize, row: usize, i: usize| {
            if self.dropout { self.masks[which][row / l * h + i] } else { 1.0 }
        };
        let mut s = vec![0.0; x.len()];
        for row in 0..b * l {
            let gelu = |x: f64| match self.config.gelu {
                Gelu::Erf => 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())),
                Gelu::Tanh => {
                    let z = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
                    0.5 * x * (1.0 + z.tanh())
                }
            };
            let g: Vec<f64> = (0..h).map(|i| gelu(v[row * h + i]) * mask(0, row, i)).collect();
            let z: Vec<f64> = (0..o)
                .map(|j| bias[j] + (0..h).map(|i| weight[j * h + i] * g[i]).sum::<f64>())
                .collect();
            for i in 0..h {
                let out = if glu { z[i] / (1.0 + (-z[h + i]).exp()) } else { z[i] };
                s[row * h + i] = x[row * h + i] + mask(1, row, i) * out;
            }
        }
        if prenorm { s } else { self.literal_norm(&s) }
    }

    fn literal_norm(&self, x: &[f64]) -> Vec<f64> {
        let BlockConfig { l, h, .. } = self.config;
        let [.., gamma, beta, _] = &self.tensors;
        let moments = |values: &[f64]| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
        };
        let mut y = vec![0.0; x.len()];
        for (i, y) in y.iter_mut().enumerate() {
            let (row, channel) = (i / h, i % h);
            let (mean, var) = match self.norm {
                "layer" => moments(&x[row * h..][..h]),
                "eval" => (self.running[0][channel], self.running[1][channel]),
                _ => {
                    let counts = |row: usize| match (&self.lengths, self.norm) {
                        (Some(lengths), "batch counted") => row % l < lengths[row / l],
                        _ => true,
                    };
                    let rows = (0..x.len() / h).filter(|&row| counts(row));
                    moments(&rows.map(|row| x[row * h + channel]).collect::<Vec<_>>())
                }
            };
            *y = gamma[channel] * (x[i] - mean) / (var + 1e-5).sqrt() + beta[channel];
        }
        y
    }

    fn run(&self) -> (Vec<f64>, Vec<f64>, BlockGrads<f64>) {
        let x = &self.tensors[0];
        let mut block = Block::new(self.config).unwrap();
        let (mut y, mut dx) = (vec![0.0; x.len()], vec![f64::NAN; x.len()]);
        let (saved, _) = block.forward(x, &self.params(), &mut y, true).unwrap();
        let mut again = vec![0.0; x.len()];
        block.forward(x, &self.params(), &mut again, false).unwrap();
        assert_eq!(y, again, "keeping changes the result");
        let dy = wave(x.len(), 0.77);
        let grads = block.backward(x, &self.params(), saved.unwrap(), &dy, &mut dx).unwrap();
        (y, dx, grads)
    }

    /// Σ y·dy of the literal form.
    fn loss(&self) -> f64 {
        self.literal().iter().zip(wave(self.tensors[0].len(), 0.77)).map(|(y, g)| y * g).sum()
    }

    fn check(&self) {
        let name = format!("{:?} {} {} {:?}", self.config, self.norm, self.dropout, self.lengths);
        let (y, dx, grads) = self.run();
        let expected = self.literal();
        let max = expected.iter().fold(0f64, |m, y| m.max(y.abs()));
        for (i, (y, e)) in y.iter().zip(&expected).enumerate() {
            assert!((y - e).abs() <= 1e-12 * max, "{name}: y[{i}] = {y}, not {e}");
        }
        let BlockGrads { k, d, out_weight, out_bias, gamma, beta, past } = grads;
        assert_eq!(past.is_some(), self.past);
        let mut grads = vec![dx, k, d, out_weight, out_bias, gamma, beta];
        grads.extend(past);
        for (which, grad) in grads.iter().enumerate() {
            let max = grad.iter().fold(1e-2f64, |m, g| m.max(g.abs()));
            // Every element of the small tensors, some of the large.
            for i in (0..grad.len()).step_by(grad.len().div_ceil(12)) {
                let slope = |step: f64| {
                    let mut moved = self.clone();
                    moved.tensors[which][i] += step;
                    let up = moved.loss();
                    moved.tensors[which][i] -= 2.0 * step;
                    (up - moved.loss()) / (2.0 * step)
                };
                // Two steps, extrapolated: the error is of fourth order.
                let numeric = (4.0 * slope(1e-4) - slope(2e-4)) / 3.0;
                assert!(
                    (grad[i] - numeric).abs() <= 2e-8 * max,
                    "{name}: gradient {which}[{i}] = {}, not {numeric}",
                    grad[i]
                );
            }
        }
    }
}

#[test]
fn equals_its_definition_and_its_finite_differences() {
    for norm in ["layer", "batch", "batch counted", "eval"] {
        for bits in 0..16 {
            let on = |bit: usize| bits >> bit & 1 == 1;
            let (prenorm, glu, bidirectional) = (on(0), on(1), on(2));
            let gelu = if on(1) == on(3) { Gelu::Tanh } else { Gelu::Erf };
            let config = BlockConfig { l: 9, h: 5, prenorm, glu, bidirectional, gelu };
            let mut case = Case::new(3, config, if on(3) { 4 } else { 9 }, norm);
            case.dropout = on(3);
            case.past = !bidirectional && on(1) != on(3);
            if norm == "batch counted" || on(2) {
                case.lengths = Some(vec![9, 3, 6]);
            }
            case.check();
        }
    }
}

/// Sizes with several groups of samples, several chunks of rows, whole cache lines and several panels of the weight.
#[test]
fn groups_and_chunks_fit_together() {
    for (b, l, h, prenorm, norm) in [
        (2, 300, 16, false, "batch"),
        (3, 130, 20, true, "batch counted"),
        (2, 140, 9, true, "layer"),
        (2, 20, 70, false, "layer"),
    ] {
        let config = config(l, h, prenorm, h == 9);
        let mut case = Case::new(b, config, l, norm);
        case.dropout = true;
        case.past = h != 16;
        case.lengths = (norm == "batch counted").then(|| vec![l, 1, l / 2]);
        case.check();
    }
}

/// Uniform in ±√3, from a linear congruential generator.
fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let draw = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 12f64.sqrt()
    };
    (0..n).map(draw).collect()
}

/// f32 follows f64, also where the batch is larger than one group.
#[test]
fn single_precision_is_close() {
    let config = config(2048, 64, false, false);
    let mut case = Case::new(9, config, 2048, "batch");
    case.tensors = case.tensors.map(|t| noise(t.len(), t.len() as u64));
    case.tensors[1]
        .iter_mut()
        .enumerate()
        .for_each(|(i, k)| *k *= (-((i % 2048) as f64) / 50.0).exp());
    case.tensors[3].iter_mut().for_each(|w| *w *= 0.1);
    let (y, dx, grads) = case.run();
    let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let tensors = case.tensors.each_ref().map(|t| single(t));
    let [x, k, d, out_weight, out_bias, gamma, beta, _] = &tensors;
    let norm = NormParams { gamma, beta, eps: 1e-5, norm: Norm::BatchTrain { counted: None } };
    let params =
        BlockParams { k, d, out_weight, out_bias, norm, masks: None, lengths: None, past: None };
    let mut block = Block::<f32>::new(config).unwrap();
    let (mut y32, mut dx32) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    let (saved, _) = block.forward(x, &params, &mut y32, true).unwrap();
    let dy = single(&wave(x.len(), 0.77));
    let grads32 = block.backward(x, &params, saved.unwrap(), &dy, &mut dx32).unwrap();
    for (name, a, b) in [
        ("y", &y32, &y),
        ("dx", &dx32, &dx),
        ("k", &grads32.k, &grads.k),
        ("weight", &grads32.out_weight, &grads.out_weight),
        ("gamma", &grads32.gamma, &grads.gamma),
    ] {
        let max = b.iter().fold(0f64, |m, b| m.max(b.abs()));
        let worst = a.iter().zip(b).fold(0f64, |m, (a, b)| m.max((f64::from(*a) - b).abs()));
        assert!(worst <= 1e-5 * max, "{name}: {worst:e} of {max:e}");
    }
}

#[test]
fn a_norm_alone_is_the_norm_of_a_block() {
    for norm in ["layer", "batch counted", "eval"] {
        let config = config(7, 6, false, false);
        let mut case = Case::new(3, config, 7, norm);
        case.lengths = Some(vec![7, 2, 5]);
        let x = case.tensors[0].clone();
        let dy = wave(x.len(), 0.77);
        let params = case.params().norm;
        let (mut y, mut dx) = (vec![0.0; x.len()], dy.clone());
        let (stats, _) = norm_forward(&x, 7, &params, &mut y);
        let expected = case.literal_norm(&x);
        assert!(y.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13));
        let (gamma, beta) = norm_backward(&x, 7, &params, &stats, &mut dx);
        let loss = |case: &Case| -> f64 {
            case.literal_norm(&case.tensors[0]).iter().zip(&dy).map(|(y, g)| y * g).sum()
        };
        for (which, grad) in [(0, &dx), (5, &gamma), (6, &beta)] {
            for (i, grad) in grad.iter().enumerate() {
                let mut moved = case.clone();
                moved.tensors[which][i] += 1e-5;
                let up = loss(&moved);
                moved.tensors[which][i] -= 2e-5;
                let numeric = (up - loss(&moved)) / 2e-5;
                assert!((grad - numeric).abs() < 1e-8, "{norm} {which}[{i}]");
            }
        }
    }
}

#[test]
fn pooling_respects_lengths() {
    let (l, h) = (5, 2);
    let x = wave(2 * l * h, 0.3);
    let lengths = [3, 5];
    for pool in [Pool::Mean, Pool::Last] {
        let mut y = vec![0.0; 2 * h];
        pool_forward(pool, &x, l, h, &lengths, &mut y);
        for (b, &length) in lengths.iter().enumerate() {
            for i in 0..h {
                let at = |t: usize| x[(b * l + t) * h + i];
                let expected = match pool {
                    Pool::Mean => (0..length).map(at).sum::<f64>() / length as f64,
                    Pool::Last => at(length - 1),
                };
                assert!((y[b * h + i] - expected).abs() < 1e-15);
            }
        }
        // The transpose: ⟨pool(x), dy⟩ = ⟨x, dx⟩.
        let (dy, mut dx) = (wave(2 * h, 0.9), vec![f64::NAN; x.len()]);
        pool_backward(pool, &dy, l, h, &lengths, &mut dx);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!((dot(&y, &dy) - dot(&x, &dx)).abs() < 1e-14);
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let config = config(4, 3, true, false);
    let case = Case::new(2, config, 4, "batch");
    let mut block = Block::<f64>::new(config).unwrap();
    let x = &case.tensors[0];
    let mut y = vec![0.0; x.len()];
    assert!(block.forward(&x[1..], &case.params(), &mut y[1..], false).is_err());
    let short = BlockParams { d: &[0.0; 2], ..case.params() };
    assert!(block.forward(x, &short, &mut y, false).is_err());
    let long = BlockParams { lengths: Some(&[4, 5]), ..case.params() };
    assert!(block.forward(x, &long, &mut y, false).is_err());
    let past = BlockParams { past: Some(&x[1..]), ..case.params() };
    assert!(block.forward(x, &past, &mut y, false).is_err());
    let k = BlockParams { k: &case.tensors[1][1..], ..case.params() };
    assert!(block.forward(x, &k, &mut y, false).is_err());
}
