//! Trained models: whole sequences, and streams with a state.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use dss_format::encoder::Encoder;
use dss_format::feed::Feed;
use dss_infer::{Input, Model, State};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Source, source};
use crate::threads::is_forked;
use crate::value_error;

/// Positions of one sequence as they come from Python.
enum Positions<'py> {
    Tokens(Source<'py, u32>),
    Values(Source<'py, f32>),
}

impl<'py> Positions<'py> {
    fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        if any.cast::<numpy::PyArrayDyn<u32>>().is_ok() {
            return Ok(Self::Tokens(source(any, "tokens")?));
        }
        Ok(Self::Values(source(any, "values")?))
    }

    fn input(&self) -> Input<'_> {
        match self {
            Self::Tokens(tokens) => Input::Tokens(tokens.slice()),
            Self::Values(values) => Input::Values(values.slice()),
        }
    }
}

/// A trained model.
#[pyclass(frozen)]
pub struct NativeModel(Arc<Model>);

#[pymethods]
impl NativeModel {
    /// The model of a file with this content.
    #[new]
    fn new(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let model = py.detach(|| Model::from_bytes(data)).map_err(value_error)?;
        Ok(Self(Arc::new(model)))
    }

    /// The kernels of a layer, flat: `[C, H, length]`.
    fn kernel<'py>(
        &self,
        py: Python<'py>,
        layer: usize,
        length: usize,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        // Asked for here, since a failed allocation inside would end the process.
        let size = self.0.kernels().checked_mul(length);
        if size.is_none_or(|size| Vec::<f64>::new().try_reserve_exact(size).is_err()) {
            return Err(value_error(format!(
                "kernels of {length} taps are more than memory can hold"
            )));
        }
        let k = py.detach(|| self.0.kernel(layer, length)).map_err(value_error)?;
        Ok(k.into_pyarray(py))
    }

    /// Settings, labels and metadata, as JSON.
    fn meta(&self) -> PyResult<String> {
        serde_json::to_string(self.0.meta()).map_err(value_error)
    }

    /// The answer for one sequence, or for a pair of them: `[O]`, or `[L, O]` with an answer per position.
    #[pyo3(signature = (first, second = None))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        first: &Bound<'py, PyAny>,
        second: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let first = Positions::new(first)?;
        let second = second.map(Positions::new).transpose()?;
        let (first, second) = (first.input(), second.as_ref().map(Positions::input));
        let model = &self.0;
        let out = py.detach(|| match second {
            Some(second) => model.forward_pair(first, second),
            None => model.forward(first),
        });
        rows(py, out.map_err(value_error)?, model.outputs())
    }

    /// The tokens of a text, as the model was trained on it.
    fn tokens<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let encoder = Encoder::from_extra(&self.0.meta().extra).map_err(value_error)?;
        let Feed::Tokens(mut feed) = encoder.feed().map_err(value_error)? else {
            return Err(value_error("this model does not take text"));
        };
        let mut tokens = Vec::new();
        feed.push(text, &mut tokens).map_err(value_error)?;
        feed.finish(&mut tokens).map_err(value_error)?;
        Ok(tokens.into_pyarray(py))
    }

    /// A stream before its first position.
    fn stream(&self) -> PyResult<NativeStream> {
        let state = self.0.state().map_err(value_error)?;
        Ok(NativeStream { model: self.0.clone(), state: Mutex::new(state) })
    }

    /// A stream from the bytes of its state.
    fn resume(&self, state: &[u8]) -> PyResult<NativeStream> {
        let state = State::from_bytes(&self.0, state).map_err(value_error)?;
        Ok(NativeStream { model: self.0.clone(), state: Mutex::new(state) })
    }
}

/// A stream through a model.
#[pyclass(frozen)]
pub struct NativeStream {
    model: Arc<Model>,
    state: Mutex<State>,
}

impl NativeStream {
    /// Waits for the stream, and works on it, while the interpreter is free.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut State) -> R + Send,
    ) -> PyResult<R> {
        py.detach(|| {
            // The thread that had it may not exist in a forked child, which would wait for ever.
            let mut state = match self.state.try_lock() {
                Err(TryLockError::WouldBlock) if is_forked() => {
                    let what = "another thread was using this stream when the process was forked";
                    return Err(value_error(what));
                }
                Err(TryLockError::WouldBlock) => {
                    self.state.lock().unwrap_or_else(PoisonError::into_inner)
                }
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                Ok(state) => state,
            };
            Ok(body(&mut state))
        })
    }
}

#[pymethods]
impl NativeStream {
    /// Takes the next positions; gives the answers after the last `answers` of them: `[answers, O]`.
    fn push<'py>(
        &self,
        py: Python<'py>,
        positions: &Bound<'py, PyAny>,
        answers: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let positions = Positions::new(positions)?;
        let (model, input) = (&self.model, positions.input());
        let size = answers.checked_mul(model.outputs());
        let size = size.ok_or_else(|| value_error("more answers than memory can hold"))?;
        let out = self.with(py, |state| {
            let mut out = vec![0.0; size];
            model.block_step(state, input, &mut out).map(|()| out)
        });
        rows(py, out?.map_err(value_error)?, model.outputs())
    }

    /// Positions taken so far.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |state| state.position())
    }

    /// Back to before the first position.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, State::reset)
    }

    /// All that the stream remembers.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |state| state.to_bytes(&self.model))?.map_err(value_error)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// `[rows, O]` of a flat vector.
fn rows(py: Python<'_>, out: Vec<f32>, outputs: usize) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let rows = out.len() / outputs.max(1);
    out.into_pyarray(py).reshape([rows, outputs])
}
