"""Wrong inputs: what was expected, what came."""

import pathlib

import numpy as np
import pytest

import diagonal_ssm

X, Y = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32), np.arange(40) % 2
SMALL = {"layers": 1, "h": 8, "n": 4, "epochs": 1, "min_steps": 0}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return diagonal_ssm.train("files", (X, Y), out=tmp_path_factory.mktemp("runs") / "run", **SMALL).model


def test_files(tmp_path):
    file = tmp_path / "junk.safetensors"
    file.write_bytes(b"hello")
    with pytest.raises(ValueError, match="junk.safetensors: .*not a safetensors file"):
        diagonal_ssm.load(file)
    with pytest.raises(FileNotFoundError, match="no model at"):
        diagonal_ssm.load(tmp_path)


@pytest.mark.parametrize(
    "work, message",
    [
        (lambda m: m.forward(np.zeros((10, 3))), r"expected \[L, 1\] numbers, got float64 of shape \(10, 3\)"),
        (lambda m: m.forward([np.nan, 1.0]), "NaN at position 0"),
        (lambda m: m.forward("text"), "does not take text"),
        (lambda m: m.predict(X[0]), "put a single one into a list"),
        (lambda m: m.predict([]), "at least one sequence, got none"),
        (lambda m: m.predict(5), "expected several sequences"),
        (lambda m: m.forward([[1.0, 2.0], [3.0]]), "same number of channels"),
        (lambda m: m.kernel(0, 10**12), "more than memory can hold"),
        (lambda m: m.stream().push([]), "at least one position"),
        (lambda m: m.stream().push([1.0, 2.0], answers=5), "5 answers to 2 positions"),
        (lambda m: m.stream(b"abc"), "not a saved state"),
        (lambda m: m.kernel(-1), "layer must be from 0 to 0"),
        (lambda m: m.forward(X[0], X[1]), "takes single sequences"),
        (lambda m: diagonal_ssm.set_num_threads(-1), "at least 1, but is -1"),
    ],
)
def test_models(model, work, message):
    with pytest.raises(ValueError, match=message):
        work(model)


@pytest.mark.parametrize(
    "data, settings, message",
    [
        ((X, Y), {"epoch": 1}, "unknown key `epoch`; did you mean `train.epochs`"),
        ((X, Y), {"epochs": "many"}, "expected a whole number"),
        ((X, Y), {"model": "dss-sofmax"}, "unknown model `dss-sofmax`"),
        ((X, Y), {"threads": 0}, "at least 1, but is 0"),
        ((X, Y), {"threads": -1}, "at least 1, but is -1"),
        ((X, Y), {"threads": 4000}, "expected 1 to 1024"),
        ((X, Y[:10]), {}, "X has 40 sequences, but y 10 labels"),
        ((np.where(X > 2, np.nan, X), Y), {}, "contains NaN"),
        ((X, np.full(40, np.nan)), {}, "y contains NaN"),
        ((X, [None] * 40), {}, "classes of one kind"),
        (([["a", "b"]] * 4, [0, 1, 0, 1]), {}, "sequence 0 has something that is not a number"),
        ((["ab", 5] * 4, [0, 1] * 4), {}, "sequence 1 is int, but the first one is a text"),
        ((X, None), {}, "y must have a label for each sequence, but is None"),
        ((X, ["up\nand down", "down"] * 20), {}, "the name of a class must be a single line"),
        ((X[0], Y), {}, "a single sequence is X"),
        (None, {}, r"no data were given; use data=\(X, y\), or a path"),
    ],
)
def test_trainings(tmp_path, data, settings, message):
    with pytest.raises(ValueError, match=message):
        diagonal_ssm.train("files", data, out=tmp_path / "run", **{**SMALL, **settings})
    assert not (tmp_path / "run").exists()


def test_numbers_have_no_probabilities(tmp_path):
    model = diagonal_ssm.train("files", (X, X.mean(1)), out=tmp_path / "run", **SMALL).model
    assert model.predict(X[:2]).shape == (2, 1)
    with pytest.raises(ValueError, match="predict numbers, not classes"):
        model.predict_proba(X[:2])


def test_saving_leaves_the_file_or_a_whole_new_one(model, tmp_path):
    file = tmp_path / "model.safetensors"
    model.save(file)
    before = file.read_bytes()
    with pytest.raises(OSError):
        model.save(tmp_path / "none" / "model.safetensors")
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import load_model

    module = load_model(file)
    module.save(file)
    assert diagonal_ssm.load(file).predict(X[:2]).tolist() == model.predict(X[:2]).tolist()
    after = file.read_bytes()
    with torch.no_grad():
        module.head.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="head.weight has the number NaN"):
        module.save(file)
    assert file.read_bytes() == after and before and [p.name for p in tmp_path.iterdir()] == [file.name]


def test_estimators():
    pytest.importorskip("sklearn")
    from diagonal_ssm.sklearn import DSSClassifier, DSSForecaster, DSSRegressor

    for x, y, message in [
        (X[0], Y, "Reshape your data"),
        (X, Y[:3], "inconsistent numbers of samples"),
        (X, X[:, 0], "Unknown label type: continuous"),
        (X, 0 * Y, "needs at least two classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            DSSClassifier(**SMALL).fit(x, y)
    assert DSSClassifier(**SMALL, n_jobs=-1).fit(X, Y).predict(X[:2]).shape == (2,)
    with pytest.raises(ValueError, match="did you mean `train.clip`"):
        DSSClassifier(**SMALL, settings={"train.clipp": 1}).fit(X, Y)
    for series, message in [
        ([], "at least one value"),
        (5, r"expected a series \[T\], or several"),
        (np.zeros((3, 30, 2)), r"one at a time, but one has the shape \(30, 2\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            DSSForecaster(2, 4, **SMALL).fit(series)
    with pytest.raises(ValueError, match=r"y must be \[n\] or \[n, O\]"):
        DSSRegressor(**SMALL).fit(X, np.zeros((40, 2, 2)))


def test_layers(tmp_path):
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import DSSBlock, DSSLayer, S4Layer, conv, load_model, plain_torch, ssm_kernel

    layer, s4 = DSSLayer(8, d_state=4, l_max=30), S4Layer(8, 4, 10)
    block, both = DSSBlock(8, d_state=4, l_max=30), DSSBlock(8, d_state=4, l_max=30, bidirectional=True, norm="batch")
    x = torch.zeros(2, 30, 8)
    for module in (layer, block, both):
        for wrong in (torch.zeros(2, 30, 7), torch.zeros(30, 8), torch.zeros(2, 0, 8), np.zeros((2, 30, 8))):
            with pytest.raises(ValueError, match=r"expected a tensor \[B, L, 8\]"):
                module(wrong)
        for wrong in (x.double(), x.long()):
            with pytest.raises(ValueError, match="but the parameters are torch.float32"):
                module(wrong)
        for wrong in (torch.tensor([30]), torch.tensor([30.0, 3.5]), torch.tensor([[30, 3]])):
            with pytest.raises(ValueError, match=r"lengths must be \[B\] = \[2\] whole numbers"):
                module(x, wrong)
    for module in (block, both):
        for wrong in ([30, 31], [-1, 3]):
            with pytest.raises(ValueError, match="lengths must be from 0 to L = 30"):
                module(x, torch.tensor(wrong))
        assert torch.equal(module.eval()(x, [30, 3]), module(x, torch.tensor([30, 3])))
    with pytest.raises(ValueError, match="at most l_max = 10, but they have 30"):
        s4(x)
    with pytest.raises(TypeError, match="dstate"):
        DSSBlock(8, dstate=4)
    with pytest.raises(TypeError, match="float"):
        DSSLayer(8, l_max=1.5)
    with pytest.raises(ValueError, match="d_state must be at least 1, but is -1"):
        DSSLayer(8, d_state=-1)
    state = block.eval().initial_state(4)
    for wrong in (torch.zeros(8), torch.zeros(1, 8), torch.zeros(4, 1, 8), torch.zeros(4, 4, 8), torch.zeros(4, 7), 3):
        for module in (block, layer):
            with pytest.raises(ValueError, match=r"one position of each stream, a tensor \[B, H\] = \[4, 8\], got"):
                module.step(wrong, state)
    # As many numbers, in other axes.
    for k in (torch.zeros(3, 8, 10), torch.zeros(1, 30, 8), torch.zeros(1, 8, 31)):
        with pytest.raises(ValueError, match=r"`k` must be \[1 or 2, H, taps\] with H = 8 and at most 30 taps"):
            conv(x, k)
    lam, delta_log, w = layer.ssm_params()
    for params in ([lam.T, delta_log, w], [lam, delta_log.T, w], [lam, delta_log, w.transpose(1, 2)]):
        with pytest.raises(ValueError, match="parameter . has the shape"):
            ssm_kernel("softmax", params, 30, 30)
    with pytest.raises(ValueError, match="lengths must be from 0 to L = 30"), plain_torch():
        block(x, [30, 31])
    file = tmp_path / "junk"
    file.write_bytes(b"hello")
    with pytest.raises(ValueError, match="junk: .*not a safetensors file"):
        load_model(file)
    golden = pathlib.Path(__file__).parents[2] / "dss-exchange" / "tests" / "golden" / "ag1988"
    with pytest.raises(ValueError, match="softmax_bn_post.safetensors: "):
        load_model(golden / "softmax_bn_post.safetensors")
    file.write_bytes((golden.parents[3] / "dss-cli" / "page" / "models" / "text.safetensors").read_bytes()[:-10])
    with pytest.raises(ValueError, match="junk: "):
        load_model(file)
    with pytest.raises(FileNotFoundError, match="no model at"):
        load_model(tmp_path / "none")
    (tmp_path / "bad.yaml").write_text("model: [")
    for wrong, match in ((dict(length=0), "length must be at least 1"), (dict(config=tmp_path / "bad.yaml"), "its configuration: ")):
        with pytest.raises(ValueError, match=match):
            diagonal_ssm.import_checkpoint(golden / "softmax_bn_post.pt", **wrong)
    with pytest.raises(ValueError, match="read it with diagonal_ssm.load"):
        diagonal_ssm.import_checkpoint(golden.parents[3] / "dss-cli" / "page" / "models" / "text.safetensors")


def test_models_in_pytorch(model, tmp_path):
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import load_model

    model.save(tmp_path / "model.safetensors")
    module, x = load_model(tmp_path / "model.safetensors"), torch.zeros(2, 30, 1)
    assert torch.equal(module(x, [30, 3]), module(x, torch.tensor([30, 3])))
    for wrong in (x[..., 0], x.long(), torch.zeros(2, 30, 3), torch.zeros(2, 0, 1), X):
        with pytest.raises(ValueError, match=r"expected a tensor \[B, L, 1\] floating-point numbers, got"):
            module(wrong)
    for wrong in ([30, 0], [30, 31]):
        with pytest.raises(ValueError, match="lengths must be from 1 to L = 30"):
            module(x, wrong)
    with pytest.raises(ValueError, match="one position of each stream"):
        module.step(torch.zeros(3, 1), module.initial_state(2))
    text = pathlib.Path(__file__).parents[2] / "dss-cli" / "page" / "models" / "text.safetensors"
    with pytest.raises(ValueError, match=r"expected a tensor \[B, L\] token ids"):
        load_model(text)(torch.zeros(2, 30))
    with pytest.raises(ValueError, match="different lengths: call forward"):
        diagonal_ssm.load(text).predict(["To be", "or not to be"])
