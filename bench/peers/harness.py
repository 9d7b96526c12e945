"""What every comparison needs: child processes, the install, the state of the machine, output.

Standard library only.
"""

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

MEMORY_LIMIT_MB = 16 * 1024
EXIT_USAGE, EXIT_SETUP, EXIT_FAILED, EXIT_INTERRUPTED = 2, 3, 1, 130


class Setup(Exception):
    """Something needed before the first measurement failed."""


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
    try:
        record = last_object(out)
        for field in ("median_ms", "min_ms", "peak_mb"):
            record[field] = float(record[field])
    except (ValueError, KeyError, TypeError) as problem:
        return {"status": "failed", "reason": f"bad JSON on stdout: {problem!r}"}
    return {"status": "ok", **record}


def last_object(text):
    """The last JSON object that begins a line, on one line or several."""
    found = [match.start() for match in re.finditer(r"^\{", text, re.MULTILINE)]
    if not found:
        raise ValueError("no object")
    return json.JSONDecoder().raw_decode(text, found[-1])[0]


def available_mb():
    with open("/proc/meminfo") as info:
        for line in info:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 1024
    return float("inf")


def lack_of_memory(need):
    """A record that says so if a measurement of `need` MB should not be tried."""
    have = available_mb()
    if need <= MEMORY_LIMIT_MB and need <= 0.9 * have:
        return None
    why = "limit 16 GB" if need > MEMORY_LIMIT_MB else f"{have / 1024:.0f} GB free"
    return {"status": "skipped", "reason": f"needs about {need / 1024:.0f} GB, {why}"}


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


def measure_row(case, columns, peers_only, measure_ours, measure_peer, agree):
    """One row of a table: ours, every peer, ours again.

    columns: column -> the (library, variant) pairs tried for it; the fastest counts. The column
    "listing" is the reference. agree(record, record): did two peers compute the same?
    """
    row = {"case": case, "busy": others_busy(), "ours": [], "peers": {}}
    reference = None

    def report(name, record):
        text = f"{record['median_ms']:.1f} ms" if record["status"] == "ok" else (
            f"{record['status']}: {record['reason']}")
        say(f"  {case} {name}: {text}")

    def ours():
        if not peers_only:
            row["ours"].append(measure_ours())
            report("ours", row["ours"][-1])

    ours()
    for column, pairs in columns.items():
        tried = {}
        for library, variant in pairs:
            record = measure_peer(library, variant)
            if record["status"] == "ok":
                if reference is None:
                    reference = record
                elif not agree(record, reference):
                    reason = "result differs from the other peers"
                    record = {**record, "status": "failed", "reason": reason}
            tried[variant] = record
            report(f"{library} {variant}", record)
        good = {v: r for v, r in tried.items() if r["status"] == "ok"}
        best = min(good, key=lambda v: good[v]["median_ms"]) if good else None
        row["peers"][column] = {"best": best, "variants": tried}
    ours()

    good = [r for r in row["ours"] if r["status"] == "ok"]
    row["ours_ms"] = statistics.median(r["median_ms"] for r in good) if good else None
    row["ours_mb"] = max(r["peak_mb"] for r in good) if good else None
    best = {
        column: peer["variants"][peer["best"]]["median_ms"]
        for column, peer in row["peers"].items() if peer["best"]
    }
    row["strong"] = min(best, key=best.get) if best else None
    row["listing_over_ours"] = ratio(best.get("listing"), row["ours_ms"])
    row["strong_over_ours"] = ratio(best.get(row["strong"]), row["ours_ms"])
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


def times(value, note=None):
    return "-" if not value else f"{value:.2f}x ({note})" if note else f"{value:.2f}x"


def peer_cell(peer, label=""):
    """Median ms / peak MB of the fastest variant, or why there is none."""
    if peer["best"]:
        record = peer["variants"][peer["best"]]
        cold = "" if record.get("warm", True) else "*"
        note = f" ({label})" if label else ""
        return f"{number(record['median_ms'])}{cold} / {record['peak_mb']:.0f}{note}"
    first = next(iter(peer["variants"].values()))
    return f"{first['status']}: {first['reason']}"


def ours_cell(row):
    if row["ours_ms"] is not None:
        return f"{number(row['ours_ms'])} / {row['ours_mb']:.0f}"
    return f"{row['ours'][0]['status']}: {row['ours'][0]['reason']}" if row["ours"] else "-"


def grid(title, header, body):
    """A Markdown table under a heading."""
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |",
             "|---|" + "---:|" * (len(header) - 1)]
    for cells in body:
        clean = (cell.replace("|", "/").replace("\n", " ") for cell in cells)
        lines.append("| " + " | ".join(clean) + " |")
    return [*lines, ""]


def heading(title, meta):
    rust = f", rustc {meta['rustc']}" if meta["rustc"] else ""
    mode = " (quick)" if meta["quick"] else ""
    return [
        f"# {title}{mode}", "",
        f"{meta['cpu']}, {meta['cpus']} CPUs, {meta['threads']} threads; torch {meta['torch']}, "
        f"jax {meta['jax']}, Python {meta['python']}{rust}; {meta['date']}", "",
    ]


def footnotes(rows):
    """What the reader must know about these measurements."""
    lines = []
    peers = [r for row in rows for p in row["peers"].values() for r in p["variants"].values()]
    if any(not r.get("warm", True) for r in peers):
        lines += ["\\* one run without warm-up: it alone used up the time allowed.", ""]
    busy = max(row["busy"] for row in rows)
    if busy > 0.1:
        lines += [f"Other programs used up to {busy:.0%} of the CPUs: the times are not reliable.", ""]
    return lines
