"""The layer, the pooling and the models.

Public: :class:`DEMOConv`, :class:`DegreePooling`, :class:`LinearCrossEntropy`, :class:`DEMONet`,
:class:`NodeDEMONet`, :class:`GraphDEMONet`, the configuration :class:`ModelConfig` and the prepared input
:class:`GraphInput` of the last two, and :mod:`demonet.nn.weights`, the schemes.
"""

from demonet.nn.config import ModelConfig
from demonet.nn.conv import DEMOConv
from demonet.nn.head import LinearCrossEntropy
from demonet.nn.models import DEMONet, GraphDEMONet, NodeDEMONet
from demonet.nn.pool import DegreePooling
from demonet.nn.prepared import GraphInput

__all__ = [
    "DEMOConv",
    "DEMONet",
    "DegreePooling",
    "GraphDEMONet",
    "GraphInput",
    "LinearCrossEntropy",
    "ModelConfig",
    "NodeDEMONet",
]
