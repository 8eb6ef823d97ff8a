"""``degree-wl``: the degree-specific Weisfeiler-Lehman kernel of the DEMO-Net paper."""

from __future__ import annotations

from demonet.baselines.base import register
from demonet.baselines.kernel import KernelSettings, KernelSVM
from demonet.kernels import DegreeWLKernel


@register
class DegreeWL(KernelSVM):
    r"""Support vector machine on the degree-specific kernel, which compares nodes of equal degree (Eq. 13 to 15).

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'}
            \delta(deg(v), deg(v')) \, \langle h_v^k, h_{v'}^k \rangle

    The last level h is selected on validation; see :class:`~demonet.kernels.DegreeWLKernel`.
    """

    name = "degree-wl"
    kernel_class = DegreeWLKernel
    defaults = KernelSettings("this project: as the subtree kernel", rounds=(0, 1, 2, 3, 4, 5, 6))
