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


@pytest.mark.parametrize("check", ["children", "loader"])
def test_forked_children_give_the_same_bits(check):
    """Before and after their parent's use; in a process of its own, since torch's engine of gradients does not survive
    a fork once other tests have started its threads."""
    run(f"import test_threads; test_threads.{check}()")


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
