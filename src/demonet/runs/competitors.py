"""The methods of ``demonet compare``: which fit a problem, what each would cost, and its predictions on a split.

All of them follow one rule: fitted on the training part, everything else (settings, epochs, weights of an average)
chosen on the validation part. Networks read the attributes as they are where these are counts, standardised otherwise,
and the one-hot degree where there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet import methods
from demonet.closedform import KernelMachine
from demonet.data.splits import Split
from demonet.ensemble import Ensemble
from demonet.methods.attributes import kind_of
from demonet.methods.embedding import Embedding
from demonet.methods.kernel import KernelMethod
from demonet.methods.network import Network
from demonet.methods.ours import OURS, applies
from demonet.options import Effort
from demonet.runs.inputs import Inputs
from demonet.train.presets import preset
from demonet.train.recipes import family_of, train_graphs, train_nodes

AUTO, KERNEL = "demonet-auto", "demonet-kernel"
Int = NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """What the cost of a method depends on: thousands of nodes, of edges (both directions), of graphs; attributes.

    ``largest`` is the number of nodes of the largest graph, in thousands.
    """

    nodes: float
    edges: float
    graphs: float
    attributes: int
    largest: float

    @classmethod
    def of(cls, inputs: Inputs) -> Size:
        """The size of a problem."""
        nodes = [int(graph.num_nodes or 0) / 1000 for graph in inputs.graphs]
        attributes = inputs.sizes["attributes"]
        return cls(sum(nodes), inputs.num_edges / 1000, len(nodes) / 1000, attributes, max(nodes))


@dataclass(frozen=True)
class Cost:
    """Processor seconds of one fit: a sum of terms in the quantities of :class:`Size`.

    Attributes:
        fixed: For any problem.
        unit: For a thousand edges, or a thousand nodes with 16 attributes; for networks, in 1,000 epochs.
        nodes: For the square of a thousand nodes.
        product: For a thousand nodes times a thousand edges.
        graphs: For the square of a thousand graphs.
        dense: For a thousand graphs, times the square of a thousand nodes of the largest.
    """

    fixed: float = 0.0
    unit: float = 0.0
    nodes: float = 0.0
    product: float = 0.0
    graphs: float = 0.0
    dense: float = 0.0

    def seconds(self, size: Size, epochs: int) -> float:
        """The estimate; right within a factor of about three."""
        units = size.edges + size.nodes * (1 + size.attributes / 16)
        return (
            self.fixed
            + self.unit * units * min(1.0, epochs / 1000)
            + self.nodes * size.nodes**2
            + self.product * size.nodes * size.edges
            + self.graphs * size.graphs**2
            + self.dense * size.graphs * size.largest**2
        )


# From Brazil, USA, MUTAG, Flickr and a generated graph of 2,000 nodes; a method that is not here costs next to nothing.
COSTS = {
    "structural-rf": Cost(1.5, 0.05),
    "wl-lr": Cost(0.1, 0.03),
    "wl-rf": Cost(1.0, 0.2),
    "wl-1nn": Cost(0.1, 0.01, graphs=1.0),
    "wl": Cost(0.2, 0.02, graphs=2.0),
    "degree-wl": Cost(0.2, 0.02, graphs=2.0),
    "deepwl": Cost(0.5, 0.2, graphs=2.0),
    "gcn": Cost(1.0, 0.1),
    "union": Cost(2.0, 0.1, nodes=0.1),
    "intersection": Cost(2.0, 0.1, nodes=0.1),
    "gcn-cheby": Cost(2.0, 0.3),
    "sage": Cost(0.5, 0.2),
    "gat": Cost(4.0, 0.4),
    "gin": Cost(1.5, 0.2),
    "pna": Cost(30.0, 5.0),
    "dcnn": Cost(0.2, 0.02, nodes=0.1),
    "patchy-san": Cost(0.5, 0.15),
    "diffpool": Cost(2.0, 1.3, dense=2000.0),
    "rolx": Cost(0.4, 0.1),
    "struc2vec": Cost(1.5, nodes=22.0),
    "graphwave": Cost(0.2, product=0.035, nodes=0.3),
    KERNEL: Cost(0.5, 0.2),
    AUTO: Cost(1.0, 0.3),
    **{name: Cost(2.0, 0.2) for name in OURS},
}
ALWAYS = (AUTO, KERNEL)  # what `fit` would choose is compared at any size


def cost(name: str, size: Size, epochs: int) -> float:
    """The estimated processor seconds of one fit."""
    return COSTS.get(name, Cost()).seconds(size, epochs)


def methods_for(inputs: Inputs) -> list[str]:
    """Every method of the package that applies, ours first."""
    family = family_of(inputs.data)
    names = [AUTO, KERNEL, *OURS, *methods.names()]
    without = inputs.graphs[0].x is None
    return [
        name
        for name in names
        if (name in (AUTO, KERNEL) or applies(name, family)) and not (without and name.startswith("attribute-"))
    ]


def group_of(name: str) -> str:
    """The group of a method in the leaderboard."""
    if name.startswith("demonet-"):
        return "DEMO-Net"
    found = methods.get(name)
    for kind, group in ((Network, "network"), (Embedding, "structural embedding"), (KernelMethod, "kernel")):
        if issubclass(found, kind):
            return group
    return "simple baseline"


class Competitor:
    """Fits methods to one problem, split after split.

    Args:
        inputs: The problem; its targets are classes.
        epochs: The limit of epochs of every network.
        effort: The effort of ``demonet-auto``.
        seed: The seed of structural embeddings, which are the same for all splits and computed once.
    """

    def __init__(self, inputs: Inputs, *, epochs: int, effort: Effort = "quick", seed: int = 0) -> None:
        self._data = inputs.data if isinstance(inputs.data, Data) else list(inputs.data)
        self._y = inputs.data.y
        self._epochs, self._effort, self._seed = epochs, effort, seed
        given = inputs.graphs[0].x is not None
        self._features = "standardised" if given and kind_of(inputs.graphs) == "numbers" else None
        self._embedded: dict[str, NDArray[np.float64]] = {}

    def predict(self, name: str, split: Split, seed: int) -> Int:
        """``[items]`` the class of every item, by a method that was fitted on a split."""
        if name == AUTO:
            ensemble = Ensemble.fit(self._data, split, effort=self._effort, seed=seed, refit=False)
            return np.asarray(ensemble.strict_proba).argmax(axis=1)
        if name == KERNEL:
            return self._kernel(split, seed)
        if name in OURS:
            return self._ours(name, split, seed)
        return self._baseline(name, split, seed)

    def _kernel(self, split: Split, seed: int) -> Int:
        y, train, val = self._y.numpy(), split.train.numpy(), split.val.numpy()
        machine = KernelMachine(seed=seed).fit(self._data, train, y[train], val, y[val])
        return machine.predict_proba(self._data).argmax(axis=1)

    def _ours(self, name: str, split: Split, seed: int) -> Int:
        base = preset("default" if name == "demonet-default" else "paper", family_of(self._data))
        chosen = replace(base, model=base.model.changed(**OURS[name]))
        blocks = [
            "standardised" if self._features and block in ("attributes", "tfidf") else block
            for block in chosen.features.split("+")
        ]
        train = replace(chosen.train, epochs=min(self._epochs, chosen.train.epochs))
        chosen = replace(chosen, features="+".join(blocks), train=train)
        fit: Callable[..., Any] = train_nodes if isinstance(self._data, Data) else train_graphs
        trained = fit(self._data, split, chosen, seed=seed)
        with torch.no_grad():
            return cast(Int, trained.model.eval()(*trained.inputs).argmax(1).numpy())

    def _baseline(self, name: str, split: Split, seed: int) -> Int:
        found = methods.get(name)
        options: dict[str, Any] = {}
        if issubclass(found, Network):
            train = found.defaults.train
            options = {"features": self._features, "train": replace(train, epochs=min(self._epochs, train.epochs))}
        baseline = found(**options)
        if isinstance(baseline, Embedding):
            if name not in self._embedded:
                self._embedded[name] = baseline.embed(cast(Data, self._data), self._seed)
            baseline = baseline.given(self._embedded[name])
        return baseline.fit(self._data, split, seed).predict().numpy()
