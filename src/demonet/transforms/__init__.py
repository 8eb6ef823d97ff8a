"""PyG transforms: what a graph is given before it is cut into batches."""

from demonet.transforms.degree import AddDegree

__all__ = ["AddDegree"]
