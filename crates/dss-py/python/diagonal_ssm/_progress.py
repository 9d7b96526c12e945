"""How far a training is, where someone looks: in a notebook, or in a terminal."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Optional

_EVERY = 0.2
"""Seconds between two pictures."""


class Progress:
    """One line of text, kept up to date."""

    def __init__(self, show: Optional[bool]) -> None:
        self._display = None if show is False else _notebook()
        self._lines = show is True and self._display is None and not sys.stderr.isatty()
        self._bar = show is not False and self._display is None and sys.stderr.isatty()
        self._total, self._done, self._score, self._last = 0, 0, "", 0.0

    def event(self, event: dict[str, Any]) -> None:
        """Takes an event of a training."""
        kind, text, due = event["event"], "", False
        if kind == "loading":
            text = str(event["text"])
        elif kind == "start":
            self._total, self._done = event["total_steps"], event["done_steps"]
            text = f"{event['parameters']:,} parameters, {event['examples']['train']:,} training sequences"
        elif kind == "step":
            self._done = event["step"]
            text = f"loss {event['loss']:.4f}, {event['samples_per_s']:.0f} sequences/s{self._score}"
        elif kind == "evaluating":
            text = f"evaluating {event['done']} of {event['of']}{self._score}"
        elif kind == "eval":
            self._score = f", {event['split']} {_score(event['scores'])} at step {event['step']}"
            text, due = self._score.removeprefix(", "), True
        elif kind == "end":
            text, due = f"{event['stopped']} after {event['steps']} steps{self._score}", True
        else:
            return
        if due or time.monotonic() - self._last >= _EVERY:
            self._show(text, due)
            self._last = time.monotonic()
        if kind == "end" and self._bar:
            print(file=sys.stderr)

    def _show(self, text: str, due: bool) -> None:
        part = self._done / self._total if self._total else 0.0
        line = f"step {self._done} of {self._total}, {text}" if self._total else text
        if self._display is not None:
            bar = f'<progress value="{part:.4f}" max="1" style="width: 20em; vertical-align: middle"></progress>'
            self._display(f"<div>{bar} {html.escape(line)}</div>")
        elif self._bar:
            print(f"\r\x1b[K{line[:110]}", end="", file=sys.stderr, flush=True)
        elif self._lines and due:
            print(line, file=sys.stderr)


def _score(scores: dict[str, Any]) -> str:
    if scores.get("accuracy") is not None:
        return f"accuracy {100 * scores['accuracy']:.2f} %"
    return f"loss {scores['loss']:.4f}"


def _notebook() -> Any:
    """Shows HTML in the output of a notebook's cell, always in the same place; None outside of one."""
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

    handle: Any = display(HTML(""), display_id=True)
    return lambda text: handle.update(HTML(text))
