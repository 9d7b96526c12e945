"""Training steps of one model size by one peer in its own process; prints one JSON object.

    model_worker.py torch|jax|package VARIANT SIZE --steps S --budget SECONDS --threads T
"""

import argparse
import json
import statistics
import time

import model_data
from sizes import SIZES, AdamW
from worker import start_memory, status_mb


def torch_step(size, variant, threads):
    import torch

    import model_torch

    torch.set_num_threads(threads)
    torch.fft.rfft(torch.ones(8, 8)).abs().sum()  # start the libraries

    def load(p, stats, x, y):
        p = {name: torch.from_numpy(a).requires_grad_() for name, a in p.items()}
        stats = {name: torch.from_numpy(a) for name, a in stats.items()}
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        opt = model_torch.optimiser(variant, AdamW(), p)
        return lambda: model_torch.train_step(variant, size, p, stats, opt, x, y)

    return load


def package_step(size, variant, threads):
    """Our own layers from PyTorch."""
    import torch

    import blocks_torch

    torch.set_num_threads(threads)

    def load(p, stats, x, y):
        model, optimiser = blocks_torch.build(size, p, stats, AdamW())
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        return lambda: blocks_torch.train_step(model, optimiser, x, y)

    return load


def jax_step(size, variant, threads):
    import jax

    import model_jax

    def arrays(p, stats, x, y):
        return model_jax.begin(p, stats), jax.numpy.asarray(x), jax.numpy.asarray(y)

    # Compiled before the memory baseline: compilation is not part of the step.
    shapes = jax.eval_shape(lambda: arrays(*inputs(size)))
    compiled = model_jax.train_step.lower(variant, size, AdamW(), *shapes).compile()

    def load(p, stats, x, y):
        state, x, y = arrays(p, stats, x, y)

        def step():
            nonlocal state
            state, value = compiled(state, x, y)
            jax.block_until_ready(state)
            return float(value)

        return step

    return load


def inputs(size):
    return model_data.parameters(size), model_data.running_stats(size), *model_data.batch(size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=("torch", "jax", "package"))
    parser.add_argument("variant")
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    size = SIZES[args.size]

    build = {"torch": torch_step, "jax": jax_step, "package": package_step}[args.peer]
    load = build(size, args.variant, args.threads)
    before = start_memory()
    step = load(*inputs(size))

    losses = []

    def timed():
        start = time.perf_counter()
        losses.append(step())
        return time.perf_counter() - start

    # The first step warms up, unless it alone uses up the budget.
    first = timed()
    times, warm = [], not first > args.budget
    begin = time.perf_counter()
    while warm and len(times) < args.steps and (
        not times or time.perf_counter() - begin < args.budget
    ):
        times.append(timed())
    times = times or [first]
    highest = status_mb("VmHWM")
    median = statistics.median(times)
    print(json.dumps({
        "size": size.name,
        "peer": args.peer,
        "variant": args.variant,
        "median_ms": median * 1e3,
        "min_ms": min(times) * 1e3,
        "steps": len(times),
        "warm": warm,
        "peak_mb": highest - before,
        "process_mb": highest,
        "samples_per_s": size.B / median,
        "losses": losses,
    }))


if __name__ == "__main__":
    main()
