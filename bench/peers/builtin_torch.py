"""Training steps of the classifiers whose mixer PyTorch has built in; prints one JSON object.

    builtin_torch.py MODEL --steps S --threads T

The size is that of `dss bench train --size listops`, with as many parameters as the model of that name there. Softmax
attention is scaled_dot_product_attention; LSTM and GRU are torch.nn's; FNet is two Fourier transforms.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from worker import start_memory, status_mb

B, L, H, LAYERS, VOCAB, CLASSES, HEADS, HIDDEN = 16, 2048, 128, 6, 18, 10, 4, 256


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(H, 3 * H, bias=False)
        self.out = nn.Linear(H, H, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).view(B, L, 3, HEADS, H // HEADS).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, L, H))


class Fourier(nn.Module):
    def forward(self, x):
        return torch.fft.fft2(x).real


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell(H, H, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]


class FeedForward(nn.Module):
    def __init__(self, gelu):
        super().__init__()
        self.hidden, self.out, self.gelu = nn.Linear(H, HIDDEN), nn.Linear(HIDDEN, H), gelu

    def forward(self, x):
        return self.out(F.gelu(self.hidden(x), approximate=self.gelu))


class Residual(nn.Module):
    """x + f(norm(x)), or norm(x + f(x))."""

    def __init__(self, f, prenorm):
        super().__init__()
        self.f, self.norm, self.prenorm = f, nn.LayerNorm(H), prenorm

    def forward(self, x):
        return x + self.f(self.norm(x)) if self.prenorm else self.norm(x + self.f(x))


class Classifier(nn.Module):
    def __init__(self, name):
        super().__init__()
        mixer = {
            "transformer": Attention, "fnet": Fourier,
            "lstm": lambda: Recurrent(nn.LSTM), "gru": lambda: Recurrent(nn.GRU),
        }[name]
        prenorm, parts = name == "transformer", []
        for _ in range(LAYERS):
            parts.append(Residual(mixer(), prenorm))
            if name in ("transformer", "fnet"):
                parts.append(Residual(FeedForward("tanh"), prenorm))
        self.encoder, self.parts = nn.Embedding(VOCAB, H), nn.Sequential(*parts)
        self.norm = nn.LayerNorm(H) if prenorm else nn.Identity()
        self.head = nn.Linear(H, CLASSES)

    def forward(self, x):
        return self.head(self.norm(self.parts(self.encoder(x))).mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("transformer", "fnet", "lstm", "gru"))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    before = start_memory()
    model = Classifier(args.model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x, y = torch.randint(0, VOCAB, (B, L)), torch.randint(0, CLASSES, (B,))
    times = []
    for _ in range(1 + args.steps):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimiser.step()
        times.append(time.perf_counter() - start)
    print(json.dumps({
        "model": args.model,
        "parameters": sum(p.numel() for p in model.parameters()),
        "median_ms": statistics.median(times[1:]) * 1e3,
        "min_ms": min(times[1:]) * 1e3,
        "peak_mb": status_mb("VmHWM") - before,
        "process_mb": status_mb("VmHWM"),
    }))


if __name__ == "__main__":
    main()
