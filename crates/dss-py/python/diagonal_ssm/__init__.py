"""Diagonal State Spaces for long sequences.

- `diagonal_ssm.torch`: the layers as PyTorch modules (needs torch);
- `diagonal_ssm.train`: trains a model from arrays, files or one of the built-in tasks;
- `diagonal_ssm.load`: trained models on numpy arrays, whole sequences and streams;
- `diagonal_ssm.import_checkpoint`: models that other programs have trained;
- `diagonal_ssm.sklearn`: estimators after scikit-learn's conventions (needs scikit-learn);
- `diagonal_ssm.dss_model`: the models in one file of plain PyTorch, to copy into your own project.
"""

from ._native import __version__, get_num_threads, set_num_threads, simd
from .model import Model, Stream, import_checkpoint, load
from .run import Run, train

__all__ = [
    "Model",
    "Run",
    "Stream",
    "__version__",
    "get_num_threads",
    "import_checkpoint",
    "load",
    "set_num_threads",
    "simd",
    "train",
]
