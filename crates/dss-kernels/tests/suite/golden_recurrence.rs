//! The recurrent view against the golden state traces.

use crate::common::{Golden, Owned, error};
use dss_kernels::{Recurrence, Result};

fn model(golden: &Golden) -> (Recurrence<f64>, usize) {
    let len = golden.shape("u")[2];
    let (lambda_re, lambda_im) = golden.lambda();
    let owned = Owned {
        lambda_re,
        lambda_im,
        delta_log: golden.get("log_dt").to_vec(),
        w: golden.get("W").to_vec(),
    };
    (Recurrence::new(golden.config(len), &owned.params()).unwrap(), len)
}

/// States x_k and outputs y_k of every step.
fn trace(model: &Recurrence<f64>, u: &[f64], len: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let h = model.config().h;
    let n = model.config().n;
    let (mut x, mut y) = (vec![0.0; h * n * len * 2], vec![0.0; h * len]);
    let mut state = model.state();
    let mut out = vec![0.0; h];
    for k in 0..len {
        let input: Vec<f64> = (0..h).map(|h| u[h * len + k]).collect();
        model.step(&mut state, &input, &mut out)?;
        for (i, value) in model.paper_state(&state).iter().enumerate() {
            x[(i * len + k) * 2] = value.re;
            x[(i * len + k) * 2 + 1] = value.im;
        }
        for (i, &value) in out.iter().enumerate() {
            y[i * len + k] = value;
        }
    }
    Ok((x, y))
}

#[test]
fn states_and_outputs() {
    for file in [
        "recurrent_exp",
        "recurrent_exp_no_scale",
        "recurrent_softmax",
        "recurrent_softmax_pos",
        "recurrent_softmax_pos_extreme",
    ] {
        let Some(golden) = Golden::read(file) else { continue };
        let (model, len) = model(&golden);
        let (x, y) = trace(&model, golden.get("u"), len).unwrap();
        for (name, computed) in [("x", &x), ("y", &y)] {
            let e = error(computed, golden.get(name));
            println!("{file} {name}: {e:.1e}");
            assert!(e <= 1e-12, "{file} {name}: {e:.1e}");
        }
        if golden.has("x_exact_noeps") {
            // The paper's formula without ε: they differ by what ε does, about ε/|den·λ|².
            let e = error(&x, golden.get("x_exact_noeps"));
            println!("{file} x_exact_noeps: {e:.1e}");
            assert!(e <= 1e-5, "{file} x_exact_noeps: {e:.1e}");
        }
    }
}

#[test]
fn long_memory() {
    for file in ["recurrent_exp_hippo64", "recurrent_softmax_hippo64"] {
        let Some(golden) = Golden::read(file) else { continue };
        let (model, len) = model(&golden);
        let (x, y) = trace(&model, golden.get("u"), len).unwrap();
        let e = error(&y, golden.get("y"));
        assert!(e <= 1e-11, "{file} y: {e:.1e}");
        let every: Vec<f64> = x
            .chunks_exact(2 * len)
            .flat_map(|row| (31..len).step_by(32).flat_map(|k| row[2 * k..2 * k + 2].to_vec()))
            .collect();
        let e = error(&every, golden.get("x_every32"));
        assert!(e <= 1e-11, "{file} x: {e:.1e}");
    }
}
