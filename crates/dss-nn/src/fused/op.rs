//! One custom operation of Burn for all of ours: up to eight tensors in, one out, with a backward of its own.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension, tensor::FloatTensor};
use burn::tensor::{DType, Device, Tensor};
use burn_flex::FlexTensor;
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use super::slices::Float;

/// Most tensors that an operation takes.
const INPUTS: usize = 8;

/// What a forward call keeps for its backward.
pub(crate) type SavedState = Box<dyn Any + Send>;

/// An operation on contiguous tensors of one precision.
pub(crate) trait Operation: Debug + Send + Sync + 'static {
    /// The result, and with `keep` what [`Operation::backward`] needs.
    fn forward<T: Float>(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, SavedState);

    /// The gradients of the inputs, in their order. dy is often the only owner of its memory.
    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor>;

    /// Whether [`Operation::backward`] looks at the inputs or at what was kept. If not, it gets others, and the memory of
    /// the inputs is free before.
    fn needs_inputs(&self) -> bool {
        true
    }
}

/// [`Operation`] with the precision taken from the tensors.
trait AnyOperation: Debug + Send + Sync {
    fn forward(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, SavedState);
    fn backward(&self, inputs: &[FlexTensor], kept: SavedState, dy: FlexTensor) -> Vec<FlexTensor>;
    fn needs_inputs(&self) -> bool;
}

impl<O: Operation> AnyOperation for O {
    fn forward(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, SavedState) {
        match inputs[0].dtype() {
            DType::F64 => Operation::forward::<f64>(self, inputs, keep),
            _ => Operation::forward::<f32>(self, inputs, keep),
        }
    }

    fn backward(&self, inputs: &[FlexTensor], kept: SavedState, dy: FlexTensor) -> Vec<FlexTensor> {
        match dy.dtype() {
            DType::F64 => Operation::backward::<f64>(self, inputs, kept, dy),
            _ => Operation::backward::<f32>(self, inputs, kept, dy),
        }
    }

    fn needs_inputs(&self) -> bool {
        Operation::needs_inputs(self)
    }
}

/// An operation and how many of the tensors are its own.
#[derive(Debug, Clone)]
pub struct Call {
    operation: Arc<dyn AnyOperation>,
    inputs: usize,
}

/// Burn's view of a [`Call`].
#[backend_extension(Flex, Autodiff)]
pub trait FusedOps: Backend {
    /// Runs the call on its first tensors; the rest fill the signature.
    #[allow(clippy::too_many_arguments)]
    fn dss_call(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        f: FloatTensor<Self>,
        g: FloatTensor<Self>,
        h: FloatTensor<Self>,
        call: Call,
    ) -> FloatTensor<Self>;
}

/// A tensor of any rank on its way into an operation.
pub(crate) struct Operand(burn::backend::DispatchTensor);

impl<const D: usize> From<&Tensor<D>> for Operand {
    fn from(tensor: &Tensor<D>) -> Self {
        Self(tensor.clone().into_dispatch())
    }
}

/// Runs `operation` on `operands`, all on `device`.
pub(crate) fn call<const D: usize>(
    operation: impl Operation,
    operands: Vec<Operand>,
    device: &Device,
) -> Tensor<D> {
    let call = Call { operation: Arc::new(operation), inputs: operands.len() };
    let mut operands = operands.into_iter();
    let filler = Tensor::<1>::zeros([1], device);
    let mut next = || operands.next().unwrap_or_else(|| Operand::from(&filler)).0;
    let [a, b, c, d, e, f, g, h]: [_; INPUTS] = std::array::from_fn(|_| next());
    Tensor::from_dispatch(Dispatch::dss_call(a, b, c, d, e, f, g, h, call))
}

impl FusedOps for Flex {
    fn dss_call(
        a: FlexTensor,
        b: FlexTensor,
        c: FlexTensor,
        d: FlexTensor,
        e: FlexTensor,
        f: FlexTensor,
        g: FlexTensor,
        h: FlexTensor,
        call: Call,
    ) -> FlexTensor {
        let inputs = [a, b, c, d, e, f, g, h].map(|t| t.to_contiguous());
        call.operation.forward(&inputs[..call.inputs], false).0
    }
}

/// What autodiff keeps of a call.
#[derive(Debug, Clone)]
struct CallState {
    call: Call,
    inputs: [FlexTensor; INPUTS],
    kept: Arc<Mutex<Option<SavedState>>>,
}

#[derive(Debug)]
struct CallBackward;

impl Backward<Flex, INPUTS> for CallBackward {
    type State = CallState;

    fn backward(
        self,
        ops: Ops<CallState, INPUTS>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let dy = gradients.consume::<Flex>(&ops.node).to_contiguous();
        let CallState { call, inputs, kept } = ops.state;
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let inputs = &inputs[..call.inputs];
        // A second backward through the same graph finds nothing kept: make it again.
        let kept = kept.unwrap_or_else(|| match call.operation.needs_inputs() {
            true => call.operation.forward(inputs, true).1,
            false => Box::new(()),
        });
        let grads = call.operation.backward(inputs, kept, dy);
        for (parent, grad) in ops.parents.into_iter().zip(grads) {
            if let Some(parent) = parent {
                gradients.register::<Flex>(parent.id, grad);
            }
        }
    }
}

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    fn dss_call(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        f: FloatTensor<Self>,
        g: FloatTensor<Self>,
        h: FloatTensor<Self>,
        call: Call,
    ) -> FloatTensor<Self> {
        let all = [a, b, c, d, e, f, g, h];
        let nodes = all.each_ref().map(|t| t.node());
        let prepared = CallBackward.prepare::<C>(nodes).compute_bound().stateful();
        let inputs = all.map(|t| t.into_primitive().to_contiguous());
        match prepared {
            OpsKind::Tracked(prepared) => {
                let (y, kept) = call.operation.forward(&inputs[..call.inputs], true);
                let kept = Arc::new(Mutex::new(Some(kept)));
                let inputs = if call.operation.needs_inputs() {
                    inputs
                } else {
                    std::array::from_fn(|_| inputs[INPUTS - 1].clone())
                };
                prepared.finish(CallState { call, inputs, kept }, y)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(call.operation.forward(&inputs[..call.inputs], false).0)
            }
        }
    }
}
