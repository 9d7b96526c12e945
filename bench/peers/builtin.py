"""`run --builtin`: models whose mixer PyTorch has built in, ours next to it. Standard library only."""

import json
import os
import pathlib
import statistics

from harness import HERE, PYTHON, ROOT, Setup, install, require, say
from models import BUILD, program

MODELS = ("transformer", "fnet", "lstm", "gru")


def run(options):
    if not program().is_file():
        raise Setup(f"no {os.path.relpath(program(), ROOT)}: {BUILD}")
    install(options.full_torch)
    steps = "3" if options.quick else "7"
    os.environ.update(OMP_NUM_THREADS="2", MKL_NUM_THREADS="2", GOMP_SPINCOUNT="20000")
    rows = []
    for model in MODELS:
        row = {"model": model, "ours": [ours(model, steps)]}
        say(f"peers: {model} in PyTorch")
        worker = [PYTHON, "-B", HERE / "builtin_torch.py", model, "--steps", steps]
        row["torch"] = json.loads(require(f"{model} in PyTorch", worker))
        row["ours"].append(ours(model, steps))
        counts = {r["parameters"] for r in (row["torch"], *row["ours"])}
        if len(counts) > 1:
            raise Setup(f"{model}: numbers of parameters differ: {counts}")
        rows.append(row)
    table = ["| model | ours: s / MB | PyTorch: s / MB | PyTorch / ours |", "| --- | ---: | ---: | ---: |"]
    for row in rows:
        own = statistics.median(r["median_ms"] for r in row["ours"])
        peak, peer = max(r["peak_mb"] for r in row["ours"]), row["torch"]
        table.append(
            f"| {row['model']} | {own / 1e3:.2f} / {peak:.0f} "
            f"| {peer['median_ms'] / 1e3:.2f} / {peer['peak_mb']:.0f} | {peer['median_ms'] / own:.2f} |")
    print("\n".join(table))
    if options.json:
        document = json.dumps(rows, indent=1)
        print(document) if options.json == "-" else pathlib.Path(options.json).write_text(document + "\n")
    return 0


def ours(model, steps):
    say(f"peers: {model}, ours")
    command = [program(), "bench", "train", "--size", "listops", "--model", model, "--steps", steps, "--json"]
    return json.loads(require("dss bench train", command))
