"""Whole models of our checkpoints, built of fused blocks: to train further, to take apart, to save again."""

from __future__ import annotations

import json
import os
from typing import Any, Optional, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model import Model, load
from ._block import DSSBlock, Norm
from ._layers import DSSLayer, S4DLayer, S4Layer, SSMLayer, State, checked_lengths, inside

_DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64}

ModelState = tuple[list[State], tuple[int, Tensor]]
"""Of the streams through a model: those of its blocks, and count and sum [B, H] of what is pooled."""


def load_model(path: Union[str, os.PathLike[str]]) -> DSSModel:
    """The model of a run directory (its best checkpoint) or of a model file, in evaluation mode."""
    found = load(path)  # with all its checks
    model = DSSModel(found.meta)
    model.load_state_dict(_tensors(found._data))
    return model.eval()


def _tensors(data: bytes) -> dict[str, Tensor]:
    """The tensors of a model file in float32, or float64 where the file has it."""
    start, tensors = 8 + int.from_bytes(data[:8], "little"), {}
    header = json.loads(data[8:start])
    header.pop("__metadata__")
    for name, about in header.items():
        begin, end = (start + offset for offset in about["data_offsets"])
        values = np.frombuffer(data[begin:end], _DTYPES[about["dtype"]]).reshape(about["shape"])
        tensors[name] = torch.from_numpy(values.astype(np.promote_types(values.dtype, np.float32)))
    return tensors


def _layer(settings: dict[str, Any], h: int, length: int, bidirectional: bool) -> SSMLayer:
    kind, n = settings["kind"], settings["n"]
    shared: dict[str, Any] = {
        "bidirectional": bidirectional,
        "glu": settings["glu"],
        "kernel_len": settings["kernel_len"],
        "ssms": settings.get("ssms", 1),
        "dt_min": settings["delta_min"],
        "dt_max": settings["delta_max"],
        "gelu": settings.get("ssm_gelu", "erf"),
    }
    if kind == "s4":
        return S4Layer(h, n, length, **shared)
    if kind == "dss":
        return DSSLayer(h, n, length, settings["variant"], tied_delta=settings["delta"] == "tied", **shared)
    if kind == "s4d":
        return S4DLayer(h, n, length, settings["lambda_init"], settings["discretisation"], **shared)
    raise ValueError(f"there are no {kind} layers in PyTorch: use diagonal_ssm.load")


class _TwoLayers(nn.Module):
    """Two linear maps with an activation between them."""

    def __init__(self, inputs: int, width: int, outputs: int, gelu: bool) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(inputs, width), nn.Linear(width, outputs)
        self.between = F.gelu if gelu else F.relu

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.between(self.hidden(x)))


class DSSModel(nn.Module):
    """Encoder, blocks, pooling and head, with the names of our checkpoints.

    Args:
        meta: the description of a model file: `model` (its settings) and `io` (its two ends and its length), as
            `diagonal_ssm.load(path).meta` has them.

    Parameters: `encoder.*`, `layers.i.mixer.*`, `layers.i.norm.*`, `norm.*` (if there is a last norm), `head.*`.
    """

    meta: dict[str, Any]
    encoder: nn.Module
    layers: nn.ModuleList
    norm: nn.Module
    head: nn.Module
    output: str
    pool: str

    def __init__(self, meta: dict[str, Any]) -> None:
        super().__init__()
        self.meta = meta
        model, io = meta["model"], meta["io"]
        h, length, given, answer = model["h"], io["len"], io["input"], io["output"]
        mixer = model["mixer"]
        if isinstance(mixer, str):  # version 0.1 has the mixer's settings among the others
            mixer = {**model, "kind": mixer}
        if model.get("ff") or model.get("positions", "none") != "none" or model["pool"] == "cls":
            raise ValueError("there are no feed-forward parts, positions and cls vectors in PyTorch: use diagonal_ssm.load")
        norm = (model["norm"], model.get("norm_eps", 1e-5), 0.1, model.get("mask_padding", False))
        tokens = given["kind"] == "tokens"
        self.encoder = nn.Embedding(given["vocab"], h) if tokens else nn.Linear(given["channels"], h)
        self.layers = nn.ModuleList(
            DSSBlock(
                h,
                _layer(mixer, h, length, model["bidirectional"]),
                norm=norm[0],
                eps=norm[1],
                mask_padding=norm[3],
                prenorm=model["prenorm"],
                dropout=model["dropout"],
            )
            for _ in range(model["layers"])
        )
        last_norm = model["prenorm"] and model.get("last_norm", True)
        self.norm = Norm(h, *norm) if last_norm else nn.Identity()
        self.output, self.pool = answer["kind"], model["pool"]
        hidden, outputs = model.get("head_hidden", 0), answer["outputs"]
        if self.output == "pair":
            self.head = _TwoLayers(4 * h, hidden or h, outputs, gelu=True)
        elif hidden:
            self.head = _TwoLayers(h, hidden, outputs, gelu=False)
        else:
            self.head = nn.Linear(h, outputs)

    def forward(self, x: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """x [B, L] token ids or [B, L, C] numbers, right-padded to `lengths` [B] -> [B, O].

        With an answer per position: [B, L, O]. For pairs, the first half of the batch are the first sequences: [B/2, O].
        """
        lengths = checked_lengths(lengths, self._checked(x), least=1)
        x = self.hidden(x, lengths)
        if self.output == "position":
            return self.head(x)
        x = self._pooled(x, lengths)
        if self.output != "pair":
            return self.head(x)
        a, b = x.chunk(2)
        return self.head(torch.cat([a, b, a - b, a * b], -1))

    def hidden(self, x: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """The activations before pooling and head: [B, L, H]."""
        x = self.encoder(x)
        for layer in self.layers:
            x = layer(x, lengths)
        return self.norm(x, lengths) if isinstance(self.norm, Norm) else x

    def _checked(self, x: Any) -> Tensor:
        """x, or an error if it is not what the encoder reads."""
        channels = self.meta["io"]["input"].get("channels")
        if isinstance(x, Tensor) and 0 not in x.shape:
            tokens = x.dim() == 2 and x.dtype in (torch.int64, torch.int32)
            numbers = x.dim() == 3 and x.shape[2] == channels and x.is_floating_point()
            if numbers if channels else tokens:
                return x
        wanted = f"[B, L, {channels}] floating-point numbers" if channels else "[B, L] token ids (int64)"
        found = f"{x.dtype} of shape {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"expected a tensor {wanted}, got {found}")

    def _pooled(self, x: Tensor, lengths: Optional[Tensor]) -> Tensor:
        if self.pool == "last":
            return x[:, -1] if lengths is None else x[torch.arange(len(x)), lengths.to(x.device) - 1]
        if lengths is None:
            return x.mean(1)
        return (x * inside(x, lengths)).sum(1) / lengths.to(x)[:, None]

    def initial_state(self, batch: int) -> ModelState:
        """The state of `batch` streams before their first position."""
        if self.output == "pair":
            raise ValueError("a model of pairs needs whole sequences: it has no steps")
        h = self.meta["model"]["h"]
        total = torch.zeros(batch, h, dtype=next(self.parameters()).dtype, device=next(self.parameters()).device)
        return [layer.initial_state(batch) for layer in self.layers], (0, total)  # type: ignore[operator]

    def step(self, x: Tensor, state: ModelState) -> tuple[Tensor, ModelState]:
        """x [B] token ids or [B, C] numbers -> the answer for everything so far [B, O], and the next state."""
        states, (count, total) = state
        x, after = self.encoder(x), []
        for layer, before in zip(self.layers, states):
            x, later = layer.step(x, before)  # type: ignore[operator]
            after.append(later)
        x = self.norm(x)
        count, total = count + 1, total + x
        mean = self.pool == "mean" and self.output == "sequence"
        return self.head(total / count if mean else x), (after, (count, total))

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a model file: `diagonal_ssm.load` and the program `dss` read it."""
        meta = {**self.meta, "extra": {k: v for k, v in self.meta.get("extra", {}).items() if k != "sha256"}}
        arrays = {name: np.ascontiguousarray(t.detach().cpu().float().numpy()) for name, t in self.state_dict().items()}
        header: dict[str, Any] = {"__metadata__": {"dss": json.dumps(meta)}}
        end = 0
        for name, array in arrays.items():
            begin, end = end, end + array.nbytes
            header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        data = b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays.values())])
        Model(data).save(path)  # which refuses what could not be loaded
