"""The estimators after scikit-learn's conventions."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from test_runs import waves  # noqa: E402

from diagonal_ssm.sklearn import DSSClassifier, DSSForecaster, DSSRegressor  # noqa: E402

TINY = {"layers": 1, "h": 8, "n": 4, "epochs": 1, "min_steps": 8, "batch": 16, "random_state": 0}


# What scikit-learn's own checks expect and these estimators do not do, with the reason.
COLUMNS = "a row is a sequence of any length: its features are its channels, not its positions"
SHORT = "eight steps of training are not enough for its score"
SERIES = "X is one series, or several of any length"
EXPECTED = {
    "check_n_features_in": COLUMNS,
    "check_n_features_in_after_fitting": COLUMNS,
    "check_classifiers_train": COLUMNS,
    "check_regressors_train": SHORT,
}
EXPECTED_OF_SERIES = {
    "check_n_features_in": SERIES,
    "check_n_features_in_after_fitting": SERIES,
    "check_fit1d": SERIES,
    "check_fit2d_predict1d": SERIES,
    "check_fit2d_1feature": "a series of one value has no window and horizon",
    "check_estimators_empty_data_messages": "a series without values has no window and horizon",
}


@parametrize_with_checks(
    [DSSClassifier(**TINY), DSSRegressor(**TINY), DSSForecaster(1, 1, **TINY)],
    expected_failed_checks=lambda one: EXPECTED_OF_SERIES if isinstance(one, DSSForecaster) else EXPECTED,
)
def test_conventions(estimator, check):
    check(estimator)


def ragged():
    x, y = waves()
    return [row[: 8 + i % 16] for i, row in enumerate(x)], np.array(["slow", "fast"])[y]


def test_a_classifier_learns_and_keeps_its_bits():
    x, y = waves(120)
    names = np.array(["slow", "fast"])[y]
    settings = {**TINY, "min_steps": 60, "lr": 0.02}
    first = DSSClassifier(**settings).fit(x, names)
    assert list(first.classes_) == ["fast", "slow"] and first.score(x, names) > 0.9
    p = first.predict_proba(x)
    assert p.shape == (120, 2) and np.allclose(p.sum(1), 1)
    assert (first.predict(x) == first.classes_[p.argmax(1)]).all()
    again = clone(first).fit(x, names)
    np.testing.assert_array_equal(again.predict_proba(x), p)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict_proba(x), p)
    other = clone(first).set_params(random_state=1).fit(x, names)
    assert not np.array_equal(other.predict_proba(x), p)
    assert {"train", "val"} <= set(first.history_) and first.n_features_in_ == 1
    stream = first.stream()
    np.testing.assert_allclose(stream.push(x[0]), first.model_.forward(x[0]), rtol=1e-4, atol=1e-5)


def test_unequal_lengths_texts_and_channels():
    x, y = ragged()
    assert set(DSSClassifier(**TINY).fit(x, y).predict(x)) <= {"slow", "fast"}
    two = [np.stack([row, -row], -1) for row in x]
    fitted = DSSClassifier(**TINY).fit(two, y)
    assert fitted.n_features_in_ == 2
    with pytest.raises(ValueError, match="1 channels, but this estimator expects 2"):
        fitted.predict(x)
    texts = [f"{name}, {i}" for i, name in enumerate(y)]
    assert DSSClassifier(**TINY).fit(texts, y).predict(texts[:3]).shape == (3,)


def test_cross_validation_pipelines_and_grids():
    x, y = waves()
    assert cross_val_score(DSSClassifier(**TINY), x, y, cv=2).shape == (2,)
    steps = make_pipeline(StandardScaler(), DSSClassifier(**TINY)).fit(x, y)
    assert steps.predict(x).shape == (60,) and 0 <= steps.score(x, y) <= 1
    grid = GridSearchCV(DSSClassifier(**TINY), {"h": [4, 8]}, cv=2).fit(x, y)
    assert grid.best_params_["h"] in (4, 8)
    lists, names = ragged()
    assert cross_val_score(DSSClassifier(**TINY), lists, names, cv=2).shape == (2,)


def test_a_regressor():
    x, _ = waves(120)
    y = 100 + 20 * x.mean(1)
    model = DSSRegressor(**{**TINY, "min_steps": 100, "lr": 0.02}).fit(x, y)
    assert model.predict(x).shape == (120,) and model.score(x, y) > 0.5
    both = DSSRegressor(**TINY).fit(x, np.stack([y, -y], -1))
    assert both.predict(x[:5]).shape == (5, 2)
    assert cross_val_score(DSSRegressor(**TINY), x, y, cv=2).shape == (2,)


def test_a_forecaster():
    t = np.arange(500)
    series = 5 + np.sin(t / 4)
    model = DSSForecaster(4, 16, **{**TINY, "min_steps": 150, "lr": 0.02}).fit(series)
    assert model.predict().shape == (4,)
    np.testing.assert_array_equal(model.predict(), model.predict(series))
    assert model.score(5 + np.sin((t + 1000) / 4)) > 0.5
    many = np.stack([np.sin(t[:60] / 4 + i) for i in range(6)])
    tiny = DSSForecaster(4, 16, **TINY)
    assert tiny.fit(many).predict(many).shape == (6, 4)
    assert tiny.fit([many[0], many[1][:40]]).predict().shape == (2, 4)
    assert cross_val_score(tiny, many, cv=2).shape == (2,)
    assert cross_val_score(tiny, series, cv=TimeSeriesSplit(2)).shape == (2,)
    assert clone(tiny).get_params() == tiny.get_params()


def test_bad_input_is_named():
    x, y = waves()
    for match, call in {
        "1d": lambda: DSSClassifier(**TINY).fit(x, np.stack([y, y], -1)),
        "one class": lambda: DSSClassifier(**TINY).fit(x, np.zeros(60)),
        "inconsistent": lambda: DSSClassifier(**TINY).fit(x, y[:3]),
        "NaN": lambda: DSSRegressor(**TINY).fit(x, np.full(60, np.nan)),
        "Reshape your data": lambda: DSSRegressor(**TINY).fit(x[0], y),
        "validation_fraction": lambda: DSSRegressor(**{**TINY, "validation_fraction": 2}).fit(x, y),
        "that long": lambda: DSSForecaster(4, 600, **TINY).fit(x[0]),
        "Complex": lambda: DSSRegressor(**TINY).fit(x * 1j, y),
        "not fitted": lambda: DSSClassifier().predict(x),
        "perceptron": lambda: DSSClassifier(**{**TINY, "model": "perceptron"}).fit(x, y),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()
