"""One training loop for every network here, and the presets that say how each is trained."""

from demonet.train.config import TrainConfig
from demonet.train.loop import Epoch, History, fit
from demonet.train.presets import Preset, preset
from demonet.train.problem import GraphProblem, NodeProblem, Part
from demonet.train.recipes import Trained, family_of, train_graphs, train_nodes
from demonet.train.steps import evaluate, predict

__all__ = [
    "Epoch",
    "GraphProblem",
    "History",
    "NodeProblem",
    "Part",
    "Preset",
    "TrainConfig",
    "Trained",
    "evaluate",
    "family_of",
    "fit",
    "predict",
    "preset",
    "train_graphs",
    "train_nodes",
]
