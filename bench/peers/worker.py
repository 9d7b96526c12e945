"""One case of one peer in its own process; prints one JSON object.

    worker.py torch|jax VARIANT CASE --repeats R --budget SECONDS --threads T
"""

import argparse
import json
import statistics
import time

import numpy as np

from cases import CASES, inputs


def status_mb(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    raise RuntimeError(f"{field} not in /proc/self/status")


def start_memory():
    """Resident size now; the high-water mark starts again from here."""
    try:
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except OSError:
        pass  # the mark then includes the start-up, an over-estimate at worst
    return status_mb("VmRSS")


def torch_step(case, variant, threads):
    import torch

    import ops_torch

    torch.set_num_threads(threads)
    compiled = variant.endswith("+compile")
    f, names = ops_torch.forward(case.op, variant.removesuffix("+compile"), case.L)
    if compiled:
        f = torch.compile(f)
    torch.fft.rfft(torch.ones(8, 8)).abs().sum()  # start the libraries

    def load(arrays):
        tensors = {name: torch.from_numpy(a) for name, a in arrays.items()}
        g = tensors["g"]
        params = [tensors[name].requires_grad_() for name in names]

        def step():
            value = f(*params)
            return value.detach(), torch.autograd.grad(value, params, g)

        return step

    if compiled:
        load(inputs(case))()  # compiles; neither timed nor in the memory
    return load, names, lambda a: a.numpy()


def jax_step(case, variant, threads):
    import jax

    import ops_jax

    f, names = ops_jax.step(case.op, variant, case.L)
    shapes = {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in inputs(case).items()}
    # Compiled before the memory baseline: compilation is not part of the step.
    f = f.lower({name: shapes[name] for name in names}, shapes["g"]).compile()
    jax.block_until_ready(jax.numpy.fft.rfft(jax.numpy.ones((8, 8))))

    def load(arrays):
        params = {name: jax.numpy.asarray(arrays[name]) for name in names}
        g = jax.numpy.asarray(arrays["g"])

        def step():
            value, grads = jax.block_until_ready(f(params, g))
            return value, [grads[name] for name in names]

        return step

    return load, names, np.asarray


def norm(a):
    return float(np.linalg.norm(a.astype(np.float64).ravel()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=("torch", "jax"))
    parser.add_argument("variant")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--budget", type=float, default=30.0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    case = CASES[args.case]

    build = torch_step if args.peer == "torch" else jax_step
    load, names, to_numpy = build(case, args.variant, args.threads)
    before = start_memory()
    step = load(inputs(case))

    def timed():
        start = time.perf_counter()
        result = step()
        return time.perf_counter() - start, result

    # One warm-up, more while it is cheap. If the first run alone uses up the
    # budget it is the measurement.
    first, result = timed()
    times, warm = [], not first > args.budget
    if warm:
        del result
        if first < 0.5:
            for _ in range(2):
                step()
        begin = time.perf_counter()
        while len(times) < args.repeats and (
            not times or time.perf_counter() - begin < args.budget
        ):
            result = None
            elapsed, result = timed()
            times.append(elapsed)
    else:
        times.append(first)
    peak = status_mb("VmHWM") - before

    value, grads = result
    norms = {"value": norm(to_numpy(value))}
    norms.update({name: norm(to_numpy(grad)) for name, grad in zip(names, grads)})
    print(json.dumps({
        "case": case.name,
        "peer": args.peer,
        "variant": args.variant,
        "median_ms": statistics.median(times) * 1e3,
        "min_ms": min(times) * 1e3,
        "repeats": len(times),
        "warm": warm,
        "peak_mb": peak,
        "norms": norms,
    }))


if __name__ == "__main__":
    main()
