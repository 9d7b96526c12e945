"""JAX peers: the same functions, traced and compiled as a whole."""

import jax
import jax.numpy as jnp

from cases import EPSILON, block_length


def _complex(pairs):
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def _setup(Lambda, log_dt, W, L):
    """z [H N], weights [H N], shift [N] (L-1 where Re(Lambda) > 0, else 0)."""
    Lambda, W = _complex(Lambda), _complex(W)
    dt = jnp.exp(log_dt)
    if dt.ndim == 1:
        z = dt[:, None] * Lambda
    else:
        z = jax.lax.complex(dt[:, :1] * Lambda.real, dt[:, 1:] * Lambda.imag)
    growing = Lambda.real > 0
    z_neg = jnp.where(growing, -z, z)
    x = (jnp.exp(z_neg * L) - 1) * Lambda
    reciprocal = jnp.conj(x) / (x * jnp.conj(x) + EPSILON)
    return z, W * (jnp.exp(z_neg) - 1) * reciprocal, growing * (L - 1)


def kernel_plain(Lambda, log_dt, W, L):
    z, W, shift = _setup(Lambda, log_dt, W, L)
    pos = jnp.arange(L, dtype=log_dt.dtype)
    S = jnp.exp(z[:, :, None] * (pos - shift[:, None]))
    return jnp.einsum("hn,hnl->hl", W, S).real


def _blocks(Lambda, log_dt, W, L):
    z, W, shift = _setup(Lambda, log_dt, W, L)
    m = block_length(L)
    starts = jnp.arange(0, L, m, dtype=log_dt.dtype)[:, None] - shift  # [A N]
    left = W[:, None] * jnp.exp(z[:, None] * starts)
    right = jnp.exp(z[:, :, None] * jnp.arange(m, dtype=log_dt.dtype))
    return left, right


def kernel_blocked(Lambda, log_dt, W, L):
    left, right = _blocks(Lambda, log_dt, W, L)
    return (left @ right).real.reshape(W.shape[0], -1)[:, :L]


def kernel_blocked_real(Lambda, log_dt, W, L):
    left, right = _blocks(Lambda, log_dt, W, L)
    left = jnp.concatenate([left.real, -left.imag], axis=2)
    right = jnp.concatenate([right.real, right.imag], axis=1)
    return (left @ right).reshape(W.shape[0], -1)[:, :L]


def conv_plain(u, K):
    L = u.shape[-1]
    product = jnp.fft.rfft(u, n=2 * L) * jnp.fft.rfft(K, n=2 * L)
    return jnp.fft.irfft(product, n=2 * L)[..., :L]


@jax.custom_vjp
def conv_real(u, K):
    return conv_plain(u, K)


def _conv_forward(u, K):
    L = u.shape[-1]
    u_f, K_f = jnp.fft.rfft(u, n=2 * L), jnp.fft.rfft(K, n=2 * L)
    return jnp.fft.irfft(u_f * K_f, n=2 * L)[..., :L], (u_f, K_f)


def _conv_backward(saved, g):
    u_f, K_f = saved
    L = g.shape[-1]
    g_f = jnp.fft.rfft(g, n=2 * L)
    dK = jnp.fft.irfft((g_f * jnp.conj(u_f)).sum(0), n=2 * L)[..., :L]
    du = jnp.fft.irfft(g_f * jnp.conj(K_f), n=2 * L)[..., :L]
    return du, dK


conv_real.defvjp(_conv_forward, _conv_backward)


VARIANTS = {
    "plain": (kernel_plain, conv_plain),
    "blocked": (kernel_blocked, conv_real),
    "blocked-real": (kernel_blocked_real, conv_real),
}


def step(case_op, variant, L):
    """The compiled step f(inputs dict) -> (value, gradients), and what it differentiates."""
    kernel, conv = VARIANTS[variant]
    if case_op == "kernel":
        names = ("Lambda", "log_dt", "W")
        forward = lambda p: kernel(p["Lambda"], p["log_dt"], p["W"], L)
    elif case_op == "conv":
        names = ("u", "K")
        forward = lambda p: conv(p["u"], p["K"])
    else:
        names = ("Lambda", "log_dt", "W", "u")
        forward = lambda p: conv(p["u"], kernel(p["Lambda"], p["log_dt"], p["W"], L))

    def value_and_grad(params, g):
        value, pull = jax.vjp(forward, params)
        return value, pull(g)[0]

    return jax.jit(value_and_grad), names
