"""Do the peers compute the right thing? Double precision, against golden tensors.

    check.py [--model] FILE.safetensors...

A file kernel_* holds a kernel and a convolution, a file model_* a training. With --model the
variants of the whole model are compared with each other as well.
"""

import json
import os
import sys

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # compiles faster

import numpy as np  # noqa: E402

import check_model  # noqa: E402
import ops_jax  # noqa: E402
import ops_torch  # noqa: E402
import torch  # noqa: E402

TOLERANCE = 1e-10  # of the largest element


def read_safetensors(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        data = file.read()
    dtypes = {"F64": np.float64, "F32": np.float32, "I64": np.int64}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(data[begin:end], dtype=dtypes[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def run_torch(op, variant, L, arrays, g):
    f, names = ops_torch.forward(op, variant, L)
    params = [torch.tensor(arrays[name]).requires_grad_() for name in names]
    value = f(*params)
    grads = torch.autograd.grad(value, params, torch.tensor(g))
    return value.detach().numpy(), {n: d.numpy() for n, d in zip(names, grads)}


def run_jax(op, variant, L, arrays, g):
    f, names = ops_jax.step(op, variant, L)
    value, grads = f({name: arrays[name] for name in names}, g)
    return np.asarray(value), {name: np.asarray(grads[name]) for name in names}


def check(path):
    """Largest relative error of every variant on one file."""
    gold = read_safetensors(path)
    L = gold["K"].shape[-1]
    arrays = {
        "Lambda": gold["Lambda"],
        "log_dt": gold["log_dt"],
        "W": gold["W"][0],
        "u": gold["u"],
        "K": gold["K"][0],
    }
    want = {
        "y": gold["y"][:, 0],
        "K": gold["K"][0],
        "grad.K": gold["grad.K"][0],
        "grad.u": gold["grad.u"],
        "grad.Lambda": gold["grad.Lambda"],
        "grad.log_dt": gold["grad.log_dt"],
        "grad.W": gold["grad.W"][0],
    }
    worst = {}
    for peer, run, variants in (
        ("torch", run_torch, ops_torch.VARIANTS),
        ("jax", run_jax, ops_jax.VARIANTS),
    ):
        for variant in variants:
            error = 0.0
            # The cotangent of y is g, so that of the kernel is grad.K.
            for op, out, g in (("kernel", "K", want["grad.K"]), ("conv", "y", gold["g"][:, 0])):
                value, grads = run(op, variant, L, arrays, g)
                got = {out: value, **{f"grad.{n}": d for n, d in grads.items()}}
                for name, a in got.items():
                    if a.shape != want[name].shape or not np.isfinite(a).all():
                        raise SystemExit(f"check: {peer} {variant} {op} {name}: wrong shape or NaN")
                    scale = np.abs(want[name]).max()
                    error = max(error, float(np.abs(a - want[name]).max() / scale))
            worst[f"{peer} {variant}"] = error
    return worst


def results(paths, model):
    """Name, error and tolerance of every comparison."""
    for path in paths:
        base = os.path.basename(path)
        if base.startswith("model_"):
            for name, *rest in check_model.against_golden(read_safetensors(path)):
                yield f"{base}: {name}", *rest
        else:
            for name, error in check(path).items():
                yield f"{base}: {name}", error, TOLERANCE
    if model:
        yield from check_model.against_reference()


def main():
    bad = 0
    paths = [a for a in sys.argv[1:] if a != "--model"]
    for name, error, tolerance in results(paths, "--model" in sys.argv[1:]):
        verdict = "ok" if error <= tolerance else "WRONG"
        bad += verdict != "ok"
        print(f"check {name}: {error:.1e} {verdict}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
