"""``wl``: the subtree kernel of Shervashidze et al. (JMLR 2011); ``degree-wl``: the kernel of the DEMO-Net paper."""

from __future__ import annotations

from demonet.kernels import DegreeWLKernel, WLSubtreeKernel
from demonet.methods.base import register
from demonet.methods.cost import Cost
from demonet.methods.kernel import KernelSettings, KernelSVM


@register
class WL(KernelSVM):
    r"""Support vector machine on the subtree kernel, which counts pairs of nodes of equal colour (Eq. 17).

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \delta(h_v^k, h_{v'}^k)

    The number of rounds h is selected on validation; see :class:`~demonet.kernels.WLSubtreeKernel`.
    """

    name = "wl"
    cost = Cost(0.2, 0.02, graphs=2.0)
    kernel_class = WLSubtreeKernel
    # Xu et al. have 1 to 6 rounds. With 0 rounds the kernel counts node labels, which is enough for several sets.
    defaults = KernelSettings(
        "Xu et al., ICLR'19, section 7; C as Morris et al., TUDataset, 2020", rounds=(0, 1, 2, 3, 4, 5, 6)
    )


@register
class DegreeWL(KernelSVM):
    r"""Support vector machine on the degree-specific kernel, which compares nodes of equal degree (Eq. 13 to 15).

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'}
            \delta(deg(v), deg(v')) \, \langle h_v^k, h_{v'}^k \rangle

    The last level h is selected on validation; see :class:`~demonet.kernels.DegreeWLKernel`.
    """

    name = "degree-wl"
    cost = Cost(0.2, 0.02, graphs=2.0)
    kernel_class = DegreeWLKernel
    defaults = KernelSettings("this project: as the subtree kernel", rounds=(0, 1, 2, 3, 4, 5, 6))
