//! A whole block: norm, convolution, GELU, projection, dropout and residual in one operation.

use dss_kernels::block::{
    Block, BlockConfig, BlockParams, Gelu, Norm, NormParams, NormStats, SavedSlices,
};
use pyo3::prelude::*;

use crate::arrays::{Float, Source, by_type, put, source, sources, target};
use crate::value_error;

type Array<'a, 'py> = &'a Bound<'py, PyAny>;
type Arrays<'py, const N: usize> = [Bound<'py, PyAny>; N];

/// What a block is and how it works in one call.
#[derive(FromPyObject)]
pub struct BlockSpec {
    prenorm: bool,
    glu: bool,
    /// The tanh form of GELU in place of the exact one.
    gelu_tanh: bool,
    bidirectional: bool,
    /// `layer`, `batch` (statistics of this batch) or `batch-eval` (given statistics).
    norm: String,
    eps: f64,
    /// Where the padding of each sequence begins.
    lengths: Option<Vec<usize>>,
    /// Per sequence, how many positions count in the statistics of a batch.
    counted: Option<Vec<usize>>,
}

/// x, the parameters, and what some calls have besides.
struct Sources<'py, T: Float> {
    /// x, K, D, out_weight, out_bias, γ, β.
    tensors: Vec<Source<'py, T>>,
    /// Given mean and variance, for `batch-eval`.
    given: Option<Vec<Source<'py, T>>>,
    /// Dropout masks `[B, H]`.
    masks: Option<Vec<Source<'py, T>>>,
    config: BlockConfig,
}

const NAMES: [&str; 7] = ["x", "k", "d", "out_weight", "out_bias", "gamma", "beta"];

impl<'py, T: Float> Sources<'py, T> {
    fn new(
        tensors: &[Bound<'py, PyAny>],
        given: Option<&Arrays<'py, 2>>,
        masks: Option<&Arrays<'py, 2>>,
        spec: &BlockSpec,
    ) -> PyResult<Self> {
        if tensors.len() != NAMES.len() {
            return Err(value_error(format!("a block takes {NAMES:?}")));
        }
        let tensors = tensors.iter().zip(NAMES).map(|(tensor, name)| source(tensor, name));
        let tensors: Vec<Source<'py, T>> = tensors.collect::<PyResult<_>>()?;
        let given = given.map(|given| sources(given, "mean and var")).transpose()?;
        let masks = masks.map(|masks| sources(masks, "mask")).transpose()?;
        let [_, l, h] = tensors[0].dims("x")?;
        let BlockSpec { prenorm, glu, bidirectional, .. } = *spec;
        let gelu = if spec.gelu_tanh { Gelu::Tanh } else { Gelu::Erf };
        let config = BlockConfig { l, h, prenorm, glu, bidirectional, gelu };
        Ok(Self { tensors, given, masks, config })
    }

    fn x(&self) -> &[T] {
        self.tensors[0].slice()
    }

    fn params<'a>(&'a self, spec: &'a BlockSpec) -> PyResult<BlockParams<'a, T>> {
        let norm = match (spec.norm.as_str(), self.given.as_deref()) {
            ("layer", _) => Norm::Layer,
            ("batch", _) => Norm::BatchTrain { counted: spec.counted.as_deref() },
            ("batch-eval", Some([mean, var])) => {
                Norm::BatchEval { mean: mean.slice(), var: var.slice() }
            }
            (other, _) => return Err(value_error(format!("unknown norm {other:?}"))),
        };
        let [k, d, out_weight, out_bias, gamma, beta] =
            [1, 2, 3, 4, 5, 6].map(|i| self.tensors[i].slice());
        Ok(BlockParams {
            k,
            d,
            out_weight,
            out_bias,
            norm: NormParams { gamma, beta, eps: spec.eps, norm },
            masks: self.masks.as_ref().map(|masks| [0, 1].map(|i| masks[i].slice())),
            lengths: spec.lengths.as_deref(),
            past: None,
        })
    }
}

/// Calls `body` with a plan, without the interpreter.
fn run<T: Float, R: Send>(
    py: Python<'_>,
    config: BlockConfig,
    body: impl FnOnce(&mut Block<T>) -> dss_kernels::Result<R> + Send,
) -> PyResult<R> {
    let make = || Block::with_buffers(config, T::buffers());
    py.detach(|| T::blocks().with(config, make, body)).and_then(|done| done).map_err(value_error)
}

/// y = block(x).
///
/// `tensors` are x, K, D, out_weight, out_bias, gamma, beta. Into `saved` goes what the backward needs: v like x, s like
/// x for a post-norm block (else empty), mean and rstd of the norm (one per row for `layer`, else per channel). `moments`
/// gets mean and unbiased variance of the batch with `batch`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "all tensors of an operation")]
#[pyo3(signature = (tensors, spec, given, masks, y, saved, moments))]
pub fn block_forward(
    py: Python<'_>,
    tensors: Vec<Bound<'_, PyAny>>,
    spec: BlockSpec,
    given: Option<Arrays<'_, 2>>,
    masks: Option<Arrays<'_, 2>>,
    y: Array<'_, '_>,
    saved: Arrays<'_, 4>,
    moments: Option<Arrays<'_, 2>>,
) -> PyResult<()> {
    by_type!(forward(py, y, &tensors, &spec, given, masks, saved, moments))
}

#[expect(clippy::too_many_arguments, reason = "all tensors of an operation")]
fn forward<T: Float>(
    py: Python<'_>,
    y: Array<'_, '_>,
    tensors: &[Bound<'_, PyAny>],
    spec: &BlockSpec,
    given: Option<Arrays<'_, 2>>,
    masks: Option<Arrays<'_, 2>>,
    [v, s, mean, rstd]: Arrays<'_, 4>,
    moments: Option<Arrays<'_, 2>>,
) -> PyResult<()> {
    let sources = Sources::<T>::new(tensors, given.as_ref(), masks.as_ref(), spec)?;
    let params = sources.params(spec)?;
    let (mut y, mut v, mut s) =
        (target::<T>(y, "y")?, target::<T>(&v, "v")?, target::<T>(&s, "s")?);
    let (x, y, v, s) = (sources.x(), y.slice(), v.slice(), s.slice());
    let s = if s.is_empty() { None } else { Some(s) };
    let (stats, batch) =
        run(py, sources.config, |plan| plan.forward_into(x, &params, y, Some(v), s))?;
    put(&mean, "mean", &stats.mean)?;
    put(&rstd, "rstd", &stats.rstd)?;
    if let (Some([mean, var]), Some(batch)) = (moments, batch) {
        let round = |values: &[f64]| values.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
        put(&mean, "batch mean", &round(&batch.mean))?;
        put(&var, "batch var", &round(&batch.var))?;
    }
    Ok(())
}

/// Given dy, writes the gradients of the seven tensors of the forward call.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "all tensors of an operation")]
#[pyo3(signature = (tensors, spec, given, masks, dy, saved, grads))]
pub fn block_backward(
    py: Python<'_>,
    tensors: Vec<Bound<'_, PyAny>>,
    spec: BlockSpec,
    given: Option<Arrays<'_, 2>>,
    masks: Option<Arrays<'_, 2>>,
    dy: Array<'_, '_>,
    saved: Arrays<'_, 4>,
    grads: Arrays<'_, 7>,
) -> PyResult<()> {
    by_type!(backward(py, dy, &tensors, &spec, given, masks, saved, grads))
}

#[expect(clippy::too_many_arguments, reason = "all tensors of an operation")]
fn backward<T: Float>(
    py: Python<'_>,
    dy: Array<'_, '_>,
    tensors: &[Bound<'_, PyAny>],
    spec: &BlockSpec,
    given: Option<Arrays<'_, 2>>,
    masks: Option<Arrays<'_, 2>>,
    [v, s, mean, rstd]: Arrays<'_, 4>,
    [dx, rest @ ..]: Arrays<'_, 7>,
) -> PyResult<()> {
    let sources = Sources::<T>::new(tensors, given.as_ref(), masks.as_ref(), spec)?;
    let params = sources.params(spec)?;
    let (dy, v, s) = (source::<T>(dy, "dy")?, source::<T>(&v, "v")?, source::<T>(&s, "s")?);
    let rows = sources.x().len() / sources.config.h.max(1);
    let count = match (spec.norm.as_str(), &spec.counted) {
        ("batch", Some(counted)) => counted.iter().sum(),
        ("batch", None) => rows,
        _ => 0,
    };
    let stats = NormStats {
        mean: source::<T>(&mean, "mean")?.slice().to_vec(),
        rstd: source::<T>(&rstd, "rstd")?.slice().to_vec(),
        count,
    };
    let s = Some(s.slice()).filter(|s| !s.is_empty());
    let saved = SavedSlices { v: v.slice(), s, stats };
    let mut dx = target::<T>(&dx, "dx")?;
    let (x, dy, dx) = (sources.x(), dy.slice(), dx.slice());
    let grads = run(py, sources.config, |plan| plan.backward_from(x, &params, saved, dy, dx))?;
    let found = [grads.k, grads.d, grads.out_weight, grads.out_bias, grads.gamma, grads.beta];
    for ((to, from), name) in rest.iter().zip(&found).zip(&NAMES[1..]) {
        put(to, name, from)?;
    }
    Ok(())
}
