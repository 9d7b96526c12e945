"""DSS, S4D and S4 layers for PyTorch.

On the CPU, in float32 and float64, kernels, convolutions and whole blocks are single fused operations with their own
backward pass, known to `torch.library`. Elsewhere the same mathematics runs in plain PyTorch. The parameters have the
names of our checkpoints.

Letters: B batch, L length, H channels (`d_model`), N states (`d_state`), C kernels per channel (2 if bidirectional).
"""

from ._block import DSSBlock, Norm
from ._layers import DSSLayer, S4DLayer, S4Layer, SSMLayer, conv, ssm_kernel
from ._memory import keep_memory
from ._model import DSSModel, load_model
from ._ops import plain_torch

__all__ = [
    "DSSBlock",
    "DSSLayer",
    "DSSModel",
    "Norm",
    "S4DLayer",
    "S4Layer",
    "SSMLayer",
    "conv",
    "keep_memory",
    "load_model",
    "plain_torch",
    "ssm_kernel",
]
