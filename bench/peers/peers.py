"""Driver of the comparison: installs the peers, runs every case, prints the tables.

Uses the standard library only; the peers run in .venv (worker.py).
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
GOLDEN = ROOT / "crates" / "dss-kernels" / "tests" / "golden"
EXAMPLE = ROOT / "crates" / "dss-kernels" / "examples"
CARGO_TARGET = ["--release", "-q", "-p", "dss-kernels", "--example", "peer_ops"]

MEMORY_LIMIT_MB = 16 * 1024
NORM_TOLERANCE = 0.02  # of the norms of results and gradients between peers, f32

MAIN = [
    "kernel_h128_n64_l2048",
    "kernel_h128_n64_l16384",
    "conv_b16_h128_l2048",
    "conv_b16_h128_l16384",
]
SCALE = [f"scale_l{1 << p}" for p in (10, 12, 14, 16, 18, 20)]
QUICK_DROPS = {"scale_l262144", "scale_l1048576"}

EXIT_USAGE, EXIT_SETUP, EXIT_FAILED, EXIT_INTERRUPTED = 2, 3, 1, 130


class Setup(Exception):
    """Something needed before the first measurement failed."""


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


# --- processes ---------------------------------------------------------------


def run_child(command, timeout, env=None):
    """Run in a group of its own so that a time-out or Ctrl-C ends all of it."""
    child = subprocess.Popen(
        command, cwd=ROOT, env=env, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    try:
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err
    except BaseException:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.communicate()
        raise


def say(text):
    print(text, file=sys.stderr, flush=True)


def last_lines(text, count=12):
    return "\n".join(text.strip().splitlines()[-count:])


def require(step, command, timeout=3600):
    try:
        code, out, err = run_child([str(c) for c in command], timeout)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Setup(f"{step} failed: {problem}") from problem
    if code != 0:
        raise Setup(f"{step} failed (exit {code}):\n{last_lines(out + err)}")
    return out


# --- setup -------------------------------------------------------------------


def install(full):
    """Create .venv once; redone when the pins or the stand-in change."""
    pins = HERE / "requirements.txt"
    digest = hashlib.sha256(
        pins.read_bytes() + (HERE / "lean_torch.py").read_bytes() + platform.python_version().encode()
    ).hexdigest()
    ready = VENV / ".ready"
    if ready.is_file() and ready.read_text().split()[0] == digest:
        if not full or ready.read_text().split()[1] == "full":
            return
    say("peers: installing PyTorch and JAX into .venv (once)")
    begin = time.time()
    if not full and not (shutil.which("cc") and shutil.which("nm")):
        raise Setup("install failed: no `cc` or `nm`; install them or use --full-torch")
    require("install: creating .venv", [sys.executable, "-m", "venv", "--clear", VENV])
    pip = [PYTHON, "-m", "pip", "install", "-q", "--no-input"]
    hint = "" if full else " (--full-torch takes the CUDA libraries too)"
    if full:
        require("install: pip", [*pip, "-r", pins])
    else:
        require("install: pip", [*pip, "--no-deps", "-r", pins])
        require("install: stand-in for the CUDA libraries" + hint, [PYTHON, HERE / "lean_torch.py"])
    probe = "import torch; x = torch.ones(8, requires_grad=True); torch.fft.rfft(x).abs().sum().backward()"
    require("install: import torch" + hint, [PYTHON, "-c", probe])
    require("install: import jax", [PYTHON, "-c", "import jax; jax.numpy.ones(8).sum().block_until_ready()"])
    ready.write_text(f"{digest} {'full' if full else 'lean'}\n")
    say(f"peers: installed in {time.time() - begin:.0f} s")


def check_peers():
    files = [GOLDEN / f"kernel_softmax_small{tied}.safetensors" for tied in ("", "_tied")]
    for file in files:
        if not file.is_file():
            raise Setup(f"check failed: no {file.relative_to(ROOT)}")
    out = require("check of the peers against the golden tensors", [PYTHON, HERE / "check.py", *files])
    return out


def build_ours():
    if not ((EXAMPLE / "peer_ops.rs").is_file() or (EXAMPLE / "peer_ops" / "main.rs").is_file()):
        raise Setup("no example peer_ops in crates/dss-kernels; --peers-only runs without it")
    say("peers: building the example peer_ops")
    require("build", ["cargo", "build", *CARGO_TARGET])


# --- measuring ---------------------------------------------------------------


def attempt(command, env, timeout):
    """Run one measurement; a dict with status ok, timeout or failed."""
    try:
        code, out, err = run_child([str(c) for c in command], timeout, env)
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "reason": f"over {timeout:.0f} s"}
    except OSError as problem:
        return {"status": "failed", "reason": str(problem)}
    if code != 0:
        reason = "killed, out of memory?" if code == -signal.SIGKILL else last_lines(err, 1)
        return {"status": "failed", "reason": reason or f"exit {code}"}
    for line in reversed(out.splitlines()):
        if line.startswith("{"):
            try:
                record = json.loads(line)
                for field in ("median_ms", "min_ms", "peak_mb"):
                    record[field] = float(record[field])
                return {"status": "ok", **record}
            except (ValueError, KeyError, TypeError) as problem:
                return {"status": "failed", "reason": f"bad JSON: {problem!r}"}
    return {"status": "failed", "reason": "no JSON on stdout"}


def available_mb():
    with open("/proc/meminfo") as info:
        for line in info:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 1024
    return float("inf")


def others_busy(seconds=1.0):
    """Share of all CPUs in use while this program waits, 0 to 1."""
    def ticks():
        with open("/proc/stat") as stat:
            fields = [int(x) for x in stat.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = ticks()
    time.sleep(seconds)
    total_after, idle_after = ticks()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def measure_ours(case, options, env):
    command = ["cargo", "run", *CARGO_TARGET, "--", "--case", case, "--repeats", options.repeats]
    record = attempt(command, env, options.timeout)
    if record["status"] == "ok" and record.get("case") != case:
        return {"status": "failed", "reason": f"answered for {record.get('case')!r}"}
    return record


def measure_peer(case, library, variant, options, env):
    need, have = estimate_mb(case, variant), available_mb()
    if need > MEMORY_LIMIT_MB or need > 0.9 * have:
        why = "limit 16 GB" if need > MEMORY_LIMIT_MB else f"{have / 1024:.0f} GB free"
        return {"status": "skipped", "reason": f"needs about {need / 1024:.0f} GB, {why}"}
    command = [
        PYTHON, HERE / "worker.py", library, variant, case,
        "--repeats", options.repeats, "--budget", options.budget, "--threads", options.threads,
    ]
    return attempt(command, env, options.timeout)


def norms_agree(a, b):
    return all(
        abs(a[k] - b[k]) <= NORM_TOLERANCE * max(abs(a[k]), abs(b[k])) for k in a.keys() & b.keys()
    ) and all(v == v and v != float("inf") for v in a.values())


def measure_case(case, options, env):
    """Ours, every peer, ours again."""
    row = {"case": case, "busy": others_busy(), "ours": [], "peers": {}}
    reference = None

    def ours():
        if not options.peers_only:
            row["ours"].append(measure_ours(case, options, env))
            report(case, "ours", row["ours"][-1])

    def report(case, name, record):
        text = f"{record['median_ms']:.1f} ms" if record["status"] == "ok" else (
            f"{record['status']}: {record['reason']}")
        say(f"  {case} {name}: {text}")

    ours()
    for column, pairs in variants(case, options.quick, options.compile).items():
        tried = {}
        for library, variant in pairs:
            record = measure_peer(case, library, variant, options, env)
            if record["status"] == "ok":
                if reference is None:
                    reference = record["norms"]
                elif not norms_agree(record["norms"], reference):
                    record = {"status": "failed", "reason": "result differs from the other peers",
                              "norms": record["norms"]}
            tried[variant] = record
            report(case, f"{library} {variant}", record)
        good = {v: r for v, r in tried.items() if r["status"] == "ok"}
        best = min(good, key=lambda v: good[v]["median_ms"]) if good else None
        row["peers"][column] = {"best": best, "variants": tried}
    ours()

    good = [r for r in row["ours"] if r["status"] == "ok"]
    row["ours_ms"] = statistics.median(r["median_ms"] for r in good) if good else None
    row["ours_mb"] = max(r["peak_mb"] for r in good) if good else None
    times = {
        column: peer["variants"][peer["best"]]["median_ms"]
        for column, peer in row["peers"].items() if peer["best"]
    }
    row["strong"] = min(times, key=times.get) if times else None
    row["listing_over_ours"] = ratio(times.get("listing"), row["ours_ms"])
    row["strong_over_ours"] = ratio(times.get(row["strong"]), row["ours_ms"])
    return row


def ratio(a, b):
    return a / b if a and b else None


# --- output ------------------------------------------------------------------


def cpu_model():
    with open("/proc/cpuinfo") as info:
        match = re.search(r"^model name\s*:\s*(.+)$", info.read(), re.MULTILINE)
    return match.group(1) if match else platform.machine()


def metadata(options):
    pins = dict(re.findall(r"^(torch|jax)==(\S+)", (HERE / "requirements.txt").read_text(), re.MULTILINE))
    rustc = None
    if not options.peers_only:
        rustc = require("rustc --version", ["rustc", "--version"]).split()[1]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "threads": options.threads,
        "python": platform.python_version(),
        "torch": pins["torch"],
        "jax": pins["jax"],
        "rustc": rustc,
        "quick": options.quick,
        "repeats": options.repeats,
    }


def number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def cell(case, column, peer):
    best = peer["best"]
    if best:
        record = peer["variants"][best]
        cold = "" if record.get("warm", True) else "*"
        label = "" if column in ("listing", "compile") else f" ({variant_label(case, column, best)})"
        return f"{number(record['median_ms'])}{cold} / {record['peak_mb']:.0f}{label}"
    first = next(iter(peer["variants"].values()))
    return f"{first['status']}: {first['reason']}".replace("|", "/").replace("\n", " ")


def table(title, rows):
    if not rows:
        return []
    columns = list(rows[0]["peers"])
    heads = {"listing": "PyTorch listing", "blocked": "PyTorch blocked", "jax": "JAX",
             "compile": "PyTorch listing, compiled"}
    header = ["case", "ours", *(heads[c] for c in columns), "listing / ours", "strong / ours"]
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |",
             "|---|" + "---:|" * (len(header) - 1)]
    for row in rows:
        if row["ours_ms"] is not None:
            ours = f"{number(row['ours_ms'])} / {row['ours_mb']:.0f}"
        elif row["ours"]:
            ours = f"{row['ours'][0]['status']}: {row['ours'][0]['reason']}"
        else:
            ours = "-"
        cells = [row["case"], ours.replace("|", "/")]
        cells += [cell(row["case"], c, row["peers"][c]) for c in columns]
        for value, name in ((row["listing_over_ours"], ""), (row["strong_over_ours"], row["strong"])):
            note = f" ({name})" if name else ""
            cells.append(f"{value:.2f}x{note}" if value else "-")
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def markdown(meta, rows):
    rust = f", rustc {meta['rustc']}" if meta["rustc"] else ""
    mode = " (quick)" if meta["quick"] else ""
    lines = [
        f"# DSS against PyTorch and JAX{mode}", "",
        f"{meta['cpu']}, {meta['cpus']} CPUs, {meta['threads']} threads; torch {meta['torch']}, "
        f"jax {meta['jax']}, Python {meta['python']}{rust}; {meta['date']}", "",
        "Cells: median ms / peak MB, f32, forward and backward. Ours is the median of two runs, one "
        "before and one after the peers. Strong is the fastest peer.", "",
    ]
    lines += table("Kernel and convolution", [r for r in rows if not r["case"].startswith("scale")])
    lines += table("Kernel and convolution together, H 16, N 64, B 1",
                   [r for r in rows if r["case"].startswith("scale")])
    peers = [r for row in rows for p in row["peers"].values() for r in p["variants"].values()]
    if any(not r.get("warm", True) for r in peers):
        lines += ["\\* one run without warm-up: it alone used up the time allowed.", ""]
    busy = max(row["busy"] for row in rows)
    if busy > 0.1:
        lines += [f"Other programs used up to {busy:.0%} of the CPUs: the times are not reliable.", ""]
    return "\n".join(lines)


# --- command line ------------------------------------------------------------


def parse(argv):
    parser = argparse.ArgumentParser(prog="run", allow_abbrev=False,
                                     description="Compare DSS kernels with PyTorch and JAX on the CPU.")
    parser.add_argument("--quick", action="store_true",
                        help="under five minutes: fewer repeats and variants, no length above 64k")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON; - for stdout")
    parser.add_argument("--cases", metavar="A,B", help="only these cases; --list names them")
    parser.add_argument("--peers-only", action="store_true", help="leave out our own program")
    parser.add_argument("--check", action="store_true",
                        help="only compare the peers with the golden tensors")
    parser.add_argument("--compile", action="store_true", help="also torch.compile of the listing")
    parser.add_argument("--full-torch", action="store_true",
                        help="install torch with all its CUDA libraries")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    options = parser.parse_args(argv)
    options.names = [c for c in MAIN + SCALE if not (options.quick and c in QUICK_DROPS)]
    if options.cases is not None:
        options.names = [c for c in options.cases.split(",") if c]
        unknown = [c for c in options.names if c not in MAIN + SCALE]
        if unknown or not options.names:
            parser.error(f"unknown case: {', '.join(unknown) or 'none given'}")
    if options.json not in (None, "-"):
        folder = pathlib.Path(options.json).resolve().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            parser.error(f"cannot write {options.json}")
    options.threads = 2
    options.repeats, options.budget, options.timeout = (5, 5, 100) if options.quick else (15, 30, 900)
    return options


def run(options):
    if not options.peers_only and not options.check:
        build_ours()
    install(options.full_torch)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    say("peers: checking the peers against the golden tensors")
    checked = check_peers()
    if options.check:
        print(checked, end="")
        return 0

    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > options.threads:
        os.sched_setaffinity(0, cpus[: options.threads])
    count = str(options.threads)
    env = dict(os.environ, OMP_NUM_THREADS=count, MKL_NUM_THREADS=count, RAYON_NUM_THREADS=count,
               JAX_PLATFORMS="cpu", GOMP_SPINCOUNT="20000")
    meta = metadata(options)
    begin = time.time()
    rows = [measure_case(case, options, env) for case in options.names]
    meta["seconds"] = round(time.time() - begin)

    text = markdown(meta, rows)
    document = json.dumps({"meta": meta, "results": rows}, indent=1)
    if options.json == "-":
        say(text)
        print(document)
    else:
        print(text)
        if options.json:
            pathlib.Path(options.json).write_text(document + "\n")
    records = [r for row in rows for p in row["peers"].values() for r in p["variants"].values()]
    records += [r for row in rows for r in row["ours"]]
    failed = [r for r in records if r["status"] == "failed"]
    for record in failed:
        say(f"peers: failed: {record['reason']}")
    return EXIT_FAILED if failed else 0


def main():
    options = parse(sys.argv[1:])
    if options.list:
        print("\n".join(MAIN + SCALE))
        return 0

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        return run(options)
    except Setup as problem:
        say(f"peers: {problem}")
        return EXIT_SETUP
    except KeyboardInterrupt:
        say("peers: interrupted")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
