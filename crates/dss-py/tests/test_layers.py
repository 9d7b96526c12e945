"""The layers of diagonal_ssm.torch: fused against plain PyTorch, gradients, compilation, steps."""

import pytest

torch = pytest.importorskip("torch")

from diagonal_ssm import dss_model  # noqa: E402
from diagonal_ssm import torch as dss  # noqa: E402

LAYERS = {
    "softmax": lambda **s: dss.DSSLayer(5, 4, 12, "softmax", **s),
    "exp": lambda **s: dss.DSSLayer(5, 4, 12, "exp", tied_delta=True, **s),
    "exp-no-scale": lambda **s: dss.DSSLayer(5, 4, 12, "exp-no-scale", **s),
    "s4d": lambda **s: dss.S4DLayer(5, 4, 12, **s),
    "s4d-bilinear": lambda **s: dss.S4DLayer(5, 4, 12, "lin", "bilinear", **s),
    "s4": lambda **s: dss.S4Layer(5, 4, 12, **s),
}


@pytest.fixture(autouse=True)
def f64():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def plain(monkeypatch):
    monkeypatch.setattr(dss, "_fused", lambda tensor: False)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("glu", [False, True])
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "s4"])
def test_fused_equals_plain(name, glu, bidirectional, monkeypatch):
    layer = LAYERS[name](glu=glu, bidirectional=bidirectional)
    if name == "softmax":  # some modes grow
        layer.get_parameter("lambda").data[1, 0] = 0.3
    u, lengths = torch.randn(3, 12, 5, requires_grad=True), torch.tensor([12, 7, 1])
    wanted = []
    for fused in (True, False):
        if not fused:
            plain(monkeypatch)
        y = layer(u, lengths)
        loss = (y * torch.arange(y.numel()).reshape(y.shape).sin()).sum()
        wanted.append([y, *torch.autograd.grad(loss, [u, *layer.parameters()])])
    for a, b in zip(*wanted):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("prenorm", [False, True])
@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("name", ["softmax", "s4d"])
def test_blocks(name, norm, prenorm, monkeypatch):
    """Fused = plain in training and evaluation, with lengths and dropout."""
    for bidirectional in (False, True):
        layer = LAYERS[name](bidirectional=bidirectional, glu=bidirectional)
        block = dss.DSSBlock(5, layer, norm=norm, prenorm=prenorm, dropout=0.3)
        block.norm.gamma.data.normal_()
        x, lengths = torch.randn(3, 12, 5, requires_grad=True), torch.tensor([12, 7, 2])
        for training in (True, False):
            block.train(training)
            outputs, statistics = [], []
            for fused in (True, False):
                if not fused:
                    plain(monkeypatch)
                torch.manual_seed(1)
                if norm == "batch":
                    block.norm.running_mean.fill_(0.1)
                    block.norm.running_var.fill_(1.5)
                y = block(x, lengths)
                loss = (y * torch.arange(y.numel()).reshape(y.shape).sin()).sum()
                outputs.append([y, *torch.autograd.grad(loss, [x, *block.parameters()])])
                statistics.append([buffer.clone() for buffer in block.buffers()])
                monkeypatch.undo()
            for a, b in zip(*outputs):
                torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
            for a, b in zip(*statistics):
                torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", list(LAYERS))
def test_gradcheck(name):
    layer = LAYERS[name](bidirectional=True)
    u = torch.randn(2, 6, 5, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def call(u, *values):
        return torch.func.functional_call(layer, dict(zip(names, values)), (u,))

    assert torch.autograd.gradcheck(call, (u, *values), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("glu", [False, True])
@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("prenorm", [False, True])
def test_gradcheck_of_blocks(prenorm, norm, glu):
    block = dss.DSSBlock(3, d_state=2, l_max=5, glu=glu, bidirectional=glu, norm=norm, prenorm=prenorm)
    x, lengths = torch.randn(2, 5, 3, requires_grad=True), torch.tensor([5, 3])
    names = [name for name, _ in block.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in block.parameters()]

    def call(x, *values):
        return torch.func.functional_call(block, dict(zip(names, values)), (x, lengths))

    assert torch.autograd.gradcheck(call, (x, *values), eps=1e-6, atol=1e-6)


def test_opcheck():
    layer = dss.DSSLayer(3, 2, 6)
    params = layer._params()
    torch.library.opcheck(dss._kernel, ("softmax", params, 6, 6))
    k = layer.kernel(6).detach().requires_grad_()
    u = torch.randn(2, 6, 3, requires_grad=True)
    torch.library.opcheck(dss._conv, (u, k))
    tensors = [u, k, layer.d, layer.out.weight, layer.out.bias, torch.ones(3), torch.zeros(3)]
    for prenorm in (False, True):
        settings = (prenorm, False, False, "layer", 1e-5)
        torch.library.opcheck(dss._block, (tensors, [], [], None, *settings))


def test_compiles_as_one_graph():
    block = dss.DSSBlock(4, d_state=2, l_max=8)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 8, 4, requires_grad=True)
    y, z = block(x), compiled(x)
    assert torch.equal(y, z)
    z.sum().backward()


@pytest.mark.parametrize("name", ["softmax", "exp", "exp-no-scale", "s4d", "s4d-bilinear"])
def test_steps_equal_the_sequence(name):
    layer = LAYERS[name]()
    if name == "softmax":
        layer.get_parameter("lambda").data[1, 0] = 0.3
    u = torch.randn(2, 12, 5)
    whole, state = layer(u), layer.initial_state(2)
    for t in range(12):
        y, state = layer.step(u[:, t], state)
        torch.testing.assert_close(y, whole[:, t], rtol=1e-9, atol=1e-11)
    if name == "softmax":
        with pytest.raises(ValueError, match="end after 12"):
            layer.step(u[:, 0], state)


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="variant"):
        dss.DSSLayer(4, variant="relu")
    with pytest.raises(ValueError, match="dropout"):
        dss.DSSBlock(4, dropout=1.0)
    with pytest.raises(ValueError, match="whole sequences"):
        layer = dss.DSSLayer(4, 2, 8, bidirectional=True)
        layer.step(torch.zeros(1, 4), layer.initial_state(1))
    with pytest.raises(ValueError, match="f64"):
        dss._kernel("exp", [torch.zeros(2, 2), torch.zeros(3, 2, dtype=torch.float32), torch.zeros(1, 3, 2, 2)], 4, 4)


def test_float32_and_strides():
    layer = dss.DSSLayer(6, 4, 16).float()
    u = torch.randn(6, 16, 2, dtype=torch.float32).permute(2, 1, 0)
    assert not u.is_contiguous()
    torch.testing.assert_close(layer(u), layer.double()(u.double()).float(), rtol=1e-4, atol=1e-5)
    assert dss_model.EPSILON == 1e-7
