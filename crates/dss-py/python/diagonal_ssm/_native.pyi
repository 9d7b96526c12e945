from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Optional, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "NativeModel",
    "NativeStream",
    "__version__",
    "block_backward",
    "block_forward",
    "conv_backward",
    "conv_forward",
    "follow_num_threads",
    "get_num_threads",
    "import_checkpoint",
    "inspect",
    "kernel_backward",
    "kernel_forward",
    "report",
    "resolve_settings",
    "resume",
    "run_settings",
    "s4_init",
    "s4d_lambda",
    "set_num_threads",
    "simd",
    "skew_hippo",
    "train",
]

__version__: str
simd: str

def set_num_threads(threads: int) -> None:
    """Sets how many threads work on an operation, at least 1; results do not depend on it."""

def get_num_threads() -> int:
    """How many threads work on an operation; 1 in the child of a fork."""

def follow_num_threads(threads: int) -> None: ...
def kernel_forward(kind: str, params: Sequence[npt.NDArray[Any]], norm_len: int, k: npt.NDArray[Any]) -> None: ...
def kernel_backward(
    kind: str,
    params: Sequence[npt.NDArray[Any]],
    norm_len: int,
    dk: npt.NDArray[Any],
    grads: Sequence[npt.NDArray[Any]],
) -> None: ...
def conv_forward(u: npt.NDArray[Any], k: npt.NDArray[Any], y: npt.NDArray[Any]) -> None: ...
def conv_backward(
    u: npt.NDArray[Any], k: npt.NDArray[Any], dy: npt.NDArray[Any], du: npt.NDArray[Any], dk: npt.NDArray[Any]
) -> None: ...
def block_forward(
    tensors: Sequence[npt.NDArray[Any]],
    spec: Any,
    given: Optional[Sequence[npt.NDArray[Any]]],
    masks: Optional[Sequence[npt.NDArray[Any]]],
    y: npt.NDArray[Any],
    saved: Sequence[npt.NDArray[Any]],
    moments: Optional[Sequence[npt.NDArray[Any]]],
) -> None: ...
def block_backward(
    tensors: Sequence[npt.NDArray[Any]],
    spec: Any,
    given: Optional[Sequence[npt.NDArray[Any]]],
    masks: Optional[Sequence[npt.NDArray[Any]]],
    dy: npt.NDArray[Any],
    saved: Sequence[npt.NDArray[Any]],
    grads: Sequence[npt.NDArray[Any]],
) -> None: ...
def import_checkpoint(
    data: bytes,
    path: str | PathLike[str],
    config: Optional[str],
    len: Optional[int],
    variant: Optional[str],
    pool: Optional[str],
    kernel_len: Optional[int],
    prenorm: Optional[bool],
    discretisation: Optional[str],
    dt: Optional[str],
) -> tuple[bytes, list[str]]: ...
def skew_hippo(n: int) -> npt.NDArray[np.float64]: ...
def s4d_lambda(init: str, n: int) -> npt.NDArray[np.float64]: ...
def s4_init(
    n: int, norm_len: int, delta_log: npt.NDArray[np.float64], c: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def resolve_settings(task: str, preset: Optional[str], model: Optional[str], sets: Sequence[str]) -> str: ...
def run_settings(path: str | PathLike[str]) -> str: ...
def train(
    task: str,
    preset: Optional[str],
    model: Optional[str],
    sets: Sequence[str],
    out: str | PathLike[str],
    data_dir: Optional[str | PathLike[str]],
    threads: Optional[int],
    tell: Callable[[str], object],
) -> str: ...
def resume(
    out: str | PathLike[str],
    sets: Sequence[str],
    data_dir: Optional[str | PathLike[str]],
    threads: Optional[int],
    tell: Callable[[str], object],
) -> str: ...
def report(path: str | PathLike[str]) -> str: ...
def inspect(path: str | PathLike[str]) -> str: ...
@final
class NativeModel:
    def __new__(cls, data: bytes) -> NativeModel: ...
    def meta(self) -> str: ...
    def forward(
        self, first: npt.NDArray[Any], second: Optional[npt.NDArray[Any]] = None
    ) -> npt.NDArray[np.float32]: ...
    def tokens(self, text: bytes) -> npt.NDArray[np.uint32]: ...
    def kernel(self, layer: int, length: int) -> npt.NDArray[np.float32]: ...
    def stream(self) -> NativeStream: ...
    def resume(self, state: bytes) -> NativeStream: ...

@final
class NativeStream:
    """A sequence that arrives bit by bit: what `diagonal_ssm.Stream` is made of."""

    def push(self, positions: npt.NDArray[Any], answers: int) -> npt.NDArray[np.float32]:
        """Takes positions [L] or [L, C] and gives the outputs after each of the last `answers`: [answers, O]."""

    @property
    def position(self) -> int: ...
    def reset(self) -> None:
        """Back to the beginning."""

    def state(self) -> bytes:
        """All that the stream remembers."""
