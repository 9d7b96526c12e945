"""Whole training steps: model_worker.py next to `dss bench train`."""

import os
import pathlib
import subprocess

from harness import (
    HERE, PYTHON, ROOT, attempt, footnotes, grid, heading, lack_of_memory, measure_row, ours_cell,
    peer_cell, require, say, times,
)
from sizes import SIZES

NAMES = list(SIZES)
GOLDEN = [
    ROOT / "crates" / "dss-nn" / "tests" / "golden" / f"model_{name}_bn_post_tok.safetensors"
    for name in ("dss_softmax", "s4")
]
LOSS_TOLERANCE = 1e-3  # of the first loss between peers, f32
BUILD = "cargo build --release -p dss-cli"

# malloc keeps freed memory instead of handing it back to the system: a step then has no page
# faults. Only for the variant that is to be as fast as PyTorch can be.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


def names(quick):
    return NAMES


def limits(quick):
    """Steps, seconds for them, seconds for a process."""
    return (5, 40, 400) if quick else (10, 300, 1800)


def golden_files():
    """Stored steps, where the tests of the crate bring them along."""
    return [path for path in GOLDEN if path.is_file()]


# --- the peers ---------------------------------------------------------------


def variants(size, quick):
    """Column -> the (library, variant) pairs tried for it; the fastest counts."""
    if size.mixer == "s4":
        return {"listing": [("torch", "listing")]}
    jax = ["blocked"] if quick else ["blocked", "blocked-real"]
    return {
        "listing": [("torch", "listing")],
        "blocked": [("torch", "blocked")],
        "tuned": [("torch", "tuned")],
        "jax": [("jax", variant) for variant in jax],
    }


def estimate_mb(size, variant):
    """Rough peak: what every layer keeps for the backward pass, and for the listing one
    complex [H N L] tensor per layer and a few more at a time (of S4 four half as large)."""
    need = 16 * size.layers * size.B * size.H * size.L * 4
    if variant == "listing":
        need += (size.layers + 4) * size.H * size.N * size.L * 8 * (2 if size.mixer == "s4" else 1)
    return need / 2**20


# --- measuring ---------------------------------------------------------------


def program():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return ROOT / target / "release" / "dss"


def prepare_ours():
    """Look for our program; what to say about it beside the table."""
    path = os.path.relpath(program(), ROOT)
    if not program().is_file():
        note = f"Ours is missing: there is no {path}. Build it with `{BUILD}`."
    else:
        built = program().stat().st_mtime
        newer = [p for p in ROOT.glob("crates/*/src/**/*.rs") if p.stat().st_mtime > built]
        if not newer:
            return []
        note = (f"Ours may be out of date: {newer[0].relative_to(ROOT)} is newer than {path}. "
                f"Build it with `{BUILD}`.")
    say(f"peers: {note}")
    return [note]


def measure_ours(size, options, env):
    shape, model = size.name.removesuffix("-s4"), "s4" if size.mixer == "s4" else "dss-softmax"
    command = [program(), "bench", "train", "--size", shape, "--model", model, "--json",
               "--steps", options.repeats]
    record = attempt(command, env, options.timeout)
    if record["status"] == "ok" and record.get("size") != shape:
        return {"status": "failed", "reason": f"answered for {record.get('size')!r}"}
    return record


def measure_peer(size, library, variant, options, env):
    refused = lack_of_memory(estimate_mb(size, variant))
    if refused:
        return refused
    steps = options.repeats
    if variant == "listing":
        steps = 2 if options.quick else 3
    command = [
        PYTHON, HERE / "model_worker.py", library, variant, size.name,
        "--steps", steps, "--budget", options.budget, "--threads", options.threads,
    ]
    return attempt(command, {**env, **KEEP_MEMORY} if variant == "tuned" else env, options.timeout)


def losses_agree(a, b):
    first, other = a["losses"][0], b["losses"][0]
    finite = all(abs(x) < float("inf") for x in a["losses"])
    return finite and abs(first - other) <= LOSS_TOLERANCE * abs(other)


def measure(name, options, env):
    """Ours, every peer, ours again; then ours from PyTorch."""
    size = SIZES[name]
    row = measure_row(
        name, variants(size, options.quick), options.peers_only or not program().is_file(),
        lambda: measure_ours(size, options, env),
        lambda library, variant: measure_peer(size, library, variant, options, env),
        losses_agree,
    )
    row["package"] = None
    if size.mixer == "dss" and package_installed():
        record = measure_peer(size, "package", "blocks", options, env)
        listing = row["peers"]["listing"]
        if record["status"] == "ok" and listing["best"]:
            if not losses_agree(record, listing["variants"][listing["best"]]):
                record = {**record, "status": "failed", "reason": "result differs from the peers"}
        row["package"] = {"best": "blocks" if record["status"] == "ok" else None, "variants": {"blocks": record}}
    return row


def install_package():
    """Build our Python package as it is now, and put it beside the peers."""
    say("peers: building our Python package")
    pip = [PYTHON, "-m", "pip", "install", "-q", "--no-input", "--no-deps", "--force-reinstall"]
    require("install: our Python package", [*pip, ROOT / "crates" / "dss-py"])


def package_installed():
    """Whether our Python package is in the environment of the peers."""
    return subprocess.run([PYTHON, "-c", "import diagonal_ssm.torch"], capture_output=True).returncode == 0


def over(row, column):
    """How many times as long as ours from PyTorch a peer takes."""
    package, peer = row["package"], row["peers"].get(column)
    if not package or not package["best"] or not peer or not peer["best"]:
        return None
    fastest = peer["variants"][peer["best"]]["median_ms"]
    return fastest / package["variants"]["blocks"]["median_ms"]


# --- output ------------------------------------------------------------------

HEADS = {"listing": "PyTorch listing", "blocked": "PyTorch blocked", "tuned": "PyTorch tuned",
         "jax": "JAX"}


def describe(name):
    size = SIZES[name]
    return f"{name} ({size.layers}xH{size.H}, L{size.L}, B{size.B}, N{size.N})"


def markdown(meta, rows):
    lines = heading("Training step of a model against PyTorch and JAX", meta) + [
        "Cells: median ms of a step / peak MB, f32. Reference is the paper's listing in PyTorch "
        "(of S4: its plain form), strong the fastest peer of several. Ours is the median of two runs, one before and one after the "
        "peers.", "",
    ]
    body = []
    for row in rows:
        several = row["strong"] and len(row["peers"]) > 1
        strong = peer_cell(row["peers"][row["strong"]], HEADS[row["strong"]]) if several else "-"
        body.append([
            describe(row["case"]), peer_cell(row["peers"]["listing"]), strong, ours_cell(row),
            times(row["listing_over_ours"]), times(row["strong_over_ours"] if several else None),
        ])
    header = ["size", "reference", "strong", "ours", "reference / ours", "strong / ours"]
    lines += grid("Training step", header, body)

    body = [
        [row["case"]] + [
            peer_cell(row["peers"][column], row["peers"][column]["best"] if column == "jax" else "")
            if column in row["peers"] else "-"
            for column in HEADS
        ]
        for row in rows
    ]
    lines += grid("Every peer", ["size", *HEADS.values()], body)
    body = []
    for row in (row for row in rows if row["package"]):
        own = row["package"]["best"] and row["package"]["variants"]["blocks"]["median_ms"]
        body.append([
            row["case"], peer_cell(row["package"]), ours_cell(row),
            times(own / row["ours_ms"] if own and row["ours_ms"] else None),
            times(over(row, "listing")), times(over(row, "tuned")),
        ])
    if body:
        header = ["size", "ours from PyTorch", "ours", "from PyTorch / ours", "listing / from PyTorch", "tuned / from PyTorch"]
        lines += grid("Ours from PyTorch", header, body)
    return "\n".join(lines + footnotes(rows))
