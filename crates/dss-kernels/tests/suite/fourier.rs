//! Fourier mixing against the double sum, and its laws.

use crate::common::random::{normal, rng};
use crate::common::{error, to_f32, to_f64};
use dss_kernels::Real;
use dss_kernels::fourier::{Fourier, FourierConfig, fourier_reference};

/// N, H and L: even, odd, prime, one, and lengths shorter than the transform.
const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [2, 3, 2],
    [30, 16, 30],
    [37, 33, 37],
    [64, 40, 50],
    [65, 66, 3],
    [129, 1, 128],
    [48, 2, 25],
    [33, 31, 17],
];

fn run<T: Real>(u: &[T], [n, h, l]: [usize; 3], lengths: Option<&[usize]>) -> Vec<T> {
    let mut y = vec![T::rounded(f64::NAN); u.len()];
    let mut plan = Fourier::new(FourierConfig { len: n, channels: h }).unwrap();
    plan.forward(u, [u.len() / (l * h), l], lengths, &mut y).unwrap();
    y
}

#[test]
fn equals_the_double_sum() {
    for [n, h, l] in SIZES {
        let u = normal(l * h, &mut rng(n as u64));
        let want = fourier_reference(&u, n, h);
        let worst = error(&run(&u, [n, h, l], None), &want);
        assert!(worst <= 1e-12, "{n} {h} {l}: {worst:e}");
        let worst = error(&to_f64(&run(&to_f32(&u), [n, h, l], None)), &want);
        assert!(worst <= 1e-5, "{n} {h} {l} in f32: {worst:e}");
    }
}

/// A sequence has the same bits alone, among others, and with padding of any content.
#[test]
fn a_sequence_does_not_depend_on_its_batch() {
    for [n, h, l] in SIZES {
        let mut u = normal(3 * l * h, &mut rng(n as u64));
        let lengths = [l, l / 2, 1];
        let alone = lengths.iter().zip(u.chunks(l * h)).map(|(&length, u)| {
            let mut y = run(&u[..length * h], [n, h, length.max(1)], None);
            y.resize(l * h, 0.0);
            y
        });
        let alone = if l / 2 == 0 { continue } else { alone.collect::<Vec<_>>().concat() };
        assert_eq!(run(&u, [n, h, l], Some(&lengths)), alone);
        for (u, length) in u.chunks_mut(l * h).zip(lengths) {
            u[length * h..].fill(f64::NAN);
        }
        assert_eq!(run(&u, [n, h, l], Some(&lengths)), alone, "padding is not read");
    }
}

/// ⟨Fu, g⟩ = ⟨u, Fg⟩, with lengths too.
#[test]
fn the_transform_is_its_own_adjoint() {
    for [n, h, l] in SIZES {
        let mut rng = rng(n as u64);
        let [u, g] = [(); 2].map(|()| normal(2 * l * h, &mut rng));
        let lengths = [l, l.div_ceil(2)];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let [fu, fg] = [&u, &g].map(|x| run(x, [n, h, l], Some(&lengths)));
        let (a, b) = (dot(&fu, &g), dot(&u, &fg));
        let scale = (dot(&fu, &fu) * dot(&g, &g)).sqrt();
        assert!((a - b).abs() <= 1e-12 * scale, "{n} {h} {l}: {a} {b}");
    }
}

#[test]
fn wrong_shapes_are_errors() {
    assert!(Fourier::<f32>::new(FourierConfig { len: 0, channels: 1 }).is_err());
    assert!(Fourier::<f32>::new(FourierConfig { len: usize::MAX, channels: 1 }).is_err());
    let mut plan = Fourier::<f32>::new(FourierConfig { len: 4, channels: 1 }).unwrap();
    let message = plan.forward(&[0.0; 5], [1, 5], None, &mut [0.0; 5]).unwrap_err().to_string();
    assert!(message.contains("up to N = 4"), "{message}");
    let message = plan.forward(&[0.0; 4], [1, 4], Some(&[5]), &mut [0.0; 4]).unwrap_err();
    assert!(message.to_string().contains("a length is 5"), "{message}");
}
