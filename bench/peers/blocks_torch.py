"""The DSS classifier of model_torch.py as a user of our package writes it: a stack of DSSBlocks, torch's AdamW."""

import torch
import torch.nn.functional as F
from torch import nn

from diagonal_ssm.torch import DSSBlock, Norm, keep_memory

# Our names of the parameters that model_data.py makes.
NAMES = {
    "Lambda": "mixer.lambda",
    "log_dt": "mixer.delta_log",
    "W": "mixer.w",
    "D": "mixer.d",
    "out.weight": "mixer.out.weight",
    "out.bias": "mixer.out.bias",
    "norm.weight": "norm.gamma",
    "norm.bias": "norm.beta",
}


class Classifier(nn.Module):
    """Encoder, blocks, mean over the length, linear head."""

    def __init__(self, size):
        super().__init__()
        self.encoder = nn.Embedding(size.vocab, size.H) if size.vocab else nn.Linear(1, size.H)
        self.layers = nn.ModuleList(
            DSSBlock(size.H, d_state=size.N, l_max=size.L, norm=size.norm, prenorm=size.prenorm)
            for _ in range(size.layers)
        )
        self.norm = Norm(size.H, size.norm) if size.prenorm else nn.Identity()
        self.head = nn.Linear(size.H, size.classes)

    def forward(self, x, lengths=None):
        x = self.encoder(x)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if lengths is None:
            return self.head(x.mean(1))
        inside = torch.arange(x.shape[1])[None, :, None] < lengths[:, None, None]
        return self.head((x * inside).sum(1) / lengths[:, None])


def renamed(name):
    """Our name of a parameter."""
    for theirs, ours in NAMES.items():
        if name == theirs or name.endswith(f".{theirs}"):
            return name.removesuffix(theirs) + ours
    return name


def build(size, p, stats, adamw):
    """Model and optimiser with these parameters and running statistics."""
    keep_memory()
    model = Classifier(size).to(torch.from_numpy(p["head.bias"]).dtype)
    state = {renamed(name): torch.from_numpy(a) for name, a in p.items()}
    for name, a in stats.items():
        head, part = name.rsplit(".", 1)
        state[f"{head}.running_{part}"] = torch.from_numpy(a)
    shapes = {name: t.shape for name, t in model.state_dict().items()}
    model.load_state_dict({name: t.reshape(shapes[name]) for name, t in state.items()})
    groups = {}
    by_name = dict(model.named_parameters())
    for name in p:
        groups.setdefault(adamw.group(name), []).append(by_name[renamed(name)])
    optimiser = torch.optim.AdamW(
        [{"params": t, "lr": lr, "weight_decay": decay} for (lr, decay), t in groups.items()],
        betas=(adamw.beta1, adamw.beta2), eps=adamw.eps, fused=True,
    )
    return model, optimiser


def train_step(model, optimiser, x, y, lengths=None):
    """One step; the loss before it."""
    optimiser.zero_grad(set_to_none=True)
    value = F.cross_entropy(model(x, lengths), y)
    value.backward()
    optimiser.step()
    return value.item()
