"""Trained models on numpy arrays."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _native

Positions = Union[npt.NDArray[Any], Sequence[float], Sequence[int], Sequence[Sequence[float]], str, bytes]
"""A sequence: a text, [L] token ids, or [L] or [L, C] numbers."""


def load(path: Union[str, os.PathLike[str]]) -> Model:
    """The model at `path`: a run directory of `dss train` (its best checkpoint) or a model file."""
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "best.safetensors")
    if not os.path.exists(path):
        raise FileNotFoundError(f"no model at {path}")
    with open(path, "rb") as file:
        data = file.read()
    try:
        return Model(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def import_checkpoint(
    path: Union[str, os.PathLike[str]],
    *,
    config: Optional[Union[str, os.PathLike[str]]] = None,
    length: Optional[int] = None,
    variant: Optional[str] = None,
    pool: Optional[str] = None,
    kernel_len: Optional[int] = None,
    prenorm: Optional[bool] = None,
    discretisation: Optional[str] = None,
    dt: Optional[str] = None,
) -> Model:
    """The model in a checkpoint of ag1988/dss, of the S4 repository or of annotated-s4, as `dss import` reads it; nothing
    is executed.

    What tensors do not say comes from the arguments, else from `config`, else from the file itself, else from a
    configuration near it; the rest is assumed. A warning names that configuration, and each assumption. `Model.save`
    writes the model for `dss` and for `diagonal_ssm.torch.load_model`.

    Args:
        path: a .pt, .pth, .ckpt, .safetensors or .msgpack file.
        config: the configuration of its training (Hydra's config.yaml). Without it and without one in the file, that is
            NAME.config.yaml, config.yaml or .hydra/config.yaml beside the file or up to two folders above.
        length: L of its sequences, which the softmax is normalised over.
        variant: the kernel of DSS, "softmax", "exp" or "exp-no-scale".
        pool: what the head reads, "mean", "last" or "none" (every position).
        kernel_len: the length at which its kernels are cut.
        prenorm: whether its norms come before the layers.
        discretisation: of S4D, "zoh" or "bilinear".
        dt: how the S4 repository's layers store the time scales, "exp" or "softplus".
    """
    with open(path, "rb") as file:
        data = file.read()
    text = None
    if config is not None:
        with open(config, encoding="utf-8") as yaml:
            text = yaml.read()
    for name, given, least in (("length", length, 1), ("kernel_len", kernel_len, 0)):
        if given is not None and given < least:
            raise ValueError(f"{name} must be at least {least}, but is {given}")
    try:
        made, notes = _native.import_checkpoint(
            data, path, text, length, variant, pool, kernel_len, prenorm, discretisation, dt
        )
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {_in_python(str(error))}") from None
    for note in notes:
        warnings.warn(_in_python(note), stacklevel=2)
    return Model(made)


def _in_python(text: str) -> str:
    """Names of options as those of arguments."""
    text = text.replace("--len", "length=")
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda option: option[1].replace("-", "_") + "=", text)


class Model:
    """A trained model. Threads may share it, and it can be pickled.

    Args:
        data: the content of a model file.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._native = _native.NativeModel(data)
        self.meta: dict[str, Any] = json.loads(self._native.meta())
        """Settings, ends, task and labels, as in the file."""
        self.labels: list[str] = self.meta["labels"]
        """Names of the classes; empty if there are none."""
        self._encoder: dict[str, Any] = json.loads(self.meta["extra"].get("encoder", "{}"))
        numbers = self._encoder.get("form", {}) if self._encoder.get("kind") == "files" else {}
        scaling = numbers.get("numbers", {}).get("scaling") if isinstance(numbers, dict) else None
        self._scaling = scaling and tuple(np.array(scaling[key], dtype=np.float32) for key in ("mean", "sd"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Model, (self._data,)

    def __repr__(self) -> str:
        model = self.meta["model"]
        return f"<Model: {model['layers']} layers of {model['h']}, {model['mixer']['kind']}, length {self.length}>"

    @property
    def length(self) -> int:
        """The length of the sequences it was trained on."""
        return int(self.meta["io"]["len"])

    @property
    def outputs(self) -> int:
        """The numbers O of an answer."""
        return int(self.meta["io"]["output"]["outputs"])

    def forward(self, sequence: Positions, second: Optional[Positions] = None) -> npt.NDArray[np.float32]:
        """The outputs for one sequence: [O], or [L, O] of a model with an answer per position.

        A sequence is a text (for models of text), [L] token ids, or [L] or [L, C] numbers. Numbers of your own data
        (the task `files`) are scaled as in training; others must be prepared as in training. Models of pairs take two
        sequences.
        """
        other = None if second is None else self._positions(second)
        out = self._native.forward(self._positions(sequence), other)
        return out if self.meta["io"]["output"]["kind"] == "position" else out[0]

    def predict_proba(self, sequences: Sequence[Positions]) -> npt.NDArray[np.float64]:
        """The probabilities of the classes for each of n sequences: [n, O], in the order of `labels`."""
        task = self.meta.get("task") or {}
        if task.get("target") == "value" or task.get("name") == "forecast":
            raise ValueError("this model was trained to predict numbers, not classes: see predict, forward and forecast")
        logits = self._stacked(sequences).astype(np.float64)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    def predict(self, sequences: Sequence[Positions]) -> npt.NDArray[Any]:
        """For each of n sequences the name of the most probable class [n], or without classes the outputs [n, O]."""
        if not self.labels:
            return self._stacked(sequences)
        return np.array(self.labels)[self.predict_proba(sequences).argmax(-1)]

    def _stacked(self, sequences: Sequence[Positions]) -> npt.NDArray[np.float32]:
        single = isinstance(sequences, np.ndarray) and sequences.ndim < 2
        if single or isinstance(sequences, (str, bytes)) or not hasattr(sequences, "__len__"):
            raise ValueError("expected several sequences: put a single one into a list")
        if len(sequences) == 0:
            raise ValueError("expected at least one sequence, got none")
        found = [self.forward(sequence) for sequence in sequences]
        if len({one.shape for one in found}) > 1:
            what = "this model answers at every position, and the sequences have different lengths"
            raise ValueError(f"{what}: call forward for each of them")
        return np.stack(found)

    def forecast(self, series: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The next values [horizon] of a series [T], by a model of the task `forecast`, in the units of its data."""
        about = self._encoder
        if about.get("kind") != "forecast":
            raise ValueError("this model was not trained to forecast: see the task `forecast`")
        values = np.asarray(series, dtype=np.float32)
        if values.ndim != 1 or len(values) < about["input"]:
            raise ValueError(f"expected at least {about['input']} values, got the shape {values.shape}")
        known = (values[-about["input"] :].astype(np.float64) - about["mean"]) / about["deviation"]
        known = known.astype(np.float32)
        origin = known[-1] if about["relative"] else np.float32(0)
        window = np.concatenate([known - origin, np.zeros(about["horizon"], dtype=np.float32)])
        out = self.forward(window)[about["input"] :, 0].astype(np.float64)
        return (out + float(origin)) * about["deviation"] + about["mean"]

    def stream(self, state: Optional[bytes] = None) -> Stream:
        """A stream from its beginning, or from the bytes of a saved state."""
        native = self._native.stream() if state is None else self._native.resume(state)
        return Stream(self, native)

    def kernel(self, layer: int, length: Optional[int] = None) -> npt.NDArray[np.float32]:
        """The convolution kernels of a layer [C, H, length]; by default at the training length."""
        length = self.length if length is None else length
        layers = self.meta["model"]["layers"]
        if not 0 <= layer < layers or length < 1:
            raise ValueError(f"layer must be from 0 to {layers - 1} and length at least 1, but are {layer} and {length}")
        channels = 2 if self.meta["model"]["bidirectional"] else 1
        return self._native.kernel(layer, length).reshape(channels, self.meta["model"]["h"], -1)

    def inspect(self) -> dict[str, Any]:
        """What the model has learned: per layer its modes, half-lives, time scales and where its kernels peak."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            with open(path, "wb") as file:
                file.write(self._data)
            report: dict[str, Any] = json.loads(_native.inspect(path))
            return report

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the model file. One that was there stays until the new one is complete."""
        part = f"{os.fspath(path)}.{os.getpid()}.part"
        try:
            with open(part, "wb") as file:
                file.write(self._data)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.remove(part)

    def _positions(self, sequence: Positions) -> npt.NDArray[Any]:
        """A contiguous array of tokens (uint32) or numbers (float32)."""
        given = self.meta["io"]["input"]
        if isinstance(sequence, str):
            sequence = sequence.encode()
        if isinstance(sequence, bytes):
            return self._native.tokens(sequence)
        try:
            array = np.asarray(sequence)
        except ValueError:
            raise ValueError("the positions of a sequence must have the same number of channels") from None
        if given["kind"] == "tokens":
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError(f"expected a text or [L] token ids, got {array.dtype} of shape {array.shape}")
            if array.size and (array.min() < 0 or array.max() >= given["vocab"]):
                raise ValueError(f"token ids must be from 0 to {given['vocab'] - 1}")
            return np.ascontiguousarray(array, dtype=np.uint32)
        channels = given["channels"]
        if array.ndim == 1 and channels == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] != channels or array.dtype.kind not in "iufb":
            raise ValueError(f"expected [L, {channels}] numbers, got {array.dtype} of shape {array.shape}")
        array = array.astype(np.float32)
        if self._scaling:
            array = (array - self._scaling[0]) / self._scaling[1]
        return np.ascontiguousarray(array)


class Stream:
    """A sequence that arrives bit by bit; memory does not grow with it. Made by `Model.stream`."""

    def __init__(self, model: Model, native: _native.NativeStream) -> None:
        self._model, self._native = model, native

    @property
    def position(self) -> int:
        """Positions taken so far."""
        return self._native.position

    def push(self, positions: Positions, answers: int = 1) -> npt.NDArray[np.float32]:
        """Takes the next positions, [L] or [L, C] as in `Model.forward`, and gives the outputs after the last one [O], or
        with `answers` > 1 after each of the last `answers` [answers, O]."""
        array = self._model._positions(positions)
        if not 1 <= answers <= len(array):
            given = f"{answers} answers to {len(array)} positions"
            raise ValueError(f"expected at least one position, and as many answers at most, but {given} were asked for")
        out = self._native.push(array, answers)
        return out[0] if answers == 1 else out

    def reset(self) -> None:
        """Back to the beginning."""
        self._native.reset()

    def state(self) -> bytes:
        """All that the stream remembers; `Model.stream(state)` resumes from it, also in another process."""
        return self._native.state()
