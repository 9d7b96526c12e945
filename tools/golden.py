#!/usr/bin/env python3
"""Computes the golden files of the DSS kernels, with PyTorch in float64 and automatic differentiation.

    tools/golden.py crates/dss-kernels/tests/golden/kernel_*.safetensors    # check: recompute and compare
    tools/golden.py --write NAME.safetensors --version exp --seed 0 ...     # make a file (--help)

A check takes the parameters, the input u and the cotangent g of a file and recomputes the rest from the paper's listing
(below). Needs Python with torch, numpy and safetensors.
"""

import argparse
import json
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

EPSILON = 1e-7
f64 = torch.float64


def complex_of(x):
    """[..., 2] as complex numbers."""
    return torch.view_as_complex(x.contiguous())


def reciprocal(x):
    """The listing's 1/x: conj(x) / (|x|^2 + epsilon)."""
    return x.conj() / (x * x.conj() + EPSILON)


def kernel(version, p, length):
    """K: [C, H, L] from log_dt [H, 2] or [H], Lambda [N] and W [C, H, N] (Alg. 1 and Prop. 1)."""
    if version == "softmax":
        lam = complex_of(p["Lambda"])
    else:
        lam = torch.complex(-p["Lambda_log_neg_re"].exp(), p["Lambda_im"])
    dt = p["log_dt"].exp()
    re, im = (dt[:, 0], dt[:, 1]) if dt.ndim == 2 else (dt, dt)
    z = torch.complex(re[:, None] * lam.real, im[:, None] * lam.imag)  # [H, N]
    positions = torch.arange(length, dtype=f64)
    powers = z[..., None] * positions  # [H, N, L]
    w = complex_of(p["W"])
    if version == "softmax":
        # exp(powers - their largest one): with Re(lambda) > 0 the last position is the largest. The shift is part of
        # the function and is differentiated.
        positive = (lam.real > 0)[None]
        powers = powers - torch.where(positive, z * (length - 1), torch.zeros_like(z))[..., None]
        falling = torch.where(positive, -z, z)
        numerator = falling.exp() - 1
        w = w * numerator * reciprocal(((falling * length).exp() - 1) * lam)
    elif version == "exp":
        # The listing clamps |lambda|^2 from below.
        size = (lam.real**2 + lam.imag**2).clamp(min=EPSILON)
        w = w * (z.exp() - 1) * lam.conj() / size
    return torch.einsum("chn,hnl->chl", w, powers.exp()).real


def convolve(k, u):
    """y: [B, C, H, L], the causal convolution of K: [C, H, L] with u: [B, H, L]."""
    length = u.shape[-1]
    spectrum = torch.fft.rfft(k, n=2 * length)[None] * torch.fft.rfft(u, n=2 * length)[:, None]
    return torch.fft.irfft(spectrum, n=2 * length)[..., :length]


def compute(version, parameters, u, g):
    """Everything else that a file holds: K, y, and the gradients of sum(y * g)."""
    p = {name: x.clone().requires_grad_() for name, x in parameters.items()}
    u = u.clone().requires_grad_()
    k = kernel(version, p, u.shape[-1])
    k.retain_grad()
    y = convolve(k, u)
    (y * g).sum().backward()
    out = {"K": k.detach(), "y": y.detach(), "grad.u": u.grad, "grad.K": k.grad}
    return out | {f"grad.{name}": x.grad for name, x in p.items()}


def check(path):
    """Compares a file with what is computed from its parameters; says the largest difference."""
    with safe_open(path, "pt") as file:
        meta = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    names = [n for n in ("log_dt", "Lambda", "Lambda_log_neg_re", "Lambda_im", "W") if n in tensors]
    version = meta["version"].strip('"')
    computed = compute(version, {n: tensors[n] for n in names}, tensors["u"], tensors["g"])
    worst = ("", 0.0)
    for name, got in computed.items():
        want = tensors.get(name, tensors.get(name.replace("grad.", "grad_true.")))
        error = ((got - want).abs().max() / want.abs().max()).item()
        worst = max(worst, (name, error), key=lambda x: x[1])
    # A one-ulp change of the parameters would already move the gradients by up to 2e-11.
    tolerance = 1e-12
    print(f"{path}: {worst[1]:.1e} in {worst[0]}")
    return worst[1] <= tolerance


def write(path, args):
    """Makes a file with random parameters: both signs of Im(lambda), Re(lambda) < 0."""
    random = torch.Generator().manual_seed(args.seed)
    normal = lambda *shape: torch.randn(*shape, generator=random, dtype=f64)
    h, n, length, c = args.h, args.n, args.l, args.channels
    parameters = {"log_dt": 0.5 * normal(h, 2) - 3, "W": normal(c, h, n, 2)}
    re, im = -normal(n).abs() - 0.1, 3 * normal(n)
    if args.version == "softmax":
        parameters["Lambda"] = torch.stack([re, im], -1)
    else:
        parameters |= {"Lambda_log_neg_re": (-re).log(), "Lambda_im": im}
    u, g = normal(2, h, length), normal(2, c, h, length)
    tensors = parameters | {"u": u, "g": g} | compute(args.version, parameters, u, g)
    meta = {"version": args.version, "H": h, "N": n, "L": length, "B": 2, "C": c, "epsilon": EPSILON}
    meta = {name: json.dumps(value) for name, value in meta.items()}
    save_file({name: x.contiguous() for name, x in tensors.items()}, path, meta)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("files", nargs="*")
    arguments.add_argument("--write", metavar="FILE")
    arguments.add_argument("--version", choices=["softmax", "exp", "exp-no-scale"], default="softmax")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--h", type=int, default=4)
    arguments.add_argument("--n", type=int, default=8)
    arguments.add_argument("--l", type=int, default=32)
    arguments.add_argument("--channels", type=int, default=1)
    args = arguments.parse_args()
    if args.write:
        write(args.write, args)
    sys.exit(not all([check(path) for path in args.files]))


if __name__ == "__main__":
    main()
