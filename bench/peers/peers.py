"""Driver of the comparison: installs the peers, runs every case, prints the tables.

Uses the standard library only; the peers run in .venv (worker.py, model_worker.py).
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

import builtin
import models
import ops
import steps
from harness import (
    EXIT_FAILED, EXIT_INTERRUPTED, EXIT_SETUP, HERE, PYTHON, ROOT, Setup, install, metadata,
    require, say,
)


def check_peers(model):
    files = ops.golden_files()
    for file in files:
        if not file.is_file():
            raise Setup(f"check failed: no {file.relative_to(ROOT)}")
    if model:
        files = ["--model", *models.golden_files(), *files]
    return require("check of the peers in f64", [PYTHON, HERE / "check.py", *files])


def parse(argv):
    parser = argparse.ArgumentParser(prog="run", allow_abbrev=False,
                                     description="Compare DSS with PyTorch and JAX on the CPU.")
    parser.add_argument("--model", action="store_true",
                        help="whole training steps of a model instead of single operations")
    parser.add_argument("--step", action="store_true",
                        help="one step of a stream at a time instead of whole sequences")
    parser.add_argument("--builtin", action="store_true",
                        help="training steps of models whose mixer PyTorch has built in")
    parser.add_argument("--quick", action="store_true",
                        help="about five minutes: fewer repeats and variants, no length above 64k")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON; - for stdout")
    parser.add_argument("--cases", metavar="A,B", help="only these cases; --list names them")
    parser.add_argument("--package", action="store_true",
                        help="with --model: build our Python package and measure it from PyTorch as well")
    parser.add_argument("--peers-only", action="store_true", help="leave out our own program")
    parser.add_argument("--check", action="store_true",
                        help="only check that the peers compute the right thing")
    parser.add_argument("--compile", action="store_true", help="also torch.compile of the listing")
    parser.add_argument("--full-torch", action="store_true",
                        help="install torch with all its CUDA libraries")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    options = parser.parse_args(argv)
    options.bench = models if options.model else ops
    if options.builtin and (options.step or options.model or options.cases or options.check or options.compile):
        parser.error("--builtin goes with --quick and --json only")
    if options.step and (options.model or options.cases or options.check):
        parser.error("--step goes with --quick, --compile and --json only")
    if options.package and not options.model:
        parser.error("--package goes with --model only")
    if options.model and options.compile:
        parser.error("--compile is for the single operations only, not for --model")
    options.names = options.bench.names(options.quick)
    if options.cases is not None:
        options.names = [c for c in options.cases.split(",") if c]
        unknown = [c for c in options.names if c not in options.bench.NAMES]
        if unknown or not options.names:
            parser.error(f"unknown case: {', '.join(unknown) or 'none given'}")
    if options.json not in (None, "-"):
        folder = pathlib.Path(options.json).resolve().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            parser.error(f"cannot write {options.json}")
    options.threads = 2
    options.repeats, options.budget, options.timeout = options.bench.limits(options.quick)
    return options


def run(options):
    notes = []
    if not options.peers_only and not options.check:
        notes = options.bench.prepare_ours()
    install(options.full_torch)
    if options.package:
        models.install_package()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    say("peers: checking that the peers compute the right thing")
    checked = check_peers(options.model or options.check)
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
    rows = [options.bench.measure(case, options, env) for case in options.names]
    meta["seconds"] = round(time.time() - begin)
    meta["notes"] = notes

    text = "\n".join([options.bench.markdown(meta, rows), *(f"{note}\n" for note in notes)])
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
    records += [r for row in rows if row.get("package") for r in row["package"]["variants"].values()]
    failed = [r for r in records if r["status"] == "failed"]
    for record in failed:
        say(f"peers: failed: {record['reason']}")
    return EXIT_FAILED if failed else 0


def main():
    options = parse(sys.argv[1:])
    if options.list:
        print("\n".join(options.bench.NAMES))
        return 0

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        if options.builtin:
            return builtin.run(options)
        return steps.run(options) if options.step else run(options)
    except Setup as problem:
        say(f"peers: {problem}")
        return EXIT_SETUP
    except KeyboardInterrupt:
        say("peers: interrupted")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
