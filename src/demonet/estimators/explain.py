r"""Explain the prediction for an item: the columns, edges and known labels that moved it, and the terms of the score.

The first are those of :mod:`demonet.estimators.reasons`, for every model. A network has the terms of Eq. 5 beside them:
every convolution is a sum of three terms (Eq. 5-7): :math:`W_0 x_v` (seed), :math:`W_g a_v` (shared) and
:math:`W_d a_v` (degree-specific), with :math:`a_v` the aggregated neighbourhood. The contribution of a term is found by
setting it to zero in every convolution.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from demonet.data.ids import ids_of
from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.estimators.models import KernelModel, NetworkModel
from demonet.estimators.reasons import Go, Reason, explain_items, unlimited
from demonet.nn.conv import DEMOConv
from demonet.nn.models import NodeDEMONet
from demonet.nn.weights import DegreeWeights
from demonet.ops.backend import is_sparse
from demonet.ops.sparse import sparse_rows
from demonet.train.objective import Objective, Regress

if TYPE_CHECKING:
    from demonet.estimators.core import Fitted


@dataclass(frozen=True)
class ScoreParts:
    r"""A score as a sum: ``score = rest + seed + shared + own + interaction``.

    Attributes:
        score: Of one class or label before the softmax or sigmoid; of a regression, the value in the units of ``y``.
        rest: The score with all three terms at zero: biases, norms and skip connections.
        seed, shared, own: What the score loses if that term alone is set to zero, :math:`f(\text{all}) -
            f(\text{all but it})`; ``own`` is the degree-specific term.
        interaction: The remainder; 0 for one linear layer.
    """

    score: float
    rest: float
    seed: float
    shared: float
    own: float
    interaction: float


@dataclass(frozen=True)
class Explanation:
    """Why the prediction for one node or graph is what it is.

    Attributes:
        item: The id of the node; of a graph its index.
        degree: The degree of the node; of a graph its number of nodes.
        prediction: The class or label that is explained, or the value of a regression.
        confidence: The probability of that class or label; None for a regression.
        reasons: What moved that probability or value, the largest effect first.
        task: Of a network for nodes: the degrees that share its task, by name; ``"unseen"`` for a degree that was not
            seen in training.
        network: Of a network for nodes: the score in parts, each term set to zero in the whole network.
        last_layer: The score in parts of a degree-specific last layer, exact; None for other heads.
        shares: With ``model="kernel"``, the score as an exact sum over the terms of the kernel.
    """

    item: Any
    degree: int
    prediction: Any
    confidence: float | None
    reasons: list[Reason]
    task: str = ""
    network: ScoreParts | None = None
    last_layer: ScoreParts | None = None
    shares: dict[str, float] | None = None


def explain_item(fitted: Fitted, items: Data | Sequence[Data], row: int, output: int | None = None) -> Explanation:
    """Explain the prediction for a node or graph, by its index: that of an output, by its index, or the largest."""
    outputs, classes, model = fitted.outputs(items)[row], fitted.classes, fitted.model
    if output is not None and not 0 <= output < len(outputs):
        raise DemonetError(f"output={output} of a model with {len(outputs)} outputs")
    column = int(outputs.argmax()) if output is None else output
    reasons = fitted_reasons(fitted, items, [row], [column])[0]
    parts: dict[str, Any] = {}
    if isinstance(items, Data):
        item, degree = ids_of(items)[row], int(count_degree(items.edge_index, int(items.num_nodes or 0))[row])
        if isinstance(model, NetworkModel):
            parts = _network_parts(model, items, row, column, degree)
    else:
        item, degree = row, int(items[row].num_nodes or 0)
    if isinstance(model, KernelModel):
        found = {name: part[0] for name, part in model.shares(items, np.array([row])).items()}
        ordered = len(next(iter(found.values()))) == 1  # classes in an order have one score
        parts["shares"] = {name: float(part[0 if ordered else column]) for name, part in found.items()}
    value = float(outputs[column])
    prediction = value if classes is None else classes.tolist()[column]
    return Explanation(item, degree, prediction, None if classes is None else value, reasons, **parts)


def fitted_reasons(
    fitted: Fitted,
    items: Data | Sequence[Data],
    rows: Sequence[int],
    outputs: Sequence[int],
    names: Sequence[str] | None = None,
    budget: float | None = None,
    go: Go = unlimited,
) -> list[list[Reason]]:
    """What moved the predictions of some items, see :func:`~demonet.estimators.reasons.explain_items`."""
    known = fitted.model.known_targets(items)
    classes = [] if fitted.classes is None else fitted.classes.tolist()

    def label(item: int, output: int) -> Any:
        assert known is not None
        if fitted.objective.task == "classify":
            return classes[known[item]]
        if fitted.objective.task == "regress":
            return None if np.isnan(known[item, output]) else float(known[item, output])
        chosen = [str(name) for name, one in zip(classes, known[item], strict=True) if one == 1]
        return " and ".join(chosen) or "none of the labels"

    return explain_items(
        fitted.model.outputs,
        items,
        rows,
        outputs,
        names=names,
        known=known,
        labels=label,
        with_edges=has_other_edges(fitted),
        budget=budget,
        go=go,
    )


def has_other_edges(fitted: Fitted) -> bool:
    """Whether the model has an answer for other edges; a network on rows of the adjacency matrix has none."""
    return not isinstance(fitted.model, NetworkModel) or not fitted.model.needs_fitted_graph


def _network_parts(fitted: NetworkModel, data: Data, node: int, column: int, degree: int) -> dict[str, Any]:
    """The task of a node, and its score in parts."""
    model = copy.deepcopy(fitted.network).cpu().eval()
    assert isinstance(model, NodeDEMONet)
    inputs, row = _surroundings(model, data, fitted.features.transform(data).cpu(), node)

    def parts(head_only: bool) -> ScoreParts:
        return _in_units(network_parts(model, inputs, row, column, head_only=head_only), fitted.objective, column)

    return {
        "task": model.tasks.names()[int(model.tasks(torch.tensor([degree])))],
        "network": parts(head_only=False),
        "last_layer": parts(head_only=True) if isinstance(model.head, DEMOConv) else None,
    }


def _surroundings(model: NodeDEMONet, data: Data, x: Tensor, node: int) -> tuple[tuple[Tensor, ...], int]:
    """The subgraph that the score of a node depends on: as many hops as there are convolutions.

    Every node in it whose degree matters has all its edges, so the score is that in the whole graph.
    """
    convs = [module for module in model.modules() if isinstance(module, DEMOConv)]
    hops = len(convs) + any(conv.aggr == "sym" for conv in convs)  # which reads the degrees of neighbours
    edge_index, num_nodes = data.edge_index.cpu(), int(data.num_nodes)
    near, inside, row, mask = k_hop_subgraph(node, hops, edge_index, relabel_nodes=True, num_nodes=num_nodes)
    rows = sparse_rows(x, near).to_dense() if is_sparse(x) else x[near]
    weight = data.get("edge_weight")
    inputs = (rows, inside) if weight is None else (rows, inside, weight.cpu()[mask])
    return inputs, int(row)


def _in_units(parts: ScoreParts, objective: Objective, column: int) -> ScoreParts:
    """The parts of a standardised value in the units of ``y``; the mean of the targets belongs to the rest."""
    if not isinstance(objective, Regress):
        return parts
    scaled = {field.name: getattr(parts, field.name) * objective.scale[column] for field in fields(parts)}
    scaled["score"] += objective.mean[column]
    scaled["rest"] += objective.mean[column]
    return ScoreParts(**scaled)


PARTS = frozenset({"seed", "shared", "own"})


def network_parts(
    model: NodeDEMONet, inputs: tuple[Tensor, ...], row: int, column: int, *, head_only: bool = False
) -> ScoreParts:
    """The parts in the whole network, each term set to zero in all convolutions at once; or in a convolution as head.

    A head is linear, so there the parts are exact: nothing is left for the interaction.
    """
    score = partial(_score, model, inputs=inputs, row=row, column=column, head_only=head_only)
    whole, rest = score(PARTS, head_only=False), score(frozenset())
    lost = {part: whole - score(PARTS - {part}) for part in sorted(PARTS)}
    return ScoreParts(whole, rest, **lost, interaction=whole - rest - sum(lost.values()))


@torch.no_grad()
def _score(
    model: NodeDEMONet,
    terms: frozenset[str],
    inputs: tuple[Tensor, ...],
    row: int,
    column: int,
    *,
    head_only: bool = False,
) -> float:
    """The score with some of the terms only, in double precision because scores are subtracted."""
    model = copy.deepcopy(model).double().eval()
    for conv in (model.head,) if head_only else model.modules():
        if isinstance(conv, DEMOConv):
            if "seed" not in terms and conv.seed is not None:
                conv.seed.weight.zero_()
            conv.weights = _SomeTerms(conv.weights, with_shared="shared" in terms, with_own="own" in terms)
    doubled = (value.double() if value.is_floating_point() else value for value in inputs)
    return float(model(*doubled)[row, column])


class _SomeTerms(DegreeWeights):
    """Weights of any scheme of which the shared term, the degree-specific term, both or neither are used."""

    stack_size = None  # type: ignore[assignment]  # sums come first

    def __init__(self, weights: DegreeWeights, *, with_shared: bool, with_own: bool) -> None:
        super().__init__(weights.in_channels, weights.width, weights.tasks)
        self.weights, self.with_shared, self.with_own = weights, with_shared, with_own

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """Each row of ``a`` times the matrix of its degree."""
        shared = a @ self.weights.shared
        own = self.weights.by_row(a, degree) - shared
        return self.with_shared * shared + self.with_own * own
