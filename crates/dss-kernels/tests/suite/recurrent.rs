//! Recurrent nets: golden files, a literal form, differences, steps, batches and threads.

use std::collections::BTreeSet;

use crate::common::Golden;
use crate::common::random::{normal, rng};
use dss_kernels::recurrent::orthogonal::{orthogonal, orthogonal_backward};
use dss_kernels::recurrent::{
    Cell, Diagonal, ExpRnn, Gru, LipschitzRnn, Lstm, Nrde, OdeRnn, Recurrent, RecurrentGrads,
    RecurrentInput, Solver,
};

/// What a pass gives: y, and the gradients of Σ y·g.
struct Passed {
    y: Vec<f64>,
    z: Vec<f64>,
    params: Vec<f64>,
    start: Vec<f64>,
}

fn pass<C: Cell>(
    cell: C,
    params: &[f64],
    [batch, len]: [usize; 2],
    z: &[f64],
    start: Option<&[f64]>,
    g: &[f64],
) -> Passed {
    let model = Recurrent::new(cell, params).unwrap();
    let input = RecurrentInput { batch, len, z, start };
    let n = model.sizes().outputs;
    let (mut y, mut saved) = (vec![f64::NAN; batch * len * n], Vec::new());
    model.forward(&input, &mut y, Some(&mut saved)).unwrap();
    let (mut dz, mut dp) = (vec![f64::NAN; z.len()], vec![f64::NAN; params.len()]);
    let mut ds = vec![f64::NAN; if start.is_some() { batch * n } else { 0 }];
    let d_start = start.map(|_| &mut ds[..]);
    let grads = RecurrentGrads { z: &mut dz, params: &mut dp, start: d_start };
    model.backward(&input, &saved, g, grads).unwrap();
    Passed { y, z: dz, params: dp, start: ds }
}

/// x [R, in]·Wᵀ + b.
fn affine(x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let inputs = weight.len() / bias.len();
    let rows = x.chunks_exact(inputs);
    rows.flat_map(|x| {
        weight
            .chunks_exact(inputs)
            .zip(bias)
            .map(move |(w, b)| b + w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
    })
    .collect()
}

/// Gradients of x, W and b, given dy [R, out].
fn affine_backward(x: &[f64], weight: &[f64], dy: &[f64], outputs: usize) -> [Vec<f64>; 3] {
    let inputs = weight.len() / outputs;
    let mut dx = vec![0.0; x.len()];
    let (mut dw, mut db) = (vec![0.0; weight.len()], vec![0.0; outputs]);
    let rows = x.chunks_exact(inputs).zip(dx.chunks_exact_mut(inputs));
    for ((x, dx), dy) in rows.zip(dy.chunks_exact(outputs)) {
        for (o, &dy) in dy.iter().enumerate() {
            db[o] += dy;
            for i in 0..inputs {
                dw[o * inputs + i] += dy * x[i];
                dx[i] += dy * weight[o * inputs + i];
            }
        }
    }
    [dx, dw, db]
}

fn transposed(x: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|i| x[i % n * n + i / n]).collect()
}

/// Outputs to 1e-11; all gradients of the case to 1e-10 of the larger of their maximum and a thousandth of the case's largest one.
fn compare(golden: &Golden, case: &str, y: &[f64], gradients: &[(&str, &[f64])]) {
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let error =
        |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    let known = golden.get(&format!("{case}y"));
    assert_eq!(y.len(), known.len());
    assert!(error(y, known) <= 1e-11 * largest(known), "{case}y: {:e}", error(y, known));
    let start = format!("{case}grad.");
    let names: BTreeSet<&str> =
        golden.names().filter_map(|name| name.strip_prefix(&start)).collect();
    assert_eq!(gradients.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), names, "{case}");
    let known = |name: &str| golden.get(&format!("{start}{name}"));
    let all = gradients.iter().map(|(name, _)| largest(known(name))).fold(0.0, f64::max);
    for (name, found) in gradients {
        let known = known(name);
        assert_eq!(found.len(), known.len(), "{name}");
        let error = error(found, known);
        assert!(error <= 1e-10 * largest(known).max(1e-3 * all), "{case}{name}: {error:e}");
    }
}

/// The state at the last true position of each sequence is that of the whole sequence there: padding follows it.
fn compare_last(golden: &Golden, case: &str, y: &[f64]) {
    let (known, lengths) = (golden.get(&format!("{case}masked.last")), golden.get("lengths"));
    let n = known.len() / lengths.len();
    let size = y.len() / lengths.len();
    let last =
        y.chunks_exact(size).zip(lengths).map(|(y, &length)| &y[(length as usize - 1) * n..][..n]);
    for (found, known) in last.flatten().zip(known) {
        assert!((found - known).abs() <= 1e-11, "{case}masked.last: {found}, not {known}");
    }
}

#[test]
fn golden_exp_rnn() {
    let golden = Golden::read("exp_rnn").unwrap();
    let [batch, len, n] = golden.shape("y").try_into().unwrap();
    let (u, weight) = (golden.get("u"), golden.get("input.weight"));
    let q = orthogonal(golden.get("a"), n);
    let error = q.iter().zip(golden.get("q")).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(error < 1e-13, "Q: {error:e}");
    let z = affine(u, weight, &vec![0.0; n]);
    let params = [transposed(&q, n), golden.get("b").to_vec()].concat();
    let passed = pass(ExpRnn { n }, &params, [batch, len], &z, None, golden.get("g"));
    let [du, dw, _] = affine_backward(u, weight, &passed.z, n);
    let (dq, db) = passed.params.split_at(n * n);
    let da = orthogonal_backward(golden.get("a"), n, &transposed(dq, n));
    let gradients = [("u", &du[..]), ("input.weight", &dw), ("b", db), ("a", &da)];
    compare(&golden, "", &passed.y, &gradients);
    compare_last(&golden, "", &passed.y);
}

#[test]
fn golden_lipschitz_rnn() {
    let golden = Golden::read("lipschitz_rnn").unwrap();
    let (beta, gamma) = (0.75, 0.001);
    let [batch, len, n] = golden.shape("euler.y").try_into().unwrap();
    let (u, weight) = (golden.get("u"), golden.get("input.weight"));
    let z = affine(u, weight, golden.get("input.bias"));
    // The transpose of β(M − Mᵀ) + (1 − β)(M + Mᵀ) − γI.
    let matrix = |m: &[f64]| -> Vec<f64> {
        let at = |i: usize, j: usize| {
            let (m, t) = (m[j * n + i], m[i * n + j]);
            beta * (m - t) + (1.0 - beta) * (m + t) - if i == j { gamma } else { 0.0 }
        };
        (0..n * n).map(|i| at(i / n, i % n)).collect()
    };
    let back = |d: &[f64]| -> Vec<f64> {
        let (d, t) = (transposed(d, n), d);
        d.iter().zip(t).map(|(d, t)| d + (1.0 - 2.0 * beta) * t).collect()
    };
    let params = [matrix(golden.get("m_a")), matrix(golden.get("m_w"))].concat();
    for (case, solver) in [("euler.", Solver::Euler), ("midpoint.", Solver::Midpoint)] {
        let cell = LipschitzRnn { n, step: 0.03, solver };
        let passed = pass(cell, &params, [batch, len], &z, None, golden.get("g"));
        let [du, dw, db] = affine_backward(u, weight, &passed.z, n);
        let (da, d_w) = passed.params.split_at(n * n);
        let (da, d_w) = (back(da), back(d_w));
        let input = [("u", &du[..]), ("input.weight", &dw), ("input.bias", &db)];
        let gradients = [&input[..], &[("m_a", &da[..]), ("m_w", &d_w)]].concat();
        compare(&golden, case, &passed.y, &gradients);
        compare_last(&golden, case, &passed.y);
    }
}

#[test]
fn golden_ode_rnn() {
    let golden = Golden::read("ode_rnn").unwrap();
    let [batch, len, n] = golden.shape("y").try_into().unwrap();
    let (width, layers) = (12, 4);
    let (u, weight, times) = (golden.get("u"), golden.get("gru.w_ih"), golden.get("times"));
    let gates = affine(u, weight, golden.get("gru.b_ih"));
    let field: Vec<String> = (0..=layers).map(|i| format!("f.{i}")).collect();
    let names = |part: &str, last: &str| -> Vec<String> {
        let names = field.iter().map(|name| format!("{name}.{part}"));
        names.chain([format!("gru.{last}")]).collect()
    };
    let names = [names("weight", "w_hh"), names("bias", "b_hh")].concat();
    let params: Vec<f64> = names.iter().flat_map(|name| golden.get(name)).copied().collect();
    for case in ["", "observed."] {
        let z = gates.chunks_exact(3 * n).enumerate().flat_map(|(at, gates)| {
            let t = at % len;
            let delta = if t == 0 { 0.0 } else { times[t] - times[t - 1] };
            let seen = if case.is_empty() { 1.0 } else { golden.get("observed")[at] };
            gates.iter().copied().chain([delta, seen])
        });
        let z: Vec<f64> = z.collect();
        let cell = OdeRnn { n, width, layers, solver: Solver::Rk4, substeps: 1 };
        let passed = pass(cell, &params, [batch, len], &z, None, golden.get("g"));
        let dz = passed.z.chunks_exact(3 * n + 2).flat_map(|dz| &dz[..3 * n]).copied();
        let [du, dw, db] = affine_backward(u, weight, &dz.collect::<Vec<_>>(), 3 * n);
        let mut gradients = vec![("u", &du[..]), ("gru.w_ih", &dw), ("gru.b_ih", &db)];
        let mut rest = &passed.params[..];
        for name in &names {
            let part = rest.split_off(..golden.get(name).len()).unwrap();
            gradients.push((name, part));
        }
        compare(&golden, case, &passed.y, &gradients);
        if case.is_empty() {
            compare_last(&golden, case, &passed.y);
        }
    }
    // One interval without an observation: a step of the rule, and many, which come near the solution.
    let (dt, from) = (golden.get("evolve.dt")[0], golden.get("evolve.from"));
    let rows = from.len() / n;
    let z = [vec![0.0; 3 * n], vec![dt, 0.0]].concat().repeat(rows);
    for (name, substeps, tolerance) in [("rk4", 1, 1e-12), ("accurate", 64, 1e-10)] {
        let cell = OdeRnn { n, width, layers, solver: Solver::Rk4, substeps };
        let model = Recurrent::new(cell, &params).unwrap();
        let mut y = vec![0.0; from.len()];
        let input = RecurrentInput { batch: rows, len: 1, z: &z, start: Some(from) };
        model.forward(&input, &mut y, None).unwrap();
        for (found, known) in y.iter().zip(golden.get(&format!("evolve.{name}"))) {
            assert!((found - known).abs() < tolerance, "evolve.{name}: {found}, not {known}");
        }
    }
}

/// dx [L, C] of the log-signatures of depth 2, whose gradients are dl [W, dim]: of the increment at level 1, of
/// ½ Σ_{j<k} (d_j^a d_k^b − d_j^b d_k^a) at the words (a, b) of level 2.
fn log_signatures_backward(x: &[f64], c: usize, window: usize, dl: &[f64]) -> Vec<f64> {
    let mut dx = vec![0.0; x.len()];
    let dim = c + c * (c - 1) / 2;
    for (w, dl) in dl.chunks_exact(dim).enumerate() {
        let at = |k: usize, a: usize| x[(w * window + k) * c + a];
        for k in 0..window {
            let mut d = dl[..c].to_vec();
            let words = (0..c).flat_map(|a| (a + 1..c).map(move |b| (a, b)));
            for ((a, b), dl) in words.zip(&dl[c..]) {
                // What follows the step less what comes before it.
                let rest = |a: usize| at(window, a) - at(k + 1, a) - (at(k, a) - at(0, a));
                d[a] += 0.5 * dl * rest(b);
                d[b] -= 0.5 * dl * rest(a);
            }
            for (a, d) in d.into_iter().enumerate() {
                dx[(w * window + k + 1) * c + a] += d;
                dx[(w * window + k) * c + a] -= d;
            }
        }
    }
    dx
}

#[test]
fn golden_nrde() {
    let golden = Golden::read("nrde").unwrap();
    let [batch, windows, dim] = golden.shape("logsig.d2").try_into().unwrap();
    let [_, len, channels] = golden.shape("x").try_into().unwrap();
    let n = golden.shape("rk4.y")[2];
    let first: Vec<f64> = golden
        .get("x")
        .chunks_exact(len * channels)
        .flat_map(|x| &x[..channels])
        .copied()
        .collect();
    let weight = golden.get("initial.weight");
    let start = affine(&first, weight, golden.get("initial.bias"));
    let names = ["f.in", "f.hidden", "f.out"];
    let names = ["weight", "bias"].map(|part| names.map(|name| format!("{name}.{part}"))).concat();
    let params: Vec<f64> = names.iter().flat_map(|name| golden.get(name)).copied().collect();
    // The first state is the initial one: it is not an output of the net.
    let (g, size) = (golden.get("g"), (windows + 1) * n);
    let after: Vec<f64> = g.chunks_exact(size).flat_map(|g| &g[n..]).copied().collect();
    for (case, solver) in [("rk4.", Solver::Rk4), ("midpoint.", Solver::Midpoint)] {
        let cell = Nrde { n, dim, width: 10, layers: 3, solver, substeps: 1 };
        let z = golden.get("logsig.d2");
        let passed = pass(cell, &params, [batch, windows], z, Some(&start), &after);
        let states = start.chunks_exact(n).zip(passed.y.chunks_exact(windows * n));
        let y: Vec<f64> = states.flat_map(|(start, y)| start.iter().chain(y)).copied().collect();
        let d_start = passed.start.iter().enumerate();
        let d_start: Vec<f64> = d_start.map(|(i, d)| d + g[i / n * size + i % n]).collect();
        let [d_first, dw, db] = affine_backward(&first, weight, &d_start, n);
        let paths = golden.get("x").chunks_exact(len * channels);
        let paths = paths.zip(passed.z.chunks_exact(windows * dim));
        let dx = paths.zip(d_first.chunks_exact(channels)).flat_map(|((x, dl), d_first)| {
            let mut dx = log_signatures_backward(x, channels, (len - 1) / windows, dl);
            dx.iter_mut().zip(d_first).for_each(|(dx, d)| *dx += d);
            dx
        });
        let dx: Vec<f64> = dx.collect();
        let mut gradients =
            vec![("x", &dx[..]), ("initial.weight", &dw[..]), ("initial.bias", &db)];
        let mut rest = &passed.params[..];
        for name in &names {
            let part = rest.split_off(..golden.get(name).len()).unwrap();
            gradients.push((name, part));
        }
        compare(&golden, case, &y, &gradients);
    }
}

/// Every gradient against central differences, for lengths that √L divides and others, and several groups of rows; but
/// for the last `constants` numbers of each z, which are not differentiated.
fn differences<C: Cell>(cell: C, batch: usize, len: usize, constants: usize) {
    let sizes = cell.sizes();
    let mut rng = rng(4);
    let scaled = |count: usize, size: f64, rng: &mut _| -> Vec<f64> {
        normal(count, rng).into_iter().map(|x| size * x).collect()
    };
    let params = scaled(sizes.parameters(), 0.3, &mut rng);
    let z = scaled(batch * len * sizes.inputs, 1.0, &mut rng);
    let start = scaled(batch * sizes.outputs, 0.5, &mut rng);
    let g = scaled(batch * len * sizes.outputs, 1.0, &mut rng);
    let all = [params.clone(), z.clone(), start.clone()].concat();
    let loss = |all: &[f64]| -> f64 {
        let (params, rest) = all.split_at(params.len());
        let (z, start) = rest.split_at(z.len());
        let model = Recurrent::new(cell.clone(), params).unwrap();
        let mut y = vec![0.0; g.len()];
        model.forward(&RecurrentInput { batch, len, z, start: Some(start) }, &mut y, None).unwrap();
        y.iter().zip(&g).map(|(y, g)| y * g).sum()
    };
    let passed = pass(cell.clone(), &params, [batch, len], &z, Some(&start), &g);
    let found = [passed.params, passed.z, passed.start].concat();
    let scale = found.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    let z_at = params.len()..params.len() + z.len();
    for at in (0..all.len()).step_by(all.len() / 97 + 1) {
        let column = (at - z_at.start.min(at)) % sizes.inputs;
        if z_at.contains(&at) && column >= sizes.inputs - constants {
            continue;
        }
        let value = |step: f64| {
            let mut all = all.clone();
            all[at] += step;
            loss(&all)
        };
        let step = 1e-4;
        let difference = (8.0 * (value(step) - value(-step)) - value(2.0 * step)
            + value(-2.0 * step))
            / (12.0 * step);
        let error = (difference - found[at]).abs() / scale;
        assert!(error < 1e-9, "{cell:?} {at}: {} but differences give {difference}", found[at]);
    }
}

#[test]
fn gradients_are_differences() {
    for (batch, len) in [(1, 1), (2, 9), (9, 7), (3, 13)] {
        differences(Gru { n: 5 }, batch, len, 0);
        differences(Lstm { n: 5 }, batch, len, 0);
        differences(Diagonal { n: 4 }, batch, len, 0);
        for solver in [Solver::Euler, Solver::Midpoint, Solver::Rk4] {
            differences(LipschitzRnn { n: 5, step: 0.2, solver }, batch, len, 0);
            let (width, layers) = (3, 2);
            differences(
                Nrde { n: 4, dim: 3, width, layers: 1, solver, substeps: 2 },
                batch,
                len,
                0,
            );
            differences(OdeRnn { n: 4, width, layers, solver, substeps: 3 }, batch, len, 2);
        }
    }
}

/// PyTorch's equations, element by element.
#[test]
fn gates_by_hand() {
    let (n, len) = (3, 5);
    let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut rng = rng(9);
    let (w, b) = (normal(3 * n * n, &mut rng), normal(3 * n, &mut rng));
    let z = normal(len * 3 * n, &mut rng);
    let gru = Recurrent::new(Gru { n }, &[w.clone(), b.clone()].concat()).unwrap();
    let mut y = vec![0.0; len * n];
    gru.forward(&RecurrentInput { batch: 1, len, z: &z, start: None }, &mut y, None).unwrap();
    let mut h = vec![0.0; n];
    for (z, y) in z.chunks_exact(3 * n).zip(y.chunks_exact(n)) {
        let a = affine(&h, &w, &b);
        let r: Vec<f64> = (0..n).map(|i| sigma(z[i] + a[i])).collect();
        let u: Vec<f64> = (0..n).map(|i| sigma(z[n + i] + a[n + i])).collect();
        h = (0..n)
            .map(|i| {
                let c = (z[2 * n + i] + r[i] * a[2 * n + i]).tanh();
                (1.0 - u[i]) * c + u[i] * h[i]
            })
            .collect();
        assert!(h.iter().zip(y).all(|(a, b)| (a - b).abs() < 1e-14));
    }
    let (w, z) = (normal(4 * n * n, &mut rng), normal(len * 4 * n, &mut rng));
    let lstm = Recurrent::new(Lstm { n }, &w).unwrap();
    lstm.forward(&RecurrentInput { batch: 1, len, z: &z, start: None }, &mut y, None).unwrap();
    let (mut h, mut c) = (vec![0.0; n], vec![0.0; n]);
    for (z, y) in z.chunks_exact(4 * n).zip(y.chunks_exact(n)) {
        let a = affine(&h, &w, z);
        for i in 0..n {
            c[i] = sigma(a[n + i]) * c[i] + sigma(a[i]) * a[2 * n + i].tanh();
            h[i] = sigma(a[3 * n + i]) * c[i].tanh();
        }
        assert!(h.iter().zip(y).all(|(a, b)| (a - b).abs() < 1e-14));
    }
}

/// Single steps, other sequences beside it and other numbers of threads change no bit of a sequence.
#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    fn check<C: Cell>(cell: C) {
        let (batch, len) = (19, 12);
        let sizes = cell.sizes();
        let single = |x: Vec<f64>| -> Vec<f32> { x.into_iter().map(|x| 0.3 * x as f32).collect() };
        let mut rng = rng(5);
        let params = single(normal(sizes.parameters(), &mut rng));
        let z = single(normal(batch * len * sizes.inputs, &mut rng));
        let model = Recurrent::new(cell.clone(), &params).unwrap();
        let mut y = vec![0.0; batch * len * sizes.outputs];
        let all = RecurrentInput { batch, len, z: &z, start: None };
        model.forward(&all, &mut y, None).unwrap();
        for b in [0, 7, 18] {
            let z = &z[b * len * sizes.inputs..][..len * sizes.inputs];
            let want = &y[b * len * sizes.outputs..][..len * sizes.outputs];
            let mut alone = vec![0.0; want.len()];
            let input = RecurrentInput { batch: 1, len, z, start: None };
            model.forward(&input, &mut alone, None).unwrap();
            assert_eq!(alone, want, "{cell:?}");
            let mut state = model.state(1);
            for (z, want) in z.chunks_exact(sizes.inputs).zip(want.chunks_exact(sizes.outputs)) {
                model.step(1, z, &mut state);
                assert_eq!(&state[..sizes.outputs], want, "{cell:?}");
            }
        }
        #[cfg(feature = "rayon")]
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut again = vec![0.0; y.len()];
            pool.install(|| model.forward(&all, &mut again, None)).unwrap();
            assert_eq!(again, y, "{cell:?}");
        }
    }
    check(Gru { n: 20 });
    check(Lstm { n: 20 });
    check(Diagonal { n: 9 });
    check(ExpRnn { n: 20 });
    check(LipschitzRnn { n: 20, step: 0.1, solver: Solver::Rk4 });
    check(OdeRnn { n: 20, width: 7, layers: 2, solver: Solver::Midpoint, substeps: 2 });
    check(Nrde { n: 20, dim: 3, width: 7, layers: 2, solver: Solver::Rk4, substeps: 1 });
}
