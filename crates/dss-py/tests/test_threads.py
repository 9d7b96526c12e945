"""Threads and forks: no hang, the same bits."""

import concurrent.futures
import multiprocessing

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


def test_any_number_of_threads():
    threads, results = diagonal_ssm.get_num_threads(), set()
    for n in (1, 2, threads):
        diagonal_ssm.set_num_threads(n)
        assert diagonal_ssm.get_num_threads() == min(n, threads)
        results.add(answer())
    assert len(results) == 1
    with pytest.raises(ValueError, match="at least 1"):
        diagonal_ssm.set_num_threads(0)


def test_forked_children_give_the_same_bits():
    before = answer()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(answer, range(4)).get(timeout=60)
    assert set(found) == {before}
    assert answer() == before


class Samples(torch.utils.data.Dataset):
    """Items that are made with the layer, in the worker."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return answer(i)[0]


def test_data_loader_with_forked_workers():
    before = answer()[0]
    loader = torch.utils.data.DataLoader(Samples(), num_workers=2, batch_size=None, timeout=60)
    assert all(item == before for item in loader)


def test_two_python_threads():
    expected = answer()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        layer = torch.nn.Linear(1, 1)  # torch's own modules are untouched
        assert layer is not None
        torch.manual_seed(3)
        block = dss.DSSBlock(16, d_state=8, l_max=64)
        x = torch.randn(4, 64, 16)
        found = list(pool.map(lambda _: block(x).detach().numpy().tobytes(), range(8)))
    assert set(found) == {expected[0]}
