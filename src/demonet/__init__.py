"""DEMO-Net (KDD'19): degree-specific graph neural networks for nodes and graphs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from demonet.errors import DemonetError, DemonetWarning

if TYPE_CHECKING:
    from demonet.degree import AddDegreeLayout, DegreeLayout, DegreeTasks
    from demonet.estimators import (
        DEMONetClassifier,
        DEMONetGraphClassifier,
        DEMONetGraphRegressor,
        DEMONetRegressor,
    )
    from demonet.kernels import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel
    from demonet.nn import DegreePooling, DEMOConv, DEMONet, GraphDEMONet, ModelConfig, NodeDEMONet
    from demonet.ops import backend
    from demonet.predictor import Predictor, fit, predict

# Imported on first use, so that `demonet --help` does not wait for torch.
_LAZY = {
    "degree": ("AddDegreeLayout", "DegreeLayout", "DegreeTasks"),
    "estimators": ("DEMONetClassifier", "DEMONetGraphClassifier", "DEMONetGraphRegressor", "DEMONetRegressor"),
    "kernels": ("DegreeWLKernel", "MeanWLKernel", "WLSubtreeKernel"),
    "nn": ("DEMOConv", "DEMONet", "DegreePooling", "GraphDEMONet", "ModelConfig", "NodeDEMONet"),
    "ops": ("backend",),
    "predictor": ("Predictor", "fit", "predict"),
}
_SUBPACKAGES = (*_LAZY, "methods", "data", "ensemble", "runs", "train", "transforms")

__all__ = [
    "AddDegreeLayout",
    "DEMOConv",
    "DEMONet",
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
    "Predictor",
    "WLSubtreeKernel",
    "backend",
    "fit",
    "predict",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"demonet.{name}")
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("demonet")
        except PackageNotFoundError:  # source that was not installed
            return "0.0.0"
    for package, names in _LAZY.items():
        if name in names:
            value = getattr(import_module(f"demonet.{package}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'demonet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
