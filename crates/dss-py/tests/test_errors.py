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
        ((X, Y), {"threads": 0}, "cannot start 0 threads"),
        ((X, Y[:10]), {}, "X has 40 sequences, but y 10 labels"),
        ((np.where(X > 2, np.nan, X), Y), {}, "contains NaN"),
        ((X, np.full(40, np.nan)), {}, "y contains NaN"),
        ((X, [None] * 40), {}, "classes of one kind"),
        (([["a", "b"]] * 4, [0, 1, 0, 1]), {}, "sequence 0 has something that is not a number"),
        ((X[0], Y), {}, "a single sequence is X"),
        (None, {}, r"say where the data are: data=\(X, y\), or a path"),
    ],
)
def test_trainings(tmp_path, data, settings, message):
    with pytest.raises(ValueError, match=message):
        diagonal_ssm.train("files", data, out=tmp_path / "run", **{**SMALL, **settings})
    assert not (tmp_path / "run").exists()


def test_estimators():
    pytest.importorskip("sklearn")
    from diagonal_ssm.sklearn import DSSClassifier, DSSForecaster

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
    with pytest.raises(ValueError, match="at least one value"):
        DSSForecaster().fit([])


def test_layers(tmp_path):
    torch = pytest.importorskip("torch")
    from diagonal_ssm.torch import DSSBlock, DSSLayer, S4Layer, load_model

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
    file = tmp_path / "junk"
    file.write_bytes(b"hello")
    with pytest.raises(ValueError, match="junk is not a safetensors file"):
        load_model(file)
    golden = pathlib.Path(__file__).parents[2] / "dss-exchange" / "tests" / "golden" / "ag1988"
    with pytest.raises(ValueError, match="not a model file of ours"):
        load_model(golden / "softmax_bn_post.safetensors")
    file.write_bytes((golden.parents[3] / "dss-cli" / "page" / "models" / "text.safetensors").read_bytes()[:-10])
    with pytest.raises(ValueError, match="junk is incomplete: it ends inside"):
        load_model(file)
    (tmp_path / "bad.yaml").write_text("model: [")
    for wrong, match in ((dict(length=0), "length must be at least 1"), (dict(config=tmp_path / "bad.yaml"), "its configuration: ")):
        with pytest.raises(ValueError, match=match):
            diagonal_ssm.import_checkpoint(golden / "softmax_bn_post.pt", **wrong)
