"""The same mathematics in plain PyTorch, with true gradients: on a GPU, in other precisions, and to compare with.

What follows from the parameters is computed in float64. Where the device has none (Apple's), on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .. import dss_model

_LOG_LIMIT = 40.0


def kernel(kind: str, params: Sequence[Tensor], taps: int, norm_len: int) -> Tensor:
    """K [C, H, taps]; for the kinds and their parameters see `ssm_kernel`."""
    like = params[-1]
    params = precise(params)
    if kind == "s4":
        k = _s4_kernel(S4(*params), taps, norm_len)
    else:
        k = _sums(modes(kind, params, norm_len), taps, norm_len)
    return k.to(device=like.device, dtype=like.dtype)


def precise(params: Sequence[Tensor]) -> list[Tensor]:
    """In float64, on a device that has it."""
    return [(p.cpu() if p.device.type == "mps" else p).double() for p in params]


def modes(kind: str, params: Sequence[Tensor], norm_len: int) -> tuple[Tensor, Tensor, Tensor]:
    """Exponents [H, N], coefficients [C, H, N], and which modes decay."""
    if kind.startswith("s4d-"):
        re, im, delta_log, c = params
        return dss_model.s4d_modes(re, im, c, delta_log, kind.removeprefix("s4d-"))
    lam, delta_log, w = params
    return dss_model.dss_modes(lam, delta_log, w, kind, norm_len)


def _sums(found: tuple[Tensor, Tensor, Tensor], taps: int, norm_len: int) -> Tensor:
    zeta, c, decays = found
    if not torch.compiler.is_compiling() and not decays.is_meta:
        return dss_model.kernel(zeta, c, decays, taps, norm_len)
    # A compiler cannot look at the values, and the meta device has none: both kinds of modes are summed.
    k = dss_model.exponential_sums(zeta, c * decays, taps)
    start = torch.exp(zeta * max(norm_len - taps, 0))
    return k + dss_model.exponential_sums(zeta, c * ~decays * start, taps).flip(2)


def conv(u: Tensor, k: Tensor) -> Tensor:
    """K * u: u [B, L, H], K [1, H, taps], or [2, H, taps] with a half that looks ahead."""
    wide = torch.promote_types(u.dtype, torch.float32)
    return dss_model.convolve(u.to(wide), k.to(wide)).to(u.dtype)


class S4(NamedTuple):
    """S4's parameters in float64; one of each conjugate pair of states is stored."""

    lambda_re: Tensor
    lambda_im: Tensor
    p: Tensor
    b: Tensor
    delta_log: Tensor
    c: Tensor

    def vectors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """lambda, P, B [1 or H, N/2], C [C, H, N/2] and delta [H, 1]."""
        lam = torch.complex(-self.lambda_re.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp(), self.lambda_im)
        p, b, c = (torch.view_as_complex(x.contiguous()) for x in (self.p, self.b, self.c))
        lam, p, b = (dss_model.per_channel(x, c.shape[1]) for x in (lam, p, b))
        return lam, p, b, c, self.delta_log.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()[:, None]


def _s4_kernel(params: S4, taps: int, norm_len: int) -> Tensor:
    """K from its generating function at the roots of unity w, by the Woodbury identity.

    With R_XY = delta sum_n X_n Y_n / (2 (1 - w) - (1 + w) delta lambda_n) over all N states,
    K^ = 2 (R_CB - (1 + w) R_CP R_PB / (1 + (1 + w) R_PP)), which has no pole on the unit circle.
    """
    if taps > norm_len:
        raise ValueError(f"the kernel of S4 has {norm_len} taps, but {taps} are wanted")
    lam, p, b, c, delta = params.vectors()
    at = torch.arange(norm_len // 2 + 1, device=lam.device, dtype=torch.float64)
    w = torch.exp(torch.complex(torch.zeros_like(at), -2 * torch.pi * at / norm_len))
    top, bottom = 1 + w, 2 * (1 - w)
    step = (delta * lam)[..., None]  # [H, N/2, 1]
    first, second = (delta[..., None] / (bottom - top * x) for x in (step, step.conj()))

    def resolvent(x: Tensor) -> Tensor:
        """[.., N/2] -> [.., F]: the sum over both of each pair."""
        return _channels(x, first) + _channels(x.conj(), second)

    r_cb, r_cp = resolvent(c * b), resolvent(c * p)
    r_pb, r_pp = resolvent((p.conj() * b)[None]), resolvent((p.conj() * p)[None])
    spectrum = 2 * (r_cb - top * r_cp * r_pb / (1 + top * r_pp))
    return torch.fft.irfft(spectrum, n=norm_len)[..., :taps]


def _channels(x: Tensor, table: Tensor) -> Tensor:
    """x [C, H or 1, N/2], table [H, N/2, F] -> [C, H, F]."""
    return torch.einsum("chn,hnf->chf", x.expand(-1, len(table), -1), table)


def s4_tables(params: S4, norm_len: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """S4 as a recurrence x = a x - q (2 Re r.x) + B u, y = 2 Re C.x: a, q, r, B [H, N/2] and C [C, H, N/2]."""
    lam, p, b, c, delta = params.vectors()
    half = delta / 2
    d = 1 / (1 - lam * half)
    kappa = 1 / (1 + half * 2 * (p.conj() * d * p).real.sum(-1, keepdim=True))
    through = kappa * half * 2 * (p.conj() * d * b).real.sum(-1, keepdim=True)
    a, q = (1 + lam * half) * d, d * p * half
    r, b = p.conj() * d * (2 * kappa), d * (b - p * through) * delta
    # C from C (I - A^L), over both of each pair.
    full = [torch.cat([x, x.conj()], -1) for x in (a, q, r, c)]
    matrix = torch.diag_embed(full[0]) - full[1][..., :, None] * full[2][..., None, :]
    left = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    left = left - torch.linalg.matrix_power(matrix, norm_len)
    c = torch.linalg.solve(left.transpose(1, 2), full[3].permute(1, 2, 0)).permute(2, 0, 1)
    return a, q, r, b, c[..., : lam.shape[1]]


def s4_step(tables: tuple[Tensor, ...], u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """u [B, H], x [B, H, N/2] -> y [B, H] and the next x."""
    a, q, r, b, c = tables
    x = a * x - q * (2 * (r * x).real.sum(-1, keepdim=True)) + b * u.to(x.dtype)[..., None]
    return 2 * (c[0] * x).real.sum(-1).to(u.dtype), x
