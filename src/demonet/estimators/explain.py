r"""Explain the prediction for a node: the edges and features that mattered, and the terms of the score.

Every convolution is a sum of three terms (Eq. 5-7): :math:`W_0 x_v` (seed), :math:`W_g a_v` (shared) and
:math:`W_d a_v` (degree-specific), with :math:`a_v` the aggregated neighbourhood. The contribution of a term is found by
setting it to zero in every convolution.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.utils import k_hop_subgraph

from demonet.data.ids import ids_of
from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.estimators.targets import Array
from demonet.features import FeatureMap
from demonet.features.blocks import STRUCTURE_NAMES
from demonet.nn.conv import DEMOConv
from demonet.nn.models import NodeDEMONet
from demonet.nn.weights import DegreeWeights
from demonet.ops.backend import is_sparse
from demonet.ops.sparse import sparse_rows
from demonet.train.objective import Objective, Regress

if TYPE_CHECKING:
    from demonet.estimators.network import NetworkModel


class Influence(NamedTuple):
    """An edge by the ids of its ends, and how much its message matters, 0 to 1."""

    source: Any
    target: Any
    importance: float


class FeatureInfluence(NamedTuple):
    """A feature column by name, and how much it matters in the whole neighbourhood, 0 to 1."""

    name: str
    importance: float


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
    """Why the prediction for one node is what it is.

    Attributes:
        node: Its id.
        degree: Its degree.
        task: The degrees that share its task, by name; ``"unseen"`` for a degree that was not seen in training.
        prediction: The class or label that is explained, or the value of a regression.
        confidence: The probability of that class or label; None for a regression.
        edges: The messages that the score depends on, the most important first: all edges within as many hops as
            there are convolutions, so also edges that do not touch the node.
        features: The feature columns, the most important first, without those that are zero in the neighbourhood. The
            importance is for the node and its neighbourhood together.
        network: The score in parts, each term set to zero in the whole network.
        last_layer: The score in parts of a degree-specific last layer, exact; None for other heads.
        shares: With ``model="kernel"``, the score as an exact sum over the terms of the kernel; None for networks.
            ``network`` has the same numbers, with bias, structure and constant in ``rest`` and what a nonlinear map
            does not separate in ``interaction``; ``edges`` and ``features`` are empty.
        source: With ``model="auto"``, the member that the score and its shares are those of; ``prediction`` and
            ``confidence`` are those of the whole ensemble. Empty otherwise.
    """

    node: Any
    degree: int
    task: str
    prediction: Any
    confidence: float | None
    edges: list[Influence]
    features: list[FeatureInfluence]
    network: ScoreParts
    last_layer: ScoreParts | None
    shares: dict[str, float] | None = None
    source: str = ""


def explain_node(
    fitted: NetworkModel,
    data: Data,
    node: int,
    classes: Array | None,
    *,
    epochs: int,
    seed: int,
    output: int | None = None,
) -> Explanation:
    """Explain the prediction for one node.

    Args:
        fitted: A trained network for nodes.
        data: The graph.
        node: The index of the node.
        classes: The names of the outputs, None for a regression.
        epochs: Steps of the explainer.
        seed: Seed of the explainer's initial masks.
        output: The output to explain, by index; the one with the highest score if None.
    """
    objective = fitted.objective
    if epochs < 1:
        raise DemonetError(f"epochs={epochs} of the explainer is not at least 1")
    if output is not None and not 0 <= output < objective.outputs:
        raise DemonetError(f"output={output} of a model with {objective.outputs} outputs")
    model = copy.deepcopy(fitted.network).cpu().eval()  # the explainer changes it; on a CPU a seed gives one result
    assert isinstance(model, NodeDEMONet)
    near, inputs, row = _surroundings(model, data, fitted.features.transform(data).cpu(), node)
    with torch.no_grad():
        scores = model(*inputs)[row].double()
    column = int(scores.argmax()) if output is None else output
    activated = float(objective.activate(scores[None])[0, column])
    edge_mask, feature_mask = _masks(model, objective, inputs, row, column, epochs, seed)
    ids = ids_of(data)
    names = feature_names(fitted.features, ids)
    source, target = near[inputs[1]].tolist()
    edges = [Influence(ids[u], ids[v], m) for u, v, m in zip(source, target, edge_mask.tolist(), strict=True) if m > 0]
    present = (inputs[0] != 0).any(0).nonzero().view(-1).tolist()
    columns = [FeatureInfluence(names[j], float(feature_mask[j])) for j in present]
    degree = count_degree(data.edge_index, int(data.num_nodes))[node].cpu()
    last = last_layer_parts(model, inputs, row, column)
    return Explanation(
        node=ids[node],
        degree=int(degree),
        task=model.tasks.names()[int(model.tasks(degree.view(1)))],
        prediction=activated if classes is None else classes.tolist()[column],
        confidence=None if classes is None else activated,
        edges=sorted(edges, key=lambda edge: -edge.importance),
        features=sorted(columns, key=lambda feature: -feature.importance),
        network=_in_units(network_parts(model, inputs, row, column), objective, column),
        last_layer=None if last is None else _in_units(last, objective, column),
    )


def feature_names(features: FeatureMap, ids: Sequence[Any]) -> list[str]:
    """A name for every column: its block and its index in it, or the degree or the node that it stands for.

    >>> from demonet.data.synthetic import cycle
    >>> feature_names(FeatureMap("degree-onehot+adjacency").fit(cycle(3)), ["a", "b", "c"])
    ['degree 2', 'degree unseen', 'adjacent to a', 'adjacent to b', 'adjacent to c']
    """
    names = []
    for block, part in features.blocks.items():
        if block == "degree-onehot":
            names += [*(f"degree {d}" for d in part.arrays["degrees"].tolist()), "degree unseen"]
        elif block == "adjacency":
            names += [f"adjacent to {node}" for node in ids]
        elif block == "structure":
            radial = part.num_features - len(STRUCTURE_NAMES)
            names += [*(f"degree-rbf {column}" for column in range(radial)), *STRUCTURE_NAMES]
        else:
            names += part.info.get("names") or [f"{block} {column}" for column in range(part.num_features)]
    return names


def _surroundings(model: NodeDEMONet, data: Data, x: Tensor, node: int) -> tuple[Tensor, tuple[Tensor, ...], int]:
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
    return near, inputs, int(row)


class _OneOutput(nn.Module):
    """One column of the scores, for the explainer."""

    def __init__(self, model: nn.Module, column: int) -> None:
        super().__init__()
        self.model, self.column = model, column

    def forward(self, *inputs: Tensor, **options: Tensor) -> Tensor:
        return self.model(*inputs, **options)[:, self.column : self.column + 1]


def _masks(
    model: NodeDEMONet,
    objective: Objective,
    inputs: tuple[Tensor, ...],
    row: int,
    column: int,
    epochs: int,
    seed: int,
) -> tuple[Tensor, Tensor]:
    """GNNExplainer's importance of each edge and of each feature column."""
    x, edge_index, *weight = inputs
    classify = objective.task == "classify"
    explainer = Explainer(
        model if classify else _OneOutput(model, column),
        GNNExplainer(epochs=epochs),
        explanation_type="phenomenon" if classify else "model",  # of the class asked for, not of the predicted one
        node_mask_type="common_attributes",
        edge_mask_type="object" if edge_index.size(1) else None,
        model_config={
            "mode": "multiclass_classification" if classify else "regression",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        options = {"edge_weight": weight[0]} if weight else {}
        options |= {"target": torch.full((x.size(0),), column)} if classify else {}
        found = explainer(x, edge_index, index=row, **options)
    edges = found.edge_mask.detach() if edge_index.size(1) else torch.empty(0)
    return edges, found.node_mask.detach().view(-1)


def _in_units(parts: ScoreParts, objective: Objective, column: int) -> ScoreParts:
    """The parts of a standardised value in the units of ``y``; the mean of the targets belongs to the rest."""
    if not isinstance(objective, Regress):
        return parts
    scaled = {field.name: getattr(parts, field.name) * objective.scale[column] for field in fields(parts)}
    scaled["score"] += objective.mean[column]
    scaled["rest"] += objective.mean[column]
    return ScoreParts(**scaled)


PARTS = frozenset({"seed", "shared", "own"})


def network_parts(model: NodeDEMONet, inputs: tuple[Tensor, ...], row: int, column: int) -> ScoreParts:
    """The parts in the whole network: each term is set to zero in all convolutions at once."""
    whole, rest = (_score(model, terms, inputs, row, column) for terms in (PARTS, frozenset[str]()))
    lost = {part: whole - _score(model, PARTS - {part}, inputs, row, column) for part in sorted(PARTS)}
    return ScoreParts(whole, rest, **lost, interaction=whole - rest - sum(lost.values()))


def last_layer_parts(model: NodeDEMONet, inputs: tuple[Tensor, ...], row: int, column: int) -> ScoreParts | None:
    """The exact parts in a degree-specific last layer, which is linear; None for other heads."""
    if not isinstance(model.head, DEMOConv):
        return None
    whole = _score(model, PARTS, inputs, row, column)
    alone = {part: _score(model, frozenset({part}), inputs, row, column, head_only=True) for part in sorted(PARTS)}
    rest = _score(model, frozenset(), inputs, row, column, head_only=True)
    own = {part: value - rest for part, value in alone.items()}
    return ScoreParts(whole, rest, **own, interaction=whole - rest - sum(own.values()))


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
