from os import PathLike
from typing import Any, Optional, Union

from torch import Tensor, nn

LOG_LIMIT: float
EPSILON: float

def dss_modes(
    lam: Tensor, delta_log: Tensor, w: Tensor, variant: str, norm_len: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Exponents zeta [H, N], coefficients c [C, H, N] and a mask [H or 1, N] of the modes that decay."""

def s4d_modes(
    lambda_re: Tensor, lambda_im: Tensor, c: Tensor, delta_log: Tensor, discretisation: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for S4D, with one of each conjugate pair: zeta [H, N/2], c [C, H, N/2], mask [H or 1, N/2]."""

def per_channel(x: Tensor, h: int) -> Tensor:
    """[N] or [S, N] -> [1, N] or [H, N]: channel h belongs to system h mod S."""

def expm1(z: Tensor) -> Tensor:
    """exp(z) - 1 of complex z, without cancellation near 0."""

def exponential_sums(zeta: Tensor, c: Tensor, taps: int) -> Tensor:
    """Re sum_n c_n exp(zeta_n l) for l < taps: zeta [H, N], c [C, H, N] -> [C, H, taps]."""

def kernel(zeta: Tensor, c: Tensor, decays: Tensor, taps: int, norm_len: int) -> Tensor:
    """K [C, H, taps] of modes, as `dss_modes` gives them."""

def convolve(u: Tensor, k: Tensor) -> Tensor:
    """K * u [B, L, H] for u [B, L, H] and K [C, H, taps]; a second half of K looks ahead."""

def modes_step(
    modes: tuple[Tensor, ...], norm_len: int, u: Tensor, state: tuple[int, Tensor]
) -> tuple[Tensor, tuple[int, Tensor]]:
    """K * u one position at a time: u [B, H], state (position, s [B, H, N]) -> [B, H] and the next state."""

class Mixer(nn.Module):
    """Out(GELU(K * u + D u)) with the kernel of DSS or S4D."""

    settings: dict[str, Any]
    bidirectional: bool
    glu: bool
    kernel_len: int
    length: int
    out: nn.Linear
    def __init__(self, settings: dict[str, Any], h: int, length: int, bidirectional: bool) -> None: ...
    def norm_len(self) -> int:
        """The length that the softmax is normalised over."""

    def modes(self) -> tuple[Tensor, Tensor, Tensor]:
        """zeta [H, N], c [C, H, N] and the mask of the modes that decay."""

    def project(self, v: Tensor) -> Tensor:
        """Out(GELU(v)) [.., H] for v [.., H]."""

    def forward(self, u: Tensor) -> Tensor:
        """u [B, L, H] -> [B, L, H]."""

    def step(self, u: Tensor, state: tuple[int, Tensor]) -> tuple[Tensor, tuple[int, Tensor]]:
        """u [B, H], state (position, s [B, H, N]) -> [B, H] and the next state."""

class Norm(nn.Module):
    """LayerNorm, with a gain per channel or one for all, or BatchNorm with its running statistics."""

    kind: str
    eps: float
    gamma: nn.Parameter
    beta: nn.Parameter
    def __init__(self, kind: str, h: int, eps: float) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x [.., H] -> [.., H]."""

class Block(nn.Module):
    """x + f(norm(x)) or norm(x + f(x))."""

    prenorm: bool
    mixer: Mixer
    norm: Norm
    def __init__(self, model: dict[str, Any], length: int) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x [B, L, H] -> [B, L, H]."""

    def step(self, x: Tensor, state: tuple[int, Tensor]) -> tuple[Tensor, tuple[int, Tensor]]:
        """x [B, H], state (position, s [B, H, N]) -> [B, H] and the next state."""

class Model(nn.Module):
    """Encoder, blocks, pooling and head, for inference."""

    meta: dict[str, Any]
    encoder: nn.Module
    layers: nn.ModuleList
    norm: nn.Module
    head: nn.Module
    each_position: bool
    pool: str
    def __init__(self, meta: dict[str, Any]) -> None: ...
    def forward(self, x: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """x [B, L] tokens or [B, L, C] values, right-padded to `lengths` [B] -> [B, O], or [B, L, O]."""

    def initial_state(self, batch: int) -> tuple[list[tuple[int, Tensor]], tuple[int, Tensor]]:
        """A stream of `batch` sequences before the first position."""

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """x [B] tokens or [B, C] values -> the answer for everything so far [B, O], and the next state."""

def load(path: Union[str, PathLike[str]]) -> Model:
    """The model of a safetensors file of ours."""

