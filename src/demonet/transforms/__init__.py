"""PyTorch Geometric transforms: a graph in degree order; true degrees for batches."""

from demonet.transforms.degree import AddDegree
from demonet.transforms.degree_layout import ToDegreeLayout

__all__ = ["AddDegree", "ToDegreeLayout"]
