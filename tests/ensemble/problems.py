"""Small problems and members for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.data.synthetic import role_graph, small_graphs
from demonet.ensemble import Labelled, Member


def roles(seed: int = 0, motifs: int = 16) -> Data:
    return role_graph(seed, motifs=motifs)


def graph_set(num: int = 40, labels: bool = True) -> list[Data]:
    graphs = small_graphs(num, seed=1, smallest=8, largest=14)
    generator = torch.Generator().manual_seed(0)
    for graph in graphs:
        if labels:
            graph.x = torch.eye(3)[torch.randint(3, (graph.num_nodes,), generator=generator)]
    return graphs


def labelled_of(data: Data | list[Data], seed: int = 0) -> Labelled:
    y = data.y if isinstance(data, Data) else torch.cat([graph.y for graph in data])
    order = np.random.default_rng(seed).permutation(len(y))
    train, val = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 : 3 * len(y) // 4])
    return Labelled(y.numpy(), int(y.max()) + 1, train, val, seed)


class Ridge(Member):
    """Ridge regression on log-degree: the smallest member that has something to choose and something to learn."""

    kind = "test"

    def _x(self, view: Any) -> np.ndarray:
        if hasattr(view, "log_degree"):
            return np.hstack([np.ones_like(view.log_degree), view.log_degree])
        return np.hstack([np.ones((view.num_items, 1)), np.log1p(view.descriptors[:, :2])])

    def _fit(self, view: Any, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        x = self._x(view)[labelled.train]
        self.facts["chosen"] = chosen or {"strength": float(len(labelled.val))}
        self.arrays["w"] = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ labelled.one_hot())

    def predict_proba(self, view: Any) -> np.ndarray:
        score = np.exp(self._x(view) @ self.arrays["w"])
        return score / score.sum(1, keepdims=True)

    def cost(self, view: Any, num_train: int) -> float:
        return self.options.get("cost", 0.01)


class Broken(Ridge):
    def _fit(self, view: Any, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        raise ArithmeticError("17 is not a kernel")


class Undefined(Ridge):
    def predict_proba(self, view: Any) -> np.ndarray:
        return np.full((view.num_items, self.facts["classes"]), np.nan)
