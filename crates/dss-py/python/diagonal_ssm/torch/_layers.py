"""The layers as modules: DSS, S4D and S4."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import _native, dss_model
from . import _ops, _plain

State = tuple[int, Tensor]
"""Of the streams through a layer: positions so far, and the complex states [B, H, N]."""


def ssm_kernel(kind: str, params: Sequence[Tensor], taps: int, norm_len: int) -> Tensor:
    """The convolution kernel K [C, H, taps] of a layer's parameters.

    Args:
        kind: "softmax", "exp" or "exp-no-scale" with parameters lambda [N, 2] or [S, N, 2], delta_log [H] or [H, 2] and
            w [C, H, N, 2]; "s4d-zoh" or "s4d-bilinear" with lambda_re, lambda_im [N/2] or [S, N/2], delta_log [H] and
            c [C, H, N/2, 2]; "s4" with lambda_re, lambda_im [N/2] or [S, N/2], p, b [N/2, 2] or [S, N/2, 2], delta_log [H]
            and c [C, H, N/2, 2].
        params: those, in that order.
        taps: the length of the kernel.
        norm_len: the length of the softmax's normaliser, or the one that S4's c is corrected for.
    """
    if _ops.fused(params[-1]):
        return _ops.kernel(kind, list(params), taps, norm_len)
    return _plain.kernel(kind, params, taps, norm_len)


def conv(u: Tensor, k: Tensor) -> Tensor:
    """K * u [B, L, H] for u [B, L, H] and K [1, H, taps], or [2, H, taps] with a half that looks ahead; taps <= L."""
    return _ops.conv(u, k) if _ops.fused(u) else _plain.conv(u, k)


def inside(u: Tensor, lengths: Tensor) -> Tensor:
    """[B, L, 1]: 1 where a position is not padding, else 0."""
    at = torch.arange(u.shape[1], device=u.device)
    return (at[None, :, None] < lengths.to(u.device)[:, None, None]).to(u.dtype)


def checked(x: Tensor, lengths: Any, like: Tensor) -> Optional[Tensor]:
    """The lengths as a tensor; an error if they or x are not what a layer takes whose D [H] is `like`."""
    h = len(like)
    if not isinstance(x, Tensor) or x.dim() != 3 or x.shape[2] != h or 0 in x.shape:
        found = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"expected a tensor [B, L, {h}] with at least one position, got {found}")
    if not x.is_floating_point() or (_ops.fused(x) and x.dtype != like.dtype):
        raise ValueError(f"the input is {x.dtype}, but the parameters are {like.dtype}: convert one with .to()")
    return checked_lengths(lengths, x)


def checked_lengths(lengths: Any, x: Tensor, least: int = 0) -> Optional[Tensor]:
    """The lengths of the sequences x [B, L, ..] as a tensor; an error if they are not [B] numbers from `least` to L."""
    if lengths is None:
        return None
    lengths = torch.as_tensor(lengths)
    if lengths.shape != x.shape[:1] or lengths.is_floating_point() or lengths.dtype == torch.bool:
        found = f"{list(lengths.shape)} of {lengths.dtype}"
        raise ValueError(f"lengths must be [B] = [{x.shape[0]}] whole numbers, but are {found}")
    # A compiler cannot look at the values; a GPU would be waited for.
    if not torch.compiler.is_compiling() and lengths.device.type == "cpu":
        for length in lengths.tolist():
            if not least <= length <= x.shape[1]:
                raise ValueError(f"lengths must be from {least} to L = {x.shape[1]}, but one is {length}")
    return lengths


def check_step(u: Any, state: State, d_model: int) -> None:
    """An error if u is not one position of the streams of a state."""
    streams = len(state[1])
    if not isinstance(u, Tensor) or u.shape != (streams, d_model):
        found = list(u.shape) if isinstance(u, Tensor) else type(u).__name__
        raise ValueError(f"expected one position of each stream, a tensor [B, H] = [{streams}, {d_model}], got {found}")


class SSMLayer(nn.Module):
    """Out(GELU(K * u + D u)): what the three kinds of layers share. Not made by itself."""

    kind: str
    names: tuple[str, ...]
    d_model: int
    l_max: int
    kernel_len: int
    bidirectional: bool
    glu: bool
    gelu: str
    d: nn.Parameter
    out: nn.Linear

    def __init__(self, d_model: int, l_max: int, bidirectional: bool, glu: bool, kernel_len: int, gelu: str) -> None:
        super().__init__()
        if gelu not in ("erf", "tanh"):
            raise ValueError(f'gelu must be "erf" or "tanh", but is {gelu!r}')
        d_model, l_max, kernel_len = (operator.index(size) for size in (d_model, l_max, kernel_len))
        if d_model < 1 or l_max < 1 or kernel_len < 0:
            given = f"{d_model}, {l_max} and {kernel_len}"
            raise ValueError(f"d_model and l_max must be at least 1 and kernel_len at least 0, but they are {given}")
        self.d_model, self.l_max, self.kernel_len = d_model, l_max, kernel_len
        self.bidirectional, self.glu, self.gelu = bidirectional, glu, gelu
        self.d = nn.Parameter(torch.randn(d_model))
        self.out = nn.Linear(d_model, 2 * d_model if glu else d_model)
        self._tables: Optional[tuple[Any, Any]] = None

    @property
    def norm_len(self) -> int:
        """The length that the softmax is normalised by, and S4's c is corrected for."""
        return min(self.l_max, self.kernel_len or self.l_max)

    def ssm_params(self) -> list[Tensor]:
        """The parameters of the kernel, as `ssm_kernel` takes them."""
        return [getattr(self, name) for name in self.names]

    def kernel(self, length: int) -> Tensor:
        """K [C, H, taps] for sequences of `length`: taps = `length`, or `kernel_len` if that is less."""
        taps = min(length, self.kernel_len or length)
        return ssm_kernel(self.kind, self.ssm_params(), taps, self.norm_len)

    def project(self, v: Tensor) -> Tensor:
        """Out(GELU(v)) [.., H] for v [.., H], with the gate of a GLU."""
        return self.gate(self.out(self.activated(v)))

    def activated(self, v: Tensor) -> Tensor:
        """GELU(v), in the form that `gelu` says."""
        return F.gelu(v, approximate="tanh" if self.gelu == "tanh" else "none")

    def gate(self, y: Tensor) -> Tensor:
        """[.., H] from the output of `out`."""
        return F.glu(y, -1) if self.glu else y

    def forward(self, u: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """u [B, L, H] -> [B, L, H]. `lengths` [B] says where the padding of each sequence begins; only a bidirectional
        layer needs it."""
        return self.project(self.mixed(u, checked(u, lengths, self.d)))

    def mixed(self, u: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """K * u + D u [B, L, H]."""
        if lengths is not None and self.bidirectional:
            u = u * inside(u, lengths)
        return conv(u, self.kernel(u.shape[1])) + self.d * u

    def initial_state(self, batch: int) -> State:
        """The state of `batch` streams before their first position."""
        self._check_streams()
        states = getattr(self, self.names[-1]).shape[2]
        narrow = self.d.device.type == "mps"
        dtype = torch.complex64 if narrow else torch.complex128
        return 0, torch.zeros(batch, self.d_model, states, dtype=dtype, device=self.d.device)

    def step(self, u: Tensor, state: State) -> tuple[Tensor, State]:
        """One position of each stream: u [B, H] -> y [B, H], and the next state."""
        self._check_streams()
        check_step(u, state, self.d_model)
        y, state = self._step(self._step_tables(), u, state)
        return self.project(y + self.d * u), state

    def _check_streams(self) -> None:
        if self.bidirectional or 0 < self.kernel_len < self.l_max:
            raise ValueError("bidirectional layers and cut kernels need whole sequences: they have no steps")

    def _make_tables(self) -> tuple[Tensor, ...]:
        return _plain.modes(self.kind, _plain.precise(self.ssm_params()), self.norm_len)

    def _step(self, tables: tuple[Tensor, ...], u: Tensor, state: State) -> tuple[Tensor, State]:
        return dss_model.modes_step(tables, self.norm_len, u, state)

    def _step_tables(self) -> tuple[Tensor, ...]:
        """What steps need of the parameters: made once, until these change; with gradients, each time."""
        if torch.is_grad_enabled():
            return self._moved(self._make_tables())
        params = self.ssm_params()
        key = [(p.data_ptr(), p._version, p.device, p.dtype) for p in params]
        if self._tables is None or self._tables[0] != key:
            self._tables = key, self._moved(self._make_tables())
        return self._tables[1]

    def _moved(self, tables: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        device = self.d.device
        if device.type != "mps":
            return tables
        return tuple((t.to(torch.complex64) if t.is_complex() else t).to(device) for t in tables)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": None}


def _states(d_state: int) -> int:
    if operator.index(d_state) < 1:
        raise ValueError(f"d_state must be at least 1, but is {d_state}")
    return d_state


def _delta_log(shape: tuple[int, ...], low: float, high: float) -> nn.Parameter:
    if not 0 < low <= high:
        raise ValueError(f"0 < dt_min <= dt_max must hold, but they are {low} and {high}")
    low, high = math.log(low), math.log(high)
    return nn.Parameter(low + (high - low) * torch.rand(*shape))


def _complex_normal(*shape: int) -> Tensor:
    return torch.randn(*shape, 2) * 0.5**0.5


def _per_system(lam: Tensor, ssms: int, d_model: int) -> Tensor:
    """One more axis for several systems, in our default precision."""
    if ssms < 1 or d_model % ssms:
        raise ValueError(f"ssms must be a divisor of d_model = {d_model}, but is {ssms}")
    lam = lam.to(torch.get_default_dtype())
    return lam if ssms == 1 else lam.repeat(ssms, *[1] * lam.dim())


class DSSLayer(SSMLayer):
    """A Diagonal State Space layer (Gupta, Gu and Berant 2022): [B, L, H] -> [B, L, H].

    Args:
        d_model: H, the channels.
        d_state: N, the states per channel.
        l_max: the length of the sequences in training; the softmax is normalised over it.
        variant: the kernel, "softmax", "exp" or "exp-no-scale".
        bidirectional: whether positions also see what follows them.
        glu: whether the output projection has a gate.
        tied_delta: one time scale per channel, instead of one for each of the two parts of lambda.
        kernel_len: a layer sees no further back than this; 0: no limit.
        ssms: channel h has the lambda of system h mod `ssms`; 1: one lambda for all channels.
        dt_min, dt_max: between which the time scales start, evenly in their logarithm.
        gelu: "erf", the exact GELU, or "tanh", its approximation.

    Parameters: `lambda` [N, 2] ([S, N, 2] for several systems; for the exp variants its first column is log(-Re)),
    `delta_log` [H, 2] (tied: [H]), `w` [C, H, N, 2] with C = 2 if bidirectional, else 1; `d` [H], `out`.
    """

    names: tuple[str, ...] = ("lambda", "delta_log", "w")
    delta_log: nn.Parameter
    w: nn.Parameter

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
        ssms: int = 1,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        gelu: str = "erf",
    ) -> None:
        super().__init__(d_model, l_max, bidirectional, glu, kernel_len, gelu)
        if variant not in ("softmax", "exp", "exp-no-scale"):
            raise ValueError(f'variant must be "softmax", "exp" or "exp-no-scale", but is {variant!r}')
        self.kind = variant
        lam = torch.from_numpy(_native.skew_hippo(_states(d_state)))
        if variant != "softmax":
            lam[:, 0] = torch.log(-lam[:, 0])
        self.register_parameter("lambda", nn.Parameter(_per_system(lam, ssms, d_model)))
        self.delta_log = _delta_log((d_model,) if tied_delta else (d_model, 2), dt_min, dt_max)
        self.w = nn.Parameter(torch.randn(2 if bidirectional else 1, d_model, d_state, 2))


class S4DLayer(SSMLayer):
    """S4D (Gu, Gupta, Goel and Ré 2022): [B, L, H] -> [B, L, H]. N/2 of the N states of a channel are stored.

    Args:
        d_model, d_state, l_max, bidirectional, glu, kernel_len, ssms, dt_min, dt_max, gelu: as in `DSSLayer`;
            N is even.
        init: how lambda starts, "legs", "lin" or "inv".
        discretisation: "zoh" (zero-order hold) or "bilinear".

    Parameters: `lambda_re`, `lambda_im` [N/2] ([S, N/2] for several systems), `delta_log` [H], `c` [C, H, N/2, 2],
    `d` [H], `out`.
    """

    names: tuple[str, ...] = ("lambda_re", "lambda_im", "delta_log", "c")
    lambda_re: nn.Parameter
    lambda_im: nn.Parameter
    delta_log: nn.Parameter
    c: nn.Parameter

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
        ssms: int = 1,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        gelu: str = "erf",
    ) -> None:
        super().__init__(d_model, l_max, bidirectional, glu, kernel_len, gelu)
        if discretisation not in ("zoh", "bilinear"):
            raise ValueError(f'discretisation must be "zoh" or "bilinear", but is {discretisation!r}')
        self.kind = f"s4d-{discretisation}"
        lam = torch.from_numpy(_native.s4d_lambda(init, _states(d_state)))
        self.lambda_re = nn.Parameter(_per_system(torch.log(-lam[:, 0]), ssms, d_model))
        self.lambda_im = nn.Parameter(_per_system(lam[:, 1].clone(), ssms, d_model))
        self.delta_log = _delta_log((d_model,), dt_min, dt_max)
        self.c = nn.Parameter(_complex_normal(2 if bidirectional else 1, d_model, len(lam)))


class S4Layer(SSMLayer):
    """S4 (Gu, Goel and Ré 2022), a diagonal plus low-rank state matrix: [B, L, H] -> [B, L, H].

    Args: as in `DSSLayer`. A sequence is at most `l_max` long; streams have no end.

    Parameters: `lambda_re`, `lambda_im` [N/2], `p`, `b` [N/2, 2] (with a first axis S for several systems),
    `c` [C, H, N/2, 2] (corrected for `l_max`), `delta_log` [H], `d` [H], `out`.
    """

    kind: str = "s4"
    names: tuple[str, ...] = ("lambda_re", "lambda_im", "p", "b", "delta_log", "c")
    lambda_re: nn.Parameter
    lambda_im: nn.Parameter
    p: nn.Parameter
    b: nn.Parameter
    delta_log: nn.Parameter
    c: nn.Parameter

    def __init__(
        self,
        d_model: int,
        d_state: int = 64,
        l_max: int = 1024,
        bidirectional: bool = False,
        glu: bool = False,
        kernel_len: int = 0,
        ssms: int = 1,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        gelu: str = "erf",
    ) -> None:
        super().__init__(d_model, l_max, bidirectional, glu, kernel_len, gelu)
        self.delta_log = _delta_log((d_model,), dt_min, dt_max)
        c = _complex_normal(2 if bidirectional else 1, d_model, _states(d_state) // 2).double()
        delta_log = self.delta_log.detach().double()
        found = _native.s4_init(d_state, self.norm_len, delta_log.numpy(), c.numpy())
        lam, p, b, c = (torch.from_numpy(x).to(self.d.dtype) for x in found)
        shared = torch.log(-lam[:, 0]), lam[:, 1].clone(), p, b
        self.lambda_re, self.lambda_im, self.p, self.b = (nn.Parameter(_per_system(x, ssms, d_model)) for x in shared)
        self.c = nn.Parameter(c.reshape(-1, d_model, len(lam), 2))

    def kernel(self, length: int) -> Tensor:
        """K [C, H, taps] for sequences of `length`, at most `l_max`."""
        if min(length, self.kernel_len or length) > self.norm_len:
            raise ValueError(f"this S4 layer takes sequences of at most l_max = {self.l_max}, but they have {length}")
        return super().kernel(length)

    def _make_tables(self) -> tuple[Tensor, ...]:
        return _plain.s4_tables(_plain.S4(*_plain.precise(self.ssm_params())), self.norm_len)

    def _step(self, tables: tuple[Tensor, ...], u: Tensor, state: State) -> tuple[Tensor, State]:
        position, x = state
        y, x = _plain.s4_step(tables, u, x)
        return y, (position + 1, x)
