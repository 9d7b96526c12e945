"""Arrays and texts of Python as files that the trainer reads."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def sequences(x: Any) -> list[Array]:
    """[L, C] float32 arrays of [n, L] or [n, L, C] numbers, or of a list of [L] or [L, C] ones."""
    if hasattr(x, "to_numpy"):
        x = x.to_numpy()
    elif hasattr(x, "__array__"):
        x = np.asarray(x)
    if isinstance(x, np.ndarray) and x.dtype != object:
        if x.ndim > 1 and 0 in x.shape[1:]:
            raise ValueError(f"0 feature(s) (shape={x.shape}) while a minimum of 1 is required.")
        if x.ndim not in (2, 3):
            hint = "Reshape your data: a single sequence is X[None]. " if x.ndim == 1 else ""
            raise ValueError(f"{hint}expected [n, L] or [n, L, C] numbers, or a list of sequences, got the shape {x.shape}")
    elif isinstance(x, (str, bytes)) or not hasattr(x, "__len__"):
        raise ValueError("expected [n, L] or [n, L, C] numbers, or a list of sequences")
    found = [_sequence(one, i) for i, one in enumerate(x)]
    if not found:
        raise ValueError("Found array with 0 sample(s): at least one sequence is needed")
    channels = {one.shape[1] for one in found}
    if len(channels) > 1:
        raise ValueError(f"all sequences must have the same channels, but they have {sorted(channels)}")
    return found


def _sequence(one: Any, i: int) -> Array:
    if hasattr(one, "toarray"):
        raise TypeError("sparse data are not supported: give dense arrays")
    array = np.asarray(one)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real and imaginary parts as two channels")
    try:
        array = array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise type(error)(f"sequence {i} has something that is not a number: {error}") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"sequence {i} has the shape {array.shape}: expected [L] or [L, C] with at least one number")
    if not np.isfinite(array).all():
        raise ValueError(f"sequence {i} contains NaN or infinity")
    return array


def is_text(x: Any) -> bool:
    """Whether these are texts."""
    return not isinstance(x, (str, bytes)) and hasattr(x, "__len__") and len(x) > 0 and isinstance(x[0], str)


def write_arrays(folder: str, found: Sequence[Array], y: Array, classes: Sequence[str] = ()) -> None:
    """x.npy, y.npy, and where needed lengths.npy and classes.txt."""
    os.makedirs(folder)
    lengths = np.array([len(one) for one in found])
    x = np.zeros((len(found), lengths.max(), found[0].shape[1]), dtype=np.float32)
    for row, one in zip(x, found):
        row[: len(one)] = one
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y.astype(np.float32))
    if (lengths < lengths.max()).any():
        np.save(os.path.join(folder, "lengths.npy"), lengths)
    if classes:
        with open(os.path.join(folder, "classes.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in classes)


def write_texts(path: str, texts: Sequence[str], labels: Sequence[Any]) -> None:
    """A table of labels and texts."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"sequence {i} is {type(text).__name__}, but the first one is a text")
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["label", "text"])
        rows.writerows(zip(labels, texts))


def write_series(path: str, series: Any) -> None:
    """A table with one column."""
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"expected a series [T] of finite numbers, got the shape {values.shape}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("value\n")
        file.writelines(f"{value!r}\n" for value in values.tolist())
