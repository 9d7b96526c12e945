"""The DSS classifier in JAX: one training step, traced and compiled as a whole.

Activations are [B H L]; another layout changed nothing, XLA chooses its own.
A variant names the kernel and the convolution of ops_jax.
"""

import functools

import jax
import jax.numpy as jnp

import ops_jax
from model_data import norm_names

EPS = 1e-5  # of both norms
MOMENTUM = 0.1  # of BatchNorm's running statistics

VARIANTS = ("blocked", "blocked-real")


def layer(variant, p, u):
    """§3.2: convolution with K, D u, GELU, projection."""
    kernel, conv = ops_jax.VARIANTS[variant]
    K = kernel(p["Lambda"], p["log_dt"], p["W"], u.shape[-1])
    y = jax.nn.gelu(conv(u, K) + p["D"][:, None] * u, approximate=False)
    return jnp.einsum("oh,bhl->bol", p["out.weight"], y) + p["out.bias"][:, None]


def norm(size, p, stats, name, x):
    """x normed, and the new running statistics."""
    axes = 1 if size.norm == "layer" else (0, 2)
    mean = x.mean(axes, keepdims=True)
    var = jnp.square(x - mean).mean(axes, keepdims=True)
    y = (x - mean) * jax.lax.rsqrt(var + EPS) * p[f"{name}.weight"][:, None]
    y = y + p[f"{name}.bias"][:, None]
    if size.norm == "layer":
        return y, {}
    count = x.size // size.H
    seen = {"mean": mean.ravel(), "var": var.ravel() * (count / (count - 1))}
    return y, {
        f"{name}.{k}": (1 - MOMENTUM) * stats[f"{name}.{k}"] + MOMENTUM * v
        for k, v in jax.lax.stop_gradient(seen).items()
    }


def logits(variant, size, p, stats, x, lengths=None):
    """Classes [B O], and the new running statistics. Mean over lengths [B], or over all."""
    h = p["encoder.weight"][x] if size.vocab else x * p["encoder.weight"][:, 0] + p["encoder.bias"]
    h = h.transpose(0, 2, 1)
    seen = {}
    for i, name in zip(range(size.layers), norm_names(size)):
        prefix = f"layers.{i}."
        own = {k.removeprefix(prefix): v for k, v in p.items() if k.startswith(prefix)}
        if size.prenorm:
            normed, new = norm(size, p, stats, name, h)
            h = h + layer(variant, own, normed)
        else:
            h, new = norm(size, p, stats, name, h + layer(variant, own, h))
        seen.update(new)
    if size.prenorm:
        h, new = norm(size, p, stats, "norm", h)
        seen.update(new)
    if lengths is None:
        pooled = h.mean(-1)
    else:
        inside = jnp.arange(h.shape[-1]) < lengths[:, None]
        pooled = (h * inside[:, None]).sum(-1) / lengths[:, None]
    return pooled @ p["head.weight"].T + p["head.bias"], seen


def loss(variant, size, p, stats, x, y, lengths=None):
    """Cross-entropy, and the new running statistics."""
    out, seen = logits(variant, size, p, stats, x, lengths)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], axis=1)
    return -chosen.mean(), seen


def begin(p, stats):
    """State of a training: parameters, running statistics, AdamW's two moments and count."""
    p, stats = ({name: jnp.array(a) for name, a in group.items()} for group in (p, stats))
    m, v = ({name: jnp.zeros_like(a) for name, a in p.items()} for _ in range(2))
    return p, stats, m, v, jnp.zeros((), jnp.int32)


def update(adamw, p, grads, m, v, count):
    """AdamW of every parameter with the settings of its group."""
    new_p, new_m, new_v = {}, {}, {}
    for name, g in grads.items():
        lr, decay = adamw.group(name)
        bias1, bias2 = (1 - jnp.power(b, count.astype(g.dtype)) for b in (adamw.beta1, adamw.beta2))
        new_m[name] = adamw.beta1 * m[name] + (1 - adamw.beta1) * g
        new_v[name] = adamw.beta2 * v[name] + (1 - adamw.beta2) * g * g
        change = (new_m[name] / bias1) / (jnp.sqrt(new_v[name] / bias2) + adamw.eps)
        new_p[name] = p[name] * (1 - lr * decay) - lr * change
    return new_p, new_m, new_v


@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def train_step(variant, size, adamw, state, x, y, lengths=None):
    """One step: the next state and the loss before it."""
    p, stats, m, v, count = state
    (value, stats), grads = jax.value_and_grad(
        lambda p: loss(variant, size, p, stats, x, y, lengths), has_aux=True
    )(p)
    p, m, v = update(adamw, p, grads, m, v, count + 1)
    return (p, stats, m, v, count + 1), value
