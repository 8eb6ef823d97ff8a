"""DEMO-Net (KDD'19): degree-specific graph neural networks for nodes and graphs."""

from demonet.degree import AddDegreeLayout, DegreeLayout, DegreeTasks
from demonet.errors import DemonetError, DemonetWarning
from demonet.estimators import DEMONetClassifier, DEMONetGraphClassifier, DEMONetGraphRegressor, DEMONetRegressor
from demonet.kernels import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel
from demonet.nn import DegreePooling, DEMOConv, GraphDEMONet, ModelConfig, NodeDEMONet

__version__ = "0.1.0"

__all__ = [
    "AddDegreeLayout",
    "DEMOConv",
    "DEMONetClassifier",
    "DEMONetGraphClassifier",
    "DEMONetGraphRegressor",
    "DEMONetRegressor",
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
]
