//! The convolution y = K * u by Fourier transforms (Eq. 6), zero-padded so that nothing wraps around.

use burn::tensor::{DType, Tensor};
use burn_signal::{irfft, rfft};

use super::complex::Complex;
use super::dft::Dft;

/// y_t = Σ_j K\[0\]_j u_{t−j}, and when bidirectional + Σ_j K\[1\]_j u_{t+1+j}.
///
/// # Shapes
/// u `[B, L, H]`, K `[C, H, taps]` with C = 2 when bidirectional, else 1 -> `[B, L, H]`. Any L; taps beyond L do not
/// matter.
///
/// f64 takes the products of `dft.rs`: Flex's FFT has twiddle factors in f32 only, which leaves 7 digits.
///
/// # Panics
/// If the shapes do not fit together.
pub fn conv(u: Tensor<3>, k: Tensor<3>, bidirectional: bool) -> Tensor<3> {
    let [batch, l, h] = u.dims();
    let taps = k.dims()[2].min(l);
    let k = k.narrow(2, 0, taps);
    let u = u.swap_dims(1, 2); // [B, H, L]
    let y = if u.dtype() == DType::F64 {
        let dft = Dft::new(l + taps, &u.device(), DType::F64);
        let k = wrapped(k, bidirectional, dft.len()); // [H, M]
        let (k, u) = (dft.forward(k), dft.forward(zeros_after(u, 2, dft.len()).flatten(0, 1)));
        let [_, m1, m2] = k.re.dims();
        let u = u.reshape([batch, h, m1, m2]);
        let y = u.mul(k.reshape([1, h, m1, m2])).reshape([batch * h, m1, m2]);
        dft.inverse(y).reshape([batch, h, dft.len()])
    } else {
        let m = (l + taps).next_power_of_two();
        let k: Tensor<3> = wrapped(k, bidirectional, m).unsqueeze_dim(0);
        let spectrum = |x: Tensor<3>| {
            let (re, im) = rfft(x, 2, Some(m));
            Complex::new(re, im)
        };
        let y = spectrum(u).mul(spectrum(k));
        irfft(y.re, y.im, 2, Some(m))
    };
    y.narrow(2, 0, l).swap_dims(1, 2)
}

/// y_t = Σ_j K_j·u_{t−j} with matrices K_j = Σ_r φ_r(j)·M_r, each a mixture of R functions of the lag: u `[B, L, C]`,
/// φ `[R, taps]`, M `[R, C, O]` -> `[B, L, O]`.
///
/// Transforms are linear: the R spectra of the functions are mixed into the matrices of each frequency, and no kernel is
/// transformed by itself.
pub(crate) fn conv_mixture(u: Tensor<3>, functions: Tensor<2>, matrices: Tensor<3>) -> Tensor<3> {
    let ([batch, l, _], [_, inputs, outputs]) = (u.dims(), matrices.dims());
    let taps = functions.dims()[1].min(l);
    let (u, functions) = (u.swap_dims(1, 2), functions.narrow(1, 0, taps)); // [B, C, L], [R, taps]
    let matrices: Tensor<2> = matrices.flatten(1, 2); // [R, C·O]
    // [B, O, F] of the spectra [B, C, F] and [R, F].
    let product = |u: Complex<3>, functions: Complex<2>| {
        let kernels = functions.map(|x| {
            let k = x.transpose().matmul(matrices.clone());
            k.reshape([-1, inputs as i64, outputs as i64]) // [F, C, O]
        });
        // The real parts of all sequences, then the imaginary ones.
        let rows = Tensor::cat(vec![u.re, u.im], 0).permute([2, 0, 1]); // [F, 2B, C]
        let y = kernels.map(|k| rows.clone().matmul(k)); // [F, 2B, O]
        let part = |y: &Tensor<3>, i: usize| y.clone().narrow(1, i * batch, batch);
        let (re, im) = (part(&y.re, 0) - part(&y.im, 1), part(&y.im, 0) + part(&y.re, 1));
        Complex::new(re, im).map(|y| y.permute([1, 2, 0]))
    };
    let y = if u.dtype() == DType::F64 {
        let dft = Dft::new(l + taps, &u.device(), DType::F64);
        let (m, [m1, m2]) = (dft.len(), dft.sizes());
        let functions = dft.forward(zeros_after(functions, 1, m)).map(|x| x.flatten(1, 2));
        let u = dft.forward(zeros_after(u, 2, m).flatten(0, 1));
        let y = product(u.reshape([batch, inputs, m]), functions);
        dft.inverse(y.reshape([batch * outputs, m1, m2])).reshape([batch, outputs, m])
    } else {
        let m = (l + taps).next_power_of_two();
        let (re, im) = rfft(functions, 1, Some(m));
        let functions = Complex::new(re, im);
        let (re, im) = rfft(u, 2, Some(m));
        let y = product(Complex::new(re, im), functions);
        irfft(y.re, y.im, 2, Some(m))
    };
    y.narrow(2, 0, l).swap_dims(1, 2)
}

/// K `[C, H, taps]` as one row per channel, `[H, M]`: K\[0\]_j at j, K\[1\]_j at M−1−j.
fn wrapped(k: Tensor<3>, bidirectional: bool, m: usize) -> Tensor<2> {
    let [_, h, taps] = k.dims();
    let row = |k: Tensor<3>, c: usize| k.narrow(0, c, 1).reshape([h, taps]);
    if !bidirectional {
        return zeros_after(row(k, 0), 1, m);
    }
    let ahead = row(k.clone(), 1).flip([1]);
    let k = zeros_after(row(k, 0), 1, m - taps);
    Tensor::cat(vec![k, ahead], 1)
}

/// x with zeros after it along `dim`, `len` elements in all.
fn zeros_after<const D: usize>(x: Tensor<D>, dim: usize, len: usize) -> Tensor<D> {
    let mut shape = x.dims();
    shape[dim] = len - shape[dim];
    if shape[dim] == 0 {
        return x;
    }
    let zeros = Tensor::zeros(shape, (&x.device(), x.dtype()));
    Tensor::cat(vec![x, zeros], dim)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;

    fn sines(count: usize, step: f64) -> Vec<f64> {
        (0..count).map(|i| ((i + 1) as f64 * step).sin()).collect()
    }

    /// The definition, for one sequence and one channel.
    fn direct(u: &[f64], k: [&[f64]; 2], t: usize) -> f64 {
        let [behind, ahead] = k;
        let past = behind.iter().enumerate().filter(|(j, _)| *j <= t).map(|(j, k)| k * u[t - j]);
        let future = ahead.iter().zip(u.iter().skip(t + 1)).map(|(k, u)| k * u);
        past.chain(future).sum()
    }

    #[test]
    fn equals_the_sum() {
        let (b, h) = (2, 3);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
            for (l, taps) in [(1, 1), (2, 1), (7, 7), (33, 9), (64, 64), (100, 99), (20, 30)] {
                for bidirectional in [false, true] {
                    let c = if bidirectional { 2 } else { 1 };
                    let (u, k) = (sines(b * l * h, 1.3), sines(c * h * taps, 2.1));
                    let tensor = |x: &[f64], shape: [usize; 3]| {
                        let data = TensorData::new(x.to_vec(), shape);
                        Tensor::<3>::from_data(data, (&Device::flex(), dtype))
                    };
                    let y = conv(tensor(&u, [b, l, h]), tensor(&k, [c, h, taps]), bidirectional);
                    let y: Vec<f64> = y.into_data().convert::<f64>().try_into_vec().unwrap();
                    for i in 0..b * h {
                        let (sequence, channel) = (i / h, i % h);
                        let row: Vec<f64> =
                            (0..l).map(|t| u[(sequence * l + t) * h + channel]).collect();
                        let behind = &k[channel * taps..][..taps];
                        let ahead =
                            if bidirectional { &k[(h + channel) * taps..][..taps] } else { &[] };
                        for t in 0..l {
                            let want = direct(&row, [behind, ahead], t);
                            let got = y[(sequence * l + t) * h + channel];
                            let what = format!(
                                "{dtype:?} L = {l}, taps = {taps}, {bidirectional}, t = {t}"
                            );
                            assert!(
                                (got - want).abs() < tolerance * l as f64,
                                "{what}: {got} {want}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// The definition, whatever the length and the number of taps.
    #[test]
    fn mixtures_equal_the_sum() {
        let (b, r, c, o) = (2, 4, 3, 5);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
            for (l, taps) in [(1, 1), (2, 1), (7, 7), (33, 9), (64, 64), (100, 99), (20, 30)] {
                let (u, phi) = (sines(b * l * c, 1.3), sines(r * taps, 2.1));
                let matrices = sines(r * c * o, 0.7);
                let numbers = |x: &[f64]| TensorData::new(x.to_vec(), [x.len()]);
                let tensor =
                    |x: &[f64]| Tensor::<1>::from_data(numbers(x), (&Device::flex(), dtype));
                let y = conv_mixture(
                    tensor(&u).reshape([b, l, c]),
                    tensor(&phi).reshape([r, taps]),
                    tensor(&matrices).reshape([r, c, o]),
                );
                let y: Vec<f64> = y.into_data().convert::<f64>().try_into_vec().unwrap();
                for (i, got) in y.into_iter().enumerate() {
                    let (sequence, t, output) = (i / (l * o), i / o % l, i % o);
                    let mut want = 0.0;
                    for lag in 0..taps.min(t + 1) {
                        for input in 0..c {
                            let k: f64 = (0..r)
                                .map(|r| {
                                    phi[r * taps + lag] * matrices[(r * c + input) * o + output]
                                })
                                .sum();
                            want += k * u[(sequence * l + t - lag) * c + input];
                        }
                    }
                    let what = format!("{dtype:?} L = {l}, taps = {taps}, t = {t}");
                    let off = (got - want).abs();
                    assert!(off < tolerance * (c * l) as f64, "{what}: {got} {want}");
                }
            }
        }
    }
}
