#!/usr/bin/env python3
"""`dss import` on a collection of checkpoints, as a user types it: check_import.py PROGRAM FOLDER

FOLDER is like crates/dss-exchange/tests/golden: checkpoints with their configuration and what they compute, unusual ones,
and those that must be refused or cause no harm. Needs numpy, safetensors and our package.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import load_file

import diagonal_ssm

TOLERANCE = 1e-5
SECONDS = 20
ENDINGS = (".pt", ".pth", ".ckpt", ".safetensors", ".msgpack")

program, collection = (pathlib.Path(path).resolve() for path in sys.argv[1:])
work = pathlib.Path(tempfile.mkdtemp())
out = work / "model.safetensors"


def imported(file, config, *options):
    """Whether the program takes a file; if it does not, it says so in a sentence and writes nothing."""
    out.unlink(missing_ok=True)
    begin = time.monotonic()
    arguments = ["import", file, "--to", out, *(["--config", config] if config.exists() else []), *options]
    ran = subprocess.run([program, *arguments], cwd=work, capture_output=True, text=True, timeout=10 * SECONDS)
    assert ran.returncode in (0, 1, 2) and "panicked" not in ran.stderr, f"{file}: {ran.returncode}, {ran.stderr}"
    assert time.monotonic() - begin < SECONDS, f"{file}: more than {SECONDS} s"
    assert out.exists() == (ran.returncode == 0), f"{file}: {ran.stderr}"
    assert ran.returncode == 0 or ran.stderr.count("error: ") == 1, f"{file}: {ran.stderr}"
    assert list(work.iterdir()) in ([], [out]), f"{file}: {list(work.iterdir())}"
    return ran.returncode == 0


def distance(io, prefix, logits):
    """Of our logits from those of the original program."""
    model = diagonal_ssm.load(out)
    x = io[f"{prefix}tokens"] if f"{prefix}tokens" in io else io[f"{prefix}values"]
    lengths = io.get(f"{prefix}lengths", np.full(len(x), x.shape[1]))
    rows, wanted = [one[:length] for one, length in zip(x, lengths)], io[logits]
    if model.meta["io"]["output"]["kind"] == "pair":
        rows = list(zip(rows[: len(wanted)], rows[len(wanted) :]))
        found = np.stack([model.forward(*pair) for pair in rows])
    else:
        found = np.stack([model.forward(row) for row in rows])
    return np.abs(found - wanted).max()


def checkpoints(folder):
    files = sorted((collection / folder).iterdir())
    return [f for f in files if f.suffix in ENDINGS and ".io." not in f.name and ".expected." not in f.name]


count, worst = 0, 0.0
for file in [file for folder in ("ag1988", "s4", "annotated-s4") for file in checkpoints(folder)]:
    name = file.name.split(".")[0]
    io = load_file(file.with_name(f"{name}.io.safetensors"))
    for prefix in ("", "short."):
        if f"{prefix}logits" in io:
            x = io[f"{prefix}tokens"] if f"{prefix}tokens" in io else io[f"{prefix}values"]
            assert imported(file, file.with_name(f"{name}.config.yaml"), "--len", str(x.shape[1])), file
            far = distance(io, prefix, f"{prefix}logits")
            assert far < TOLERANCE, f"{file} {prefix}: {far}"
            count, worst = count + 1, max(worst, far)
unusual = collection / "unusual"
io = load_file(unusual / "unusual.io.safetensors")
for file in checkpoints("unusual"):
    assert imported(file, unusual / "unusual.config.yaml"), file
    stem = file.name.removesuffix(file.suffix)
    names = [f"logits.{stem}", f"logits.{stem.replace('.legacy', '')}"]
    far = distance(io, "", next(name for name in names if name in io))
    assert far < TOLERANCE, f"{file}: {far}"
    count, worst = count + 1, max(worst, far)
print(f"{collection}: {count} batches within {worst:.1e} of the logits of the original programs")

for file in checkpoints("refuse"):
    assert not imported(file, file.with_suffix(".config.yaml"), "--len", "20"), file
hostile, tried, taken = collection / "hostile", 0, 0
for line in (hostile / "expected.tsv").read_text().splitlines()[1:]:
    name, expected = line.split("\t")[:2]
    if (hostile / name).exists():
        done = imported(hostile / name, hostile / "hostile.config.yaml")
        assert not (done and expected == "refuse"), name
        tried, taken = tried + 1, taken + done
assert tried >= 20 and not pathlib.Path("PWNED").exists()
print(f"{collection}: {len(checkpoints('refuse'))} refused; {tried} hostile files, {taken} of them read without harm")
