"""Why a node was given its class: the arcs and features that moved the score, and the parts it is made of."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.utils import k_hop_subgraph

from demonet.data.features import FeatureMap
from demonet.data.ids import ids_of
from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.estimators.score_parts import ScoreParts, last_layer_parts, network_parts
from demonet.nn.conv import DEMOConv
from demonet.nn.models import NodeDEMONet
from demonet.ops.sparse import is_sparse, sparse_rows


class Influence(NamedTuple):
    """An arc by the ids of its ends, and how much its message matters, 0 to 1."""

    source: Any
    target: Any
    importance: float


class FeatureInfluence(NamedTuple):
    """A feature column by name, and how much it matters over the whole neighbourhood, 0 to 1."""

    name: str
    importance: float


@dataclass(frozen=True)
class Explanation:
    """What moved the prediction for one node.

    Attributes:
        node: Its id.
        degree: Its degree.
        task: The degrees that share its task, by name; ``"unseen"`` for a degree that training never met.
        prediction: The class it was given: everything here is about its score.
        confidence: The probability of that class.
        arcs: The messages that its score depends on, the most important first.
        features: The feature columns, the most important first; those that are zero all around it are left out.
        network: The score in parts, each term set to zero in the whole network.
        last_layer: The score in parts of a degree-specific last layer, exact; None for other heads.
    """

    node: Any
    degree: int
    task: str
    prediction: Any
    confidence: float
    arcs: list[Influence]
    features: list[FeatureInfluence]
    network: ScoreParts
    last_layer: ScoreParts | None


def explain_node(
    model: NodeDEMONet,
    features: FeatureMap,
    data: Data,
    x: Tensor,
    node: int,
    classes: np.ndarray,
    epochs: int,
    seed: int,
) -> Explanation:
    """Explain the prediction for one node.

    Args:
        model: A trained network.
        features: Its feature map, for the names of columns.
        data: The graph.
        x: Its features.
        node: The place of the node.
        classes: The names of the classes.
        epochs: Steps of the explainer.
        seed: Of the explainer's first masks.
    """
    if epochs < 1:
        raise DemonetError(f"epochs={epochs} of the explainer: at least 1 is needed")
    model = copy.deepcopy(model).cpu().eval()  # the explainer hangs its masks on this copy, where seeds give one answer
    near, inputs, place = _surroundings(model, data, x.cpu(), node)
    with torch.no_grad():
        scores = model(*inputs)[place].double()
    column = int(scores.argmax())
    arc_mask, feature_mask = _masks(model, inputs, place, epochs, seed)
    ids = ids_of(data)
    names = feature_names(features, ids)
    source, target = near[inputs[1]].tolist()
    arcs = [Influence(ids[u], ids[v], m) for u, v, m in zip(source, target, arc_mask.tolist(), strict=True) if m > 0]
    present = (inputs[0] != 0).any(0).nonzero().view(-1).tolist()
    columns = [FeatureInfluence(names[j], float(feature_mask[j])) for j in present]
    degree = count_degree(data.edge_index, int(data.num_nodes))[node].cpu()
    return Explanation(
        node=ids[node],
        degree=int(degree),
        task=model.tasks.names()[int(model.tasks(degree.view(1)))],
        prediction=classes.tolist()[column],
        confidence=float(scores.softmax(0)[column]),
        arcs=sorted(arcs, key=lambda arc: -arc.importance),
        features=sorted(columns, key=lambda feature: -feature.importance),
        network=network_parts(model, inputs, place, column),
        last_layer=last_layer_parts(model, inputs, place, column),
    )


def feature_names(features: FeatureMap, ids: Sequence[Any]) -> list[str]:
    """A name for every column: its block and its place there, or the degree or the node that it stands for.

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
        else:
            names += [f"{block} {column}" for column in range(part.num_features)]
    return names


def _surroundings(model: NodeDEMONet, data: Data, x: Tensor, node: int) -> tuple[Tensor, tuple[Tensor, ...], int]:
    """All that the score of a node depends on: as many hops as there are convolutions.

    Inside them every node whose degree plays a part has all its arcs, so the score is the one in the whole graph.
    """
    hops = sum(isinstance(module, DEMOConv) for module in model.modules())
    arcs = data.edge_index.cpu()
    near, inside, place, kept = k_hop_subgraph(node, hops, arcs, relabel_nodes=True, num_nodes=int(data.num_nodes))
    rows = sparse_rows(x, near).to_dense() if is_sparse(x) else x[near]
    weight = data.get("edge_weight")
    inputs = (rows, inside) if weight is None else (rows, inside, weight.cpu()[kept])
    return near, inputs, int(place)


def _masks(model: NodeDEMONet, inputs: tuple[Tensor, ...], place: int, epochs: int, seed: int) -> tuple[Tensor, Tensor]:
    """GNNExplainer's importance of each arc and of each feature column."""
    x, edge_index, *weight = inputs
    explainer = Explainer(
        model,
        GNNExplainer(epochs=epochs),
        explanation_type="model",
        node_mask_type="common_attributes",
        edge_mask_type="object" if edge_index.size(1) else None,
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = explainer(x, edge_index, index=place, **({"edge_weight": weight[0]} if weight else {}))
    arcs = found.edge_mask.detach() if edge_index.size(1) else torch.empty(0)
    return arcs, found.node_mask.detach().view(-1)
