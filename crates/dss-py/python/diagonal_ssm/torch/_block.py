"""A layer with its norm, dropout and residual."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, nn

from . import _ops
from ._layers import DSSLayer, SSMLayer, State, check_step, checked, inside


class Norm(nn.Module):
    """A norm of [B, L, H] with the names of our checkpoints: `gamma`, `beta`, `running_mean`, `running_var`.

    Args:
        d_model: H.
        kind: "layer", "batch" or "layer-scalar" (one gain and one offset for all channels, and no eps).
        eps: added to the variance.
        momentum: the part of a new batch in the running statistics.
        mask_padding: whether padding is left out of a batch's statistics.
    """

    kind: str
    eps: float
    momentum: float
    mask_padding: bool
    gamma: nn.Parameter
    beta: nn.Parameter

    def __init__(
        self, d_model: int, kind: str = "layer", eps: float = 1e-5, momentum: float = 0.1, mask_padding: bool = True
    ) -> None:
        super().__init__()
        if kind not in ("layer", "batch", "layer-scalar"):
            raise ValueError(f'norm must be "layer", "batch" or "layer-scalar", but is {kind!r}')
        self.kind, self.eps, self.momentum, self.mask_padding = kind, eps, momentum, mask_padding
        size = 1 if kind == "layer-scalar" else d_model
        self.gamma = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        if kind == "batch":
            self.register_buffer("running_mean", torch.zeros(d_model))
            self.register_buffer("running_var", torch.ones(d_model))

    def mode(self) -> str:
        """How it works now: "layer", "layer-scalar", "batch" (in training) or "batch-eval"."""
        return "batch-eval" if self.kind == "batch" and not self.training else self.kind

    def statistics(self) -> list[Tensor]:
        """Running mean and variance [H] of a BatchNorm."""
        return [self.get_buffer("running_mean"), self.get_buffer("running_var")]

    def counted(self, lengths: Optional[Tensor]) -> Optional[Tensor]:
        """The lengths that count in a batch's statistics."""
        return lengths if self.mask_padding else None

    def remember(self, mean: Tensor, var: Tensor) -> None:
        """Moves the running statistics towards those of a batch, [H] each."""
        with torch.no_grad():
            for running, now in zip(self.statistics(), (mean, var)):
                running.lerp_(now.detach().to(running), self.momentum)

    def forward(self, x: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """[B, L, H] (in evaluation also [B, H]) -> the same shape."""
        mode = self.mode()
        if mode == "layer":
            return nn.functional.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)
        if mode == "layer-scalar":
            x = x - x.mean(-1, keepdim=True)
            return (x + self.beta) / torch.sqrt((x * x).mean(-1, keepdim=True)) * self.gamma
        if mode == "batch":
            mean, var = self._moments(x, self.counted(lengths))
        else:
            mean, var = self.statistics()
        return (x - mean) / torch.sqrt(var + self.eps) * self.gamma + self.beta

    def _moments(self, x: Tensor, lengths: Optional[Tensor]) -> tuple[Tensor, Tensor]:
        count = x.shape[0] * x.shape[1]
        if lengths is None:
            var, mean = torch.var_mean(x, (0, 1), correction=0)
            self.remember(mean, var * count / max(count - 1, 1))
            return mean, var
        counts = inside(x, lengths)
        count = counts.sum()
        mean = (x * counts).sum((0, 1)) / count
        var = ((x - mean).square() * counts).sum((0, 1)) / count
        self.remember(mean, var * count / (count - 1).clamp_min(1))
        return mean, var


class DSSBlock(nn.Module):
    """A layer with its norm and residual, [B, L, H] -> [B, L, H]: x + f(norm(x)) or norm(x + f(x)).

    f(u) = drop(Out(drop(GELU(K * u + D u)))); dropout takes whole channels of a sequence. On the CPU the block is one
    fused operation (besides its kernel).

    Args:
        d_model: H.
        layer: a DSSLayer, S4DLayer or S4Layer with H channels; without one, `settings` make a DSSLayer.
        norm: "layer", "batch" or "layer-scalar".
        prenorm: x + f(norm(x)) if true.
        dropout: the probability of dropping a channel, at least 0 and less than 1.
        eps, momentum, mask_padding: of the norm.
        settings: of the DSSLayer, such as `d_state`, `l_max`, `variant`.
    """

    mixer: SSMLayer
    norm: Norm
    prenorm: bool
    dropout: float

    def __init__(
        self,
        d_model: int,
        layer: Optional[SSMLayer] = None,
        *,
        norm: str = "layer",
        prenorm: bool = True,
        dropout: float = 0.0,
        eps: float = 1e-5,
        momentum: float = 0.1,
        mask_padding: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), but is {dropout}")
        if layer is not None and settings:
            raise ValueError(f"settings of a layer and a layer are given: {', '.join(settings)}")
        if layer is not None and layer.d_model != d_model:
            raise ValueError(f"the layer has {layer.d_model} channels, but the block {d_model}")
        self.mixer = DSSLayer(d_model, **settings) if layer is None else layer
        self.norm = Norm(d_model, norm, eps, momentum, mask_padding)
        self.prenorm, self.dropout = prenorm, dropout

    def forward(self, x: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """x [B, L, H] -> [B, L, H]; positions from `lengths` [B] on are padding: a bidirectional layer does not see
        them, and with `mask_padding` they do not count in the statistics of a BatchNorm."""
        lengths = checked(x, lengths, self.mixer.d)
        mode = self.norm.mode()
        masks = self._masks(x) if self.training and self.dropout > 0 else []
        if not _ops.fused(x) or mode == "layer-scalar":
            return self._composed(x, lengths, masks)
        mixer, norm = self.mixer, self.norm
        tensors = [x, mixer.kernel(x.shape[1]), mixer.d, mixer.out.weight, mixer.out.bias, norm.gamma, norm.beta]
        given = norm.statistics() if mode == "batch-eval" else []
        settings = (self.prenorm, mixer.glu, mixer.gelu == "tanh", mixer.bidirectional, mode, norm.eps)
        y, *_, mean, var = _ops.block(tensors, given, masks, lengths, norm.counted(lengths), *settings)
        if mode == "batch":
            norm.remember(mean, var)
        return y

    def initial_state(self, batch: int) -> State:
        """The state of `batch` streams before their first position."""
        return self.mixer.initial_state(batch)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One position of each stream in evaluation: x [B, H] -> y [B, H], and the next state."""
        if self.training and (self.norm.kind == "batch" or self.dropout > 0):
            raise ValueError("the statistics of a batch and dropout are for whole sequences: call eval() first")
        check_step(x, state, self.mixer.d_model)
        y, state = self.mixer.step(self.norm(x) if self.prenorm else x, state)
        return (x + y if self.prenorm else self.norm(x + y)), state

    def _masks(self, x: Tensor) -> list[Tensor]:
        keep = 1 - self.dropout
        return [torch.bernoulli(x.new_full((x.shape[0], x.shape[2]), keep)) / keep for _ in range(2)]

    def _composed(self, x: Tensor, lengths: Optional[Tensor], masks: list[Tensor]) -> Tensor:
        if self.prenorm:
            return x + self._f(self.norm(x, lengths), lengths, masks)
        return self.norm(x + self._f(x, lengths, masks), lengths)

    def _f(self, u: Tensor, lengths: Optional[Tensor], masks: list[Tensor]) -> Tensor:
        mixer = self.mixer
        if not masks:
            return mixer.project(mixer.mixed(u, lengths))
        v = mixer.activated(mixer.mixed(u, lengths)) * masks[0][:, None]
        return mixer.gate(mixer.out(v)) * masks[1][:, None]
