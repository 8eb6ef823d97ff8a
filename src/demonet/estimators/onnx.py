"""Export a trained network to ONNX: features and edges of any graph in, probabilities or values out.

torch's exporter does not support the operators of this package, nor a few of torch's own. Here each is rewritten in
operators that it supports, for any number of nodes and edges.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

from demonet.atomic import check_file, replacing
from demonet.errors import DemonetError
from demonet.estimators.network import NetworkModel
from demonet.estimators.targets import Array
from demonet.nn.hashing import mixed
from demonet.nn.models import DegreeNetwork
from demonet.train.objective import Objective

FORMAT = "demonet-onnx-1"


class _Exported(nn.Module):
    """A network with the activation of its objective."""

    def __init__(self, model: DegreeNetwork, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """``[nodes, outputs]``; for a graph model ``[1, outputs]``, of one graph."""
        return self.objective.activate(self.model(x, edge_index, edge_weight=edge_weight))


def export_onnx(fitted: NetworkModel, classes: Array | None, path: str | Path, *, weighted: bool = False) -> None:
    """Write a network as an ONNX file, atomically.

    Its inputs are ``x [nodes, features]``, the dense output of the feature map for a graph; ``edge_index [2, edges]``,
    undirected edges in both directions; and, if ``weighted``, ``edge_weight [edges]``. Its output is ``probabilities``,
    or ``values`` of a regression, in the units of the targets. The file's metadata has the task, the classes as JSON
    and the name of the features.
    """
    check_file(path)
    _check_installed()
    model, objective, features = fitted.network, fitted.objective, fitted.features
    parameter = next(model.parameters())
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    inputs = [torch.ones(4, features.num_features, dtype=parameter.dtype), edge_index]
    inputs += [torch.ones(8, dtype=parameter.dtype)] if weighted else []
    nodes, edges = Dim("nodes", min=2), Dim("edges", min=2)
    shapes = ({0: nodes}, {1: edges}, *([{0: edges}] if weighted else []))
    network = _Exported(model, objective).cpu().eval()
    output = "values" if objective.task == "regress" else "probabilities"
    try:
        with _quiet():
            program = torch.export.export(network, tuple(inputs), dynamic_shapes=shapes).run_decompositions(_PLAIN)
            exported = torch.onnx.export(program, dynamo=True, verbose=False, output_names=[output])
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


# ----------------------------------------------------------------------------- operators in terms that ONNX has


def _neighbour_lists(edge_index: Tensor, sources: int, targets: int) -> tuple[Tensor, Tensor, Tensor]:
    source, target = edge_index[0], edge_index[1]
    order = _argsort(target * sources + source)
    return _pointer(target, targets), source[order], order


def _pointer(key: Tensor, size: int) -> Tensor:
    """The start of the run of each key in the sorted keys."""
    count = torch.zeros(size, dtype=torch.long).scatter_add(0, key, torch.ones_like(key))
    return F.pad(count.cumsum(0), (1, 0))


def _owner(pointer: Tensor, entries: Tensor) -> Tensor:
    """The run that each entry belongs to."""
    begins = pointer[1:-1]
    steps = torch.zeros(entries.size(0) + 1, dtype=torch.long).scatter_add(0, begins, torch.ones_like(begins))
    return steps.cumsum(0)[:-1]


def _sum_by(rows: Tensor, key: Tensor, size: int) -> Tensor:
    out = torch.zeros(size, rows.size(1), dtype=rows.dtype)
    return out.scatter_add(0, key[:, None].expand_as(rows), rows)


def _aggregate(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, *_lists: list[Tensor]
) -> Tensor:
    message = x[neighbours] if weight is None else x[neighbours] * weight[:, None]
    out = _sum_by(message, _owner(pointer, neighbours), pointer.size(0) - 1)
    if aggr == "sum":
        return out
    count = pointer.diff().clamp(min=1).to(x.dtype)[:, None]
    return out / (count if aggr == "mean" else count.sqrt())


def _degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    own = task[_owner(offsets, x)]
    out = torch.bmm(x[:, None], weight[own.clamp(min=0)])[:, 0]  # a matrix for every row: ONNX has no grouped product
    return out * (own >= 0).to(x.dtype)[:, None]


def _degree_pool(x: Tensor, cell: Tensor, num_cells: int, mode: str) -> Tensor:
    out = _sum_by(x, cell, num_cells)
    return out if mode == "sum" else out / _sum_by(torch.ones_like(x[:, :1]), cell, num_cells).clamp(min=1)


def _argsort(x: Tensor, *_args: Any, **_options: Any) -> Tensor:
    return torch.topk(x, x.size(0), largest=False, sorted=True)[1]


def _searchsorted(boundaries: Tensor, x: Tensor, **_options: Any) -> Tensor:
    return (x[:, None] > boundaries).sum(1)


def _bucketize(x: Tensor, boundaries: Tensor, *, right: bool = False, **_options: Any) -> Tensor:
    return (x[:, None] >= boundaries if right else x[:, None] > boundaries).sum(1)


_ours, _theirs = torch.ops.demonet, torch.ops.aten
_PLAIN: dict[Any, Callable[..., Any]] = {
    _ours.neighbour_lists.default: _neighbour_lists,
    _ours.aggregate.default: _aggregate,
    _ours.degree_linear.default: _degree_linear,
    _ours.degree_pool.default: _degree_pool,
    _ours.hash_functions.default: mixed,
    _theirs.argsort.default: _argsort,
    _theirs.argsort.stable: _argsort,
    _theirs.searchsorted.Tensor: _searchsorted,
    _theirs.bucketize.Tensor: _bucketize,
}


def _check_installed() -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise DemonetError("ONNX is not installed", hint="pip install 'demonet[onnx]'") from None


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
