"""The code of the documentation runs."""

import pathlib
import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["docs/python.md", "crates/dss-py/README.md"])
def test_pages(page, tmp_path, monkeypatch):
    """All blocks of a page, one after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert blocks
    names = {}
    for block in blocks:
        line = text.count("\n", 0, block.start()) + 1
        code = "\n" * line + block[1]
        exec(compile(code, page, "exec"), names)
