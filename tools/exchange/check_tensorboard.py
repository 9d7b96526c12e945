#!/usr/bin/env python3
"""Compares the event file of a run with its metrics.jsonl, by TensorBoard's own loader: check_tensorboard.py RUN"""

import json
import pathlib
import sys

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

run = pathlib.Path(sys.argv[1])
wanted = {}
for line in (run / "metrics.jsonl").read_text().splitlines():
    record = json.loads(line)
    for key in ("loss", "accuracy", "lr", "samples_per_s", "mse", "mae", "bits"):
        if record.get(key) is not None:
            wanted.setdefault(f"{record['kind']}/{key}", []).append((record["step"], np.float32(record[key])))

events = EventAccumulator(str(run), size_guidance={"tensors": 0, "scalars": 0})
events.Reload()
found = {}
for tag in events.Tags()["tensors"]:
    found[tag] = [(e.step, np.float32(tensor_util.make_ndarray(e.tensor_proto))) for e in events.Tensors(tag)]
for tag in events.Tags()["scalars"]:
    found[tag] = [(e.step, np.float32(e.value)) for e in events.Scalars(tag)]

assert wanted, "the run has no metrics"
for tag, values in wanted.items():
    assert found.get(tag) == values, f"{tag}: {found.get(tag)} in place of {values}"
print(f"{run}: {len(wanted)} scalars, {sum(map(len, wanted.values()))} values, every step once")
