"""Golden layers and models, computed in float64 by other code: values, every gradient, statistics."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors")
safetensors_torch = pytest.importorskip("safetensors.torch")

from diagonal_ssm import torch as dss  # noqa: E402

FOLDER = pathlib.Path(__file__).parents[2] / "dss-nn" / "tests" / "golden"
NAMES = {
    "layer.kernel.kernel.log_dt": "mixer.delta_log",
    "layer.kernel.kernel.log_w_real": "mixer.lambda_re",
    "layer.kernel.kernel.w_imag": "mixer.lambda_im",
    "layer.kernel.kernel.P": "mixer.p",
    "layer.kernel.kernel.B": "mixer.b",
    "layer.kernel.kernel.C": "mixer.c",
    "layer.kernel.log_dt": "mixer.delta_log",
    "layer.kernel.Lambda": "mixer.lambda",
    "layer.kernel.W": "mixer.w",
    "layer.output_linear.0": "mixer.out",
    "layer.output_linear": "mixer.out",
    "layer.D": "mixer.d",
    "norm.norm.weight": "norm.gamma",
    "norm.norm.bias": "norm.beta",
    "norm.norm.s": "norm.gamma",
    "norm.norm.m": "norm.beta",
    "norm.norm": "norm",
    "decoder.output_transform": "head",
    "decoder.retrieval.classifier.0": "head.hidden",
    "decoder.retrieval.classifier.2": "head.out",
}


def read(name):
    path = FOLDER / f"{name}.safetensors"
    with safetensors.safe_open(path, "pt") as file:
        return file.metadata(), safetensors_torch.load_file(path)


def ours(tensors, prefix, like):
    """The tensors under a prefix by our names, in the shapes of `like`."""
    found = {}
    for full, values in tensors.items():
        if not full.startswith(prefix) or full.endswith(("Lambda_im", "kernel.omega", "kernel.z")):
            continue
        name = full.removeprefix(prefix).removeprefix("model.")
        if full.endswith("Lambda_log_neg_re"):
            name = name.replace("Lambda_log_neg_re", "Lambda")
            values = torch.stack([values, tensors[full.replace("Lambda_log_neg_re", "Lambda_im")]], -1)
        key = next((key for key in NAMES if key in name), None)
        name = name if key is None else name.replace(key, NAMES[key])
        found[name] = values.reshape(like[name].shape)
    return found


def close(name, found, wanted, scale):
    """Within 1e-10 of the largest value; what is only rounding in the file must be rounding here."""
    largest = wanted.abs().max().item()
    bound = 1e-14 * scale if largest < 1e-14 * scale else 1e-10 * largest
    off = (found - wanted).abs().max().item()
    assert off <= bound, f"{name}: off by {off}, the largest value is {largest}"


KERNELS = FOLDER.parents[2] / "dss-kernels" / "tests" / "golden"
SMALL = [path.stem for path in KERNELS.glob("*.safetensors") if re.match("(kernel|s4)_.*(small|tied|c2)$", path.stem)]


@pytest.mark.parametrize("form", ["fused", "plain"])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_kernels(name, form):
    tensors = safetensors_torch.load_file(KERNELS / f"{name}.safetensors")
    if name.startswith("s4"):
        kind, names = "s4", ["log_w_real", "w_imag", "P", "B", "log_dt", "C"]
        shapes = [(-1,), (-1,), (-1, 2), (-1, 2), (-1,), tensors["C"].shape]
        params = [tensors[key].reshape(shape) for key, shape in zip(names, shapes)]
    else:
        kind = name.removeprefix("kernel_").split("_small")[0].split("_odd")[0].split("_pos")[0].replace("_", "-")
        lam = tensors.get("Lambda")
        lam = torch.stack([tensors["Lambda_log_neg_re"], tensors["Lambda_im"]], -1) if lam is None else lam
        params = [lam, tensors["log_dt"], tensors["W"]]
    taps = tensors["K"].shape[-1]
    with dss.plain_torch() if form == "plain" else torch.enable_grad():
        k = dss.ssm_kernel(kind, params, taps, taps)
    close("K", k, tensors["K"], 1)


@pytest.mark.parametrize("form", ["fused", "plain"])
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("layer_*")))
def test_layers(name, form):
    meta, tensors = read(name)
    h, n, length = (int(meta[key]) for key in "HNL")
    layer = dss.DSSLayer(
        h,
        n,
        length,
        meta.get("version", "softmax"),
        bidirectional=meta.get("bidirectional") == "True",
        glu=meta.get("postact") == "glu",
        kernel_len=int(meta.get("max_kernel_length", 0)),
    ).double()
    like = {f"mixer.{key}": value for key, value in layer.state_dict().items()}
    renamed = {key.replace("sd.", "sd.layer.").replace("grad.", "grad.layer."): t for key, t in tensors.items()}
    state = ours(renamed, "sd.", like)
    layer.load_state_dict({key.removeprefix("mixer."): value for key, value in state.items()})
    u = tensors["u"].transpose(1, 2).requires_grad_()
    with dss.plain_torch() if form == "plain" else torch.enable_grad():
        y = layer(u)
        (y * tensors["g"].transpose(1, 2)).sum().backward()
    close("y", y.transpose(1, 2), tensors["y"], 1)
    close("u", u.grad.transpose(1, 2), tensors["grad.u"], 1)
    wanted = ours({k: v for k, v in renamed.items() if not k.endswith(".u")}, "grad.", like)
    assert len(wanted) == len(list(layer.parameters()))
    for key, value in wanted.items():
        close(key, layer.get_parameter(key.removeprefix("mixer.")).grad, value, 1)


def describe(meta, tensors):
    """The description of a golden model, as in our files."""
    kernel, s4 = "sd.model.layers.0.layer.kernel", meta["layer"] == "s4"
    shared = {"glu": False, "kernel_len": 0, "delta_min": 0.001, "delta_max": 0.1}
    n = 2 * tensors[f"{kernel}.kernel.C"].shape[2] if s4 else tensors[f"{kernel}.W"].shape[2]
    own = {"kind": "s4"} if s4 else {"kind": "dss", "variant": meta["version"], "delta": "separate"}
    model = {
        "layers": int(meta["n_layers"]),
        "h": int(meta["d_model"]),
        "mixer": {**own, **shared, "n": n},
        "bidirectional": False,
        "norm": "batch" if meta["norm"] == "batch" else "layer-scalar",
        "prenorm": meta["prenorm"] == "True",
        "pool": "last" if meta["pool"] == "last" else "mean",
        "dropout": 0.0,
    }
    vocab = meta.get("vocab")
    given = {"kind": "tokens", "vocab": int(vocab)} if vocab else {"kind": "values", "channels": int(meta["d_input"])}
    output = {"kind": "pair" if meta.get("retrieval") == "True" else "sequence", "outputs": int(meta["classes"])}
    return {"model": model, "io": {"input": given, "output": output, "len": int(meta["L"])}}


@pytest.mark.parametrize("form", ["fused", "plain"])
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("model_*") if "transformer" not in path.stem))
def test_models(name, form):
    meta, tensors = read(name)
    model = dss.DSSModel(describe(meta, tensors)).double()
    model.load_state_dict(ours(tensors, "sd.", model.state_dict()))
    x = tensors["x"].long() if "vocab" in meta else tensors["x"].double()
    lengths = tensors["lengths"].long() if "lengths" in tensors else None
    with dss.plain_torch() if form == "plain" else torch.enable_grad():
        model.eval()
        close("hidden", model.hidden(x, lengths), tensors["hidden_eval"], 1)
        close("evaluation", model(x, lengths), tensors["logits_eval"], 1)
        model.train()
        logits = model(x, lengths)
        close("training", logits, tensors["logits_train"], 1)
        loss = torch.nn.functional.cross_entropy(logits, tensors["target"].long())
        close("loss", loss.reshape(1), tensors["loss_train"], 1)
        loss.backward()
    wanted = ours(tensors, "grad.", model.state_dict())
    assert set(wanted) == {key for key, _ in model.named_parameters()}
    scale = max(value.abs().max().item() for value in wanted.values())
    for key, value in wanted.items():
        close(key, model.get_parameter(key).grad, value, scale)
    # The second forward in training mode moved the statistics, once.
    for key, value in ours(tensors, "after_fwd.", model.state_dict()).items():
        close(key, model.state_dict()[key], value, 1)
