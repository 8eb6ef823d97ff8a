"""What a PyTorch user imports: the layer, the pooling, the models."""

from demonet.nn.conv import DEMOConv
from demonet.nn.pool import DegreePooling

__all__ = ["DEMOConv", "DegreePooling"]
