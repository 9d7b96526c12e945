"""Trainings from Python: arrays, texts and series; interruption; what a run shows of itself."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import diagonal_ssm

SMALL = {"layers": 1, "h": 8, "n": 4, "epochs": 2, "min_steps": 0, "batch": 8}


def waves(n=60, length=24, seed=0):
    """Slow or fast waves, with noise."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    pitch = np.where(y, 1.2, 0.3) * random.uniform(0.9, 1.1, n)
    x = np.sin(pitch[:, None] * np.arange(length) + random.uniform(0, 6, (n, 1)))
    return (x + 0.1 * random.standard_normal(x.shape)).astype(np.float32), y


def tensors(run):
    """The bytes of all tensors of a run's best model; what is before them names the folder of the data."""
    data = pathlib.Path(run, "best.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def test_arrays(tmp_path):
    x, y = waves()
    events = []
    run = diagonal_ssm.train(
        "files", (x, np.array(["slow", "fast"])[y]), out=tmp_path / "run", callback=events.append, **SMALL
    )
    assert run.stopped == "finished" and run.model.labels == ["fast", "slow"]
    assert events[-1]["event"] == "end" and {"start", "step", "eval"} <= {event["event"] for event in events}
    assert run.settings["model.h"] == 8 and run.settings["task.target"] == "class"
    loss, test = run.metrics["train"]["loss"], run.metrics["test"]["accuracy"]
    assert loss.dtype == np.float64 and len(loss) > 3 and np.isfinite(loss).all()
    assert test.shape == (1,) and test[0] == run.summary["test"]["accuracy"]
    page = run._repr_html_()
    assert page.startswith("<iframe srcdoc=") and "fast" in page and "<script" not in page
    assert "files" in repr(run) and diagonal_ssm.Run(run.path).stopped == "finished"
    # The scaling of the training is applied to what is predicted.
    model = run.model
    assert model._scaling is not None
    stream = model.stream()
    stream.push(x[0][:10])
    np.testing.assert_allclose(stream.push(x[0][10:]), model.forward(x[0]), rtol=1e-4, atol=1e-5)
    longer = run.resume(epochs=3)
    assert longer.summary["steps"] > run.summary["steps"]
    with pytest.raises(FileExistsError, match="Run\\(path\\).resume"):
        diagonal_ssm.train("files", (x, y), out=tmp_path / "run", **SMALL)


def test_the_same_seed_gives_the_same_bits(tmp_path):
    x, y = waves()
    runs = [
        diagonal_ssm.train("files", (x, y), out=tmp_path / name, threads=threads, seed=seed, **SMALL).path
        for name, threads, seed in (("a", 1, 0), ("b", 2, 0), ("c", 2, 1))
    ]
    assert tensors(runs[0]) == tensors(runs[1]) != tensors(runs[2])


def test_unequal_lengths_and_numbers_to_predict(tmp_path):
    x, _ = waves()
    lengths = 5 + np.arange(len(x)) % 20
    ragged = [np.stack([row[:n], -row[:n]], -1) for row, n in zip(x, lengths)]
    y = np.stack([lengths / 10, x[:, 0]], -1)
    run = diagonal_ssm.train("files", (ragged, y), out=tmp_path / "run", **SMALL)
    assert run.settings["task.target"] == "value" and np.isfinite(run.metrics["val"]["mse"]).all()
    assert run.model.predict(ragged[:3]).shape == (3, 2) and run.model.length == 24


def test_texts(tmp_path):
    texts = [f'{"good, yes" if i % 2 else "bad; no"} "{i}"\nand so on' for i in range(40)]
    run = diagonal_ssm.train("files", (texts, [i % 2 for i in range(40)]), out=tmp_path / "run", **SMALL)
    assert run.model.labels == ["0", "1"] and len(run.model.predict(texts[:2])) == 2


def test_a_series(tmp_path):
    series = np.sin(np.arange(400) / 5) * 3 + 10
    settings = {"layers": 1, "h": 8, "n": 4, "input": 16, "horizon": 4, "epochs": 1}
    run = diagonal_ssm.train("forecast", series, out=tmp_path / "run", **settings)
    assert run.model.forecast(series).shape == (4,) and abs(run.model.forecast(series) - 10).max() < 6
    with pytest.raises(ValueError, match="at least 16 values"):
        run.model.forecast(series[:3])


def test_errors_come_before_any_work(tmp_path):
    x, y = waves()
    out = tmp_path / "run"
    for match, arguments in {
        "did you mean `model.layers`": dict(task="files", data=(x, y), layer=3),
        "unknown task": dict(task="filez"),
        "expected \\[n, L\\]": dict(task="files", data=(x[0], y)),
        "60 sequences, but y 3": dict(task="files", data=(x, y[:3])),
        "NaN": dict(task="files", data=(x * np.nan, y)),
        "does not take arrays": dict(task="listops", data=(x, y)),
        "a pair": dict(task="files", data=[x, y, y]),
        "same channels": dict(task="files", data=([np.zeros(3), np.zeros((3, 2))], [0, 1])),
        "only one class": dict(task="files", data=(x, np.zeros(60, dtype=int))),
    }.items():
        with pytest.raises(ValueError, match=match):
            diagonal_ssm.train(out=out, **arguments)
        assert not out.exists(), match
    with pytest.raises(TypeError, match="a setting is"):
        diagonal_ssm.train("files", (x, y), out=out, lr=object())
    with pytest.raises(FileNotFoundError, match="not a run directory"):
        diagonal_ssm.Run(tmp_path)


def test_weights_and_biases(tmp_path):
    """What its run is told; the package itself is not needed."""
    from diagonal_ssm.wandb import WandbCallback

    class Recorder:
        def __init__(self):
            self.rows, self.axes = [], {}

        def define_metric(self, name, step_metric):
            self.axes[name] = step_metric

        def log(self, row):
            self.rows.append(row)

    recorder = Recorder()
    run = diagonal_ssm.train("files", waves(), out=tmp_path / "run", callback=WandbCallback(recorder), **SMALL)
    assert recorder.axes == {"*": "step"}
    for part, key in (("train", "loss"), ("val", "accuracy"), ("test", "accuracy")):
        logged = [(row["step"], row[f"{part}/{key}"]) for row in recorder.rows if f"{part}/{key}" in row]
        wanted = run.metrics[part]
        assert logged == list(zip(wanted["step"], wanted[key])), part


def tensorboard_records(path):
    """The events of a file, by their framing: length, its checksum, bytes, their checksum."""
    data, records = path.read_bytes(), []
    while data:
        length = int.from_bytes(data[:8], "little")
        records.append(data[12 : 12 + length])
        data = data[16 + length :]
    return records


def test_tensorboard(tmp_path):
    """Every value of the metrics is in the event file, once; also after the run was resumed."""
    run = diagonal_ssm.train("files", waves(), out=tmp_path / "run", tensorboard=True, **SMALL)
    assert run.settings["train.tensorboard"] is True
    for run in (run, run.resume(epochs=3)):
        records = tensorboard_records(pathlib.Path(run.path, "events.out.tfevents.dss"))
        assert b"brain.Event" in records[0]
        for part, key in (("train", "loss"), ("train", "lr"), ("val", "accuracy"), ("test", "accuracy")):
            written = [record for record in records if f"{part}/{key}".encode() in record]
            values = run.metrics[part][key]
            assert len(written) == len(values) > 0
            for record, value in zip(written, values):
                assert np.float32(value).tobytes() in record, (part, key, value)
    plain = diagonal_ssm.train("files", waves(), out=tmp_path / "plain", **SMALL)
    assert not list(pathlib.Path(plain.path).glob("events*"))


def test_an_error_in_a_callback_ends_the_training(tmp_path):
    def fail(event):
        if event["event"] == "step":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        diagonal_ssm.train("files", waves(), out=tmp_path / "run", callback=fail, **SMALL)
    # What was saved can be continued.
    assert diagonal_ssm.Run(tmp_path / "run").resume().stopped == "finished"


CODE = """
import signal, sys, diagonal_ssm, test_runs
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
settings = {**test_runs.SMALL, "epochs": 40}
run = diagonal_ssm.train("files", test_runs.waves(), out=sys.argv[1], callback=test_runs.slowly, **settings)
print("stopped", run.stopped, flush=True)
"""


def slowly(event):
    """Tells of each step and lets it take a while."""
    if event["event"] == "step":
        print("step", flush=True)
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_ctrl_c_leaves_a_run_that_can_be_resumed(tmp_path):
    """It ends with the same bytes as one that was never interrupted, even if it was moved meanwhile."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=pathlib.Path(__file__).parent,
    )
    watchdog = threading.Timer(100, process.kill)
    watchdog.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "step\n"
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait() == 0
    watchdog.cancel()
    assert "stopped interrupted" in rest, rest
    run = diagonal_ssm.Run((tmp_path / "run").rename(tmp_path / "moved"))
    assert run.stopped is None and run.resume().stopped in ("finished", "early")
    straight = diagonal_ssm.train("files", waves(), out=tmp_path / "straight", **{**SMALL, "epochs": 40})
    assert tensors(run.path) == tensors(straight.path)
