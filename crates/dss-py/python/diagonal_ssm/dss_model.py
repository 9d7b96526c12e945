"""Diagonal State Space models in plain PyTorch: this one file loads what `dss train` writes.

    model = load("runs/listops/best.safetensors")       # or an exported model file
    logits = model(tokens)                              # [B, L] -> [B, O]; values [B, L, C]
    state = model.initial_state(batch)                  # the same model as a recurrence,
    y, state = model.step(tokens[:, 0], state)          # one position at a time

Letters are the paper's: H channels, N states, L positions, lambda, delta, W, D. Needs torch and numpy only.
"""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

LOG_LIMIT, EPSILON = 40.0, 1e-7


def dss_modes(lam, delta_log, w, variant, norm_len):
    """Exponents zeta [H, N], coefficients c [C, H, N] and a mask [H or 1, N] of the modes that decay.

    Every kernel is K_l = Re sum_n c_n exp(zeta_n k), Re zeta <= 0, with k = l for modes that decay (Re lambda <= 0)
    and k = norm_len - 1 - l for those that grow, which only the softmax has.
    """
    lam, delta, w = lam.double(), delta_log.double(), torch.view_as_complex(w.double().contiguous())
    delta = delta.clamp(-LOG_LIMIT, LOG_LIMIT).exp().reshape(w.shape[1], -1)
    re, im = lam[..., 0], lam[..., 1]
    if variant != "softmax":
        re = -re.clamp(-LOG_LIMIT, LOG_LIMIT).exp()
    re, im = per_channel(re, w.shape[1]), per_channel(im, w.shape[1])
    decays = re <= 0
    sign = torch.where(decays, 1.0, -1.0).double()
    zeta = torch.complex(delta[:, :1] * (re * sign), delta[:, -1:] * (im * sign))
    lam = torch.complex(re, im)
    if variant == "softmax":
        den = expm1(zeta * norm_len) * lam
        c = w * expm1(zeta) * (den.conj() / (den.abs() ** 2 + EPSILON))
    elif variant == "exp":
        c = w * expm1(zeta) * (lam.conj() / (re**2 + im**2).clamp_min(EPSILON))
    else:
        c = w * torch.ones_like(zeta)
    return zeta, c, decays


def s4d_modes(lambda_re, lambda_im, c, delta_log, discretisation):
    """The same for S4D, which stores one of each conjugate pair."""
    delta = delta_log.double().clamp(-LOG_LIMIT, LOG_LIMIT).exp()[:, None]
    c = torch.view_as_complex(c.double().contiguous())
    re = -lambda_re.double().clamp(-LOG_LIMIT, LOG_LIMIT).exp()
    lam = torch.complex(per_channel(re, c.shape[1]), per_channel(lambda_im.double(), c.shape[1]))
    if discretisation == "zoh":
        zeta = lam * delta
        q = expm1(zeta) / lam
    else:
        half = lam * delta / 2
        zeta, q = torch.log(1 + half) - torch.log(1 - half), delta / (1 - half)
    return zeta, 2 * c * q, torch.ones_like(lam.real, dtype=torch.bool)


def per_channel(x, h):
    """[N] or [S, N] -> [1, N] or [H, N]: channel h belongs to system h mod S."""
    return x[None] if x.dim() == 1 else x.repeat(h // len(x), 1)


def expm1(z):
    """exp(z) - 1 of complex z without cancellation near 0."""
    re, im = torch.expm1(z.real), z.imag
    sin = torch.sin(im / 2)
    return torch.complex(re * torch.cos(im) - 2 * sin * sin, (re + 1) * torch.sin(im))


def exponential_sums(zeta, c, taps):
    """Re sum_n c_n exp(zeta_n l) for l < taps, [C, H, taps]: with l = a m + b it is one product of matrices."""
    m = 1 << math.ceil(math.log2(max(taps, 2)) / 2)
    a = -(-taps // m)
    at = torch.arange(max(a, m), device=zeta.device, dtype=torch.float64)
    rows = c[..., None] * torch.exp(zeta[..., None] * (m * at[:a]))  # [C, H, N, a]
    columns = torch.exp(zeta[..., None] * at[:m])  # [H, N, m]
    k = rows.real.transpose(2, 3) @ columns.real - rows.imag.transpose(2, 3) @ columns.imag
    return k.flatten(2)[..., :taps]


def kernel(zeta, c, decays, taps, norm_len):
    """K [C, H, taps]."""
    k = exponential_sums(zeta, c * decays, taps)
    if bool(decays.all()):
        return k
    if taps > norm_len:
        raise ValueError(f"modes with Re lambda > 0 have a kernel of {norm_len} taps, but {taps} are wanted")
    start = torch.exp(zeta * (norm_len - taps))
    return k + exponential_sums(zeta, c * ~decays * start, taps).flip(2)


def convolve(u, k):
    """y_t = sum_j K0_j u_(t-j), and + sum_j K1_j u_(t+1+j) if K has two halves. u [B, L, H], K [C, H, taps]."""
    length = u.shape[1]
    n = length + k.shape[2]
    spectrum = torch.fft.rfft(k, n=n)
    if len(k) == 2:  # the other half backwards in time: tap j at lag -1 - j
        spectrum = spectrum[:1] + torch.fft.rfft(F.pad(k[1:].flip(2), (n - k.shape[2], 0)), n=n)
    y = torch.fft.irfft(torch.fft.rfft(u.transpose(1, 2), n=n) * spectrum[0], n=n)
    return y[..., :length].transpose(1, 2)


def modes_step(modes, norm_len, u, state):
    """K * u one position at a time: u [B, H], state (position, s [B, H, N]) -> [B, H] and the next state."""
    (zeta, c, decays), (position, s) = modes, state
    x = u.to(s.dtype)[..., None]
    if bool(decays.all()):
        s = s * torch.exp(zeta) + x
    elif position >= norm_len:
        raise ValueError(f"modes with Re lambda > 0 end after {norm_len} positions")
    else:
        s = torch.where(decays, s * torch.exp(zeta) + x, s + torch.exp(zeta * position) * x)
        c = c * torch.where(decays, 1.0, torch.exp(zeta * (norm_len - 1 - position)))
    return (c * s).real.sum(-1).to(u.dtype), (position + 1, s)


class Mixer(nn.Module):
    """Out(GELU(K * u + D u)) with the kernel of DSS or S4D."""

    def __init__(self, settings, h, length, bidirectional):
        super().__init__()
        self.settings, self.bidirectional = settings, bidirectional
        n, c, systems = settings["n"], 2 if bidirectional else 1, settings.get("ssms", 1)
        several = [systems] if systems > 1 else []
        self.glu, self.kernel_len, self.length = settings["glu"], settings["kernel_len"], length
        if settings["kind"] == "dss":
            tied = settings["delta"] == "tied"
            shapes = {"lambda": [*several, n, 2], "delta_log": [h] if tied else [h, 2], "w": [c, h, n, 2]}
        elif settings["kind"] == "s4d":
            half = n // 2
            lam = [*several, half]
            shapes = {"lambda_re": lam, "lambda_im": lam, "c": [c, h, half, 2], "delta_log": [h]}
        else:
            raise ValueError(f"this file has no {settings['kind']} layers")
        for name, shape in {**shapes, "d": [h]}.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))
        self.out = nn.Linear(h, 2 * h if self.glu else h)

    def norm_len(self):
        return min(self.length, self.kernel_len or self.length)

    def modes(self):
        p = dict(self.named_parameters())
        if self.settings["kind"] == "s4d":
            rule = self.settings["discretisation"]
            return s4d_modes(p["lambda_re"], p["lambda_im"], p["c"], p["delta_log"], rule)
        return dss_modes(p["lambda"], p["delta_log"], p["w"], self.settings["variant"], self.norm_len())

    def project(self, v):
        tanh = self.settings.get("ssm_gelu") == "tanh"
        y = self.out(F.gelu(v, approximate="tanh" if tanh else "none"))
        return F.glu(y, -1) if self.glu else y

    def forward(self, u):
        taps = min(u.shape[1], self.kernel_len or u.shape[1])
        k = kernel(*self.modes(), taps, self.norm_len()).to(u.dtype)
        return self.project(convolve(u, k) + self.d * u)

    def step(self, u, state):
        """u [B, H], state (position, s [B, H, N])."""
        if self.bidirectional or 0 < self.kernel_len < self.length:
            raise ValueError("bidirectional layers and cut kernels need whole sequences")
        y, state = modes_step(self.modes(), self.norm_len(), u, state)
        return self.project(y + self.d * u), state


class Norm(nn.Module):
    """LayerNorm, the authors' LayerNorm with scalar gain and offset, or BatchNorm with its running statistics."""

    def __init__(self, kind, h, eps):
        super().__init__()
        self.kind, self.eps, size = kind, eps, 1 if kind == "layer-scalar" else h
        self.gamma, self.beta = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))
        if kind == "batch":
            self.register_buffer("running_mean", torch.zeros(h))
            self.register_buffer("running_var", torch.ones(h))

    def forward(self, x):
        if self.kind == "batch":
            return (x - self.running_mean) / torch.sqrt(self.running_var + self.eps) * self.gamma + self.beta
        x = x - x.mean(-1, keepdim=True)
        var = (x * x).mean(-1, keepdim=True)
        if self.kind == "layer-scalar":
            return (x + self.beta) / torch.sqrt(var) * self.gamma
        return x / torch.sqrt(var + self.eps) * self.gamma + self.beta


class Block(nn.Module):
    """x + f(norm(x)) or norm(x + f(x))."""

    def __init__(self, model, length):
        super().__init__()
        self.prenorm, h = model["prenorm"], model["h"]
        self.mixer = Mixer(model["mixer"], h, length, model["bidirectional"])
        self.norm = Norm(model["norm"], h, model.get("norm_eps", 1e-5))

    def forward(self, x):
        return x + self.mixer(self.norm(x)) if self.prenorm else self.norm(x + self.mixer(x))

    def step(self, x, state):
        y, state = self.mixer.step(self.norm(x) if self.prenorm else x, state)
        return (x + y if self.prenorm else self.norm(x + y)), state


class Model(nn.Module):
    """Encoder, blocks, pooling and head, for inference: BatchNorm uses its running statistics, nothing is dropped."""

    def __init__(self, meta):
        super().__init__()
        self.meta, model, io = meta, meta["model"], meta["io"]
        h, length = model["h"], io["len"]
        if isinstance(model["mixer"], str):  # files of 0.1.0 have the mixer's settings among the others
            model["mixer"] = {**model, "kind": model["mixer"]}
        if model.get("ff") or model.get("positions", "none") != "none" or model["pool"] == "cls":
            raise ValueError("this file has no feed-forward parts, positions or cls vectors")
        given, answer = io["input"], io["output"]
        tokens = given["kind"] == "tokens"
        self.encoder = nn.Embedding(given["vocab"], h) if tokens else nn.Linear(given["channels"], h)
        self.layers = nn.ModuleList(Block(model, length) for _ in range(model["layers"]))
        last_norm = model["prenorm"] and model.get("last_norm", True)
        self.norm = Norm(model["norm"], h, model.get("norm_eps", 1e-5)) if last_norm else nn.Identity()
        if answer["kind"] == "pair" or model.get("head_hidden"):
            raise ValueError("this file has no heads with a hidden layer and none for pairs of sequences")
        self.each_position, self.pool = answer["kind"] == "position", model["pool"]
        self.head = nn.Linear(h, answer["outputs"])

    def forward(self, x, lengths=None):
        """x [B, L] tokens or [B, L, C] values, right-padded to `lengths` [B] -> [B, O], or [B, L, O]."""
        x = self.encoder(x)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.each_position:
            return self.head(x)
        if lengths is None:
            lengths = torch.full((len(x),), x.shape[1], device=x.device)
        if self.pool == "last":
            x = x[torch.arange(len(x)), lengths - 1]
        else:
            inside = torch.arange(x.shape[1], device=x.device)[None, :, None] < lengths[:, None, None]
            x = (x * inside).sum(1) / lengths[:, None]
        return self.head(x)

    def initial_state(self, batch):
        """A stream of `batch` sequences before the first position."""
        model = self.meta["model"]
        n = model["mixer"]["n"] // (2 if model["mixer"]["kind"] == "s4d" else 1)
        s = torch.zeros(batch, model["h"], n, dtype=torch.complex128)
        return [(0, s) for _ in self.layers], (0, torch.zeros(batch, model["h"]))

    def step(self, x, state):
        """x [B] tokens or [B, C] values -> the answer for everything so far [B, O], and the next state."""
        states, (count, total) = state
        x, after = self.encoder(x), []
        for layer, before in zip(self.layers, states):
            x, later = layer.step(x, before)
            after.append(later)
        x = self.norm(x)
        count, total = count + 1, total + x
        mean = self.pool == "mean" and not self.each_position
        return self.head(total / count if mean else x), (after, (count, total))


def load(path):
    """The model of a safetensors file of ours."""
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    model = Model(json.loads(header.pop("__metadata__")["dss"]))
    kinds = {"F32": np.float32, "F16": np.float16, "F64": np.float64}
    tensors = {}
    for name, tensor in header.items():
        begin, end = (start + offset for offset in tensor["data_offsets"])
        values = np.frombuffer(data[begin:end], kinds[tensor["dtype"]]).reshape(tensor["shape"])
        tensors[name] = torch.from_numpy(values.astype(np.float32))
    model.load_state_dict(tensors)
    return model.eval()
