"""PyTorch peers. Kernels take Lambda [N 2], log_dt [H] or [H 2], W [H N 2]."""

import torch

from cases import EPSILON, block_length


def _reciprocal(x):
    conj = x.conj()
    return conj / (x * conj + EPSILON)


def _dt_lambda(Lambda, log_dt):
    if log_dt.dim() == 1:
        return log_dt.exp().unsqueeze(-1) * Lambda
    dt = log_dt.exp()
    return torch.complex(dt[:, :1] * Lambda.real, dt[:, 1:] * Lambda.imag)


def _weights(Lambda, W, z, growing, L):
    """w / lambda over the sum of the row: [H N]."""
    z_neg = z * (1 - 2 * growing)
    num = z_neg.exp() - 1
    den = (z_neg * L).exp() - 1
    return W * num * _reciprocal(den * Lambda)


def kernel_listing(Lambda, log_dt, W, L):
    """The paper's listing (appendix A.5), with its [H N L] tensor."""
    Lambda, W = map(torch.view_as_complex, (Lambda, W))
    z = _dt_lambda(Lambda, log_dt)  # [H N]
    P = z.unsqueeze(-1) * torch.arange(L, device=W.device)  # [H N L]
    growing = Lambda.real > 0
    if growing.any():
        with torch.no_grad():
            top = z * (growing * (L - 1))
        P = P - top.unsqueeze(-1)
    S = P.exp()
    W = _weights(Lambda, W, z, growing, L)
    return torch.einsum("hn,hnl->hl", W, S).real


def setup(Lambda, log_dt, W, L):
    """z [H N], weights [H N], shift [N]: a growing row is shifted by L-1 positions, so
    that nothing exceeds one."""
    Lambda, W = map(torch.view_as_complex, (Lambda, W))
    z = _dt_lambda(Lambda, log_dt)
    growing = Lambda.real > 0
    return z, _weights(Lambda, W, z, growing, L), growing * (L - 1)


def _blocks(Lambda, log_dt, W, L):
    """Left [H A N] with the weights in it, right [H N m]: K[a*m+b] = Re(left @ right)."""
    z, W, shift = setup(Lambda, log_dt, W, L)
    m = block_length(L)
    starts = torch.arange(0, L, m, dtype=log_dt.dtype).unsqueeze(-1) - shift  # [A N]
    left = W.unsqueeze(1) * (z.unsqueeze(1) * starts).exp()
    right = (z.unsqueeze(-1) * torch.arange(m, dtype=log_dt.dtype)).exp()
    return left, right


def kernel_blocked(Lambda, log_dt, W, L):
    """Blocked Vandermonde product, complex matrices."""
    left, right = _blocks(Lambda, log_dt, W, L)
    return torch.bmm(left, right).real.reshape(W.shape[0], -1)[:, :L]


def kernel_blocked_real(Lambda, log_dt, W, L):
    """The same, but only the real part of the product: half the arithmetic."""
    left, right = _blocks(Lambda, log_dt, W, L)
    left = torch.cat([left.real, -left.imag], dim=2)
    right = torch.cat([right.real, right.imag], dim=1)
    return torch.bmm(left, right).reshape(W.shape[0], -1)[:, :L]


def conv_listing(u, K):
    """The paper's convolution, derivative by autograd."""
    L = u.shape[-1]
    u_f = torch.fft.rfft(u, n=2 * L)
    K_f = torch.fft.rfft(K, n=2 * L)
    return torch.fft.irfft(K_f * u_f, n=2 * L)[..., :L]


class _Conv(torch.autograd.Function):
    """Same forward; the backward stays with real transforms (autograd of rfft
    runs a full complex one)."""

    @staticmethod
    def forward(ctx, u, K):
        L = u.shape[-1]
        u_f = torch.fft.rfft(u, n=2 * L)
        K_f = torch.fft.rfft(K, n=2 * L)
        ctx.save_for_backward(u_f, K_f)
        return torch.fft.irfft(u_f * K_f, n=2 * L)[..., :L]

    @staticmethod
    def backward(ctx, g):
        u_f, K_f = ctx.saved_tensors
        L = g.shape[-1]
        g_f = torch.fft.rfft(g, n=2 * L)
        dK_f = torch.einsum("bhf,bhf->hf", g_f, u_f.conj())
        dK = torch.fft.irfft(dK_f, n=2 * L)[..., :L]
        du = torch.fft.irfft(g_f.mul_(K_f.conj()), n=2 * L)[..., :L]
        return du, dK


def conv_real(u, K):
    return _Conv.apply(u, K)


# variant -> (kernel, conv)
VARIANTS = {
    "listing": (kernel_listing, conv_listing),
    "blocked": (kernel_blocked, conv_real),
    "blocked-real": (kernel_blocked_real, conv_real),
}


def forward(case_op, variant, L):
    """The function of a case, and the names of the inputs it differentiates."""
    kernel, conv = VARIANTS[variant]
    if case_op == "kernel":
        return lambda Lambda, log_dt, W: kernel(Lambda, log_dt, W, L), ("Lambda", "log_dt", "W")
    if case_op == "conv":
        return conv, ("u", "K")
    return (
        lambda Lambda, log_dt, W, u: conv(u, kernel(Lambda, log_dt, W, L)),
        ("Lambda", "log_dt", "W", "u"),
    )
