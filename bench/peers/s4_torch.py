"""The S4 kernel in PyTorch, as plain as the listing of DSS: a [H N L/2] tensor per Cauchy product.

Written from Gu, Goel, Ré (2022), Algorithm 1. N/2 conjugate pairs; Λ, P and B are shared by the
channels; C is the one that already holds the correction for the length.
"""

import math

import torch


def cauchy(v, z, w):
    """Σ_n v_n / (z − w_n), and the conjugate pairs: v [H n], z [l], w [H n] -> [H l]."""
    v, w = v.unsqueeze(-1), w.unsqueeze(-1)
    return (v / (z - w) + v.conj() / (z - w.conj())).sum(-2)


def kernel(p, L):
    """K [H L], by the generating function at the roots of unity and the Woodbury identity."""
    P, B, C = (torch.view_as_complex(p[name]) for name in "PBC")  # [n], [n], [H n]
    dt = p["log_dt"].exp().unsqueeze(-1)  # [H 1]
    w = torch.complex(-p["log_w_real"].exp(), p["w_imag"]) * dt  # [H n]
    angle = torch.arange(L // 2 + 1, dtype=dt.dtype) * (-2 * math.pi / L)
    root = torch.polar(torch.ones_like(angle), angle)
    z = 2 * (1 - root) / (1 + root)
    bc, bp = cauchy(B * C * dt, z, w), cauchy(B * P.conj() * dt, z, w)
    pc, pp = cauchy(P * C * dt, z, w), cauchy(P * P.conj() * dt, z, w)
    K_f = (bc - bp * pc / (1 + pp)) * 2 / (1 + root)
    return torch.fft.irfft(K_f, n=L)
