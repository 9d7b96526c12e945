"""The numbers of a training in Weights & Biases (needs the package wandb)."""

from __future__ import annotations

from typing import Any


class WandbCallback:
    """For `train` and `resume`: `train(..., callback=WandbCallback(wandb.init(project="waves")))`.

    Args:
        run: what `wandb.init` gives.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        # The test belongs to the step of the best checkpoint, which is not the last one.
        run.define_metric("*", step_metric="step")

    def __call__(self, event: dict[str, Any]) -> None:
        """Logs `train/loss`, `val/accuracy`, `test/loss` and so on, with their step."""
        found = {"step": event, "eval": event.get("scores", {})}.get(event["event"], {})
        part = event.get("split", "train")
        numbers = {f"{part}/{k}": v for k, v in found.items() if isinstance(v, (int, float)) and k != "step"}
        if numbers:
            self.run.log({**numbers, "step": event["step"]})
