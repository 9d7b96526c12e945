from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from .model import Model, Stream

__all__ = ["DSSClassifier", "DSSForecaster", "DSSRegressor"]

class _Estimator:
    """What the estimators share: their settings, and a model that is trained by `fit`."""

    model: str
    layers: int
    h: int
    n: Optional[int]
    bidirectional: bool
    dropout: float
    epochs: int
    min_steps: int
    batch: int
    lr: float
    validation_fraction: float
    random_state: Any
    n_jobs: Optional[int]
    settings: Optional[dict[str, Any]]
    verbose: bool
    model_: Model
    history_: dict[str, dict[str, npt.NDArray[np.float64]]]
    n_features_in_: int
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
    ) -> None: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""

    def set_params(self, **params: Any) -> Any:
        """Changes settings by name, and gives the estimator."""

    def stream(self, state: Optional[bytes] = None) -> Stream:
        """A stream through the fitted model (causal models only): `push` takes the next positions."""

class DSSClassifier(_Estimator):
    """A classifier of sequences, X [n, L] or [n, L, C] numbers, or lists of [L] or [L, C] arrays or of texts."""

    classes_: npt.NDArray[Any]
    def fit(self, X: Any, y: Any) -> DSSClassifier:
        """Learns from X [n, L] or [n, L, C] and y [n], any labels."""

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probabilities of the classes [n, O], in the order of `classes_`."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each sequence [n]."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on X and y [n]; `sample_weight` is [n]."""

    def set_score_request(self, *, sample_weight: Any = "$UNCHANGED$") -> Any:
        """Whether scikit-learn's routing of metadata passes `sample_weight` to `score`; gives the estimator."""

class DSSRegressor(_Estimator):
    """Predicts numbers from sequences X as those of `DSSClassifier`."""

    y_mean_: npt.NDArray[np.float64]
    y_scale_: npt.NDArray[np.float64]
    def __sklearn_tags__(self) -> Any: ...
    def fit(self, X: Any, y: Any) -> DSSRegressor:
        """Learns from X [n, L] or [n, L, C] and y [n] or [n, O]."""

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The predictions [n], or [n, O] as y was."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² on X and y [n] or [n, O]; `sample_weight` is [n]."""

    def set_score_request(self, *, sample_weight: Any = "$UNCHANGED$") -> Any:
        """Whether scikit-learn's routing of metadata passes `sample_weight` to `score`; gives the estimator."""

class DSSForecaster(_Estimator):
    """Continues series [T], [n, T] or a list of [T]: the next `horizon` values from the last `window` ones."""

    horizon: int
    window: int
    scale_: float
    last_: list[npt.NDArray[Any]]
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
    ) -> None: ...
    def fit(self, X: Any, y: Any = None) -> DSSForecaster:
        """Learns from one series [T] or several [n, T]; y is not used."""

    def predict(self, X: Any = None) -> npt.NDArray[np.float64]:
        """What follows each series of X, or of those it learned from: [n, horizon], or [horizon] for a single one."""

    def score(self, X: Any, y: Any = None) -> float:
        """R² of the forecasts at every `horizon`-th place of each series of X; y is not used."""
