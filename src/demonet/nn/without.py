r"""A network without one of the three terms of its convolutions: what is that term worth?

Before the activation, a convolution (Eq. 5 to 7) is :math:`W_0 x_v \circ (W_g a_v + W_d a_v)`, with :math:`a_v` the
aggregated neighbourhood: the seed's term, the shared one and the degree's own. A term that is left out is zero and is
not learned. All else stays, the width of the output included.
"""

from __future__ import annotations

import torch
from torch import nn

from demonet.errors import DemonetError
from demonet.nn.conv import DEMOConv

# The matrix of each term, in a convolution.
_MATRIX = {"seed": "seed.weight", "shared": "weights.shared", "degree": "weights.own"}


def leave_out(model: nn.Module, term: str) -> None:
    """Take a term (``"seed"``, ``"shared"``, ``"degree"``; nothing for ``"none"``) out of every convolution."""
    if term == "none":
        return
    for conv in [module for module in model.modules() if isinstance(module, DEMOConv)]:
        if conv.weights.is_open:
            raise DemonetError(f"without={term!r} with in_channels=-1", hint="say how many features there are")
        owner, name = _MATRIX[term].split(".")
        module = conv.get_submodule(owner)
        zero = torch.zeros_like(getattr(module, name), requires_grad=False)
        delattr(module, name)
        module.register_buffer(name, zero)  # it moves and is saved with the rest, and no optimiser sees it
