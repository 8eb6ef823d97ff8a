"""Graph kernels of the paper.

They have scikit-learn's interface, from a list of graphs to a Gram matrix:

============================  ============  ==============================================================
:class:`DegreeWLKernel`       Eq. 13-15     compares nodes of equal degree
:class:`MeanWLKernel`         Eq. 16        compares every node with every node
:class:`WLSubtreeKernel`      Eq. 17        compares nodes by their Weisfeiler-Lehman colours
============================  ============  ==============================================================

Equation numbers follow the order of the kernels in the paper. The formula inside its theorem on graph representations,
which applies an activation to Eq. 13 and defines no other kernel, is not counted.

:func:`wl_colours` returns the colours of nodes, :func:`wl_classes` the classes of graphs that they cannot distinguish.

The names listed in ``__all__`` are public; the modules are not.

>>> import torch
>>> from torch_geometric.data import Data
>>> edge, path = (
...     Data(edge_index=torch.tensor(edges), num_nodes=n)
...     for n, edges in [(2, [[0, 1], [1, 0]]), (3, [[0, 1, 1, 2], [1, 0, 2, 1]])]
... )
>>> WLSubtreeKernel(n_iter=1).fit_transform([edge, path])
array([[ 8., 10.],
       [10., 14.]])
"""

from demonet.kernels.representations import DegreeWLKernel, MeanWLKernel
from demonet.kernels.subtree import WLSubtreeKernel, wl_classes, wl_colours

__all__ = [
    "DegreeWLKernel",
    "MeanWLKernel",
    "WLSubtreeKernel",
    "wl_classes",
    "wl_colours",
]
