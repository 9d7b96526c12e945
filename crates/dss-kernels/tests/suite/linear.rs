//! Linear maps and feed-forward parts against the plain sums, and their backward against finite differences.

use dss_kernels::block::{
    FeedForwardParams, Gelu, LinearParams, feed_forward, feed_forward_backward, linear_backward,
    linear_forward,
};

/// Numbers without a pattern that sums could hide.
fn wave(n: usize, f: f64) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * f + f).sin()).collect()
}

fn affine(x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let inputs = weight.len() / bias.len();
    let row = |x: &[f64]| {
        let out = weight
            .chunks_exact(inputs)
            .zip(bias)
            .map(|(w, b)| w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + b);
        out.collect::<Vec<_>>()
    };
    x.chunks_exact(inputs).flat_map(row).collect()
}

fn gelu(kind: Gelu, x: f64) -> f64 {
    match kind {
        Gelu::Erf => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Gelu::Tanh => {
            let z = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + z.tanh())
        }
    }
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(1e-30, |most: f64, x| most.max(x.abs()));
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "{i}: {a}, not {b}");
    }
}

/// ∂f/∂x by central differences.
fn differences(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let at = |i: usize, step: f64| {
        let mut moved = x.to_vec();
        moved[i] += step;
        f(&moved)
    };
    (0..x.len()).map(|i| (at(i, 1e-5) - at(i, -1e-5)) / 2e-5).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn a_linear_map_is_its_sums() {
    for (rows, i, o) in [(1, 1, 1), (7, 3, 5), (300, 17, 40), (2100, 8, 9)] {
        let (x, weight, bias) = (wave(rows * i, 0.7), wave(o * i, 0.3), wave(o, 1.1));
        let params = LinearParams { weight: &weight, bias: &bias };
        let mut y = vec![f64::NAN; rows * o];
        linear_forward(&x, &params, &mut y);
        close(&y, &affine(&x, &weight, &bias), 1e-13);

        let dy = wave(rows * o, 0.9);
        let mut dx = vec![f64::NAN; x.len()];
        let [dw, db] = linear_backward(&x, &params, &dy, &mut dx);
        let transposed: Vec<f64> = (0..i * o).map(|at| weight[at % o * i + at / o]).collect();
        close(&dx, &affine(&dy, &transposed, &vec![0.0; i]), 1e-13);
        let sum = |at: usize| (0..rows).map(|r| dy[r * o + at / i] * x[r * i + at % i]).sum();
        close(&dw, &(0..o * i).map(sum).collect::<Vec<f64>>(), 1e-12);
        let sum = |at: usize| (0..rows).map(|r| dy[r * o + at]).sum();
        close(&db, &(0..o).map(sum).collect::<Vec<f64>>(), 1e-12);
    }
}

#[test]
fn a_feed_forward_part_is_its_formula() {
    for (kind, masked) in [(Gelu::Erf, false), (Gelu::Erf, true), (Gelu::Tanh, true)] {
        let (b, l, h, f) = (3, 5, 4, 6);
        let x = wave(b * l * h, 0.7);
        let all = [wave(f * h, 0.3), wave(f, 1.1), wave(h * f, 0.5), wave(h, 0.2)];
        let mask: Vec<f64> = wave(b * f, 2.3);
        let run = |x: &[f64], all: &[Vec<f64>; 4]| {
            let mut hidden = affine(x, &all[0], &all[1]);
            for (at, z) in hidden.iter_mut().enumerate() {
                let factor = if masked { mask[at / (l * f) * f + at % f] } else { 1.0 };
                *z = gelu(kind, *z) * factor;
            }
            affine(&hidden, &all[2], &all[3])
        };
        let params = FeedForwardParams {
            hidden: LinearParams { weight: &all[0], bias: &all[1] },
            out: LinearParams { weight: &all[2], bias: &all[3] },
            gelu: kind,
            mask: masked.then_some(&mask),
        };
        let mut y = vec![f64::NAN; x.len()];
        feed_forward(&x, l, &params, &mut y);
        close(&y, &run(&x, &all), 1e-13);

        let dy = wave(x.len(), 0.9);
        let mut dx = vec![f64::NAN; x.len()];
        let grads = feed_forward_backward(&x, l, &params, &dy, &mut dx);
        close(&dx, &differences(&x, |x| dot(&run(x, &all), &dy)), 1e-8);
        for (i, grad) in grads.hidden.iter().chain(&grads.out).enumerate() {
            let loss = |values: &[f64]| {
                let mut all = all.clone();
                all[i] = values.to_vec();
                dot(&run(&x, &all), &dy)
            };
            close(grad, &differences(&all[i], loss), 1e-8);
        }
    }
}

/// Many rows go through in pieces, in f32 as in f64.
#[test]
fn pieces_and_precisions_agree() {
    let (b, l, h, f) = (3, 700, 24, 40);
    // Not negative: sums over the rows that cancel would have a larger error relative to what is left of them.
    let positive = |n, f| wave(n, f).iter().map(|x| 1.0 + x).collect::<Vec<_>>();
    let (x, dy) = (positive(b * l * h, 0.7), positive(b * l * h, 0.9));
    let all = [wave(f * h, 0.3), wave(f, 1.1), wave(h * f, 0.5), wave(h, 0.2)];
    macro_rules! run {
        ($t:ty) => {{
            let narrow = |x: &[f64]| x.iter().map(|&x| x as $t).collect::<Vec<_>>();
            let ([w1, b1, w2, b2], x, dy) =
                (all.each_ref().map(|x| narrow(x)), narrow(&x), narrow(&dy));
            let params = FeedForwardParams {
                hidden: LinearParams { weight: &w1, bias: &b1 },
                out: LinearParams { weight: &w2, bias: &b2 },
                gelu: Gelu::Tanh,
                mask: None,
            };
            let mut y = vec![<$t>::NAN; x.len()];
            feed_forward(&x, l, &params, &mut y);
            let mut dx = vec![<$t>::NAN; x.len()];
            let grads = feed_forward_backward(&x, l, &params, &dy, &mut dx);
            let all = [y, dx].into_iter().chain(grads.hidden).chain(grads.out);
            all.map(|x| x.into_iter().map(f64::from).collect::<Vec<_>>()).collect::<Vec<_>>()
        }};
    }
    let (single, double) = (run!(f32), run!(f64));
    for (single, double) in single.iter().zip(&double) {
        close(single, double, 3e-6);
    }
    // Each row's answer is its own.
    let lone =
        affine(&x[..h], &all[0], &all[1]).iter().map(|&z| gelu(Gelu::Tanh, z)).collect::<Vec<_>>();
    close(&double[0][..h], &affine(&lone, &all[2], &all[3]), 1e-12);
}
