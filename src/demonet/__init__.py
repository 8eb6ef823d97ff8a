"""DEMO-Net (KDD'19): degree-specific graph neural networks for node and graph classification."""

from demonet.degree import AddDegreeLayout, DegreeLayout, DegreeTasks
from demonet.errors import DemonetError, DemonetWarning
from demonet.estimators import DEMONetClassifier, DEMONetGraphClassifier
from demonet.kernels import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel
from demonet.nn import DegreePooling, DEMOConv, GraphDEMONet, ModelConfig, NodeDEMONet
from demonet.ops import backend

__version__ = "0.1.0"

__all__ = [
    "AddDegreeLayout",
    "DEMOConv",
    "DEMONetClassifier",
    "DEMONetGraphClassifier",
    "DegreeLayout",
    "DegreePooling",
    "DegreeTasks",
    "DegreeWLKernel",
    "DemonetError",
    "DemonetWarning",
    "GraphDEMONet",
    "MeanWLKernel",
    "ModelConfig",
    "NodeDEMONet",
    "WLSubtreeKernel",
    "backend",
]
