#!/usr/bin/env python3
"""Runs exported ONNX steps in ONNX Runtime and compares them with ours: check_onnx.py PREFIX...

PREFIX.onnx and PREFIX.safetensors are what the example `steps` of dss-exchange writes.
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-4
KINDS = {"F32": np.float32, "U32": np.uint32}
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def tensors(path):
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data, KINDS[t["dtype"]], np.prod(t["shape"], dtype=int), start + t["data_offsets"][0])
        .reshape(t["shape"])
        for name, t in header.items()
    }


def check(prefix):
    model = onnx.load(prefix + ".onnx")
    onnx.checker.check_model(model, full_check=True)
    complex_types = {onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128}
    assert not any(t.data_type in complex_types for t in model.graph.initializer)
    session = onnxruntime.InferenceSession(prefix + ".onnx", providers=["CPUExecutionProvider"])
    ours = tensors(prefix + ".safetensors")
    batch = 2  # the stream twice, side by side
    state = {}
    for given in session.get_inputs():
        if given.name != "x":
            shape = [batch if isinstance(size, str) else size for size in given.shape]
            state[given.name] = np.zeros(shape, TYPES[given.type])
    names = ["y", *("next_" + name for name in state)]
    worst = 0.0
    for x, y in zip(ours["x"], ours["y"]):
        x = x.astype(np.int64) if x.dtype == np.uint32 else x
        out = session.run(names, {"x": np.stack([x] * batch), **state})
        state = dict(zip(state, out[1:]))
        worst = max(worst, np.abs(out[0] - y).max())
    print(f"{prefix}: {len(ours['x'])} steps, {worst:.1e} from ours, answers up to {np.abs(ours['y']).max():.2f}")
    assert worst < TOLERANCE * max(1.0, np.abs(ours["y"]).max()), f"more than {TOLERANCE}"


for prefix in sys.argv[1:]:
    check(prefix)
