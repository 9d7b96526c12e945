"""Trained models on numpy arrays."""

from __future__ import annotations

import json
import os
from typing import Any, Sequence, Union

import numpy as np

from . import _native

Positions = Union[np.ndarray, Sequence[float], Sequence[int], str, bytes]


def load(path: Union[str, os.PathLike[str]]) -> Model:
    """The model at `path`: a run directory of `dss train` (its best checkpoint) or a model file."""
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "best.safetensors")
    if not os.path.exists(path):
        raise FileNotFoundError(f"no model at {path}")
    return Model(_native.NativeModel(path))


class Model:
    """A trained model. Threads may share it."""

    def __init__(self, native: _native.NativeModel):
        self._native = native
        self.meta: dict[str, Any] = json.loads(native.meta())
        """Settings, data and task, as in the file."""
        self.labels: list[str] = self.meta["labels"]
        """Names of the classes; empty if there are none."""

    def __repr__(self) -> str:
        model = self.meta["model"]
        return f"<Model: {model['layers']} layers of {model['h']}, {model['mixer']['kind']}, length {self.length}>"

    @property
    def length(self) -> int:
        """The length of the sequences it was trained on."""
        return self.meta["io"]["len"]

    def forward(self, sequence: Positions, second: Positions | None = None) -> np.ndarray:
        """The outputs for one sequence: [O], or [L, O] of a model with an answer per position.

        A sequence is [L] or [L, C] numbers, [L] token ids (integers), or a text. Models of pairs take two.
        """
        other = None if second is None else self._positions(second)
        out = self._native.forward(self._positions(sequence), other)
        return out if self.meta["io"]["output"]["kind"] == "position" else out[0]

    def predict_proba(self, sequences: Sequence[Positions]) -> np.ndarray:
        """The probabilities of the classes: [n, O]."""
        logits = np.stack([self.forward(sequence) for sequence in sequences])
        logits = logits - logits.max(-1, keepdims=True)
        weights = np.exp(logits, dtype=np.float64)
        return weights / weights.sum(-1, keepdims=True)

    def predict(self, sequences: Sequence[Positions]) -> np.ndarray:
        """The names of the most probable classes [n], or the outputs themselves [n, O] of a model without classes."""
        if not self.labels:
            return np.stack([self.forward(sequence) for sequence in sequences])
        return np.array(self.labels)[self.predict_proba(sequences).argmax(-1)]

    def stream(self, state: bytes | None = None) -> Stream:
        """A stream from its beginning, or from the bytes of a saved state."""
        native = self._native.stream() if state is None else self._native.resume(state)
        return Stream(self, native)

    def _positions(self, sequence: Positions) -> np.ndarray:
        """A contiguous array of tokens (uint32) or numbers (float32)."""
        given = self.meta["io"]["input"]
        if isinstance(sequence, str):
            sequence = sequence.encode()
        if isinstance(sequence, bytes):
            return self._native.tokens(sequence)
        array = np.asarray(sequence)
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
        return np.ascontiguousarray(array, dtype=np.float32)


class Stream:
    """A sequence that arrives bit by bit; memory does not grow with it."""

    def __init__(self, model: Model, native: _native.NativeStream):
        self._model, self._native = model, native

    @property
    def position(self) -> int:
        """Positions taken so far."""
        return self._native.position

    def push(self, positions: Positions, answers: int = 1) -> np.ndarray:
        """Takes the next positions, and gives the outputs after the last one [O], or with `answers` > 1 after each of
        the last `answers` [answers, O]."""
        out = self._native.push(self._model._positions(positions), answers)
        return out[0] if answers == 1 else out

    def reset(self) -> None:
        """Back to the beginning."""
        self._native.reset()

    def state(self) -> bytes:
        """All that the stream remembers; `Model.stream(state)` resumes from it."""
        return self._native.state()
