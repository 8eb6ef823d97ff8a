"""DEMO-Net in closed form: ridge regression on a degree-specific kernel of nodes or graphs.

:class:`KernelMachine` is fitted on nodes or graphs; :class:`NodeSetting` and :class:`GraphSetting` are the settings of
its kernel, :func:`kappa` is the kernel of two degrees, :class:`DegreeEffect` says what the degree-specific term is
worth. The names listed in ``__all__`` are public; the modules are not.
"""

from demonet.closedform.machine import DegreeEffect, KernelMachine
from demonet.closedform.nodes import NodeSetting, kappa
from demonet.closedform.pooled import GraphSetting

__all__ = ["DegreeEffect", "GraphSetting", "KernelMachine", "NodeSetting", "kappa"]
