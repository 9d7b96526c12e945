"""The fused operations, registered with `torch.library`: kernel, convolution, block.

Each has a fake kernel (shapes alone, for compilers) and a backward that is an operation of its own. They take CPU
tensors of float32 or float64; `fused` says whether a tensor is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .. import _native

_use_plain = False


@contextlib.contextmanager
def plain_torch() -> Iterator[None]:
    """Inside, everything runs in plain PyTorch, also on the CPU: for comparisons, and for second derivatives."""
    global _use_plain
    before, _use_plain = _use_plain, True
    try:
        yield
    finally:
        _use_plain = before


def fused(tensor: Tensor) -> bool:
    """Whether the fused operations take tensors like this one."""
    return not _use_plain and tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _threads() -> None:
    """As many threads as torch has, unless `set_num_threads` was called."""
    _native.follow_num_threads(torch.get_num_threads())


# K [C, H, taps] of the parameters of a layer.


@torch.library.custom_op("diagonal_ssm::kernel", mutates_args=())
def kernel(kind: str, params: Sequence[Tensor], taps: int, norm_len: int) -> Tensor:
    _threads()
    k = params[-1].new_empty(*params[-1].shape[:2], taps)
    _native.kernel_forward(kind, [_array(p) for p in params], norm_len, k.numpy())
    return k


@kernel.register_fake
def _(kind, params, taps, norm_len):
    return params[-1].new_empty(*params[-1].shape[:2], taps)


@torch.library.custom_op("diagonal_ssm::kernel_backward", mutates_args=())
def _kernel_backward(
    kind: str, params: Sequence[Tensor], norm_len: int, dk: Tensor
) -> list[Tensor]:
    _threads()
    grads = [_like(p) for p in params]
    arrays = [_array(p) for p in params]
    _native.kernel_backward(kind, arrays, norm_len, _array(dk), [g.numpy() for g in grads])
    return grads


@_kernel_backward.register_fake
def _(kind, params, norm_len, dk):
    return [_like(p) for p in params]


def _kernel_setup(ctx, inputs, output):
    ctx.kind, params, _, ctx.norm_len = inputs
    ctx.save_for_backward(*params)


def _kernel_gradients(ctx, dk):
    grads = _kernel_backward(ctx.kind, list(ctx.saved_tensors), ctx.norm_len, dk)
    return None, grads, None, None


kernel.register_autograd(_kernel_gradients, setup_context=_kernel_setup)


# y = K * u: u [B, L, H], K [C, H, taps].


@torch.library.custom_op("diagonal_ssm::conv", mutates_args=())
def conv(u: Tensor, k: Tensor) -> Tensor:
    _threads()
    y = _like(u)
    _native.conv_forward(_array(u), _array(k), y.numpy())
    return y


@conv.register_fake
def _(u, k):
    return _like(u)


@torch.library.custom_op("diagonal_ssm::conv_backward", mutates_args=())
def _conv_backward(u: Tensor, k: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    _threads()
    du, dk = _like(u), _like(k)
    _native.conv_backward(_array(u), _array(k), _array(dy), du.numpy(), dk.numpy())
    return du, dk


@_conv_backward.register_fake
def _(u, k, dy):
    return _like(u), _like(k)


conv.register_autograd(
    lambda ctx, dy: _conv_backward(*ctx.saved_tensors, dy),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


# A whole block. The tensors are x, K, D, out.weight, out.bias, gamma, beta.


class _Spec(NamedTuple):
    """What `_native.block_forward` wants to know."""

    prenorm: bool
    glu: bool
    gelu_tanh: bool
    bidirectional: bool
    norm: str
    eps: float
    lengths: Optional[list[int]]
    counted: Optional[list[int]]


def _spec(x, lengths, counted, prenorm, glu, gelu_tanh, bidirectional, norm, eps) -> _Spec:
    lists = [None if given is None else given.tolist() for given in (lengths, counted)]
    for length in lists[0] or []:
        if not 0 <= length <= x.shape[1]:
            raise ValueError(f"lengths must be from 0 to L = {x.shape[1]}, but one is {length}")
    return _Spec(prenorm, glu, gelu_tanh, bidirectional, norm, eps, lists[0] if bidirectional else None, lists[1])


def _block_outputs(tensors, prenorm, norm):
    """y, v, s, mean and rstd of the norm, and mean and variance of the batch."""
    x = tensors[0]
    b, l, h = x.shape
    stats = b * l if norm == "layer" else h
    batch = h if norm == "batch" else 0
    s = x.new_empty(0) if prenorm else _like(x)
    return [_like(x), _like(x), s, *(x.new_empty(size) for size in (stats, stats, batch, batch))]


@torch.library.custom_op("diagonal_ssm::block", mutates_args=())
def block(
    tensors: Sequence[Tensor],
    given: Sequence[Tensor],
    masks: Sequence[Tensor],
    lengths: Optional[Tensor],
    counted: Optional[Tensor],
    prenorm: bool,
    glu: bool,
    gelu_tanh: bool,
    bidirectional: bool,
    norm: str,
    eps: float,
) -> list[Tensor]:
    _threads()
    out = _block_outputs(tensors, prenorm, norm)
    y, v, s, mean, rstd, *moments = [t.numpy() for t in out]
    _native.block_forward(
        [_array(t) for t in tensors],
        _spec(tensors[0], lengths, counted, prenorm, glu, gelu_tanh, bidirectional, norm, eps),
        [_array(t) for t in given] or None,
        [_array(t) for t in masks] or None,
        y,
        [v, s, mean, rstd],
        moments if norm == "batch" else None,
    )
    return out


@block.register_fake
def _(tensors, given, masks, lengths, counted, prenorm, glu, gelu_tanh, bidirectional, norm, eps):
    return _block_outputs(tensors, prenorm, norm)


@torch.library.custom_op("diagonal_ssm::block_backward", mutates_args=())
def _block_backward(
    tensors: Sequence[Tensor],
    given: Sequence[Tensor],
    masks: Sequence[Tensor],
    lengths: Optional[Tensor],
    counted: Optional[Tensor],
    prenorm: bool,
    glu: bool,
    gelu_tanh: bool,
    bidirectional: bool,
    norm: str,
    eps: float,
    saved: Sequence[Tensor],
    dy: Tensor,
) -> list[Tensor]:
    _threads()
    grads = [_like(t) for t in tensors]
    _native.block_backward(
        [_array(t) for t in tensors],
        _spec(tensors[0], lengths, counted, prenorm, glu, gelu_tanh, bidirectional, norm, eps),
        [_array(t) for t in given] or None,
        [_array(t) for t in masks] or None,
        _array(dy),
        [_array(t) for t in saved],
        [g.numpy() for g in grads],
    )
    return grads


@_block_backward.register_fake
def _(tensors, given, masks, lengths, counted, prenorm, glu, gelu_tanh, bidirectional, norm, eps, saved, dy):
    return [_like(t) for t in tensors]


def _block_setup(ctx, inputs, output):
    tensors, given, masks, ctx.lengths, ctx.counted, *ctx.settings = inputs
    ctx.sizes = [len(tensors), len(given), len(masks)]
    ctx.save_for_backward(*tensors, *given, *masks, *output[1:5])


def _block_gradients(ctx, dy):
    groups, rest = [], list(ctx.saved_tensors)
    for size in ctx.sizes:
        groups.append(rest[:size])
        rest = rest[size:]
    grads = _block_backward(*groups, ctx.lengths, ctx.counted, *ctx.settings, rest, dy[0])
    none = [None] * ctx.sizes[1], [None] * ctx.sizes[2]
    return grads, *none, None, None, *[None] * len(ctx.settings)


block.register_autograd(_block_gradients, setup_context=_block_setup)
