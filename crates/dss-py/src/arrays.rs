//! Slices of numpy arrays.

use dss_kernels::plans::Planned;
use numpy::{Element, PyArrayDyn, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::value_error;

/// f32 or f64.
pub trait Float: Planned + Element {}
impl Float for f32 {}
impl Float for f64 {}

/// An array that is read.
pub struct Source<'py, T: Element>(PyReadonlyArrayDyn<'py, T>);

impl<T: Element> Source<'_, T> {
    pub fn slice(&self) -> &[T] {
        self.0.as_slice().expect("contiguous, as `source` checks")
    }

    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Its sizes, if it has D axes.
    pub fn dims<const D: usize>(&self, name: &str) -> PyResult<[usize; D]> {
        self.shape().try_into().map_err(|_| {
            value_error(format!("`{name}` must have {D} axes, but its shape is {:?}", self.shape()))
        })
    }
}

/// An array that is written.
pub struct Target<'py, T: Element>(PyReadwriteArrayDyn<'py, T>);

impl<T: Element> Target<'_, T> {
    pub fn slice(&mut self) -> &mut [T] {
        self.0.as_slice_mut().expect("contiguous, as `target` checks")
    }
}

fn array<'a, 'py, T: Element>(
    any: &'a Bound<'py, PyAny>,
    name: &str,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    let array = any.cast::<PyArrayDyn<T>>().map_err(|_| {
        let kind = std::any::type_name::<T>();
        let found =
            any.getattr("dtype").map_or_else(|_| any.get_type().to_string(), |d| d.to_string());
        value_error(format!("`{name}` must be a numpy array of {kind}, but is {found}"))
    })?;
    if !array.is_c_contiguous() {
        return Err(value_error(format!("`{name}` must be contiguous")));
    }
    Ok(array)
}

/// Takes an array for reading.
pub fn source<'py, T: Element>(any: &Bound<'py, PyAny>, name: &str) -> PyResult<Source<'py, T>> {
    use numpy::PyArrayMethods;
    array::<T>(any, name)?.try_readonly().map(Source).map_err(value_error)
}

/// Takes an array for writing.
pub fn target<'py, T: Element>(any: &Bound<'py, PyAny>, name: &str) -> PyResult<Target<'py, T>> {
    use numpy::PyArrayMethods;
    array::<T>(any, name)?.try_readwrite().map(Target).map_err(value_error)
}

/// Takes several arrays for reading.
pub fn sources<'py, T: Element>(
    all: &[Bound<'py, PyAny>],
    name: &str,
) -> PyResult<Vec<Source<'py, T>>> {
    all.iter().map(|any| source(any, name)).collect()
}

/// Copies values into an array of as many.
pub fn put<T: Float>(to: &Bound<'_, PyAny>, name: &str, values: &[T]) -> PyResult<()> {
    let mut to = target::<T>(to, name)?;
    let to = to.slice();
    if to.len() != values.len() {
        let (found, expected) = (to.len(), values.len());
        return Err(value_error(format!("`{name}` has room for {found} values, not {expected}")));
    }
    to.copy_from_slice(values);
    Ok(())
}

/// Whether an array is f64; anything but f32 and f64 is refused where its values are taken.
pub fn is_f64(any: &Bound<'_, PyAny>) -> bool {
    any.cast::<PyArrayDyn<f64>>().is_ok()
}

/// Calls `$function::<f32>` or `$function::<f64>`, as the first array says.
macro_rules! by_type {
    ($function:ident($py:expr, $first:expr $(, $rest:expr)* $(,)?)) => {
        if $crate::arrays::is_f64($first) {
            $function::<f64>($py, $first $(, $rest)*)
        } else {
            $function::<f32>($py, $first $(, $rest)*)
        }
    };
}
pub(crate) use by_type;
