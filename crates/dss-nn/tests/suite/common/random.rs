//! Random tensors and options for tests.

use burn::tensor::{DType, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::StandardNormal;

use super::device;

pub struct Random {
    rng: ChaCha8Rng,
    pub dtype: DType,
}

impl Random {
    pub fn new(seed: u64, dtype: DType) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), dtype }
    }

    pub fn numbers(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.rng.sample(StandardNormal)).collect()
    }

    /// ~ N(0, 1).
    pub fn tensor<const D: usize>(&mut self, shape: [usize; D]) -> Tensor<D> {
        let numbers = self.numbers(shape.iter().product());
        Tensor::from_data(TensorData::new(numbers, shape), (&device(), self.dtype))
    }

    /// ~ N(0, 1), with a gradient.
    pub fn leaf<const D: usize>(&mut self, shape: [usize; D]) -> Tensor<D> {
        self.tensor(shape).require_grad()
    }

    /// ~ N(0, 1/terms), with a gradient: a sum of so many terms is of the order of 1.
    pub fn scaled<const D: usize>(&mut self, shape: [usize; D], terms: usize) -> Tensor<D> {
        (self.tensor(shape) * (1.0 / (terms as f64).sqrt())).detach().require_grad()
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    /// B lengths from 1 to l.
    pub fn lengths(&mut self, batch: usize, l: usize) -> Vec<usize> {
        (0..batch).map(|_| 1 + self.below(l)).collect()
    }
}
