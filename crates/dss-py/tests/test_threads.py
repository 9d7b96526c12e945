"""Threads and forks: no hang, the same bits."""

import concurrent.futures
import multiprocessing
import pathlib
import subprocess
import sys
import threading
import time

import pytest

import diagonal_ssm

torch = pytest.importorskip("torch")

from diagonal_ssm import torch as dss  # noqa: E402


def answer(_=None):
    torch.manual_seed(3)
    block = dss.DSSBlock(16, d_state=8, l_max=64)
    x = torch.randn(4, 64, 16, requires_grad=True)
    y = block(x)
    y.square().sum().backward()
    return y.detach().numpy().tobytes(), x.grad.numpy().tobytes()


def run(code):
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=pathlib.Path(__file__).parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_as_many_threads_as_torch():
    """Unless a number is set; without torch, all cores."""
    code = """
import diagonal_ssm, os
cores = diagonal_ssm.get_num_threads()
import torch, diagonal_ssm.torch as dss
layer, found = dss.DSSLayer(4, 2, 8), []
for n in (1, cores):
    torch.set_num_threads(n)
    layer(torch.zeros(1, 8, 4))
    found.append(diagonal_ssm.get_num_threads())
diagonal_ssm.set_num_threads(1)
layer(torch.zeros(1, 8, 4))
print(cores == len(os.sched_getaffinity(0)), found == [1, cores], diagonal_ssm.get_num_threads())
"""
    assert run(code).split() == ["True", "True", "1"]


def test_any_number_of_threads():
    results = set()
    for n in (1, 2, 3):
        torch.set_num_threads(n)
        results.add(answer())
    torch.set_num_threads(2)
    assert len(results) == 1
    with pytest.raises(ValueError, match="at least 1"):
        diagonal_ssm.set_num_threads(0)


def children():
    before = answer()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(answer, range(4)).get(timeout=60)
    assert set(found) == {before}
    assert answer() == before


def loader():
    before = answer()[0]
    workers = torch.utils.data.DataLoader(Samples(), num_workers=2, batch_size=None, timeout=60)
    assert all(item == before for item in workers)
    assert answer()[0] == before


def loader_beside_a_thread():
    block, x, done = dss.DSSBlock(16, d_state=8, l_max=64), torch.randn(4, 64, 16), threading.Event()

    def work():
        with torch.no_grad():
            while not done.is_set():
                block(x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            loader()
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("check", ["children", "loader", "loader_beside_a_thread"])
def test_forked_children_give_the_same_bits(check):
    """Before, during and after their parent's use; in a process of its own, since torch's engine of gradients does not
    survive a fork once other tests have started its threads."""
    run(f"import test_threads; test_threads.{check}()")


def test_a_fork_in_the_middle_of_an_operation():
    """Another thread takes and returns plans all the time: a child must not inherit a lock that it held."""
    code = """
import numpy, os, random, signal, threading, time
from diagonal_ssm import _native
H, N = 16, 2
params = [numpy.full((N, 2), -1, "f4"), numpy.zeros(H, "f4"), numpy.ones((1, H, N, 2), "f4")]
def kernel(length):
    _native.kernel_forward("exp", params, length, numpy.empty((1, H, length), "f4"))
done = threading.Event()
def work():
    while not done.is_set():
        for length in range(8, 14):  # more sizes than plans are kept
            kernel(length)
thread = threading.Thread(target=work)
thread.start()
hung = 0
for _ in range(200):
    time.sleep(0.002 * random.random())
    child = os.fork()
    if child == 0:
        signal.alarm(15)
        kernel(8)
        os._exit(0)
    hung += os.waitpid(child, 0)[1] != 0
    if hung:
        break
done.set()
thread.join()
print(hung)
"""
    assert run(code).split() == ["0"]


def test_a_fork_while_blocks_and_models_work():
    """Another thread runs whole blocks, forward and backward, and a model and its streams, on several threads."""
    code = """
import numpy, os, random, signal, threading, time, torch
import diagonal_ssm
from diagonal_ssm import torch as dss
torch.manual_seed(3)
block, x = dss.DSSBlock(32, d_state=8, l_max=256), torch.randn(4, 256, 32)
model = diagonal_ssm.load(MODEL)
values = numpy.sin(numpy.arange(800) / 9).astype("f4")
def answers():
    with torch.no_grad():
        y = block(x)
    stream = model.stream()
    return y.numpy().tobytes(), model.forward(values).tobytes(), stream.push(values[:200]).tobytes()
expected, done = answers(), threading.Event()
def work():
    while not done.is_set():
        assert answers() == expected
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
codes = set()
for _ in range(25):
    time.sleep(0.004 * random.random())
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if answers() == expected else 1)
    codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes != {0}:
        break
done.set()
for thread in threads:
    thread.join()
print(codes)
"""
    model = pathlib.Path(__file__).parents[2] / "dss-cli" / "page" / "models" / "speech.safetensors"
    assert run(code.replace("MODEL", repr(str(model)))).split() == ["{0}"]


def test_a_training_in_a_forked_child(tmp_path):
    """The same bits as in its parent, which has trained before."""
    code = f"""
import os, pathlib, signal, diagonal_ssm, test_runs
folder = pathlib.Path({str(tmp_path)!r})
def train(name):
    return test_runs.tensors(diagonal_ssm.train("files", test_runs.waves(), out=folder / name, **test_runs.SMALL).path)
expected = train("parent")
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if train("child") == expected and diagonal_ssm.get_num_threads() == 1 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(code).split() == ["0"]


def test_trainings_have_the_threads_that_were_set(tmp_path):
    code = f"""
import json, pathlib, diagonal_ssm, test_runs
for threads, given in ((1, None), (2, None), (2, 1)):
    diagonal_ssm.set_num_threads(threads)
    out = pathlib.Path({str(tmp_path)!r}, f"{{threads}}-{{given}}")
    diagonal_ssm.train("files", test_runs.waves(), out=out, threads=given, **test_runs.SMALL)
    print(json.loads((out / "environment.json").read_text())["threads"] == (given or diagonal_ssm.get_num_threads()))
"""
    assert run(code).split() == ["True"] * 3


def test_a_stream_in_use_at_a_fork(tmp_path):
    """The child says that it cannot be used, instead of waiting for a thread that it does not have."""
    code = f"""
import numpy, os, signal, threading, time
import diagonal_ssm
x, y = numpy.zeros((8, 20)), numpy.arange(8) % 2
run = diagonal_ssm.train("files", (x, y), out={str(tmp_path / "run")!r}, layers=1, h=16, n=16, epochs=1, min_steps=0)
stream = run.model.stream()
thread = threading.Thread(target=stream.push, args=(numpy.zeros((2_000_000, 1)),))
thread.start()
time.sleep(0.3)
assert thread.is_alive()
child = os.fork()
if child == 0:
    signal.alarm(15)
    try:
        stream.push([0.0])
    except ValueError as error:
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
assert stream.position == 2_000_000
"""
    assert run(code).split() == ["7"]


class Samples(torch.utils.data.Dataset):
    """Items that are made with the layer, in the worker."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return answer(i)[0]


def test_two_python_threads():
    """They give the same bits, and one works while the other does: the interpreter is free."""
    torch.manual_seed(3)
    block = dss.DSSBlock(16, d_state=8, l_max=64)
    x = torch.randn(4, 64, 16)
    expected = block(x).detach().numpy().tobytes()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: block(x).detach().numpy().tobytes(), range(8)))
    assert set(found) == {expected}

    layer, long = dss.DSSLayer(64, d_state=64, l_max=8192), torch.randn(8, 8192, 64)
    counted, done = 0, threading.Event()

    def work():
        with torch.no_grad():
            layer(long)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 3, "no other thread could run during an operation"


def test_operations_overlap(tmp_path):
    """Two trainings with one thread each wait for each other in the middle: neither would get there if one operation had to
    end before another begins. How long two convolutions take together is printed, not tested."""
    code = f"""
import diagonal_ssm, test_runs, threading, time, torch
from diagonal_ssm import torch as dss
meeting, met = threading.Barrier(2, timeout=90), []
def train(name):
    def callback(event):
        if event["event"] == "step" and name not in met:
            meeting.wait()
            met.append(name)
    settings = dict(**test_runs.SMALL, out={str(tmp_path)!r} + "/" + name, threads=1, callback=callback)
    diagonal_ssm.train("files", test_runs.waves(), **settings)
def together(work, arguments):
    threads = [threading.Thread(target=work, args=[argument]) for argument in arguments]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start
together(train, "ab")
print(sorted(met))
diagonal_ssm.set_num_threads(1)
x, k = torch.randn(8, 8192, 64), torch.randn(1, 64, 8192)
apart = sum(together(lambda x: dss.conv(x, k), [x]) for _ in range(2))
both = together(lambda x: dss.conv(x, k), [x, x])
print(f"two convolutions one after the other: {{1e3 * apart:.0f}} ms, together: {{1e3 * both:.0f}} ms")
"""
    met, figures = run(code).splitlines()
    print(figures)
    assert met == "['a', 'b']"
