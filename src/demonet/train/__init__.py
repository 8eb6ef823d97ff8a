"""Training: objectives and metrics, one loop for every network, checkpoints, and presets.

:func:`train_nodes` and :func:`train_graphs` train a DEMO-Net by a :class:`Preset`, :func:`train_best` by the best of
several; :func:`fit` trains any module on a :class:`NodeProblem` or :class:`GraphProblem`.
"""

from demonet.train.config import TrainConfig
from demonet.train.loop import Epoch, History, fit, fit_together
from demonet.train.metrics import METRICS, Metric, metrics_for
from demonet.train.objective import Classify, Multilabel, Objective, Regress
from demonet.train.presets import Preset, preset, with_layers
from demonet.train.problem import GraphProblem, LabelledBatch, NodeProblem
from demonet.train.recipes import Trained, family_of, train_best, train_graphs, train_nodes
from demonet.train.steps import evaluate, predict

__all__ = [
    "METRICS",
    "Classify",
    "Epoch",
    "GraphProblem",
    "History",
    "LabelledBatch",
    "Metric",
    "Multilabel",
    "NodeProblem",
    "Objective",
    "Preset",
    "Regress",
    "TrainConfig",
    "Trained",
    "evaluate",
    "family_of",
    "fit",
    "fit_together",
    "metrics_for",
    "predict",
    "preset",
    "train_best",
    "train_graphs",
    "train_nodes",
    "with_layers",
]
