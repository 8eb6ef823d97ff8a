"""A linear head and its loss on CPU, class by class where there are few classes.

Torch's softmax along a row of few scores goes number by number; with a row for every class and a column for every node,
the same softmax goes along whole vectors of nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from demonet.ops import reference
from demonet.ops.cpu_conv import outer

FEW = 16  # classes that do not fill a vector of numbers


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """:func:`demonet.ops.reference.linear_cross_entropy`."""
    if weight.size(0) >= FEW:
        return reference.linear_cross_entropy(h, weight, bias, target, share)
    scores = _scores(h, weight, bias)
    loss = torch.logsumexp(scores, 0).sub_(scores.gather(0, target[None])[0])
    return loss @ share.to(loss.dtype)


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Its derivatives by the rows, the matrix and the bias."""
    if weight.size(0) >= FEW:
        return reference.linear_cross_entropy_backward(grad, h, weight, bias, target, share)
    by_scores = torch.softmax(_scores(h, weight, bias), 0)
    by_scores.scatter_add_(0, target[None], by_scores.new_full((1, 1), -1).expand(1, h.size(0)))
    by_scores = by_scores.mul_(share.to(by_scores.dtype) * grad).to(h.dtype).t()
    return by_scores @ weight, outer(h, by_scores).t().contiguous(), by_scores.sum(0)


def _scores(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``[classes, n]``, in at least 32 bits."""
    return torch.addmm(bias[:, None], weight, h.t()).to(torch.promote_types(h.dtype, torch.float32))


class Head(NamedTuple):
    """A linear head, the class of every row, and how much the row counts."""

    weight: Tensor
    bias: Tensor
    target: Tensor
    share: Tensor

    def down(self, h: Tensor, rows: slice, by_weight: Tensor, by_bias: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of some rows, and the derivative by them; those by the head are added to."""
        target, share = self.target[rows], self.share[rows]
        if self.weight.size(0) < FEW:
            scores = torch.log_softmax(_scores(h, self.weight, self.bias), 0)
        else:
            scores = torch.log_softmax(torch.addmm(self.bias, h, self.weight.t()), 1).t()
        loss = -(scores.gather(0, target[None])[0] @ share)
        by_scores = scores.exp_().mul_(share)
        by_scores.scatter_add_(0, target[None], -share[None])
        by_weight.addmm_(by_scores, h)
        by_bias.add_(by_scores.sum(1))
        return loss, by_scores.t() @ self.weight
