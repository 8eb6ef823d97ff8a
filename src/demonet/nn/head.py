"""LinearCrossEntropy: the last linear map of a classifier, and its loss without the scores in between."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from demonet.errors import DemonetError
from demonet.nn.edges import check_length
from demonet.ops import linear_cross_entropy


class LinearCrossEntropy(nn.Linear):
    r"""A linear map to the scores of classes, with the cross-entropy of these scores as one function.

    .. math:: L = \sum_v s_v \, \mathrm{CE}(W h_v + b, y_v), \qquad s_v = c_{y_v} m_v \Big/ \sum_u c_{y_u} m_u

    On a GPU the scores are never stored. The loss is ``F.cross_entropy(head(h)[mask], y[mask], class_weight)``.

    Args:
        in_channels: Width of the input.
        num_classes: Number of classes.
        bias: Whether there is a bias.
        class_weight: ``[num_classes]`` :math:`c`, the weights of classes; 1 by default.

    >>> head = LinearCrossEntropy(8, 3)
    >>> h, y = torch.randn(5, 8), torch.tensor([0, 2, -1, 1, 0])  # -1 is unlabelled
    >>> head(h).shape, head.loss(h, y).dim()
    (torch.Size([5, 3]), 0)
    """

    class_weight: Tensor | None

    def __init__(
        self, in_channels: int, num_classes: int, bias: bool = True, *, class_weight: Tensor | None = None
    ) -> None:
        super().__init__(in_channels, num_classes, bias)
        if class_weight is not None and class_weight.shape != (num_classes,):
            raise DemonetError(f"class_weight of shape {list(class_weight.shape)} for {num_classes} classes")
        self.register_buffer("class_weight", class_weight)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """The mean cross-entropy.

        Args:
            h: ``[n, in_channels]``.
            target: ``[n]`` the class of every row; negative for rows that are left out.
            mask: ``[n]`` bool, the rows that count; all of them by default. Numbers weigh them.
        """
        if target.shape != (h.size(0),):
            raise DemonetError(f"targets of shape {list(target.shape)} for {h.size(0)} rows", hint="one for each row")
        if mask is not None:
            check_length("mask entries", "row", mask, h.size(0))
        share = (target >= 0).to(torch.promote_types(h.dtype, torch.float32))
        target = target.clamp(min=0)
        for factor in (mask, None if self.class_weight is None else self.class_weight[target]):
            share = share if factor is None else share * factor.to(share.dtype)
        return self.weighted_loss(h, target, share / share.sum())

    def weighted_loss(self, h: Tensor, target: Tensor, share: Tensor) -> Tensor:
        r""":math:`\sum_v s_v \, \mathrm{CE}_v`; ``share`` is :math:`s`, ``[n]`` float32 (float64 with float64 rows)."""
        bias = self.weight.new_zeros(self.out_features) if self.bias is None else self.bias
        return linear_cross_entropy(h, self.weight, bias, target, share)
