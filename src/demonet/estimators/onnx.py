"""Export a trained network to ONNX: features and edges of any graph in, probabilities or values out."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from demonet.atomic import check_file, replacing
from demonet.ensemble.calibration import Calibration, LabelCalibration
from demonet.errors import DemonetError, needed
from demonet.estimators.models import NetworkModel
from demonet.estimators.targets import Array

FORMAT = "demonet-onnx-1"


class _Exported(nn.Module):
    """A network with the activation of its objective, calibrated."""

    numbers: Tensor

    def __init__(self, fitted: NetworkModel) -> None:
        super().__init__()
        self.model, self.objective, found = fitted.network, fitted.objective, fitted.calibration
        many = (found.labels if isinstance(found, LabelCalibration) else [found]) or [Calibration()]
        tables = [[each.temperature, each.bias, each.softening] for each in many]
        self.register_buffer("numbers", torch.tensor(tables).T)
        self.ways = fitted.objective.outputs if fitted.objective.task == "classify" else 2

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """``[nodes, outputs]``; for a graph model ``[1, outputs]``, of one graph."""
        temperature, bias, softening = self.numbers.unbind()
        scores = self.model(x, edge_index, edge_weight=edge_weight) / temperature
        if self.objective.task == "classify":
            bias = nn.functional.pad(bias, (self.ways - 1, 0))
        found = self.objective.activate(scores + bias)
        return (1 - softening) * found + softening / self.ways


def export_onnx(fitted: NetworkModel, classes: Array | None, path: str | Path, *, weighted: bool = False) -> None:
    """Write a network as an ONNX file, atomically.

    Its inputs are ``x [nodes, features]``, the dense output of the feature map for a graph; ``edge_index [2, edges]``,
    undirected edges in both directions; and, if ``weighted``, ``edge_weight [edges]``. Its output is ``probabilities``,
    or ``values`` of a regression, in the units of the targets. The file's metadata has the task, the classes as JSON
    and the name of the features.
    """
    check_file(path)
    for module in ("onnx", "onnxscript"):
        needed(module, "onnx")
    model, objective, features = fitted.network, fitted.objective, fitted.features
    parameter = next(model.parameters())
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    inputs = [torch.ones(4, features.num_features, dtype=parameter.dtype), edge_index]
    inputs += [torch.ones(8, dtype=parameter.dtype)] if weighted else []
    nodes, edges = Dim("nodes", min=2), Dim("edges", min=2)
    shapes = ({0: nodes}, {1: edges}, *([{0: edges}] if weighted else []))
    network = _Exported(fitted).cpu().eval()
    output = "values" if objective.task == "regress" else "probabilities"
    try:
        with _quiet():
            options: Any = {"dynamo": True, "verbose": False, "output_names": [output]}
            exported = torch.onnx.export(network, tuple(inputs), dynamic_shapes=shapes, **options)
    except Exception as error:  # torch's exporter raises many kinds
        raise DemonetError(f"torch cannot export this model: {str(error).splitlines()[0]}", file=path) from error
    finally:
        model.to(parameter.device)
    if exported is None:
        raise DemonetError("torch exported nothing", file=path)
    facts = {"format": FORMAT, "task": objective.task, "features": features.spec}
    if classes is not None:
        facts["classes"] = json.dumps(classes.tolist())
    exported.model.metadata_props.update(facts)
    with replacing(path) as temporary:
        exported.save(temporary)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's warnings about packages that are not needed here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
