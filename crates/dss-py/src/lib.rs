//! The native part of the Python package `diagonal_ssm`: the operations of `dss-kernels` on numpy arrays, the models of
//! `dss-infer`, the runs of `dss-train` with their reports, and the checkpoints of others that `dss-exchange` reads.
//!
//! Arrays come in as contiguous f32 or f64; results are written into arrays that the caller made. The interpreter is
//! free during all work.

mod arrays;
mod block;
mod exchange;
mod kernels;
mod model;
mod run;
mod threads;

use pyo3::prelude::*;

/// Native part of `diagonal_ssm`.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::block::{block_backward, block_forward};
    #[pymodule_export]
    use crate::exchange::import_checkpoint;
    #[pymodule_export]
    use crate::kernels::{
        conv_backward, conv_forward, kernel_backward, kernel_forward, s4_init, s4d_lambda,
        skew_hippo,
    };
    #[pymodule_export]
    use crate::model::{NativeModel, NativeStream};
    #[pymodule_export]
    use crate::run::{inspect, report, resolve_settings, resume, run_settings, train};
    #[pymodule_export]
    use crate::threads::{follow_num_threads, get_num_threads, set_num_threads};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::threads::survive_fork();
        module.add("simd", dss_kernels::simd_name())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// An error of the crates below, as a Python `ValueError`.
fn value_error(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}
