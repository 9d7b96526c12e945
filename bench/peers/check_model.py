"""Do all variants compute the same model? Double precision, small sizes (see check.py)."""

import dataclasses
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import torch

import model_data
import model_jax
import model_torch
from sizes import SIZES, SMALL, AdamW

STEPS = 3
TOLERANCE = 1e-10
TRAINING_TOLERANCE = 1e-8  # AdamW divides by the size of a gradient, however small


def run_torch(variant, size, adamw, p, stats, x, y, lengths, steps):
    """Losses of the steps, gradients of the first, parameters and statistics at the end."""
    p = {name: torch.tensor(a).requires_grad_() for name, a in p.items()}
    stats = {name: torch.tensor(a) for name, a in stats.items()}
    x, y = torch.tensor(x), torch.tensor(y)
    lengths = None if lengths is None else torch.tensor(lengths)
    opt = model_torch.optimiser(variant, adamw, p)
    losses, grads = [], None
    for _ in range(steps):
        losses.append(model_torch.train_step(variant, size, p, stats, opt, x, y, lengths))
        if grads is None:
            grads = {name: t.grad.numpy().copy() for name, t in p.items()}
    end = {**{name: t.detach() for name, t in p.items()}, **stats}
    return losses, grads, {name: t.numpy() for name, t in end.items()}


def run_jax(variant, size, adamw, p, stats, x, y, lengths, steps):
    """The same in JAX."""
    state = model_jax.begin(p, stats)
    x, y = jnp.asarray(x), jnp.asarray(y)
    lengths = None if lengths is None else jnp.asarray(lengths)
    grads = jax.jit(jax.grad(
        lambda p: model_jax.loss(variant, size, p, state[1], x, y, lengths)[0]
    ))(state[0])
    grads = {name: np.asarray(g) for name, g in grads.items()}
    losses = []
    for _ in range(steps):
        state, value = model_jax.train_step(variant, size, adamw, state, x, y, lengths)
        losses.append(float(value))
    return losses, grads, {name: np.asarray(a) for name, a in {**state[0], **state[1]}.items()}


def run_package(variant, size, adamw, p, stats, x, y, lengths, steps):
    """The same with our own blocks."""
    import blocks_torch

    own = {name: a.copy() for name, a in p.items()}
    model, opt = blocks_torch.build(size, own, {name: a.copy() for name, a in stats.items()}, adamw)
    x, y = torch.tensor(x), torch.tensor(y)
    lengths = None if lengths is None else torch.tensor(lengths)
    parameters, losses, grads = dict(model.named_parameters()), [], None
    for _ in range(steps):
        losses.append(blocks_torch.train_step(model, opt, x, y, lengths))
        if grads is None:
            found = ((name, parameters[blocks_torch.renamed(name)]) for name in p)
            grads = {name: t.grad.numpy().reshape(p[name].shape).copy() for name, t in found}
    end = {name: parameters[blocks_torch.renamed(name)].detach().numpy().reshape(a.shape) for name, a in p.items()}
    for name in stats:
        head, part = name.rsplit(".", 1)
        end[name] = model.get_buffer(f"{head}.running_{part}").numpy()
    return losses, grads, end


RUNS = [("torch", v, run_torch) for v in model_torch.VARIANTS]
RUNS += [("jax", v, run_jax) for v in model_jax.VARIANTS]
if importlib.util.find_spec("diagonal_ssm"):
    RUNS += [("package", "blocks", run_package)]


def difference(got, want):
    """Largest difference over all tensors, each relative to its own largest element, or to a
    small part of the largest of all where a tensor is zero but for rounding."""
    floor = 1e-4 * max(np.abs(a).max() for a in want.values())
    worst = 0.0
    for name, a in want.items():
        b = got[name]
        if b.shape != a.shape or not np.isfinite(b).all():
            raise SystemExit(f"check: {name}: wrong shape or NaN")
        worst = max(worst, float(np.abs(b - a).max() / max(np.abs(a).max(), floor)))
    return worst


def compare(name, got, want):
    """Name, error and tolerance of: loss and gradients at the start; losses, parameters and
    statistics after training."""
    losses = [abs(a - b) / abs(b) for a, b in zip(got[0], want[0], strict=True)]
    yield f"{name}, loss and gradients", max(losses[0], difference(got[1], want[1])), TOLERANCE
    after = max(*losses, difference(got[2], want[2]))
    yield f"{name}, {len(losses)} steps", after, TRAINING_TOLERANCE


def against_reference():
    """Every variant against the listing: gradients, and a few steps of training."""
    for size in SMALL:
        p = model_data.parameters(size, np.float64)
        stats = model_data.running_stats(size, np.float64)
        x, y = model_data.batch(size, np.float64)
        want = None
        for peer, variant, run in RUNS:
            got = run(variant, size, AdamW(), p, stats, x, y, None, STEPS)
            if want is None:
                want = got
            else:
                yield from compare(f"model {size.name}: {peer} {variant}", got, want)


def against_golden(gold):
    """Every variant against stored steps of a post-norm BatchNorm model on tokens: a training of
    DSS, a first step of S4."""
    kernel, parts, runs = "kernel", ("log_dt", "Lambda", "W"), RUNS
    s4 = "sd.model.layers.0.layer.kernel.kernel.P" in gold
    if s4:
        kernel, parts = "kernel.kernel", ("log_dt", "log_w_real", "w_imag", "P", "B", "C")
        runs = [("torch", "listing", run_torch)]
    names = {"encoder.weight": "encoder.weight"}
    for i in range(2):
        old, new = f"model.layers.{i}", f"layers.{i}"
        for part in parts:
            names[f"{new}.{part}"] = f"{old}.layer.{kernel}.{part}"
        names[f"{new}.D"] = f"{old}.layer.D"
        for part in ("weight", "bias"):
            names[f"{new}.out.{part}"] = f"{old}.layer.output_linear.{part}"
            names[f"{new}.norm.{part}"] = f"{old}.norm.norm.{part}"
    for part in ("weight", "bias"):
        names[f"head.{part}"] = f"decoder.output_transform.{part}"
    stats = {
        f"layers.{i}.norm.{part}": f"model.layers.{i}.norm.norm.running_{part}"
        for i in range(2) for part in ("mean", "var")
    }

    def read(prefix, names):
        tensors = {new: gold[f"{prefix}.{old}"] for new, old in names.items()}
        for name, a in tensors.items():  # axes of one
            if name.endswith((".W", ".D", ".C", ".log_w_real", ".w_imag")):
                tensors[name] = a[0]
            if name.endswith((".P", ".B")):
                tensors[name] = a[0, 0]
            if name.endswith("out.bias"):
                tensors[name] = a[:, 0]
        return {name: np.ascontiguousarray(a) for name, a in tensors.items()}

    p = read("sd", names)
    vocab, H = p["encoder.weight"].shape
    N = 2 * len(p["layers.0.w_imag"]) if s4 else len(p["layers.0.Lambda"])
    B, L = gold["x"].shape
    size = dataclasses.replace(
        SIZES["listops"], layers=2, H=H, N=N, L=L, B=B, vocab=vocab, classes=len(p["head.bias"]),
        mixer="s4" if s4 else "dss",
    )
    losses = list(gold["loss_train" if s4 else "adamw.losses"])
    end = read("after_fwd", stats) if s4 else read("adamw.after", {**names, **stats})
    want = losses, read("grad", names), end
    for peer, variant, run in runs:
        got = run(variant, size, AdamW(lr_delta=0.02), p, read("sd", stats),
                  gold["x"], gold["target"], gold["lengths"], len(losses))
        yield from compare(f"{peer} {variant}", got, want)
