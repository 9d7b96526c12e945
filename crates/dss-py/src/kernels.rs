//! Convolution kernels from the parameters of a layer, and the convolution itself.

use dss_kernels::kernel::{self, Delta, Variant};
use dss_kernels::s4d::{self, Discretisation};
use dss_kernels::{C64, Conv, Result, init, s4};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Float, Source, by_type, put, source, sources, target};
use crate::value_error;

/// Whose kernel it is. The parameters, in this order:
///
/// | kind | parameters |
/// |------|------------|
/// | dss | Λ `[N, 2]` or `[S, N, 2]`, Δ_log `[H]` or `[H, 2]`, W `[C, H, N, 2]` |
/// | s4d | Λ_re, Λ_im `[N/2]` or `[S, N/2]`, Δ_log `[H]`, C `[C, H, N/2, 2]` |
/// | s4 | Λ_re, Λ_im `[N/2]` or `[S, N/2]`, P, B likewise `[N/2, 2]`, Δ_log `[H]`, C̃ `[C, H, N/2, 2]` |
#[derive(Clone, Copy)]
enum Kind {
    Dss(Variant),
    S4d(Discretisation),
    S4,
}

impl Kind {
    fn new(name: &str) -> PyResult<Self> {
        Ok(match name {
            "softmax" => Self::Dss(Variant::Softmax),
            "exp" => Self::Dss(Variant::Exp),
            "exp-no-scale" => Self::Dss(Variant::ExpNoScale),
            "s4d-zoh" => Self::S4d(Discretisation::ZeroOrderHold),
            "s4d-bilinear" => Self::S4d(Discretisation::Bilinear),
            "s4" => Self::S4,
            _ => return Err(value_error(format!("unknown kernel {name:?}"))),
        })
    }

    fn parameters(self) -> usize {
        match self {
            Self::Dss(_) => 3,
            Self::S4d(_) => 4,
            Self::S4 => 6,
        }
    }

    /// Whether a parameter but the last has the shape that it should: an axis for several systems may be in front.
    fn fits(self, i: usize, shape: &[usize], h: usize, n: usize) -> bool {
        let shared = |ending: &[usize]| {
            shape == ending || shape.len() == ending.len() + 1 && shape.ends_with(ending)
        };
        match (self, i) {
            (Self::Dss(_), 0) | (Self::S4, 2 | 3) => shared(&[n, 2]),
            (Self::Dss(_), 1) => shape == [h] || shape == [h, 2],
            (Self::S4d(_), 2) | (Self::S4, 4) => shape == [h],
            _ => shared(&[n]),
        }
    }
}

/// The parameters of a kernel, and its sizes.
struct Kernel<'a, T: Float> {
    kind: Kind,
    params: Vec<&'a [T]>,
    /// C, H, and N or N/2.
    sizes: [usize; 3],
    taps: usize,
    norm_len: usize,
}

impl<'a, T: Float> Kernel<'a, T> {
    fn new(
        kind: Kind,
        params: &'a [Source<'_, T>],
        taps: usize,
        norm_len: usize,
    ) -> PyResult<Self> {
        let wanted = kind.parameters();
        if params.len() != wanted {
            return Err(value_error(format!("expected {wanted} parameters, got {}", params.len())));
        }
        let [c, h, n, _] = params[wanted - 1].dims("the last parameter")?;
        for (i, param) in params[..wanted - 1].iter().enumerate() {
            if !kind.fits(i, param.shape(), h, n) {
                return Err(value_error(format!(
                    "parameter {i} has the shape {:?}, which does not go with {:?} of the last one",
                    param.shape(),
                    params[wanted - 1].shape()
                )));
            }
        }
        let params = params.iter().map(Source::slice).collect();
        Ok(Self { kind, params, sizes: [c, h, n], taps, norm_len })
    }

    fn slice(&self, i: usize) -> &'a [T] {
        self.params[i]
    }

    fn dss_config(&self, variant: Variant) -> kernel::KernelConfig {
        let [c, h, n] = self.sizes;
        let delta = if self.slice(1).len() == h { Delta::Tied } else { Delta::Separate };
        let config = kernel::KernelConfig::new(variant, h, n, self.taps);
        let systems = self.slice(0).len() / (2 * n.max(1));
        config.delta(delta).channels(c).norm_len(self.norm_len).systems(systems)
    }

    fn s4d_config(&self, rule: Discretisation) -> s4d::KernelConfig {
        let [c, h, pairs] = self.sizes;
        let systems = self.slice(0).len() / pairs.max(1);
        s4d::KernelConfig::new(rule, h, 2 * pairs, self.taps).channels(c).systems(systems)
    }

    fn s4_config(&self) -> s4::KernelConfig {
        let [c, h, pairs] = self.sizes;
        let systems = self.slice(0).len() / pairs.max(1);
        let config = s4::KernelConfig::new(h, 2 * pairs, self.taps).channels(c);
        config.norm_len(self.norm_len).systems(systems)
    }

    fn s4d_params(&self) -> s4d::Params<'a, T> {
        let [lambda_re, lambda_im, delta_log, c] = [0, 1, 2, 3].map(|i| self.slice(i));
        s4d::Params { lambda_re, lambda_im, b: None, c, delta_log }
    }

    fn s4_params(&self) -> s4::Params<'a, T> {
        let [lambda_re, lambda_im, p, b, delta_log, c] = [0, 1, 2, 3, 4, 5].map(|i| self.slice(i));
        s4::Params { lambda_re, lambda_im, p, b, c, delta_log }
    }

    /// Λ as two rows, the way `dss-kernels` takes it.
    fn lambda(&self) -> [Vec<T>; 2] {
        [0, 1].map(|i| self.slice(0).iter().skip(i).step_by(2).copied().collect())
    }

    fn forward(&self, k: &mut [T]) -> Result<()> {
        match self.kind {
            Kind::Dss(variant) => {
                let [lambda_re, lambda_im] = &self.lambda();
                let (delta_log, w) = (self.slice(1), self.slice(2));
                let params = kernel::Params { lambda_re, lambda_im, delta_log, w };
                let config = self.dss_config(variant);
                let make = || kernel::Kernel::new(config);
                T::kernels().with(config, make, |plan| plan.forward(&params, k))
            }
            Kind::S4d(rule) => {
                let config = self.s4d_config(rule);
                let make = || s4d::Kernel::new(config);
                T::s4d_kernels().with(config, make, |plan| plan.forward(&self.s4d_params(), k))
            }
            Kind::S4 => {
                let config = self.s4_config();
                let make = || s4::Kernel::new(config);
                T::s4_kernels().with(config, make, |plan| plan.forward(&self.s4_params(), k))
            }
        }?
    }

    /// The gradients of the parameters.
    fn backward(&self, dk: &[T]) -> Result<Vec<Vec<T>>> {
        let mut grads: Vec<Vec<T>> = self.params.iter().map(|p| p.to_vec()).collect();
        match (self.kind, &mut grads[..]) {
            (Kind::Dss(variant), [d_lambda, delta_log, w]) => {
                let [lambda_re, lambda_im] = &self.lambda();
                let [mut re, mut im] = self.lambda();
                let params = kernel::Params {
                    lambda_re,
                    lambda_im,
                    delta_log: self.slice(1),
                    w: self.slice(2),
                };
                let to =
                    kernel::ParamGrads { lambda_re: &mut re, lambda_im: &mut im, delta_log, w };
                let config = self.dss_config(variant);
                let make = || kernel::Kernel::new(config);
                T::kernels().with(config, make, |plan| plan.backward(&params, dk, to))??;
                *d_lambda = re.into_iter().zip(im).flat_map(|(re, im)| [re, im]).collect();
            }
            (Kind::S4d(rule), [lambda_re, lambda_im, delta_log, c]) => {
                let to = s4d::ParamGrads { lambda_re, lambda_im, b: None, c, delta_log };
                let config = self.s4d_config(rule);
                let (make, params) = (|| s4d::Kernel::new(config), self.s4d_params());
                T::s4d_kernels().with(config, make, |plan| plan.backward(&params, dk, to))??;
            }
            (Kind::S4, [lambda_re, lambda_im, p, b, delta_log, c]) => {
                let to = s4::ParamGrads { lambda_re, lambda_im, p, b, c, delta_log };
                let config = self.s4_config();
                let (make, params) = (|| s4::Kernel::new(config), self.s4_params());
                T::s4_kernels().with(config, make, |plan| plan.backward(&params, dk, to))??;
            }
            _ => unreachable!("the number of parameters was checked"),
        }
        Ok(grads)
    }
}

/// Writes the kernel K `[C, H, taps]` that the parameters of a layer make.
#[pyfunction]
pub fn kernel_forward(
    py: Python<'_>,
    kind: &str,
    params: Vec<Bound<'_, PyAny>>,
    norm_len: usize,
    k: &Bound<'_, PyAny>,
) -> PyResult<()> {
    by_type!(forward(py, k, kind, &params, norm_len))
}

fn forward<'py, T: Float>(
    py: Python<'py>,
    k: &Bound<'py, PyAny>,
    kind: &str,
    params: &[Bound<'py, PyAny>],
    norm_len: usize,
) -> PyResult<()> {
    let [.., taps] = source::<T>(k, "k")?.dims::<3>("k")?;
    let params = sources::<T>(params, "a parameter")?;
    let kernel = Kernel::new(Kind::new(kind)?, &params, taps, norm_len)?;
    let mut k = target::<T>(k, "k")?;
    let k = k.slice();
    py.detach(|| kernel.forward(k)).map_err(value_error)
}

/// Given dK, writes the gradients of the parameters.
#[pyfunction]
pub fn kernel_backward(
    py: Python<'_>,
    kind: &str,
    params: Vec<Bound<'_, PyAny>>,
    norm_len: usize,
    dk: &Bound<'_, PyAny>,
    grads: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    by_type!(backward(py, dk, kind, &params, norm_len, &grads))
}

fn backward<'py, T: Float>(
    py: Python<'py>,
    dk: &Bound<'py, PyAny>,
    kind: &str,
    params: &[Bound<'py, PyAny>],
    norm_len: usize,
    grads: &[Bound<'py, PyAny>],
) -> PyResult<()> {
    let dk = source::<T>(dk, "dk")?;
    let [.., taps] = dk.dims::<3>("dk")?;
    let params = sources::<T>(params, "a parameter")?;
    let kernel = Kernel::new(Kind::new(kind)?, &params, taps, norm_len)?;
    let dk = dk.slice();
    let found = py.detach(|| kernel.backward(dk)).map_err(value_error)?;
    grads.iter().zip(&found).try_for_each(|(to, from)| put(to, "a gradient", from))
}

/// Writes y = K * u: u, y `[B, L, H]`, K `[1, H, taps]`, or `[2, H, taps]` for both directions.
#[pyfunction]
pub fn conv_forward(
    py: Python<'_>,
    u: &Bound<'_, PyAny>,
    k: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<()> {
    by_type!(convolve(py, u, k, y))
}

fn convolve<T: Float>(
    py: Python<'_>,
    u: &Bound<'_, PyAny>,
    k: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (u, k, mut y) = (source::<T>(u, "u")?, source::<T>(k, "k")?, target::<T>(y, "y")?);
    let (sizes, channels) = conv_sizes(&u, &k)?;
    let (u, k, y) = (u.slice(), k.slice(), y.slice());
    py.detach(|| planned_conv(sizes, k, channels)?.forward(u, y)).map_err(value_error)
}

/// Given dy, writes du and dK.
#[pyfunction]
pub fn conv_backward(
    py: Python<'_>,
    u: &Bound<'_, PyAny>,
    k: &Bound<'_, PyAny>,
    dy: &Bound<'_, PyAny>,
    du: &Bound<'_, PyAny>,
    dk: &Bound<'_, PyAny>,
) -> PyResult<()> {
    by_type!(convolve_backward(py, u, k, dy, du, dk))
}

fn convolve_backward<T: Float>(
    py: Python<'_>,
    u: &Bound<'_, PyAny>,
    k: &Bound<'_, PyAny>,
    dy: &Bound<'_, PyAny>,
    du: &Bound<'_, PyAny>,
    dk: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (u, k, dy) = (source::<T>(u, "u")?, source::<T>(k, "k")?, source::<T>(dy, "dy")?);
    let (mut du, mut dk) = (target::<T>(du, "du")?, target::<T>(dk, "dk")?);
    let (sizes, channels) = conv_sizes(&u, &k)?;
    let (u, k, dy, du, dk) = (u.slice(), k.slice(), dy.slice(), du.slice(), dk.slice());
    py.detach(|| planned_conv(sizes, k, channels)?.backward(u, dy, du, dk)).map_err(value_error)
}

/// B, L, H, and 1 or 2 for the directions.
fn conv_sizes<T: Float>(u: &Source<'_, T>, k: &Source<'_, T>) -> PyResult<([usize; 3], usize)> {
    let [b, l, h] = u.dims("u")?;
    match k.dims("k")? {
        [channels @ (1 | 2), like, taps] if like == h && taps <= l => Ok(([b, l, h], channels)),
        other => Err(value_error(format!(
            "`k` must be [1 or 2, H, taps] with H = {h} and at most {l} taps, but its shape is {other:?}"
        ))),
    }
}

fn planned_conv<T: Float>([b, l, h]: [usize; 3], k: &[T], channels: usize) -> Result<Conv<T>> {
    let mut plan = Conv::new(b, l, h)?;
    if channels == 2 {
        plan.set_kernel_bidirectional(k)?;
    } else {
        plan.set_kernel(k)?;
    }
    Ok(plan)
}

/// The N eigenvalues of Skew-HiPPO, the initial Λ of DSS: `[N, 2]`.
#[pyfunction]
pub fn skew_hippo(py: Python<'_>, n: usize) -> PyResult<Bound<'_, PyArray2<f64>>> {
    rows(py, init::skew_hippo(n).map_err(value_error)?)
}

/// The N/2 eigenvalues of S4D's initial Λ, `lin`, `inv` or `legs`: `[N/2, 2]`.
#[pyfunction]
pub fn s4d_lambda<'py>(
    py: Python<'py>,
    init: &str,
    n: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let init = match init {
        "legs" => init::S4dInit::Legs,
        "lin" => init::S4dInit::Lin,
        "inv" => init::S4dInit::Inv,
        _ => {
            let what = format!("unknown initial Λ {init:?}: use \"legs\", \"lin\" or \"inv\"");
            return Err(value_error(what));
        }
    };
    rows(py, init::s4d_lambda(init, n).map_err(value_error)?)
}

/// S4's initial Λ, P and B `[N/2, 2]`, and C̃ for `norm_len` taps of the given Δ_log `[H]` and C `[C, H, N/2, 2]`.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "four arrays")]
pub fn s4_init<'py>(
    py: Python<'py>,
    n: usize,
    norm_len: usize,
    delta_log: &Bound<'py, PyAny>,
    c: &Bound<'py, PyAny>,
) -> PyResult<(
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
)> {
    let init::Nplr { lambda, p, b } = init::nplr_legs(n).map_err(value_error)?;
    let (delta_log, c) = (source::<f64>(delta_log, "delta_log")?, source::<f64>(c, "c")?);
    let [channels, h, ..] = c.dims::<4>("c")?;
    let flat = |x: &[C64]| x.iter().flat_map(|z| [z.re, z.im]).collect::<Vec<_>>();
    let params = s4::Params {
        lambda_re: &lambda.iter().map(|z| (-z.re).ln()).collect::<Vec<_>>(),
        lambda_im: &lambda.iter().map(|z| z.im).collect::<Vec<_>>(),
        p: &flat(&p),
        b: &flat(&b),
        c: c.slice(),
        delta_log: delta_log.slice(),
    };
    let config = s4::KernelConfig::new(h, n, norm_len).channels(channels);
    let c = py.detach(|| s4::correct_length(&config, &params)).map_err(value_error)?;
    Ok((rows(py, lambda)?, rows(py, p)?, rows(py, b)?, c.into_pyarray(py)))
}

fn rows(py: Python<'_>, lambda: Vec<C64>) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let rows: Vec<Vec<f64>> = lambda.iter().map(|z| vec![z.re, z.im]).collect();
    PyArray2::from_vec2(py, &rows).map_err(value_error)
}
