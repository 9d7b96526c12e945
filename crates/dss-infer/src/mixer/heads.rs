//! Softmax attention of a few rows to others, head by head.

/// softmax(scale·q·kᵀ)·v of q `[M, H]` and k, v `[L, H]`, whose heads share the H channels -> y `[M, H]`. `weights` is a
/// buffer.
pub(super) fn attend(
    [q, k, v]: [&[f32]; 3],
    h: usize,
    heads: usize,
    scale: f32,
    weights: &mut Vec<f32>,
    y: &mut [f32],
) {
    let d = h / heads;
    y.fill(0.0);
    for (q, y) in q.chunks_exact(h).zip(y.chunks_exact_mut(h)) {
        for head in 0..heads {
            let own = head * d..(head + 1) * d;
            let q = &q[own.clone()];
            weights.clear();
            weights.extend(k.chunks_exact(h).map(|k| scale * dot(q, &k[own.clone()])));
            softmax(weights);
            let y = &mut y[own.clone()];
            for (&w, v) in weights.iter().zip(v.chunks_exact(h)) {
                y.iter_mut().zip(&v[own.clone()]).for_each(|(y, v)| *y += w * v);
            }
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// x becomes softmax(x).
fn softmax(x: &mut [f32]) {
    let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    x.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f64 = x.iter().map(|&x| f64::from(x)).sum();
    let factor = (1.0 / sum) as f32;
    x.iter_mut().for_each(|x| *x *= factor);
}
