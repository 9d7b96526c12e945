"""The DSS and the S4 classifier in PyTorch: encoder, blocks, mean over the length, linear head, AdamW.

Parameters are a dictionary of named tensors (model_data.py). Three variants of the DSS model,
of which S4 has the first:

listing: the reference. Kernel and convolution are the paper's listing (the kernel of S4: that of
    s4_torch.py), the rest plain PyTorch.
blocked: the same with the kernel as a blocked real product and a convolution with its own
    backward (ops_torch.py); nothing else changes.
tuned: activations are [H B L], so that the projection is one matrix product and a channel one
    contiguous row; powers in real arithmetic; D u is part of the convolution (added to K_0);
    zero padding is kept between calls; AdamW is the fused one.
"""

import torch
import torch.nn.functional as F

import ops_torch
import s4_torch
from cases import block_length

VARIANTS = ("listing", "blocked", "tuned")


# --- listing and blocked: activations [B H L] --------------------------------


def layer(variant, p, u):
    """§3.2: convolution with K, D u, GELU, projection."""
    if variant == "tuned":
        return layer_tuned(p, u)
    kernel, conv = ops_torch.VARIANTS["listing" if variant == "listing" else "blocked-real"]
    L = u.shape[-1]
    K = s4_torch.kernel(p, L) if "P" in p else kernel(p["Lambda"], p["log_dt"], p["W"], L)
    y = F.gelu(conv(u, K) + p["D"].unsqueeze(-1) * u)
    return torch.einsum("oh,bhl->bol", p["out.weight"], y) + p["out.bias"].unsqueeze(-1)


def norm(variant, size, p, stats, name, x):
    """BatchNorm of every channel, or LayerNorm over the channels of a position."""
    if variant == "tuned":
        return norm_tuned(size, p, stats, name, x)
    weight, bias = p[f"{name}.weight"], p[f"{name}.bias"]
    if size.norm == "layer":
        return F.layer_norm(x.transpose(1, 2), (size.H,), weight, bias).transpose(1, 2)
    running = stats[f"{name}.mean"], stats[f"{name}.var"]
    return F.batch_norm(x, *running, weight, bias, training=True)


# --- tuned: activations [H B L] ----------------------------------------------


def kernel_real(Lambda, log_dt, W, L):
    """The blocked product of ops_torch with exp, cos and sin of real numbers: K [H L]."""
    z, C, shift = ops_torch.setup(Lambda, log_dt, W, L)
    m = block_length(L)
    z_re, z_im = z.real.contiguous(), z.imag.contiguous()

    def powers(exponents, axis):
        size = (z_re.unsqueeze(axis) * exponents).exp()
        angle = z_im.unsqueeze(axis) * exponents
        return size * angle.cos(), size * angle.sin()

    starts = torch.arange(0, L, m, dtype=log_dt.dtype).unsqueeze(-1) - shift  # [A N]
    re, im = powers(starts, 1)  # [H A N]
    C_re, C_im = C.real.unsqueeze(1), C.imag.unsqueeze(1)
    left = torch.cat([C_re * re - C_im * im, -(C_re * im + C_im * re)], dim=2)
    right = torch.cat(powers(torch.arange(m, dtype=log_dt.dtype), -1), dim=1)  # [H 2N m]
    return torch.bmm(left, right).reshape(W.shape[0], -1)[:, :L]


_padded = {}


def _rfft_padded(u):
    """rfft(u, n=2L) through a buffer whose second half stays zero."""
    L = u.shape[-1]
    key = (u.shape, u.dtype)
    if key not in _padded:
        _padded[key] = u.new_zeros(*u.shape[:-1], 2 * L)
    _padded[key][..., :L].copy_(u)
    return torch.fft.rfft(_padded[key])


class _Conv(torch.autograd.Function):
    """u [H B L], K [H L]: the causal convolution, real transforms both ways."""

    @staticmethod
    def forward(ctx, u, K):
        L = u.shape[-1]
        u_f = _rfft_padded(u)
        K_f = torch.fft.rfft(K, n=2 * L).unsqueeze(1)
        ctx.save_for_backward(u_f, K_f)
        return torch.fft.irfft(u_f * K_f, n=2 * L)[..., :L]

    @staticmethod
    def backward(ctx, g):
        u_f, K_f = ctx.saved_tensors
        L = g.shape[-1]
        g_f = _rfft_padded(g)
        dK_f = torch.einsum("hbf,hbf->hf", g_f, u_f.conj())
        dK = torch.fft.irfft(dK_f, n=2 * L)[..., :L]
        du = torch.fft.irfft(g_f.mul_(K_f.conj()), n=2 * L)[..., :L]
        return du, dK


def layer_tuned(p, u):
    H, B, L = u.shape
    K = kernel_real(p["Lambda"], p["log_dt"], p["W"], L)
    K = torch.cat([K[:, :1] + p["D"].unsqueeze(-1), K[:, 1:]], dim=1)
    y = F.gelu(_Conv.apply(u, K)).view(H, B * L)
    return torch.addmm(p["out.bias"].unsqueeze(-1), p["out.weight"], y).view(H, B, L)


def norm_tuned(size, p, stats, name, x):
    H, B, L = x.shape
    weight, bias = p[f"{name}.weight"], p[f"{name}.bias"]
    if size.norm == "layer":
        rows = x.reshape(H, B * L).t()
        return F.layer_norm(rows, (H,), weight, bias).t().reshape(H, B, L)
    running = stats[f"{name}.mean"], stats[f"{name}.var"]
    return F.batch_norm(x.reshape(1, H, B * L), *running, weight, bias, training=True).view(H, B, L)


# --- the model ---------------------------------------------------------------


def logits(variant, size, p, stats, x, lengths=None):
    """Classes [B O]. Mean over lengths [B], or over all positions."""
    if size.vocab:
        h = F.embedding(x, p["encoder.weight"])
    else:
        h = F.linear(x, p["encoder.weight"], p["encoder.bias"])
    to_layout = (2, 0, 1) if variant == "tuned" else (0, 2, 1)
    h = h.permute(to_layout).contiguous()
    for i in range(size.layers):
        prefix = f"layers.{i}."
        own = {k.removeprefix(prefix): v for k, v in p.items() if k.startswith(prefix)}
        if size.prenorm:
            h = h + layer(variant, own, norm(variant, size, p, stats, f"{prefix}norm", h))
        else:
            h = norm(variant, size, p, stats, f"{prefix}norm", h + layer(variant, own, h))
    if size.prenorm:
        h = norm(variant, size, p, stats, "norm", h)
    h = h.transpose(0, 1) if variant == "tuned" else h  # [B H L]
    if lengths is None:
        pooled = h.mean(-1)
    else:
        inside = torch.arange(h.shape[-1]) < lengths.unsqueeze(-1)
        pooled = (h * inside.unsqueeze(1)).sum(-1) / lengths.unsqueeze(-1)
    return F.linear(pooled, p["head.weight"], p["head.bias"])


def loss(variant, size, p, stats, x, y, lengths=None):
    return F.cross_entropy(logits(variant, size, p, stats, x, lengths), y)


def optimiser(variant, adamw, p):
    """AdamW with one group per pair of learning rate and weight decay."""
    groups = {}
    for name, tensor in p.items():
        groups.setdefault(adamw.group(name), []).append(tensor)
    return torch.optim.AdamW(
        [{"params": t, "lr": lr, "weight_decay": decay} for (lr, decay), t in groups.items()],
        betas=(adamw.beta1, adamw.beta2), eps=adamw.eps, fused=variant == "tuned" or None,
    )


def train_step(variant, size, p, stats, opt, x, y, lengths=None):
    """One step; the loss before it."""
    opt.zero_grad(set_to_none=True)
    value = loss(variant, size, p, stats, x, y, lengths)
    value.backward()
    opt.step()
    return value.item()
