"""Graph kernels of the paper, scikit-learn style: a list of graphs goes in, a Gram matrix comes out.

============================  ============  ==============================================================
:class:`DegreeWLKernel`       Eq. 13-15     nodes are compared when their degrees are equal
:class:`MeanWLKernel`         Eq. 16        every node is compared with every node
:class:`WLSubtreeKernel`      Eq. 17        nodes are compared by their Weisfeiler-Lehman colours
============================  ============  ==============================================================

The numbers count the kernels in the order in which the paper defines them; the display inside its theorem on graph
representations, which wraps Eq. 13 in an activation and defines no kernel to compute, is not counted.

:func:`wl_colours` and :func:`wl_classes` give the colours themselves, and which graphs they cannot tell apart.

>>> import torch
>>> from torch_geometric.data import Data
>>> edge, path = (
...     Data(edge_index=torch.tensor(arcs), num_nodes=n)
...     for n, arcs in [(2, [[0, 1], [1, 0]]), (3, [[0, 1, 1, 2], [1, 0, 2, 1]])]
... )
>>> WLSubtreeKernel(n_iter=1).fit_transform([edge, path])
array([[ 8., 10.],
       [10., 14.]])
"""

from demonet.kernels.colours import wl_classes, wl_colours
from demonet.kernels.degree import DegreeWLKernel
from demonet.kernels.machine import KernelMachine
from demonet.kernels.mean import MeanWLKernel
from demonet.kernels.nodes import NodeSetting, kappa
from demonet.kernels.pooled import GraphSetting
from demonet.kernels.subtree import WLSubtreeKernel

__all__ = [
    "DegreeWLKernel",
    "GraphSetting",
    "KernelMachine",
    "MeanWLKernel",
    "NodeSetting",
    "WLSubtreeKernel",
    "kappa",
    "wl_classes",
    "wl_colours",
]
