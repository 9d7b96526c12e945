"""The cases: names, shapes, inputs. NumPy only, shared by every peer."""

import dataclasses

import numpy as np

EPSILON = 1e-7


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    op: str  # "kernel", "conv" or "scale" (kernel followed by conv)
    H: int
    L: int
    N: int = 0
    B: int = 0


def _all():
    for length in (2048, 16384):
        yield Case(f"kernel_h128_n64_l{length}", "kernel", H=128, N=64, L=length)
    for length in (2048, 16384):
        yield Case(f"conv_b16_h128_l{length}", "conv", B=16, H=128, L=length)
    for power in (10, 12, 14, 16, 18, 20):
        yield Case(f"scale_l{1 << power}", "scale", B=1, H=16, N=64, L=1 << power)


CASES = {case.name: case for case in _all()}


def skew_hippo(n):
    """The n eigenvalues with positive imaginary part, decreasing, as [n, 2]."""
    root = np.sqrt(2 * np.arange(2 * n) + 1)
    outer = np.outer(root, root) / 2
    matrix = np.triu(outer, 1) - np.tril(outer, -1)
    # Skew-symmetric plus -I/2: the imaginary parts come from a Hermitian problem.
    imag = np.linalg.eigvalsh(-1j * matrix)[::-1][:n]
    return np.stack([np.full(n, -0.5), imag], axis=-1)


def inputs(case, dtype=np.float32, seed=0):
    """Arrays for a case. Complex values are pairs on a last axis of 2."""
    rng = np.random.default_rng(seed)
    arrays = {}
    if case.op in ("kernel", "scale"):
        arrays["Lambda"] = skew_hippo(case.N)
        arrays["log_dt"] = np.linspace(np.log(1e-3), np.log(1e-1), case.H)
        arrays["W"] = rng.standard_normal((case.H, case.N, 2), dtype=np.float32)
    if case.op in ("conv", "scale"):
        arrays["u"] = rng.standard_normal((case.B, case.H, case.L), dtype=np.float32)
    if case.op == "conv":
        arrays["K"] = rng.standard_normal((case.H, case.L), dtype=np.float32)
    shape = (case.H, case.L) if case.op == "kernel" else (case.B, case.H, case.L)
    arrays["g"] = rng.standard_normal(shape, dtype=np.float32)
    return {name: np.ascontiguousarray(a, dtype=dtype) for name, a in arrays.items()}


def block_length(length):
    """Power of two nearest above the square root: the m of l = a*m + b."""
    m = 1
    while m * m < length:
        m *= 2
    return m
