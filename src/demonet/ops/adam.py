"""Adam with a shorter way to torch's fused kernel on a CPU.

On a graph of a hundred nodes a tenth of an epoch is what ``torch.optim`` does around that kernel: in every step it
checks, sorts and copies lists that stay the same. State and numbers are those of :class:`torch.optim.Adam`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


def adam(params: Iterable[dict[str, Any]], lr: float, device: torch.device, *, capturable: bool = False) -> Any:
    """Adam for groups of parameters on a device.

    Args:
        params: The groups.
        lr: The learning rate.
        device: Where the parameters are.
        capturable: Whether steps are captured in a CUDA graph, which reads the learning rate anew each time.
    """
    if device.type == "cpu":
        return _Adam(params, lr=lr, fused=True)
    rate = torch.tensor(lr, device=device) if capturable else lr
    return torch.optim.Adam(params, lr=rate, fused=True, capturable=capturable)


class _Adam(torch.optim.Adam):
    """Adam of parameters in main memory that are all of one type."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            params = [parameter for parameter in group["params"] if parameter.grad is not None]
            states = [self.state[parameter] or self._begin(parameter) for parameter in params]
            steps = [state["step"] for state in states]
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                params,
                [parameter.grad for parameter in params],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )

    def _begin(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """What is known before the first step."""
        zeros = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        self.state[parameter] = {"step": torch.zeros((), dtype=torch.float32), **zeros}
        return self.state[parameter]
