"""`gradcheck` in float64: variants, directions, gates, norms, lengths."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from diagonal_ssm import torch as dss  # noqa: E402

LAYERS = {
    "softmax": lambda **s: dss.DSSLayer(3, 2, 5, "softmax", **s),
    "softmax-growing": lambda **s: growing(dss.DSSLayer(3, 2, 5, "softmax", **s)),
    "exp": lambda **s: dss.DSSLayer(3, 2, 5, "exp", tied_delta=True, gelu="tanh", **s),
    "exp-no-scale": lambda **s: dss.DSSLayer(3, 2, 5, "exp-no-scale", ssms=3, **s),
    "s4d": lambda **s: dss.S4DLayer(3, 4, 5, **s),
    "s4d-bilinear": lambda **s: dss.S4DLayer(3, 4, 5, "lin", "bilinear", **s),
    "s4": lambda **s: dss.S4Layer(3, 4, 5, **s),
    "s4-systems": lambda **s: dss.S4Layer(3, 4, 5, ssms=3, **s),
}


def growing(layer):
    layer.get_parameter("lambda").data[1, 0] = 0.3
    return layer


@pytest.fixture(autouse=True)
def f64():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def check(module, x, *rest):
    names = [name for name, _ in module.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in module.parameters()]

    def call(x, *values):
        return torch.func.functional_call(module, dict(zip(names, values)), (x, *rest))

    # A random direction at a time: one difference per tensor.
    assert torch.autograd.gradcheck(call, (x, *values), eps=1e-6, atol=1e-6, fast_mode=True)


CASES = list(itertools.product(LAYERS, [False, True], [False, True], ["layer", "batch", "layer-scalar"], [False, True]))


@pytest.mark.parametrize("name, bidirectional, glu, norm, padded", CASES)
def test_blocks(name, bidirectional, glu, norm, padded):
    """Of both orders of norm and layer, and of all parameters."""
    x, lengths = torch.randn(2, 5, 3, requires_grad=True), torch.tensor([5, 3]) if padded else None
    for prenorm in (False, True):
        layer = LAYERS[name](bidirectional=bidirectional, glu=glu)
        block = dss.DSSBlock(3, layer, norm=norm, prenorm=prenorm)
        block.norm.gamma.data.normal_()
        check(block, x, lengths)


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers_entry_by_entry(name):
    layer = LAYERS[name](bidirectional=True)
    u = torch.randn(2, 4, 3, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def call(u, *values):
        return torch.func.functional_call(layer, dict(zip(names, values)), (u,))

    assert torch.autograd.gradcheck(call, (u, *values), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax-growing", "exp", "s4d", "s4"])
def test_plain_form(name):
    with dss.plain_torch():
        check(LAYERS[name](), torch.randn(2, 5, 3, requires_grad=True))
