"""One step of a stack at a time in PyTorch, on one thread; prints one JSON object.

    step_torch.py MODEL_FILE --checked STEPS --seconds S [--compile]

MODEL_FILE is what `dss bench step --keep FILE` leaves: DSS-softmax, BatchNorm before each layer, mean
over the positions. The recurrence is that of section 3.4 with the state [H, N] of each layer.
"""

import argparse
import json
import math
import statistics
import struct
import time

import torch


def load(path):
    """Tensors of a safetensors file in f32, and its description."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    meta = json.loads(header.pop("__metadata__")["dss"])
    tensors = {}
    for name, info in header.items():
        begin, end = info["data_offsets"]
        raw = bytearray(data[8 + size + begin : 8 + size + end])
        tensors[name] = torch.frombuffer(raw, dtype=torch.float32).reshape(info["shape"])
    return tensors, meta


def discretise(p, layer, length):
    """Step and output coefficients [H, N] of a softmax layer with Re lambda < 0, in complex128."""
    get = lambda name: p[f"layers.{layer}.mixer.{name}"].double()
    lam = torch.view_as_complex(get("lambda").contiguous())
    delta = get("delta_log").exp()
    zeta = torch.complex(delta[:, :1] * lam.real, delta[:, 1:] * lam.imag)
    x = torch.expm1(zeta * length) * lam
    scale = torch.expm1(zeta) * x.conj() / (x.abs() ** 2 + 1e-7)
    w = torch.view_as_complex(get("w")[0].contiguous())
    return zeta.exp(), w * scale


class Stack(torch.nn.Module):
    def __init__(self, p, meta, real):
        super().__init__()
        self.p, self.real, self.layers = p, real, meta["model"]["layers"]
        self.length = meta["io"]["len"]
        for i in range(self.layers):
            a, c = discretise(p, i, self.length)
            dtype = torch.complex64
            self.register_buffer(f"a{i}", a.to(dtype))
            self.register_buffer(f"c{i}", c.to(dtype))
            for part in "re", "im":
                pick = lambda z: (z.real if part == "re" else z.imag).float().contiguous()
                self.register_buffer(f"a{part}{i}", pick(a))
                self.register_buffer(f"c{part}{i}", pick(c))
            self.affine(f"layers.{i}.norm", f"n{i}")
        self.affine("norm", "last")

    def affine(self, name, to):
        p = self.p
        scale = p[f"{name}.gamma"] / torch.sqrt(p[f"{name}.running_var"] + 1e-5)
        self.register_buffer(f"{to}scale", scale)
        self.register_buffer(f"{to}shift", p[f"{name}.beta"] - scale * p[f"{name}.running_mean"])

    def begin(self):
        h, n = self.a0.shape
        if self.real:
            return [torch.zeros(2, h, n) for _ in range(self.layers)], torch.zeros(h)
        return [torch.zeros(h, n, dtype=torch.complex64) for _ in range(self.layers)], torch.zeros(h)

    def forward(self, x, states, total, count):
        p = self.p
        x = p["encoder.weight"][:, 0] * x + p["encoder.bias"]
        new = []
        for i in range(self.layers):
            g = lambda name: getattr(self, f"{name}{i}")
            u = x * getattr(self, f"n{i}scale") + getattr(self, f"n{i}shift")
            if self.real:
                re, im = states[i][0], states[i][1]
                re, im = g("are") * re - g("aim") * im + u[:, None], g("are") * im + g("aim") * re
                y = (g("cre") * re - g("cim") * im).sum(1)
                new.append(torch.stack([re, im]))
            else:
                s = g("a") * states[i] + u[:, None]
                y = (g("c") * s).sum(1).real
                new.append(s)
            y = torch.nn.functional.gelu(y + p[f"layers.{i}.mixer.d"] * u)
            x = x + p[f"layers.{i}.mixer.out.weight"] @ y + p[f"layers.{i}.mixer.out.bias"]
        x = x * self.lastscale + self.lastshift
        total = total + x
        return p["head.weight"] @ (total / count) + p["head.bias"], new, total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--checked", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    p, meta = load(options.file)
    result = {}
    with torch.inference_mode():
        for name in ["complex", "real"] + ["compiled"] * options.compile:
            stack = Stack(p, meta, name != "complex")
            step = torch.compile(stack, dynamic=False) if name == "compiled" else stack
            states, total = stack.begin()
            for t in range(options.checked):
                x, count = torch.tensor(math.sin(t * 0.05)), torch.tensor(float(t + 1))
                logits, states, total = step(x, states, total, count)
            times, begin = [], time.perf_counter()
            while time.perf_counter() - begin < options.seconds or len(times) < 10:
                start = time.perf_counter()
                step(x, states, total, count)
                times.append(time.perf_counter() - start)
            result[name] = {"us": 1e6 * statistics.median(times), "logits": logits.tolist()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
