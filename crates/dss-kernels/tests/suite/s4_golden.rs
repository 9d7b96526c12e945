//! S4 against the golden tensors (PyTorch f64; each file holds parameters, K by the generating function and by the dense
//! recurrence, an input u, y = K * u and the gradients of Σ y·g).

use crate::common::s4::{Owned, TENSORS};
use crate::common::{Golden, channels_last, error, to_f32, to_f64};
use dss_kernels::s4::{Kernel, KernelConfig, Recurrence, kernel_dense, uncorrect_length};
use dss_kernels::{Conv, Real};

const FILES: [&str; 2] = ["s4_small", "s4_medium"];

fn config(golden: &Golden) -> KernelConfig {
    let (c, k) = (golden.shape("C"), golden.shape("K"));
    KernelConfig::new(c[1], 2 * c[2], k[2])
}

/// K, y and the gradients of all parameters, in precision T and returned in f64.
fn compute<T: Real>(
    golden: &Golden,
    cast: fn(&[f64]) -> Vec<T>,
    back: fn(&[T]) -> Vec<f64>,
) -> (Vec<f64>, Vec<f64>, Owned<f64>) {
    let config = config(golden);
    let (b, h, l) = (golden.shape("u")[0], config.h, config.len);
    let owned = Owned::golden(golden).map(cast);
    let mut kernel = Kernel::new(config).unwrap();
    let mut k = vec![T::ZERO; h * l];
    kernel.forward(&owned.params(), &mut k).unwrap();
    let u = cast(&channels_last(golden.get("u"), b, h, l));
    let g = cast(&channels_last(golden.get("g"), b, h, l));
    let (mut y, mut du, mut dk) = (u.clone(), u.clone(), k.clone());
    let mut conv = Conv::new(b, l, h).unwrap();
    conv.set_kernel(&k).unwrap();
    conv.forward(&u, &mut y).unwrap();
    conv.backward(&u, &g, &mut du, &mut dk).unwrap();
    let mut grads = owned.clone();
    kernel.backward(&owned.params(), &dk, grads.grads()).unwrap();
    (back(&k), back(&y), grads.map(back))
}

#[test]
fn f64_path() {
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let (k, y, grads) = compute(&golden, <[f64]>::to_vec, <[f64]>::to_vec);
        let (b, h, l) = (golden.shape("u")[0], golden.shape("K")[1], golden.shape("K")[2]);
        for (name, got, expected) in [
            ("K", &k, golden.get("K").to_vec()),
            ("K_dense", &k, golden.get("K_dense").to_vec()),
            ("y", &y, channels_last(golden.get("y"), b, h, l)),
            ("log_w_real", &grads.lambda_re, golden.get("grad.log_w_real").to_vec()),
            ("w_imag", &grads.lambda_im, golden.get("grad.w_imag").to_vec()),
            ("P", &grads.p, golden.get("grad.P").to_vec()),
            ("B", &grads.b, golden.get("grad.B").to_vec()),
            ("C", &grads.c, golden.get("grad.C").to_vec()),
            ("log_dt", &grads.delta_log, golden.get("grad.log_dt").to_vec()),
        ] {
            let e = error(got, &expected);
            println!("{file} {name}: {e:.1e}");
            assert!(e <= 1e-10, "{file} {name}: {e:.1e}");
        }
    }
}

/// The f32 path against the f64 path at the same parameters, both rounded to f32.
#[test]
fn f32_path() {
    let round = |x: &[f64]| to_f64(&to_f32(x));
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let (exact_k, exact_y, mut exact) = compute(&golden, round, <[f64]>::to_vec);
        let (k, y, mut fast) = compute(&golden, to_f32, to_f64);
        let names = ["K", "y"].into_iter().chain(TENSORS);
        let [fast, exact] = [(k, y, &mut fast), (exact_k, exact_y, &mut exact)]
            .map(|(k, y, grads)| [vec![k, y], grads.tensors().map(|x| x.clone()).into()].concat());
        for ((name, fast), exact) in names.zip(&fast).zip(&exact) {
            let e = error(fast, exact);
            println!("{file} {name}: {e:.1e}");
            assert!(e <= 1e-6, "{file} {name}: {e:.1e}");
        }
    }
}

/// The files hold C, from which C̃ was made, for both halves of the conjugate pairs.
#[test]
fn length_correction() {
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let config = config(&golden);
        let mut owned = Owned::golden(&golden);
        let pairs = config.pairs();
        let expected: Vec<f64> = golden
            .get("dC")
            .chunks_exact(4 * pairs)
            .flat_map(|row| row[..2 * pairs].to_vec())
            .collect();
        let c = uncorrect_length(&config, &owned.params()).unwrap();
        let e = error(&c, &expected);
        println!("{file} C: {e:.1e}");
        assert!(e <= 1e-10, "{file} C: {e:.1e}");
        // With it, the definition gives the kernel.
        owned.c = c;
        let e = error(&kernel_dense(&config, &owned.params()), golden.get("K_dense"));
        println!("{file} definition: {e:.1e}");
        assert!(e <= 1e-10, "{file} definition: {e:.1e}");
    }
}

#[test]
fn recurrence() {
    for file in FILES {
        let Some(golden) = Golden::read(file) else { continue };
        let config = config(&golden);
        let (b, h, l) = (golden.shape("u")[0], config.h, config.len);
        let model = Recurrence::new(config, &Owned::golden(&golden).params()).unwrap();
        let u = channels_last(golden.get("u"), b, h, l);
        let mut y = u.clone();
        for (u, y) in u.chunks_exact(l * h).zip(y.chunks_exact_mut(l * h)) {
            model.run(&mut model.state(), u, y).unwrap();
        }
        let e = error(&y, &channels_last(golden.get("y"), b, h, l));
        println!("{file} y by steps: {e:.1e}");
        assert!(e <= 1e-10, "{file}: {e:.1e}");
    }
}
