#!/usr/bin/env python3
"""Compares dss_model.py, plain PyTorch, with ours as a recurrence and as a convolution: check_torch.py PREFIX...

PREFIX.model.safetensors and PREFIX.safetensors are what the example `steps` of dss-exchange writes.
"""

import importlib.util
import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import load_file

TOLERANCE = 1e-4
SOURCE = pathlib.Path(__file__).parents[2] / "crates/dss-py/python/diagonal_ssm/dss_model.py"


def check(dss_model, prefix):
    model, ours = dss_model.load(prefix + ".model.safetensors"), load_file(prefix + ".safetensors")
    x = torch.from_numpy(ours["x"].astype(np.int64) if ours["x"].dtype == np.uint32 else ours["x"])[None]
    with torch.no_grad():
        whole = model(x)[0].reshape(ours["whole"].shape).numpy()
        state, steps = model.initial_state(1), []
        for t in range(min(60, x.shape[1])):
            y, state = model.step(x[:, t], state)
            steps.append(y[0].numpy())
    scale = max(1.0, np.abs(ours["y"]).max())
    far = np.abs(whole - ours["whole"]).max(), np.abs(np.stack(steps) - ours["y"][: len(steps)]).max()
    print(f"{prefix}: {far[0]:.1e} from ours as a convolution, {far[1]:.1e} as a recurrence")
    assert max(far) < TOLERANCE * scale


spec = importlib.util.spec_from_file_location("dss_model", SOURCE)
dss_model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dss_model)
for prefix in sys.argv[1:]:
    check(dss_model, prefix)
