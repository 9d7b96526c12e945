//! y = W·x + b, with the weight `[out, in]` as in PyTorch.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use dss_format::Form;

use crate::dispatch;
use crate::random::{stream, uniform};

/// A linear map of rows. Weight and bias start ~ U(±1/√in).
#[derive(Module, Debug)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: Param<Tensor<2>>,
    /// `[out]`.
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// A new map; its numbers are those of the streams `name`.weight and `name`.bias of `seed`.
    pub fn new(inputs: usize, outputs: usize, seed: u64, name: &str, device: &Device) -> Self {
        let bound = 1.0 / (inputs as f64).sqrt();
        let draw =
            |count, part: &str| uniform(count, bound, &mut stream(seed, &format!("{name}.{part}")));
        Self {
            weight: parameter(draw(outputs * inputs, "weight"), [outputs, inputs], device),
            bias: parameter(draw(outputs, "bias"), [outputs], device),
        }
    }

    /// `[R, in]` -> `[R, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.val().transpose()) + self.bias.val().unsqueeze()
    }

    /// `[.., in]` -> `[.., out]`, in the form that `form` asks for.
    pub(crate) fn at_positions<const D: usize>(&self, form: Form, x: Tensor<D>) -> Tensor<D> {
        at_positions(form, x, self.weight.val(), Some(self.bias.val()))
    }
}

/// W·x + b at every position: `[.., in]` -> `[.., out]`.
pub(crate) fn at_positions<const D: usize>(
    form: Form,
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    let (mut shape, [outputs, inputs]) = (x.dims(), weight.dims());
    shape[D - 1] = outputs;
    let rows = x.reshape([-1, inputs as i64]);
    dispatch::linear(form, rows, weight, bias).reshape(shape)
}

/// A trainable parameter in the device's float type.
pub(crate) fn parameter<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), device))
}
