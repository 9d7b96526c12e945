"""The model sizes and the optimiser's settings. Standard library only: the driver reads it too."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
    name: str
    H: int
    L: int
    B: int
    norm: str  # "batch" or "layer"
    prenorm: bool
    vocab: int = 0  # tokens if positive, else one real value per position
    layers: int = 6
    N: int = 64
    classes: int = 10
    mixer: str = "dss"  # "dss" (softmax) or "s4" with N/2 conjugate pairs


SIZES = {
    size.name: size
    for size in (
        Size("listops", H=128, L=2048, B=16, norm="batch", prenorm=False, vocab=18),
        Size("image", H=512, L=1024, B=8, norm="layer", prenorm=False),
        Size("speech", H=128, L=16000, B=4, norm="batch", prenorm=True),
        Size("listops-s4", H=128, L=2048, B=16, norm="batch", prenorm=False, vocab=18, mixer="s4"),
    )
}

# The same three shapes of DSS models, small: for the checks in f64.
SMALL = [
    dataclasses.replace(size, layers=2, H=6, L=40, B=3, N=5, classes=4)
    for size in SIZES.values()
    if size.mixer == "dss"
]


@dataclasses.dataclass(frozen=True)
class AdamW:
    lr: float = 0.01
    weight_decay: float = 0.01
    lr_kernel: float = 1e-3  # of the other parameters of a kernel; they and log_dt never decay
    lr_delta: float = 1e-3  # of log_dt
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def group(self, name):
        """Learning rate and weight decay of a parameter, by the last part of its name."""
        last = name.rsplit(".", 1)[-1]
        if last == "log_dt":
            return self.lr_delta, 0.0
        if last in ("Lambda", "W", "log_w_real", "w_imag", "P", "B", "C"):
            return self.lr_kernel, 0.0
        return self.lr, self.weight_decay
