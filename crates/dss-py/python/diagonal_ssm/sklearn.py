"""Estimators after scikit-learn's conventions.

X is [n, L] or [n, L, C] numbers, or a list of [L] or [L, C] arrays of unequal length; a classifier and a regressor also
take a list of texts. Every estimator can be cloned, pickled, scored by `cross_val_score` and put at the end of a
`Pipeline`; the same data and `random_state` give the same bits.

Letters: n sequences, L length, C channels, O outputs, T length of a series.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _data
from .model import Model, Stream
from .run import train

__all__ = ["DSSClassifier", "DSSForecaster", "DSSRegressor"]

Array = npt.NDArray[Any]


class _Estimator(BaseEstimator):
    """What the estimators share: a model of the task `files`, trained in a temporary directory."""

    model_: Model

    def __init__(
        self,
        *,
        model: str = "dss-softmax",
        layers: int = 2,
        h: int = 64,
        n: Optional[int] = 32,
        bidirectional: bool = False,
        dropout: float = 0.1,
        epochs: int = 20,
        min_steps: int = 1000,
        batch: int = 32,
        lr: float = 0.005,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        n_jobs: Optional[int] = None,
        settings: Optional[dict[str, Any]] = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.layers = layers
        self.h = h
        self.n = n
        self.bidirectional = bidirectional
        self.dropout = dropout
        self.epochs = epochs
        self.min_steps = min_steps
        self.batch = batch
        self.lr = lr
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.settings = settings
        self.verbose = verbose

    def _fit(self, x: Any, y: Array, classes: Optional[Array], **fixed: Any) -> None:
        """Trains on sequences or texts; y [n] has the numbers of classes, or y [n, O] numbers to predict."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, but is {self.validation_fraction}")
        random = check_random_state(self.random_state)
        whole = isinstance(self.random_state, (int, np.integer))
        seed = int(self.random_state) if whole else int(random.randint(2**31))
        learnt, held = _split(y, classes is not None, self.validation_fraction, np.random.RandomState(seed % 2**32))
        text = _data.is_text(x)
        settings: dict[str, Any] = {
            "model.layers": self.layers,
            "model.h": self.h,
            **({} if self.n is None else {"model.mixer.n": self.n}),
            "model.bidirectional": self.bidirectional,
            "model.dropout": self.dropout,
            "train.epochs": self.epochs,
            "train.min_steps": self.min_steps,
            "train.batch": self.batch,
            "train.lr": self.lr,
            "train.seed": seed,
            "task.target": "value" if classes is None else "class",
            **({"task.input": "text", "task.label": "label", "task.text": "text", "task.header": "yes"} if text else {}),
            **fixed,
            **(self.settings or {}),
        }
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data")
            # The held-out part chooses the checkpoint; there is no third one, which the caller keeps.
            for part, rows in (("train", learnt), ("val", held), ("test", held)):
                _write(os.path.join(data, part), x, y, rows, text)
            out = os.path.join(folder, "run")
            jobs = self.n_jobs
            if jobs is not None and jobs < 0:  # scikit-learn's way to say all processors, or all but some
                jobs = max(1, (os.cpu_count() or 1) + 1 + jobs)
            done = train("files", data, model=self.model, out=out, threads=jobs, progress=bool(self.verbose), **settings)
            if done.stopped == "interrupted":
                raise KeyboardInterrupt
            self.model_ = done.model
            self.history_ = done.metrics
        self.n_features_in_ = 1 if text else _data.sequences(x)[0].shape[1]

    def _input(self, x: Any) -> list[Any]:
        check_is_fitted(self, "model_")
        if _data.is_text(x):
            return list(x)
        found = _data.sequences(x)
        if found[0].shape[1] != self.n_features_in_:
            channels = f"{found[0].shape[1]} channels, but this estimator expects {self.n_features_in_}"
            raise ValueError(f"X has {channels}")
        return found

    def stream(self, state: Optional[bytes] = None) -> Stream:
        """A stream through the fitted model (causal models only): `push` takes the next positions."""
        check_is_fitted(self, "model_")
        return self.model_.stream(state)


def _write(folder: str, x: Any, y: Array, rows: Array, text: bool) -> None:
    if text:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError("texts can have one number to predict, not several")
        _data.write_texts(f"{folder}.csv", [x[i] for i in rows], y[rows].reshape(-1).tolist())
    else:
        found = _data.sequences(x)
        _data.write_arrays(folder, [found[i] for i in rows], y[rows])


def _split(y: Array, classes: bool, fraction: float, random: np.random.RandomState) -> tuple[Array, Array]:
    """Rows to learn from and rows to hold out, in proportion from each class; too few rows are all used for both."""
    groups = [np.flatnonzero(y == c) for c in np.unique(y)] if classes else [np.arange(len(y))]
    learnt, held = [], []
    for group in groups:
        group = random.permutation(group)
        count = min(round(fraction * len(group)), len(group) - 1)
        held.append(group[:count])
        learnt.append(group[count:])
    train_rows, val_rows = np.sort(np.concatenate(learnt)), np.sort(np.concatenate(held))
    return train_rows, val_rows if len(val_rows) else train_rows


def _checked_labels(x: Any, y: Any) -> Array:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if len(x) != len(y):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(x), len(y)]}")
    return y


class DSSClassifier(ClassifierMixin, _Estimator):
    """A classifier of sequences.

    Args:
        model: the type of layer: "dss-softmax", "dss-exp", "s4d", "s4", ...
        layers, h, n: the blocks, their channels, and the states of each channel (None: as the type of layer has it).
        bidirectional: whether positions also see what follows them; such a model cannot be streamed.
        dropout: the probability of dropping a channel of a sequence.
        epochs, min_steps: how long it trains: so many passes, and at least so many steps.
        batch, lr: sequences per step, and the learning rate.
        validation_fraction: the part of the sequences that chooses the checkpoint.
        random_state: the seed.
        n_jobs: how many threads, -1: one per processor; by default as many as `diagonal_ssm.get_num_threads()` says.
        settings: more settings of the training, under their dotted keys, such as {"train.clip": 1.0}.
        verbose: whether to show how far it is.

    Attributes: `classes_` [O], `model_` (a `diagonal_ssm.Model`), `history_` (what was measured), `n_features_in_` (C).
    """

    classes_: Array

    def fit(self, X: Any, y: Any) -> DSSClassifier:
        """Learns from X (see above) and y [n], any labels."""
        x = X if _data.is_text(X) else _data.sequences(X)
        y = _checked_labels(x, y)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class ({self.classes_[0]}), but a classifier needs at least two classes")
        self._fit(x, numbers, self.classes_)
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probabilities of the classes: [n, O], in the order of `classes_`."""
        x = self._input(X)
        return self.model_.predict_proba(x)

    def predict(self, X: Any) -> Array:
        """The most probable class of each sequence: [n]."""
        x = self._input(X)
        return self.classes_[self.model_.predict_proba(x).argmax(-1)]


class DSSRegressor(RegressorMixin, _Estimator):
    """Predicts numbers from sequences. Its settings are those of `DSSClassifier`.

    Attributes: `model_`, `history_`, `n_features_in_`; `y_mean_` and `y_scale_` [O], by which y is standardised.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> DSSRegressor:
        """Learns from X (see above) and y [n] or [n, O]."""
        self._fit_numbers(X if _data.is_text(X) else _data.sequences(X), y)
        return self

    def _fit_numbers(self, x: Any, y: Any, **fixed: Any) -> None:
        y = _checked_labels(x, y).astype(np.float64)
        if y.ndim > 2:
            raise ValueError(f"y must be [n] or [n, O], but its shape is {y.shape}")
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity.")
        self._flat = y.ndim == 1
        y = y.reshape(len(y), -1)
        self.y_mean_, scale = y.mean(0), y.std(0)
        self.y_scale_ = np.where(scale > 0, scale, 1.0)
        self._fit(x, (y - self.y_mean_) / self.y_scale_, None, **fixed)

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """[n], or [n, O] as y was."""
        x = self._input(X)
        y = self.model_.predict(x).astype(np.float64) * self.y_scale_ + self.y_mean_
        return y[:, 0] if self._flat else y


class DSSForecaster(_Estimator):
    """Continues series: the next `horizon` values from the last `window` ones.

    It learns from all windows of its series, each relative to its last known value. A series is [T] numbers; X is one
    series, or several as [n, T] or as a list.

    Args:
        horizon: how many values to forecast.
        window: how many known values each forecast reads.
        The others are those of `DSSClassifier`.

    Attributes: `model_`, `history_`, `scale_` (by which values are divided), `last_` (the end of each series).
    """

    def __init__(
        self,
        horizon: int = 1,
        window: int = 64,
        *,
        model: str = "dss-softmax",
        layers: int = 2,
        h: int = 64,
        n: Optional[int] = 32,
        bidirectional: bool = False,
        dropout: float = 0.1,
        epochs: int = 20,
        min_steps: int = 1000,
        batch: int = 32,
        lr: float = 0.005,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        n_jobs: Optional[int] = None,
        settings: Optional[dict[str, Any]] = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            model=model,
            layers=layers,
            h=h,
            n=n,
            bidirectional=bidirectional,
            dropout=dropout,
            epochs=epochs,
            min_steps=min_steps,
            batch=batch,
            lr=lr,
            validation_fraction=validation_fraction,
            random_state=random_state,
            n_jobs=n_jobs,
            settings=settings,
            verbose=verbose,
        )
        self.horizon = horizon
        self.window = window

    def fit(self, X: Any, y: Any = None) -> DSSForecaster:
        """Learns from one series or several; y is ignored."""
        if self.horizon < 1 or self.window < 1:
            raise ValueError(f"horizon and window must be at least 1, but are {self.horizon} and {self.window}")
        series, self._single = _series(X)
        needed = self.window + self.horizon
        windows = [np.lib.stride_tricks.sliding_window_view(s, needed) for s in series if len(s) >= needed]
        if not windows:
            raise ValueError(f"a window and its horizon are {needed} values, but no series is that long")
        scale = np.concatenate(series).std()
        self.scale_ = float(scale) if scale > 0 else 1.0
        all_windows = np.concatenate(windows)
        all_windows = (all_windows - all_windows[:, self.window - 1 : self.window]) / self.scale_
        known, next_values = all_windows[:, : self.window], all_windows[:, self.window :]
        self._fit(_data.sequences(known), next_values, None, **{"model.pool": "last", "task.scale": "none"})
        self.last_ = [s[-self.window :] for s in series]
        return self

    def predict(self, X: Any = None) -> npt.NDArray[np.float64]:
        """What follows each series of X, or of those it learned from: [n, horizon], or [horizon] for a single one."""
        check_is_fitted(self, "model_")
        series, single = (self.last_, self._single) if X is None else _series(X)
        for i, one in enumerate(series):
            if len(one) < self.window:
                raise ValueError(f"series {i} has {len(one)} values, but a forecast reads {self.window}")
        out = self._continued(np.stack([one[-self.window :] for one in series]))
        return out[0] if single else out

    def _continued(self, known: Array) -> npt.NDArray[np.float64]:
        """[n, window] -> [n, horizon]."""
        last = known[:, -1:]
        out = self.model_.predict(list(((known - last) / self.scale_).astype(np.float32)))
        return out.astype(np.float64) * self.scale_ + last

    def score(self, X: Any, y: Any = None) -> float:
        """R² of the forecasts at every `horizon`-th place of each series; y is ignored."""
        check_is_fitted(self, "model_")
        known, true = [], []
        for one in _series(X)[0]:
            for start in range(0, len(one) - self.window - self.horizon + 1, self.horizon):
                middle = start + self.window
                known.append(one[start:middle])
                true.append(one[middle : middle + self.horizon])
        if not known:
            raise ValueError(f"no series has the {self.window + self.horizon} values of a window and its horizon")
        return float(r2_score(np.concatenate(true), self._continued(np.stack(known)).reshape(-1)))


def _series(x: Any) -> tuple[list[Array], bool]:
    """Series in float64, and whether it is a single one."""
    if hasattr(x, "toarray"):
        raise TypeError("sparse data are not supported: give dense arrays")
    if hasattr(x, "to_numpy"):
        x = x.to_numpy()
    elif hasattr(x, "__array__"):
        x = np.asarray(x)
    if isinstance(x, (str, bytes)) or not hasattr(x, "__len__"):
        raise ValueError(f"expected a series [T], or several as [n, T] or a list, got {type(x).__name__}")
    if any(np.iscomplexobj(one) for one in x):
        raise ValueError("Complex data not supported: give real and imaginary parts as two series")
    if len(x) == 0:
        raise ValueError("Found array with 0 sample(s): at least one value is needed")
    single = np.ndim(x[0]) == 0
    found = [np.asarray(one, dtype=np.float64) for one in ([x] if single else x)]
    if any(one.ndim != 1 for one in found):
        raise ValueError(f"a series is [T] numbers, one at a time, but one has the shape {found[0].shape}")
    if any(not np.isfinite(one).all() for one in found):
        raise ValueError("a series contains NaN or infinity")
    return found, single
