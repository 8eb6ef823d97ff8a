"""What a PyTorch user imports: the layer, the pooling, the models."""

from demonet.nn.config import ModelConfig
from demonet.nn.conv import DEMOConv
from demonet.nn.door import GraphInput
from demonet.nn.models import GraphDEMONet, NodeDEMONet
from demonet.nn.pool import DegreePooling

__all__ = ["DEMOConv", "DegreePooling", "GraphDEMONet", "GraphInput", "ModelConfig", "NodeDEMONet"]
