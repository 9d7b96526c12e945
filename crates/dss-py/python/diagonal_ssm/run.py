"""Trainings from Python: the same runs as those of `dss train`."""

from __future__ import annotations

import html
import json
import os
import shutil
from collections.abc import Callable
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _data, _native
from ._progress import Progress
from .model import Model, load

PathLike = Union[str, os.PathLike[str]]
Callback = Callable[[dict[str, Any]], object]


def train(
    task: str,
    data: Any = None,
    *,
    preset: Optional[str] = None,
    model: Optional[str] = None,
    out: Optional[PathLike] = None,
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
    callback: Optional[Callback] = None,
    **settings: Any,
) -> Run:
    """Trains a model and leaves everything about it in a run directory.

    Ctrl-C finishes the current step and saves: the run that is returned says `stopped == "interrupted"`, and its
    `resume()` continues it to the same bits as if nothing had happened.

    Args:
        task: "listops", "files", ...; `dss config list` has them all.
        data: your own sequences for the task `files`, as (X, y): X [n, L] or [n, L, C] numbers, or a list of [L] or
            [L, C] arrays of unequal length, or a list of texts; y [n] classes, or numbers to predict (floats: [n] or
            [n, O]). For `forecast` a series [T]. For any task a path: the data folder, or the file.
        preset: a set of values that comes with the package, by default "laptop"; "paper" has the paper's.
        model: the type of layer, such as "dss-exp", "s4d" or "s4"; by default that of the preset.
        out: the run directory; by default a new one in `runs`.
        threads: how many compute; by default as many as `get_num_threads()` says.
        progress: whether to show how far it is; by default in notebooks and terminals.
        callback: called with every event, a dictionary whose "event" is "loading", "start", "step", "evaluating",
            "eval", "checkpoint", "note" or "end".
        settings: of the run, under the keys of `dss config show TASK`, such as `epochs=3`, `lr=0.01`, or where that is
            ambiguous `train__epochs=3` or `**{"model.mixer.n": 32}`.
    """
    sets = [f"{key.replace('__', '.')}={_toml(value)}" for key, value in settings.items()]
    seed = next((value for key, value in settings.items() if key.replace("__", ".") in ("seed", "train.seed")), 0)
    named = "-".join([task, preset or "laptop", *([model] if model else []), str(seed)])
    given = isinstance(data, (str, os.PathLike)) or data is None
    # What is wrong with the settings is said before anything is written.
    _native.resolve_settings(task, preset, model, sets)
    path = _fresh(named) if out is None else os.fspath(out)
    data_dir = None if data is None or not given else os.path.abspath(os.fspath(data))
    if data_dir is not None and task == "files":
        sets, data_dir = [f"task.path={_toml(data_dir)}", *sets], None
    made: list[str] = []
    try:
        if not given:
            if os.path.exists(os.path.join(path, "config.toml")):
                raise FileExistsError(f"{path} already contains a run: continue it with Run(path).resume(), or set out=")
            sets = [*_written(task, data, path, made), *sets]
        return _watched(
            path, progress, callback, lambda tell: _native.train(task, preset, model, sets, path, data_dir, threads, tell)
        )
    except BaseException:
        if not os.path.exists(os.path.join(path, "config.toml")):
            for folder in made:
                shutil.rmtree(folder, ignore_errors=True)
        raise


def _written(task: str, data: Any, path: str, made: list[str]) -> list[str]:
    """Writes arrays into the run directory, and gives the settings that name them."""
    folder = os.path.abspath(os.path.join(path, "data"))
    if task not in ("files", "forecast"):
        raise ValueError(f"the task `{task}` does not take arrays: use `files`, or a path")
    if os.path.exists(folder):
        raise FileExistsError(f"{folder} already exists: choose another directory with out=")
    first = folder
    while not os.path.exists(os.path.dirname(first)):
        first = os.path.dirname(first)
    made.append(first)
    if task == "forecast":
        os.makedirs(folder)
        file = os.path.join(folder, "series.csv")
        _data.write_series(file, data)
        return [f"task.path={_toml(file)}", 'task.column="value"']
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ValueError("data must be a pair (X, y), or a path")
    x, y = data[0], np.asarray(data[1])
    if y.ndim == 0:
        raise ValueError(f"y must have a label for each sequence, but is {data[1]!r}")
    text = _data.is_text(x)
    found = x if text else _data.sequences(x)
    if len(found) != len(y):
        raise ValueError(f"X has {len(found)} sequences, but y {len(y)} labels")
    value = y.dtype.kind == "f"
    if value and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity")
    target = [f"task.target={_toml('value' if value else 'class')}"]
    if text:
        os.makedirs(folder)
        file = os.path.join(folder, "data.csv")
        _data.write_texts(file, x, y.tolist())
        places = [("path", file), ("label", "label"), ("text", "text"), ("input", "text"), ("header", "yes")]
        return [*(f"task.{key}={_toml(value)}" for key, value in places), *target]
    if value:
        _data.write_arrays(folder, found, y)
    else:
        try:
            names, classes = np.unique(y, return_inverse=True)
        except TypeError:
            raise ValueError("y must have classes of one kind, numbers or texts, or floats to predict") from None
        labels = [str(name) for name in names]
        for label in labels:
            if len(label.splitlines()) > 1:
                raise ValueError(f"the name of a class must be a single line, but one is {label!r}")
        _data.write_arrays(folder, found, classes.reshape(y.shape), labels)
    return [f"task.path={_toml(folder)}", *target]


def _watched(
    path: str, progress: Optional[bool], callback: Optional[Callback], work: Callable[[Callable[[str], None]], str]
) -> Run:
    shown = Progress(progress)

    def tell(text: str) -> None:
        event = json.loads(text)
        shown.event(event)
        if callback is not None:
            callback(event)

    summary = json.loads(work(tell))
    return Run(path, summary)


class Run:
    """A run directory: of a training that has ended, was interrupted, or is still at work.

    Args:
        path: the directory.
        summary: what the training said at its end; `train` and `resume` give it.
    """

    def __init__(self, path: PathLike, summary: Optional[dict[str, Any]] = None) -> None:
        self.path: str = os.fspath(path)
        """The directory."""
        self.settings: dict[str, Any] = json.loads(_native.run_settings(self.path))
        """Every setting, under its dotted key such as "model.h"."""
        self.summary: dict[str, Any] = summary or {}
        """How the last part of the training ended: steps, seconds, the scores of validation and test."""

    def __repr__(self) -> str:
        task, ended = self.settings["task.name"], self.stopped
        return f"<Run of {task} in {self.path}{', ' + ended if ended else ''}>"

    @property
    def stopped(self) -> Optional[str]:
        """How it ended: "finished", "early" (no better score), "interrupted"; None if that is not known."""
        ended = self.summary.get("stopped")
        if ended is None and self.metrics["test"]:
            return "finished"
        return ended

    @property
    def metrics(self) -> dict[str, dict[str, npt.NDArray[np.float64]]]:
        """What was measured, as arrays [n]: `metrics["train"]["loss"]` at `metrics["train"]["step"]`.

        "train" has the means over a few steps, "val" the evaluations, "test" the one of the best checkpoint at the end.
        Keys: step, epoch, loss, accuracy (or mse, mae, bits), seconds, in "train" also lr and samples_per_s. A part
        without measurements is empty.
        """
        rows: dict[str, list[dict[str, Any]]] = {"train": [], "val": [], "test": []}
        file = os.path.join(self.path, "metrics.jsonl")
        if os.path.exists(file):
            with open(file, encoding="utf-8") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        row = json.loads(line)
                        rows[row["kind"]].append(row)
        found: dict[str, dict[str, npt.NDArray[np.float64]]] = {}
        for part, all_rows in rows.items():
            keys = dict.fromkeys(k for row in all_rows for k, v in row.items() if isinstance(v, (int, float)))
            found[part] = {k: np.array([_number(row.get(k)) for row in all_rows]) for k in keys}
        return found

    @property
    def model(self) -> Model:
        """The model with the best validation score."""
        return load(self.path)

    def resume(
        self,
        *,
        data: Optional[PathLike] = None,
        threads: Optional[int] = None,
        progress: Optional[bool] = None,
        callback: Optional[Callback] = None,
        **settings: Any,
    ) -> Run:
        """Continues an interrupted run, or trains a finished one longer (`epochs=20`). Arguments as in `train`."""
        sets = [f"{key.replace('__', '.')}={_toml(value)}" for key, value in settings.items()]
        own = os.path.abspath(os.path.join(self.path, "data"))
        place = self.settings.get("task.path")
        if data is None and place and not os.path.exists(place):
            inside = own if os.path.basename(place) == "data" else os.path.join(own, os.path.basename(place))
            if os.path.exists(inside):  # the directory was moved, and its data with it
                sets = [f"task.path={_toml(inside)}", *sets]
        elif data is not None and self.settings["task.name"] == "files":
            sets, data = [f"task.path={_toml(os.path.abspath(os.fspath(data)))}", *sets], None
        data_dir = None if data is None else os.path.abspath(os.fspath(data))
        return _watched(
            self.path, progress, callback, lambda tell: _native.resume(self.path, sets, data_dir, threads, tell)
        )

    def report(self) -> str:
        """Writes `report.html`, one page with curves, scores and answers, and gives its path."""
        return _native.report(self.path)

    def _repr_html_(self) -> str:
        with open(self.report(), encoding="utf-8") as file:
            page = html.escape(file.read(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _fresh(name: str) -> str:
    """The first of runs/NAME, runs/NAME-2, ... that does not exist."""
    number, path = 1, os.path.join("runs", name)
    while os.path.exists(path):
        number += 1
        path = os.path.join("runs", f"{name}-{number}")
    return path


def _toml(value: Any) -> str:
    """A value as it is written in TOML."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    raise TypeError(f"a setting is a number, a text, a truth value or a list of them, not {type(value).__name__}")
