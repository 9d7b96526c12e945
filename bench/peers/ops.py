"""The single operations: kernel and convolution (worker.py) next to the example peer_ops."""

from harness import (
    HERE, PYTHON, ROOT, Setup, attempt, footnotes, grid, heading, lack_of_memory, measure_row,
    ours_cell, peer_cell, require, say, times,
)

GOLDEN = ROOT / "crates" / "dss-kernels" / "tests" / "golden"
EXAMPLE = ROOT / "crates" / "dss-kernels" / "examples"
CARGO_TARGET = ["--release", "-q", "-p", "dss-kernels", "--example", "peer_ops"]

NORM_TOLERANCE = 0.02  # of the norms of results and gradients between peers, f32

MAIN = [
    "kernel_h128_n64_l2048",
    "kernel_h128_n64_l16384",
    "conv_b16_h128_l2048",
    "conv_b16_h128_l16384",
]
SCALE = [f"scale_l{1 << p}" for p in (10, 12, 14, 16, 18, 20)]
NAMES = MAIN + SCALE
QUICK_DROPS = {"scale_l262144", "scale_l1048576"}


def names(quick):
    return [c for c in NAMES if not (quick and c in QUICK_DROPS)]


def limits(quick):
    """Repeats, seconds for them, seconds for a process."""
    return (5, 5, 100) if quick else (15, 30, 900)


def golden_files():
    """The golden tensors of the check."""
    return [GOLDEN / f"kernel_softmax_small{tied}.safetensors" for tied in ("", "_tied")]


# --- the peers ---------------------------------------------------------------


def length_of(case):
    return int(case.rsplit("_l", 1)[1])


def variants(case, quick, compiled):
    """Column -> the (library, variant) pairs tried for it; the fastest counts."""
    op = case.split("_")[0]
    table = {
        "listing": [("torch", "listing")],
        "blocked": [("torch", "blocked")],
        "jax": [("jax", "blocked")],
    }
    if op == "conv":
        table["jax"].append(("jax", "plain"))
    else:
        table["blocked"].append(("torch", "blocked-real"))
        if not quick:
            table["jax"].append(("jax", "blocked-real"))
        if op == "kernel" or not quick:
            table["jax"].append(("jax", "plain"))
    if compiled:
        table["compile"] = [("torch", "listing+compile")]
    return table


def estimate_mb(case, variant):
    """Rough peak of the variants that hold [H N L] complex tensors."""
    copies = {"listing": 4.5, "listing+compile": 4.5, "plain": 2.2}.get(variant, 0)
    if case.startswith("conv"):
        copies = 0
    H = 128 if case.startswith("kernel") else 16
    return copies * H * 64 * length_of(case) * 8 / 2**20


def variant_label(case, column, variant):
    if case.startswith("conv") and variant != "listing":
        return "autograd" if variant == "plain" else "own backward"
    return variant


# --- measuring ---------------------------------------------------------------


def prepare_ours():
    """Build our program; what to say about it beside the table."""
    if not ((EXAMPLE / "peer_ops.rs").is_file() or (EXAMPLE / "peer_ops" / "main.rs").is_file()):
        raise Setup("no example peer_ops in crates/dss-kernels; --peers-only runs without it")
    say("peers: building the example peer_ops")
    require("build", ["cargo", "build", *CARGO_TARGET])
    return []


def measure_ours(case, options, env):
    command = ["cargo", "run", *CARGO_TARGET, "--", "--case", case, "--repeats", options.repeats]
    record = attempt(command, env, options.timeout)
    if record["status"] == "ok" and record.get("case") != case:
        return {"status": "failed", "reason": f"answered for {record.get('case')!r}"}
    return record


def measure_peer(case, library, variant, options, env):
    refused = lack_of_memory(estimate_mb(case, variant))
    if refused:
        return refused
    command = [
        PYTHON, HERE / "worker.py", library, variant, case,
        "--repeats", options.repeats, "--budget", options.budget, "--threads", options.threads,
    ]
    return attempt(command, env, options.timeout)


def norms_agree(a, b):
    return all(
        abs(a[k] - b[k]) <= NORM_TOLERANCE * max(abs(a[k]), abs(b[k])) for k in a.keys() & b.keys()
    ) and all(v == v and v != float("inf") for v in a.values())


def measure(case, options, env):
    """Ours, every peer, ours again."""
    return measure_row(
        case, variants(case, options.quick, options.compile), options.peers_only,
        lambda: measure_ours(case, options, env),
        lambda library, variant: measure_peer(case, library, variant, options, env),
        lambda a, b: norms_agree(a["norms"], b["norms"]),
    )


# --- output ------------------------------------------------------------------


def cell(case, column, peer):
    label = "" if column in ("listing", "compile") else variant_label(case, column, peer["best"])
    return peer_cell(peer, label)


def table(title, rows):
    if not rows:
        return []
    columns = list(rows[0]["peers"])
    heads = {"listing": "PyTorch listing", "blocked": "PyTorch blocked", "jax": "JAX",
             "compile": "PyTorch listing, compiled"}
    header = ["case", "ours", *(heads[c] for c in columns), "listing / ours", "strong / ours"]
    body = []
    for row in rows:
        cells = [row["case"], ours_cell(row)]
        cells += [cell(row["case"], c, row["peers"][c]) for c in columns]
        cells += [times(row["listing_over_ours"]), times(row["strong_over_ours"], row["strong"])]
        body.append(cells)
    return grid(title, header, body)


def markdown(meta, rows):
    lines = heading("DSS against PyTorch and JAX", meta) + [
        "Cells: median ms / peak MB, f32, forward and backward. Ours is the median of two runs, one "
        "before and one after the peers. Strong is the fastest peer.", "",
    ]
    lines += table("Kernel and convolution", [r for r in rows if not r["case"].startswith("scale")])
    lines += table("Kernel and convolution together, H 16, N 64, B 1",
                   [r for r in rows if r["case"].startswith("scale")])
    return "\n".join(lines + footnotes(rows))
