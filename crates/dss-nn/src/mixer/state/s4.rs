//! S4 as a recurrence: that of `dss-kernels`, on the host and in f64 whatever the device.

use std::fmt;
use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};
use dss_kernels::s4::{Recurrence, S4State};

use super::Recurrent;
use crate::error::Result;

/// B streams through an S4 layer.
#[derive(Clone)]
pub(crate) struct S4Streams {
    model: Arc<Recurrence>,
    streams: Vec<S4State>,
}

impl S4Streams {
    pub fn new(model: Recurrence, batch: usize) -> Self {
        Self { streams: vec![model.state(); batch], model: Arc::new(model) }
    }
}

impl fmt::Debug for S4Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S4Streams").field("streams", &self.streams).finish_non_exhaustive()
    }
}

impl Recurrent for S4Streams {
    fn step(&mut self, _k: usize, u: Tensor<2>) -> Result<Tensor<2>> {
        let u = u.inner();
        let (shape, device, dtype) = (u.dims(), u.device(), u.dtype());
        let u: Vec<f64> = u.into_data().iter::<f64>().collect();
        let mut y = vec![0.0; u.len()];
        self.model.step_batch(&mut self.streams, &u, &mut y)?;
        Ok(Tensor::from_data(TensorData::new(y, shape), (&device, dtype)))
    }

    fn boxed_clone(&self) -> Box<dyn Recurrent> {
        Box::new(self.clone())
    }
}
