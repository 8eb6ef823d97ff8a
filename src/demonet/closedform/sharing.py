r"""The learned kernel of degrees: how much nodes of two degrees share of what is done to their neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from demonet.closedform.nodes import Array, NodeSetting
from demonet.closedform.pooled import GraphSetting

MOST_DEGREES = 40


def degree_sharing(settings: Sequence[NodeSetting], degrees: Array) -> Array:
    r"""``[degrees, degrees]``: the correlation of the maps :math:`W_g + W_d` and :math:`W_g + W_{d'}`.

    .. math:: \frac{s_g + s_d \kappa(d, d')}{s_g + s_d}

    averaged over settings; for graphs times degree pooling's :math:`1 - p + p\,\kappa(d, d')`. It is 1 everywhere where
    the degree-specific term is turned off.

    >>> degree_sharing([NodeSetting(shared=1.0, degree=1.0, width=1.0)], np.array([0, 3])).round(2).tolist()
    [[1.0, 0.69], [0.69, 1.0]]
    """
    wanted, total = torch.from_numpy(np.asarray(degrees)), np.zeros((len(degrees), len(degrees)))
    for setting in settings:
        kappa = setting.kappa(wanted, wanted, torch.float64).numpy()
        both = setting.shared + setting.degree
        shared = (setting.shared + setting.degree * kappa) / both if both else np.ones_like(kappa)
        if isinstance(setting, GraphSetting):
            pooled = shared * (1 - setting.pooling + setting.pooling * kappa)
            shared = pooled if setting.pooled else np.ones_like(kappa)
        total += shared / len(settings)
    return total


def some_degrees(degree: Array, most: int = MOST_DEGREES) -> Array:
    """The distinct degrees; where there are many, some of them, evenly spaced in log(1 + d).

    >>> some_degrees(np.array([3, 1, 1, 2, 900]), most=3).tolist()
    [1, 3, 900]
    """
    distinct = np.unique(degree)
    if len(distinct) <= most:
        return distinct
    wanted = np.expm1(np.linspace(np.log1p(distinct[0]), np.log1p(distinct[-1]), most))
    nearest = np.abs(np.log1p(distinct) - np.log1p(wanted)[:, None]).argmin(1)
    return distinct[np.unique(nearest)]
