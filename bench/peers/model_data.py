"""Parameters and one batch of a model size. NumPy only, shared by both libraries."""

import numpy as np

from cases import skew_hippo


def norm_names(size):
    """Norms of the stack in order; a pre-norm stack ends with one more."""
    names = [f"layers.{i}.norm" for i in range(size.layers)]
    return names + ["norm"] if size.prenorm else names


def parameters(size, dtype=np.float32, seed=0):
    """Name -> array, drawn as in the paper (§3.3). Complex values end in an axis of 2."""
    rng = np.random.default_rng(seed)

    def uniform(fan_in, *shape):
        return rng.uniform(-1, 1, shape) / np.sqrt(fan_in)

    p = {}
    if size.vocab:
        p["encoder.weight"] = rng.standard_normal((size.vocab, size.H))
    else:
        p["encoder.weight"] = uniform(1, size.H, 1)
        p["encoder.bias"] = uniform(1, size.H)
    for i in range(size.layers):
        kernel = s4_kernel(size, rng) if size.mixer == "s4" else dss_kernel(size, rng)
        p.update({f"layers.{i}.{name}": a for name, a in kernel.items()})
        p[f"layers.{i}.D"] = rng.standard_normal(size.H)
        p[f"layers.{i}.out.weight"] = uniform(size.H, size.H, size.H)
        p[f"layers.{i}.out.bias"] = uniform(size.H, size.H)
    for name in norm_names(size):
        p[f"{name}.weight"] = np.ones(size.H)
        p[f"{name}.bias"] = np.zeros(size.H)
    p["head.weight"] = uniform(size.H, size.classes, size.H)
    p["head.bias"] = uniform(size.H, size.classes)
    return {name: np.ascontiguousarray(a, dtype=dtype) for name, a in p.items()}


def dss_kernel(size, rng):
    """Λ, Δ and W of a layer."""
    return {
        "Lambda": skew_hippo(size.N),
        "log_dt": rng.uniform(np.log(1e-3), np.log(1e-1), (size.H, 2)),
        "W": rng.standard_normal((size.H, size.N, 2)),
    }


def s4_kernel(size, rng):
    """HiPPO-LegS as a diagonal plus P P*, and a random C."""
    n = np.arange(size.N)
    P, B = np.sqrt(n + 0.5), np.sqrt(2 * n + 1)
    A = -np.tril(np.outer(B, B), -1) - np.diag(n + 1.0)
    skew = A + np.outer(P, P) + np.eye(size.N) / 2
    w, V = np.linalg.eigh(-1j * skew)
    V = V[:, w > 0]
    pairs = lambda v: np.stack([(V.conj().T @ v).real, (V.conj().T @ v).imag], axis=-1)
    return {
        "log_w_real": np.full(V.shape[1], np.log(0.5)),
        "w_imag": w[w > 0],
        "P": pairs(P),
        "B": pairs(B),
        "C": rng.standard_normal((size.H, V.shape[1], 2)),
        "log_dt": rng.uniform(np.log(1e-3), np.log(1e-1), size.H),
    }


def running_stats(size, dtype=np.float32):
    """Running mean and variance of every BatchNorm."""
    if size.norm == "layer":
        return {}
    stats = {}
    for name in norm_names(size):
        stats[f"{name}.mean"] = np.zeros(size.H, dtype)
        stats[f"{name}.var"] = np.ones(size.H, dtype)
    return stats


def batch(size, dtype=np.float32, seed=1):
    """x: tokens [B L] or values [B L 1]; y: classes [B]. Every sequence has the full length."""
    rng = np.random.default_rng(seed)
    if size.vocab:
        x = rng.integers(0, size.vocab, (size.B, size.L))
    else:
        x = rng.standard_normal((size.B, size.L, 1)).astype(dtype)
    return x, rng.integers(0, size.classes, size.B)
