"""DSS, S4D and S4 layers for PyTorch.

On the CPU, in float32 and float64, kernels, convolutions and whole blocks are single fused operations with their own
backward pass. Elsewhere the same mathematics runs in plain PyTorch (`dss_model`). The parameters have the names of our
checkpoints.

Letters: B batch, L length, H channels (`d_model`), N states (`d_state`).
"""

from typing import NamedTuple, Optional, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _native, dss_model

__all__ = ["DSSBlock", "DSSLayer", "S4DLayer", "S4Layer", "conv", "ssm_kernel"]


class _Spec(NamedTuple):
    """What `_native.block_forward` wants to know."""

    prenorm: bool
    glu: bool
    bidirectional: bool
    norm: str
    eps: float
    lengths: Optional[list[int]]
    counted: Optional[list[int]]


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def _fused(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)


# Kernels.


@torch.library.custom_op("diagonal_ssm::kernel", mutates_args=())
def _kernel(kind: str, params: Sequence[Tensor], taps: int, norm_len: int) -> Tensor:
    k = params[-1].new_empty(*params[-1].shape[:2], taps)
    _native.kernel_forward(kind, [_array(p) for p in params], norm_len, k.numpy())
    return k


@_kernel.register_fake
def _(kind, params, taps, norm_len):
    return params[-1].new_empty(*params[-1].shape[:2], taps)


@torch.library.custom_op("diagonal_ssm::kernel_backward", mutates_args=())
def _kernel_backward(
    kind: str, params: Sequence[Tensor], norm_len: int, dk: Tensor
) -> list[Tensor]:
    grads = [torch.empty_like(p, memory_format=torch.contiguous_format) for p in params]
    arrays = [_array(p) for p in params]
    _native.kernel_backward(kind, arrays, norm_len, _array(dk), [g.numpy() for g in grads])
    return grads


@_kernel_backward.register_fake
def _(kind, params, norm_len, dk):
    return [torch.empty_like(p, memory_format=torch.contiguous_format) for p in params]


def _kernel_setup(ctx, inputs, output):
    ctx.kind, params, _, ctx.norm_len = inputs
    ctx.save_for_backward(*params)


def _kernel_gradients(ctx, dk):
    grads = _kernel_backward(ctx.kind, list(ctx.saved_tensors), ctx.norm_len, dk)
    return None, grads, None, None


_kernel.register_autograd(_kernel_gradients, setup_context=_kernel_setup)


def ssm_kernel(kind: str, params: Sequence[Tensor], taps: int, norm_len: int) -> Tensor:
    """The convolution kernel K [C, H, taps] of a layer's parameters.

    `kind` is "softmax", "exp", "exp-no-scale" (lambda [N, 2], delta_log [H] or [H, 2], w [C, H, N, 2]), "s4d-zoh",
    "s4d-bilinear" (lambda_re, lambda_im [N/2], delta_log [H], c [C, H, N/2, 2]) or "s4" (lambda_re, lambda_im [N/2],
    p, b [N/2, 2], delta_log [H], c [C, H, N/2, 2]). `norm_len` is the length of the softmax's normaliser, or of S4's C.
    """
    if _fused(params[-1]):
        return _kernel(kind, list(params), taps, norm_len)
    if kind == "s4":
        raise NotImplementedError("S4's kernel has no plain PyTorch form: keep the layer on the CPU")
    if kind.startswith("s4d-"):
        re, im, delta_log, c = params
        modes = dss_model.s4d_modes(re, im, c, delta_log, kind.removeprefix("s4d-"))
    else:
        modes = dss_model.dss_modes(*params, kind, norm_len)
    return dss_model.kernel(*modes, taps, norm_len).to(params[-1].dtype)


# The convolution.


@torch.library.custom_op("diagonal_ssm::conv", mutates_args=())
def _conv(u: Tensor, k: Tensor) -> Tensor:
    y = torch.empty_like(u, memory_format=torch.contiguous_format)
    _native.conv_forward(_array(u), _array(k), y.numpy())
    return y


@_conv.register_fake
def _(u, k):
    return torch.empty_like(u, memory_format=torch.contiguous_format)


@torch.library.custom_op("diagonal_ssm::conv_backward", mutates_args=())
def _conv_backward(u: Tensor, k: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    du = torch.empty_like(u, memory_format=torch.contiguous_format)
    dk = torch.empty_like(k, memory_format=torch.contiguous_format)
    _native.conv_backward(_array(u), _array(k), _array(dy), du.numpy(), dk.numpy())
    return du, dk


@_conv_backward.register_fake
def _(u, k, dy):
    du = torch.empty_like(u, memory_format=torch.contiguous_format)
    return du, torch.empty_like(k, memory_format=torch.contiguous_format)


_conv.register_autograd(
    lambda ctx, dy: _conv_backward(*ctx.saved_tensors, dy),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def conv(u: Tensor, k: Tensor) -> Tensor:
    """K * u: u [B, L, H], K [1, H, taps], or [2, H, taps] with a half that looks ahead; taps <= L."""
    return _conv(u, k) if _fused(u) else dss_model.convolve(u, k)


# The block.


@torch.library.custom_op("diagonal_ssm::block", mutates_args=())
def _block(
    tensors: Sequence[Tensor],
    given: Sequence[Tensor],
    masks: Sequence[Tensor],
    lengths: Optional[Tensor],
    prenorm: bool,
    glu: bool,
    bidirectional: bool,
    norm: str,
    eps: float,
) -> list[Tensor]:
    out = _block_outputs(tensors, prenorm, norm)
    y, v, s, mean, rstd, *moments = [t.numpy() for t in out]
    spec = _spec(lengths, prenorm, glu, bidirectional, norm, eps)
    _native.block_forward(
        [_array(t) for t in tensors],
        spec,
        [_array(t) for t in given] or None,
        [_array(t) for t in masks] or None,
        y,
        [v, s, mean, rstd],
        moments if norm == "batch" else None,
    )
    return out


def _block_outputs(tensors, prenorm, norm):
    """y, v, s, mean and rstd of the norm, and mean and variance of the batch."""
    x = tensors[0]
    b, l, h = x.shape
    like = lambda: torch.empty_like(x, memory_format=torch.contiguous_format)  # noqa: E731
    stats = b * l if norm == "layer" else h
    batch = h if norm == "batch" else 0
    s = x.new_empty(0) if prenorm else like()
    sizes = (stats, stats, batch, batch)
    return [like(), like(), s, *(x.new_empty(size) for size in sizes)]


def _spec(lengths, prenorm, glu, bidirectional, norm, eps) -> _Spec:
    lengths = None if lengths is None else lengths.tolist()
    seen = lengths if bidirectional else None
    return _Spec(prenorm, glu, bidirectional, norm, eps, seen, lengths)


@_block.register_fake
def _(tensors, given, masks, lengths, prenorm, glu, bidirectional, norm, eps):
    return _block_outputs(tensors, prenorm, norm)


@torch.library.custom_op("diagonal_ssm::block_backward", mutates_args=())
def _block_backward(
    tensors: Sequence[Tensor],
    given: Sequence[Tensor],
    masks: Sequence[Tensor],
    lengths: Optional[Tensor],
    prenorm: bool,
    glu: bool,
    bidirectional: bool,
    norm: str,
    eps: float,
    saved: Sequence[Tensor],
    dy: Tensor,
) -> list[Tensor]:
    grads = [torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors]
    _native.block_backward(
        [_array(t) for t in tensors],
        _spec(lengths, prenorm, glu, bidirectional, norm, eps),
        [_array(t) for t in given] or None,
        [_array(t) for t in masks] or None,
        _array(dy),
        [_array(t) for t in saved],
        [g.numpy() for g in grads],
    )
    return grads


@_block_backward.register_fake
def _(tensors, given, masks, lengths, prenorm, glu, bidirectional, norm, eps, saved, dy):
    return [torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors]


def _block_setup(ctx, inputs, output):
    tensors, given, masks, ctx.lengths, *ctx.settings = inputs
    ctx.sizes = [len(tensors), len(given), len(masks)]
    ctx.save_for_backward(*tensors, *given, *masks, *output[1:5])


def _block_gradients(ctx, dy):
    groups, rest = [], list(ctx.saved_tensors)
    for size in ctx.sizes:
        groups.append(rest[:size])
        rest = rest[size:]
    grads = _block_backward(*groups, ctx.lengths, *ctx.settings, rest, dy[0])
    none = [None] * ctx.sizes[1], [None] * ctx.sizes[2]
    return grads, *none, None, *[None] * len(ctx.settings)


_block.register_autograd(_block_gradients, setup_context=_block_setup)


# Modules.


class _Layer(nn.Module):
    """Out(GELU(K * u + D u)): what the three kinds of layers share."""

    kind: str
    names: tuple[str, ...]

    def __init__(self, d_model: int, l_max: int, bidirectional: bool, glu: bool, kernel_len: int):
        super().__init__()
        if d_model < 1 or l_max < 1:
            raise ValueError(f"d_model and l_max must be at least 1, but are {d_model} and {l_max}")
        self.d_model, self.l_max, self.kernel_len = d_model, l_max, kernel_len
        self.bidirectional, self.glu = bidirectional, glu
        self.d = nn.Parameter(torch.randn(d_model))
        self.out = nn.Linear(d_model, 2 * d_model if glu else d_model)

    def _params(self) -> list[Tensor]:
        return [getattr(self, name) for name in self.names]

    def _norm_len(self) -> int:
        return min(self.l_max, self.kernel_len or self.l_max)

    def kernel(self, length: int) -> Tensor:
        """K [C, H, taps] for sequences of `length`."""
        taps = min(length, self.kernel_len or length)
        return ssm_kernel(self.kind, self._params(), taps, self._norm_len())

    def _project(self, v: Tensor) -> Tensor:
        y = self.out(F.gelu(v))
        return F.glu(y, -1) if self.glu else y

    def forward(self, u: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """u [B, L, H] -> [B, L, H]. `lengths` [B] says where the padding of each sequence begins; only a bidirectional
        layer needs it."""
        if lengths is not None and self.bidirectional:
            inside = torch.arange(u.shape[1], device=u.device)[None, :, None] < lengths.to(u.device)[:, None, None]
            u = u * inside
        return self._project(conv(u, self.kernel(u.shape[1])) + self.d * u)

    def _modes(self):
        raise NotImplementedError(f"{type(self).__name__} has no step in PyTorch: stream it with diagonal_ssm.load")

    def initial_state(self, batch: int) -> tuple[int, Tensor]:
        """The state of `batch` streams before their first position."""
        zeta = self._modes()[0]
        return 0, torch.zeros(batch, *zeta.shape, dtype=zeta.dtype, device=zeta.device)

    def step(self, u: Tensor, state: tuple[int, Tensor]) -> tuple[Tensor, tuple[int, Tensor]]:
        """One position of each stream: u [B, H] -> y [B, H] and the next state."""
        if self.bidirectional or 0 < self.kernel_len < self.l_max:
            raise ValueError("bidirectional layers and cut kernels need whole sequences")
        y, state = dss_model.modes_step(self._modes(), self._norm_len(), u, state)
        return self._project(y + self.d * u), state


def _delta_log(count: tuple[int, ...], low: float, high: float) -> nn.Parameter:
    if not 0 < low <= high:
        raise ValueError(f"0 < dt_min <= dt_max must hold, but they are {low} and {high}")
    low, high = np.log(low), np.log(high)
    return nn.Parameter(low + (high - low) * torch.rand(*count))


def _complex_normal(*shape: int) -> Tensor:
    return torch.randn(*shape, 2) * 0.5**0.5


class DSSLayer(_Layer):
    """A Diagonal State Space layer (Gupta, Gu and Berant 2022): [B, L, H] -> [B, L, H].

    Parameters: `lambda` [N, 2], `delta_log` [H, 2] (`tied_delta`: [H]), `w` [C, H, N, 2], `d` [H], `out`; C is 2 if
    bidirectional. `l_max` is the length of training, by which the softmax is normalised. `kernel_len` > 0 cuts the kernel.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 64,
        l_max: int = 1024,
        variant: str = "softmax",
        bidirectional: bool = False,
        glu: bool = False,
        tied_delta: bool = False,
        kernel_len: int = 0,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
    ):
        super().__init__(d_model, l_max, bidirectional, glu, kernel_len)
        if variant not in ("softmax", "exp", "exp-no-scale"):
            raise ValueError(f'variant must be "softmax", "exp" or "exp-no-scale", but is {variant!r}')
        self.kind, self.names = variant, ("lambda", "delta_log", "w")
        lam = torch.from_numpy(_native.skew_hippo(d_state))
        if variant != "softmax":
            lam[:, 0] = torch.log(-lam[:, 0])
        self.register_parameter("lambda", nn.Parameter(lam.to(torch.get_default_dtype())))
        self.delta_log = _delta_log((d_model,) if tied_delta else (d_model, 2), dt_min, dt_max)
        self.w = nn.Parameter(torch.randn(2 if bidirectional else 1, d_model, d_state, 2))

    def _modes(self):
        return dss_model.dss_modes(*self._params(), self.kind, self._norm_len())


class S4DLayer(_Layer):
    """S4D (Gu, Gupta, Goel and Ré 2022): [B, L, H] -> [B, L, H]. N/2 of N states are stored.

    Parameters: `lambda_re`, `lambda_im` [N/2], `delta_log` [H], `c` [C, H, N/2, 2], `d` [H], `out`.
    """

    names = ("lambda_re", "lambda_im", "delta_log", "c")

    def __init__(
        self,
        d_model: int,
        d_state: int = 64,
        l_max: int = 1024,
        init: str = "legs",
        discretisation: str = "zoh",
        bidirectional: bool = False,
        glu: bool = False,
        kernel_len: int = 0,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
    ):
        super().__init__(d_model, l_max, bidirectional, glu, kernel_len)
        if discretisation not in ("zoh", "bilinear"):
            raise ValueError(f'discretisation must be "zoh" or "bilinear", but is {discretisation!r}')
        self.kind, self.discretisation = f"s4d-{discretisation}", discretisation
        lam = torch.from_numpy(_native.s4d_lambda(init, d_state)).to(torch.get_default_dtype())
        self.lambda_re = nn.Parameter(torch.log(-lam[:, 0]))
        self.lambda_im = nn.Parameter(lam[:, 1].clone())
        self.delta_log = _delta_log((d_model,), dt_min, dt_max)
        self.c = nn.Parameter(_complex_normal(2 if bidirectional else 1, d_model, len(lam)))

    def _modes(self):
        re, im, delta_log, c = self._params()
        return dss_model.s4d_modes(re, im, c, delta_log, self.discretisation)


class S4Layer(_Layer):
    """S4 (Gu, Goel and Ré 2022) with a diagonal plus low-rank state matrix: [B, L, H] -> [B, L, H], CPU only.

    Parameters: `lambda_re`, `lambda_im` [N/2], `p`, `b` [N/2, 2], `c` [C, H, N/2, 2] (corrected for `l_max`),
    `delta_log` [H], `d` [H], `out`. A sequence is at most `l_max` long.
    """

    kind, names = "s4", ("lambda_re", "lambda_im", "p", "b", "delta_log", "c")

    def __init__(
        self,
        d_model: int,
        d_state: int = 64,
        l_max: int = 1024,
        bidirectional: bool = False,
        glu: bool = False,
        kernel_len: int = 0,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
    ):
        super().__init__(d_model, l_max, bidirectional, glu, kernel_len)
        self.delta_log = _delta_log((d_model,), dt_min, dt_max)
        c = _complex_normal(2 if bidirectional else 1, d_model, d_state // 2).double()
        found = _native.s4_init(d_state, self._norm_len(), _array(self.delta_log.double()), _array(c))
        dtype = torch.get_default_dtype()
        lam, p, b, c = (torch.from_numpy(x).to(dtype) for x in found)
        self.lambda_re, self.lambda_im = nn.Parameter(torch.log(-lam[:, 0])), nn.Parameter(lam[:, 1].clone())
        self.p, self.b, self.c = nn.Parameter(p), nn.Parameter(b), nn.Parameter(c.reshape(-1, d_model, len(lam), 2))


class _Norm(nn.Module):
    """Gain, offset and running statistics, with the names of our checkpoints."""

    def __init__(self, d_model: int, batch: bool):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        if batch:
            self.register_buffer("running_mean", torch.zeros(d_model))
            self.register_buffer("running_var", torch.ones(d_model))


class DSSBlock(nn.Module):
    """A layer with its norm and residual: x + f(norm(x)) (`prenorm`) or norm(x + f(x)), f(u) = drop(layer(u)).

    `norm` is "layer" or "batch"; dropout masks whole channels of a sequence. On the CPU the whole block is one fused
    operation. `layer` is a DSSLayer, S4DLayer or S4Layer; other arguments make a DSSLayer.
    """

    def __init__(
        self,
        d_model: int,
        layer: Optional[_Layer] = None,
        *,
        norm: str = "layer",
        prenorm: bool = True,
        dropout: float = 0.0,
        eps: float = 1e-5,
        momentum: float = 0.1,
        **settings,
    ):
        super().__init__()
        if norm not in ("layer", "batch"):
            raise ValueError(f'norm must be "layer" or "batch", but is {norm!r}')
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), but is {dropout}")
        self.mixer = DSSLayer(d_model, **settings) if layer is None else layer
        self.norm = _Norm(d_model, norm == "batch")
        self.norm_kind, self.prenorm, self.dropout = norm, prenorm, dropout
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """x [B, L, H] -> [B, L, H]; positions from `lengths` [B] on are padding: they do not count in the statistics of
        a BatchNorm, and a bidirectional layer does not see them."""
        batch = self.norm_kind == "batch"
        mode = "layer" if not batch else "batch" if self.training else "batch-eval"
        masks = self._masks(x) if self.training and self.dropout > 0 else []
        if not _fused(x):
            return self._plain(x, lengths, mode, masks)
        mixer, norm = self.mixer, self.norm
        tensors = [x, mixer.kernel(x.shape[1]), mixer.d, mixer.out.weight, mixer.out.bias, norm.gamma, norm.beta]
        given = [norm.running_mean, norm.running_var] if mode == "batch-eval" else []
        settings = (self.prenorm, mixer.glu, mixer.bidirectional, mode, self.eps)
        y, *_, mean, var = _block(tensors, given, masks, lengths, *settings)
        if mode == "batch":
            self._remember(mean, var)
        return y

    def _masks(self, x: Tensor) -> list[Tensor]:
        keep = 1 - self.dropout
        return [torch.bernoulli(x.new_full((len(x), x.shape[2]), keep)) / keep for _ in range(2)]

    def _remember(self, mean: Tensor, var: Tensor) -> None:
        with torch.no_grad():
            self.norm.running_mean.lerp_(mean.to(self.norm.running_mean), self.momentum)
            self.norm.running_var.lerp_(var.to(self.norm.running_var), self.momentum)

    def _plain(self, x, lengths, mode, masks):
        """The same in plain PyTorch."""
        if self.prenorm:
            return x + self._f(self._normed(x, lengths, mode), lengths, masks)
        return self._normed(x + self._f(x, lengths, masks), lengths, mode)

    def _f(self, u, lengths, masks):
        mixer = self.mixer
        if not masks:
            return mixer(u, lengths)
        if lengths is not None and mixer.bidirectional:
            u = u * (torch.arange(u.shape[1], device=u.device)[None, :, None] < lengths.to(u.device)[:, None, None])
        v = F.gelu(conv(u, mixer.kernel(u.shape[1])) + mixer.d * u) * masks[0][:, None]
        y = mixer.out(v)
        return (F.glu(y, -1) if mixer.glu else y) * masks[1][:, None]

    def _normed(self, x, lengths, mode):
        norm = self.norm
        if mode == "layer":
            return F.layer_norm(x, x.shape[-1:], norm.gamma, norm.beta, self.eps)
        if mode == "batch-eval":
            mean, var = norm.running_mean, norm.running_var
        else:
            rows = x.reshape(-1, x.shape[2])
            if lengths is not None:
                inside = torch.arange(x.shape[1], device=x.device)[None] < lengths.to(x.device)[:, None]
                rows = x[inside]
            var, mean = torch.var_mean(rows, 0, correction=0)
            self._remember(mean, var * len(rows) / max(len(rows) - 1, 1))
        return (x - mean) / torch.sqrt(var + self.eps) * norm.gamma + norm.beta
