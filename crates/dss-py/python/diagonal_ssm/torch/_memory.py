"""What a process does with the memory of freed tensors."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
"""Of glibc's `mallopt`."""


def keep_memory() -> bool:
    """Keeps the memory of freed tensors for the next ones, in this process from now on.

    Without it, hundreds of megabytes go back to the system after every training step, and come again as pages that it
    has to fill with zeros. It is for programs that train on a CPU, and needs Linux with glibc: False elsewhere.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_TOP_PAD, 1 << 26))
    return all([mallopt(option, value) == 1 for option, value in wanted])
