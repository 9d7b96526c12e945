"""Trained models: whole sequences, streams, and the same files in plain PyTorch."""

import pathlib
import pickle

import numpy as np
import pytest

import diagonal_ssm

MODELS = pathlib.Path(__file__).parents[2] / "dss-cli" / "page"
FILES = sorted(MODELS.rglob("*.safetensors"))


def sequence(model, length, seed=0):
    """A random sequence that the model can take."""
    random, given = np.random.default_rng(seed), model.meta["io"]["input"]
    if given["kind"] == "tokens":
        return random.integers(0, given["vocab"], length)
    return random.standard_normal((length, given["channels"])).astype(np.float32)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_there_are_models():
    assert FILES


def test_stream_equals_sequence(path):
    model = diagonal_ssm.load(path)
    x = sequence(model, 200)
    whole, stream = model.forward(x), model.stream()
    stream.push(x[:70])
    resumed = model.stream(stream.state())
    assert resumed.position == 70
    last = resumed.push(x[70:])
    wanted = whole[-1] if whole.ndim == 2 else whole
    np.testing.assert_allclose(last, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(last, stream.push(x[70:]))
    stream.reset()
    assert stream.position == 0


def test_plain_pytorch_gives_the_same(path):
    torch = pytest.importorskip("torch")
    from diagonal_ssm import dss_model

    model, plain = diagonal_ssm.load(path), dss_model.load(path)
    x = sequence(model, 150)
    with torch.no_grad():
        batch = torch.from_numpy(x)[None]
        np.testing.assert_allclose(plain(batch)[0].numpy(), model.forward(x), rtol=1e-3, atol=1e-4)
        state, stream = plain.initial_state(1), model.stream()
        for t in range(20):
            y, state = plain.step(batch[:, t], state)
            np.testing.assert_allclose(y[0].numpy(), stream.push(x[t : t + 1]), rtol=1e-3, atol=1e-4)


def test_the_model_as_a_module(path, tmp_path):
    """In PyTorch with fused blocks, saved and read again."""
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import load_model

    model, module = diagonal_ssm.load(path), load_model(path)
    x = sequence(model, 100)
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(x)[None])[0].numpy(), model.forward(x), rtol=1e-3, atol=1e-4)
        state, stream = module.initial_state(1), model.stream()
        for t in range(10):
            y, state = module.step(torch.from_numpy(x[None, t]), state)
            np.testing.assert_allclose(y[0].numpy(), stream.push(x[t : t + 1]), rtol=1e-3, atol=1e-4)
    module.save(tmp_path / "again.safetensors")
    again = diagonal_ssm.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.forward(x), model.forward(x))


def test_pickled_models_and_what_they_have_learned(path):
    model = diagonal_ssm.load(path)
    x = sequence(model, 50)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).forward(x), model.forward(x))
    report = model.inspect()
    assert len(report["layers"]) == model.meta["model"]["layers"]
    assert model.kernel(0, 32).shape == (1, model.meta["model"]["h"], 32)
    with pytest.raises(ValueError, match="layer must be from 0 to 3"):
        model.kernel(99)


def test_classes_and_probabilities(path):
    model = diagonal_ssm.load(path)
    if model.meta["io"]["output"]["kind"] != "sequence":
        pytest.skip("an answer per position")
    xs = [sequence(model, length, length) for length in (30, 50)]
    p = model.predict_proba(xs)
    np.testing.assert_allclose(p.sum(1), 1)
    assert [str(name) for name in model.predict(xs)] == [model.labels[i] for i in p.argmax(1)]


def test_wrong_input_is_an_error(path, tmp_path):
    model = diagonal_ssm.load(path)
    with pytest.raises(ValueError, match="expected"):
        model.forward(np.zeros((3, 4, 5)))
    with pytest.raises(ValueError):
        model.stream(b"not a state")
    with pytest.raises(FileNotFoundError):
        diagonal_ssm.load(tmp_path / "none")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError):
        diagonal_ssm.load(damaged)


def test_text():
    texts = [m for m in map(diagonal_ssm.load, FILES) if m.meta["io"]["input"]["kind"] == "tokens"]
    assert texts
    out = texts[0].forward("Now is the winter")
    assert np.isfinite(out).all()
    with pytest.raises(ValueError, match="from 0 to"):
        texts[0].forward([10**6])


GOLDEN = pathlib.Path(__file__).parents[2] / "dss-exchange" / "tests" / "golden"


@pytest.mark.filterwarnings("ignore:assumed")
def test_imported_checkpoints(tmp_path):
    """The logits of the programs that made them, and the same model in PyTorch."""
    safetensors = pytest.importorskip("safetensors.numpy")
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import load_model

    found = 0
    folders = "ag1988", "s4", "annotated-s4"
    for config in [path for folder in folders for path in sorted(GOLDEN.glob(f"{folder}/*.config.yaml"))]:
        name = config.name.removesuffix(".config.yaml")
        endings = "pt", "pth", "dict.ckpt", "msgpack", "safetensors"
        places = [config.with_name(f"{name}.{ending}") for ending in endings]
        file = next(place for place in places if place.exists())
        tensors = safetensors.load_file(config.with_name(f"{name}.io.safetensors"))
        x = tensors["tokens"] if "tokens" in tensors else tensors["values"]
        model = diagonal_ssm.import_checkpoint(file, config=config, length=x.shape[1])
        lengths = tensors.get("lengths", np.full(len(x), x.shape[1]))
        rows = [one[:length] for one, length in zip(x, lengths)]
        if model.meta["io"]["output"]["kind"] == "pair":
            half = len(rows) // 2
            logits = np.stack([model.forward(a, b) for a, b in zip(rows[:half], rows[half:])])
        else:
            logits = np.stack([model.forward(row) for row in rows])
        np.testing.assert_allclose(logits, tensors["logits"], atol=1e-5)
        model.save(tmp_path / "model.safetensors")
        with torch.no_grad():
            module = load_model(tmp_path / "model.safetensors")
            logits = module(torch.from_numpy(x), torch.from_numpy(lengths)).numpy()
        np.testing.assert_allclose(logits, tensors["logits"], atol=1e-5)
        found += 1
    assert found >= 18


def test_what_an_import_says(tmp_path):
    """Of a checkpoint without a configuration."""
    file = tmp_path / "last.pt"
    file.write_bytes((GOLDEN / "ag1988" / "softmax_bn_post.pt").read_bytes())
    with pytest.raises(ValueError, match="last.pt: .*give it with length="):
        diagonal_ssm.import_checkpoint(file)
    with pytest.raises(ValueError, match='variant must be one of .*"exp-no-scale"'):
        diagonal_ssm.import_checkpoint(file, variant="sofmax")
    with pytest.warns(UserWarning, match="assumed pool = mean: .* give pool= or config="):
        model = diagonal_ssm.import_checkpoint(file, length=40)
    model.save(tmp_path / "model.safetensors")
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import load_model

    tokens = np.arange(20) % 5
    module = load_model(tmp_path / "model.safetensors")
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(tokens)[None])[0].numpy(), model.forward(tokens), atol=1e-5)


def test_an_import_finds_the_configuration_of_its_training(tmp_path):
    golden, file = GOLDEN / "ag1988", tmp_path / "run" / "checkpoints" / "last.pt"
    file.parent.mkdir(parents=True)
    file.write_bytes((golden / "softmax_bn_post.pt").read_bytes())
    config = golden / "softmax_bn_post.config.yaml"
    with pytest.warns(UserWarning, match="normalised over"):
        wanted = diagonal_ssm.import_checkpoint(file, config=config)
    hydra = tmp_path / "run" / ".hydra" / "config.yaml"
    hydra.parent.mkdir()
    hydra.write_bytes(config.read_bytes())
    with pytest.warns(UserWarning) as said:
        model = diagonal_ssm.import_checkpoint(file)
    messages = [str(warning.message) for warning in said]
    assert messages[0] == f"the configuration is {hydra}; give config= for another"
    assert not any("pool" in message for message in messages)
    tokens = np.arange(20) % 5
    np.testing.assert_array_equal(model.forward(tokens), wanted.forward(tokens))
    hydra.write_text("model: {n_layers: 7}")
    with pytest.raises(ValueError, match=r"n_layers: .*7.*the configuration is .*config.yaml; give config= for"):
        diagonal_ssm.import_checkpoint(file, length=40)
    with pytest.warns(UserWarning, match="normalised over"):
        assert diagonal_ssm.import_checkpoint(file, config=config).length == model.length
