"""Diagonal State Spaces for long sequences.

- `diagonal_ssm.torch`: the layers as PyTorch modules (needs torch);
- `diagonal_ssm.load`: models trained by `dss train`, on numpy arrays: whole sequences and streams;
- `diagonal_ssm.dss_model`: the same models in one file of plain PyTorch, to copy into your own project.
"""

from ._native import __version__, get_num_threads, set_num_threads, simd
from .model import Model, Stream, load

__all__ = ["Model", "Stream", "__version__", "get_num_threads", "load", "set_num_threads", "simd"]
