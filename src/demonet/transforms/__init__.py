"""PyTorch Geometric transforms. Public: :class:`ToDegreeLayout`."""

from demonet.transforms.degree_layout import ToDegreeLayout

__all__ = ["ToDegreeLayout"]
