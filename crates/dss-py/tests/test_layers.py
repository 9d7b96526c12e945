"""The layers of diagonal_ssm.torch: fused against plain PyTorch, compilation, steps, settings."""

import copy
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from diagonal_ssm import torch as dss  # noqa: E402
from diagonal_ssm.torch import _ops  # noqa: E402

LAYERS = {
    "softmax": lambda **s: growing(dss.DSSLayer(6, 4, 12, "softmax", **s)),
    "exp": lambda **s: dss.DSSLayer(6, 4, 12, "exp", tied_delta=True, gelu="tanh", **s),
    "exp-no-scale": lambda **s: dss.DSSLayer(6, 4, 12, "exp-no-scale", ssms=2, **s),
    "s4d": lambda **s: dss.S4DLayer(6, 4, 12, ssms=3, **s),
    "s4d-bilinear": lambda **s: dss.S4DLayer(6, 4, 12, "lin", "bilinear", **s),
    "s4": lambda **s: dss.S4Layer(6, 4, 12, **s),
    "s4-systems": lambda **s: apart(dss.S4Layer(6, 4, 12, ssms=3, gelu="tanh", **s)),
}


def growing(layer):
    """One of its modes grows."""
    layer.get_parameter("lambda").data[1, 0] = 0.3
    return layer


def apart(layer):
    """Its systems differ."""
    for p in (layer.lambda_re, layer.lambda_im, layer.p, layer.b):
        p.data.mul_(1 + 0.2 * torch.rand_like(p))
    return layer


@pytest.fixture(autouse=True)
def f64():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
    torch.compiler.reset()


def values_and_gradients(module, x, lengths):
    y = module(x, lengths)
    loss = (y * torch.arange(y.numel()).reshape(y.shape).sin()).sum()
    return [y, *torch.autograd.grad(loss, [x, *module.parameters()])]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("glu", [False, True])
@pytest.mark.parametrize("name", list(LAYERS))
def test_fused_equals_plain(name, glu, bidirectional):
    layer = LAYERS[name](glu=glu, bidirectional=bidirectional)
    u, lengths = torch.randn(3, 12, 6, requires_grad=True), torch.tensor([12, 7, 1])
    fused = values_and_gradients(layer, u, lengths)
    with dss.plain_torch():
        plain = values_and_gradients(layer, u, lengths)
    for a, b in zip(fused, plain):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("length", [1, 5, 12])
@pytest.mark.parametrize("kernel_len", [0, 4])
def test_lengths_and_cut_kernels(length, kernel_len):
    for name in LAYERS:
        layer, u = LAYERS[name](kernel_len=kernel_len), torch.randn(2, length, 6)
        fused = layer(u)
        with dss.plain_torch():
            torch.testing.assert_close(fused, layer(u), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("prenorm", [False, True])
@pytest.mark.parametrize("norm", ["layer", "batch", "layer-scalar"])
@pytest.mark.parametrize("name", ["softmax", "s4d", "s4-systems"])
def test_blocks(name, norm, prenorm):
    """Fused = plain in training and evaluation, with lengths and dropout."""
    for bidirectional, mask_padding in ((False, True), (True, True), (True, False)):
        layer = LAYERS[name](bidirectional=bidirectional, glu=bidirectional)
        block = dss.DSSBlock(6, layer, norm=norm, prenorm=prenorm, dropout=0.3, mask_padding=mask_padding)
        block.norm.gamma.data.normal_()
        x, lengths = torch.randn(3, 12, 6, requires_grad=True), torch.tensor([12, 7, 2])
        for training in (True, False):
            block.train(training)
            other, found = copy.deepcopy(block), []
            for module, context in ((block, torch.enable_grad()), (other, dss.plain_torch())):
                torch.manual_seed(1)
                with context:
                    found.append([*values_and_gradients(module, x, lengths), *module.buffers()])
            for a, b in zip(*found):
                torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", list(LAYERS))
def test_opcheck_of_kernels(name):
    layer = LAYERS[name](bidirectional=True)
    torch.library.opcheck(_ops.kernel, (layer.kind, layer.ssm_params(), 6, 12))


@pytest.mark.parametrize("glu", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_opcheck(bidirectional, glu):
    layer = dss.DSSLayer(3, 2, 6, bidirectional=bidirectional, glu=glu)
    k = layer.kernel(6).detach().requires_grad_()
    u = torch.randn(2, 6, 3, requires_grad=True)
    torch.library.opcheck(_ops.conv, (u, k))
    tensors = [u, k, layer.d, layer.out.weight, layer.out.bias, torch.ones(3), torch.zeros(3)]
    lengths, masks = torch.tensor([6, 4]), [torch.ones(2, 3), torch.full((2, 3), 2.0)]
    for prenorm in (False, True):
        for norm in ("layer", "batch", "batch-eval"):
            given = [torch.zeros(3), torch.ones(3)] if norm == "batch-eval" else []
            settings = (prenorm, glu, glu, bidirectional, norm, 1e-5)
            torch.library.opcheck(_ops.block, (tensors, given, masks, lengths, lengths, *settings))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("name", list(LAYERS))
def test_compiles_as_one_graph(name, norm, wide, padded):
    """Bit for bit what it is without a compiler, forward and backward; `wide` has both directions, a gate and dropout."""
    block = dss.DSSBlock(6, LAYERS[name](bidirectional=wide, glu=wide), norm=norm, dropout=0.3 * wide)
    compiled = torch.compile(copy.deepcopy(block), fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 8, 6, requires_grad=True)
    lengths = torch.tensor([8, 5]) if padded else None
    grads = []
    for module in (block, compiled):
        torch.manual_seed(1)
        y = module(x, lengths)
        y.sin().sum().backward()
        grads.append([y, x.grad, *(p.grad for p in module.parameters())])
        x.grad = None
    assert all(torch.equal(a, b) for a, b in zip(*grads))


def test_the_plain_form_compiles():
    block = dss.DSSBlock(6, LAYERS["softmax"]())
    x = torch.randn(2, 8, 6)
    with dss.plain_torch():
        compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), block(x), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", list(LAYERS))
def test_steps_equal_the_sequence(name):
    layer = LAYERS[name]()
    block = dss.DSSBlock(6, layer, norm="batch", prenorm=False).eval()
    u = torch.randn(2, 12, 6)
    for module in (layer, block):
        whole, state = module(u), module.initial_state(2)
        with torch.no_grad():
            for t in range(12):
                y, state = module.step(u[:, t], state)
                torch.testing.assert_close(y, whole[:, t], rtol=1e-9, atol=1e-10)
    if name == "softmax":
        with pytest.raises(ValueError, match="end after 12"):
            module.step(u[:, 0], state)


def test_steps_follow_the_parameters():
    """What steps prepare is made again when a parameter changes, and gradients flow through them."""
    layer, u = LAYERS["exp"](), torch.randn(1, 6)
    with torch.no_grad():
        before, _ = layer.step(u, layer.initial_state(1))
        layer.w.mul_(2)
        after, _ = layer.step(u, layer.initial_state(1))
        torch.testing.assert_close(after[0], layer(u[None])[0, 0])
    assert not torch.equal(before, after)
    layer.step(u, layer.initial_state(1))[0].sum().backward()
    assert layer.w.grad is not None and layer.w.grad.abs().max() > 0
    again = pickle.loads(pickle.dumps(layer))
    assert torch.equal(again(u[None]), layer(u[None]))


def test_bad_settings_are_named():
    for match, make in {
        "variant": lambda: dss.DSSLayer(4, variant="relu"),
        "gelu must be": lambda: dss.DSSLayer(4, gelu="relu"),
        "dropout": lambda: dss.DSSBlock(4, dropout=1.0),
        "norm must be": lambda: dss.DSSBlock(4, norm="group"),
        "divisor": lambda: dss.DSSLayer(4, ssms=3),
        "divisor of d_model = 6": lambda: dss.S4Layer(6, 4, 12, ssms=4),
        "dt_min": lambda: dss.DSSLayer(4, dt_min=1.0, dt_max=0.1),
        "discretisation": lambda: dss.S4DLayer(4, discretisation="euler"),
        "initial": lambda: dss.S4DLayer(4, init="zeros"),
        "channels": lambda: dss.DSSBlock(5, dss.DSSLayer(4)),
        "settings of a layer": lambda: dss.DSSBlock(4, dss.DSSLayer(4), d_state=3),
        "whole sequences": lambda: dss.DSSLayer(4, 2, 8, bidirectional=True).initial_state(1),
        "eval": lambda: dss.DSSBlock(4, norm="batch").step(torch.zeros(1, 4), (0, torch.zeros(1, 4, 64))),
        "f64": lambda: dss.ssm_kernel("exp", [torch.zeros(2, 2), torch.zeros(3).float(), torch.zeros(1, 3, 2, 2)], 4, 4),
    }.items():
        with pytest.raises(ValueError, match=match):
            make()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("norm", ["layer", "batch", "layer-scalar"])
@pytest.mark.parametrize("name", ["softmax", "s4d-bilinear", "s4", "s4-systems"])
def test_the_plain_form_stays_on_its_device(name, norm, both_ways, padded):
    """On the meta device, which refuses operands on the CPU as a GPU does: 24 blocks, forward and backward."""
    layer = LAYERS[name](bidirectional=both_ways, glu=both_ways)
    block = dss.DSSBlock(6, layer, norm=norm, prenorm=both_ways, dropout=0.3).to("meta")
    x = torch.randn(3, 10, 6, device="meta", requires_grad=True)
    y = block(x, torch.tensor([10, 7, 1]) if padded else None)
    assert y.is_meta and y.shape == x.shape
    y.sin().sum().backward()
    for tensor in (x, *block.parameters()):
        assert tensor.grad is not None and tensor.grad.is_meta and tensor.grad.shape == tensor.shape
    assert all(buffer.is_meta for buffer in block.buffers())


def test_the_meta_device_refuses_operands_on_the_cpu():
    """Without this, the test above could not fail."""
    with pytest.raises(RuntimeError, match="device"):
        torch.zeros(3, device="meta") + torch.zeros(3)


def test_float32_half_and_strides():
    layer = dss.DSSLayer(6, 4, 16).float()
    u = torch.randn(6, 16, 2, dtype=torch.float32).permute(2, 1, 0)
    assert not u.is_contiguous()
    wanted = copy.deepcopy(layer).double()(u.double())
    torch.testing.assert_close(layer(u), wanted.float(), rtol=1e-4, atol=1e-5)
    half = copy.deepcopy(layer).bfloat16()(u.bfloat16())
    assert half.dtype == torch.bfloat16 and (half.double() - wanted).abs().max() < 0.1


def test_second_derivatives_in_the_plain_form():
    layer, u = LAYERS["exp"](), torch.randn(1, 4, 6, requires_grad=True)
    with dss.plain_torch():
        assert torch.autograd.gradgradcheck(lambda u: layer(u).sin().sum(), u)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
def test_memory_is_kept():
    """Tensors of 80 MB cost thousands of new pages each time; not any more."""
    code = """
import resource, torch
from diagonal_ssm.torch import keep_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        torch.ones(20_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first, kept = faults(), keep_memory()
print(first > 10_000, kept, min(faults() for _ in range(4)) < 1000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True"] * 3, (done.stdout, done.stderr)
