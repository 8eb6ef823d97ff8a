"""Adam with a shorter way to torch's fused kernel on a CPU.

On a graph of a hundred nodes a tenth of an epoch is what ``torch.optim`` does around that kernel: in every step it
checks, sorts and copies lists that stay the same. State and numbers are those of :class:`torch.optim.Adam`.
"""

from __future__ import annotations

import operator
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

    def __init__(self, params: Iterable[dict[str, Any]], **options: Any) -> None:
        super().__init__(params, **options)
        self._moments: dict[int, tuple[list[nn.Parameter], list[list[Tensor]]]] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # also called when a state is loaded
        self._moments = {}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for number, group in enumerate(self.param_groups):
            params = [parameter for parameter in group["params"] if parameter.grad is not None]
            means, squares, steps = self._of(number, params)
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                params,
                [parameter.grad for parameter in params],
                means,
                squares,
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

    def zero_grad(self, set_to_none: bool = True) -> None:
        if not set_to_none:
            super().zero_grad(set_to_none=False)
            return
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def _of(self, number: int, params: list[nn.Parameter]) -> list[list[Tensor]]:
        """Both moments and the steps of the parameters of a group, in lists that are kept while these are the same."""
        known = self._moments.get(number)
        if known is None or len(known[0]) != len(params) or not all(map(operator.is_, known[0], params)):
            states = [self.state[parameter] or self._begin(parameter) for parameter in params]
            names = ("exp_avg", "exp_avg_sq", "step")
            known = self._moments[number] = params, [[state[name] for state in states] for name in names]
        return known[1]

    def _begin(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """What is known before the first step."""
        zeros = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        self.state[parameter] = {"step": torch.zeros((), dtype=torch.float32), **zeros}
        return self.state[parameter]
