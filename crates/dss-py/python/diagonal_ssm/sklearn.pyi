from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from .model import Model, Stream

__all__ = ["DSSClassifier", "DSSForecaster", "DSSRegressor"]

class _Estimator:
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
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Any: ...
    def stream(self, state: Optional[bytes] = None) -> Stream: ...

class DSSClassifier(_Estimator):
    classes_: npt.NDArray[Any]
    def fit(self, X: Any, y: Any) -> DSSClassifier: ...
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]: ...
    def predict(self, X: Any) -> npt.NDArray[Any]: ...
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
    def set_score_request(self, *, sample_weight: Any = ...) -> Any: ...

class DSSRegressor(_Estimator):
    y_mean_: npt.NDArray[np.float64]
    y_scale_: npt.NDArray[np.float64]
    def fit(self, X: Any, y: Any) -> DSSRegressor: ...
    def predict(self, X: Any) -> npt.NDArray[np.float64]: ...
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
    def set_score_request(self, *, sample_weight: Any = ...) -> Any: ...

class DSSForecaster(_Estimator):
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
    def fit(self, X: Any, y: Any = None) -> DSSForecaster: ...
    def predict(self, X: Any = None) -> npt.NDArray[np.float64]: ...
    def score(self, X: Any, y: Any = None) -> float: ...
