"""`run --step`: one step of a stream at a time, ours and PyTorch's. Standard library only."""

import json
import os
import pathlib
import tempfile

from harness import HERE, PYTHON, ROOT, Setup, install, require, say


def run(options):
    program = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "dss"
    if not program.is_file():
        raise Setup("no target/release/dss: cargo build --release -p dss-cli")
    install(options.full_torch)
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.safetensors"
        ours = [json.loads(bench(program, file))]
        say("peers: one step in PyTorch")
        command = [PYTHON, "-B", HERE / "step_torch.py", file, "--checked", str(ours[0]["checked"])]
        command += ["--seconds", "1" if options.quick else "3"]
        command += ["--compile"] if options.compile else []
        peers = json.loads(require("steps in PyTorch", command))
        ours.append(json.loads(bench(program, file)))
    wanted = ours[0]["logits"]
    scale = max(map(abs, wanted))
    for name, peer in peers.items():
        error = max(abs(a - b) for a, b in zip(peer["logits"], wanted)) / scale
        if error > 1e-4:
            raise Setup(f"check failed: PyTorch {name} is off by {error:.1e} after {ours[0]['checked']} steps")
    step = min(o["step_us"] for o in ours)
    rows = [("ours, one step", step), ("ours, in a block of 160", min(o["block_step_us"] for o in ours)),
            ("ours, one of 16 streams", min(o["batch_step_us"] for o in ours))]
    rows += [(f"PyTorch, {name}", peer["us"]) for name, peer in peers.items()]
    table = ["| 6 layers, H 128, N 64, one core | us per step | / ours |", "| --- | ---: | ---: |"]
    table += [f"| {name} | {us:.1f} | {us / step:.2f} |" for name, us in rows]
    print("\n".join(table))
    if options.json:
        document = json.dumps({"ours": ours, "peers": peers}, indent=1)
        print(document) if options.json == "-" else pathlib.Path(options.json).write_text(document + "\n")
    return 0


def bench(program, file):
    return require("dss bench step", [program, "bench", "step", "--json", "--keep", file])
