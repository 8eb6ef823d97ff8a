"""Small problems and models for the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.data.synthetic import role_graph, small_graphs
from demonet.methods import Labelled, Model, Settings, register


def roles(seed: int = 0, motifs: int = 16) -> Data:
    return role_graph(seed, motifs=motifs)


def graph_set(num: int = 40, labels: bool = True) -> list[Data]:
    graphs = small_graphs(num, seed=1, smallest=8, largest=14)
    generator = torch.Generator().manual_seed(0)
    for graph in graphs:
        if labels:
            graph.x = torch.eye(3)[torch.randint(3, (graph.num_nodes,), generator=generator)]
    return graphs


def two_blocks(seed: int = 0, n: int = 120, *, within: float = 0.15, between: float = 0.01) -> Data:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    near = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, within, between), 1)
    edges = np.stack(np.nonzero(near))
    edge_index = torch.from_numpy(np.concatenate([edges, edges[::-1]], 1))
    return Data(edge_index=edge_index, y=torch.from_numpy(y), num_nodes=n)


def labelled_of(data: Data | list[Data], seed: int = 0) -> Labelled:
    y = data.y if isinstance(data, Data) else torch.cat([graph.y for graph in data])
    order = np.random.default_rng(seed).permutation(len(y))
    train, val = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 : 3 * len(y) // 4])
    return Labelled(y.numpy(), int(y.max()) + 1, train, val, seed)


@dataclass(frozen=True)
class Costly(Settings):
    cost: float = 0.01


@register
class Ridge(Model):
    """Ridge regression on log-degree: the smallest model that has something to choose and something to learn."""

    name = kind = "test"
    defaults = Costly("test")

    @classmethod
    def candidates(cls, *problem: Any) -> list[Any]:
        return []  # tests name it: no other ensemble has it

    def _x(self, view: Any) -> np.ndarray:
        if hasattr(view, "log_degree"):
            return np.hstack([np.ones_like(view.log_degree), view.log_degree])
        return np.hstack([np.ones((view.num_items, 1)), np.log1p(view.descriptors[:, :2])])

    def _learn(self, view: Any, labelled: Labelled) -> None:
        x = self._x(view)[labelled.train]
        self.chosen = self.chosen or {"strength": float(len(labelled.val))}
        self.arrays["w"] = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ labelled.table(labelled.train))

    def outputs(self, view: Any) -> np.ndarray:
        score = np.exp(self._x(view) @ self.arrays["w"])
        return score / score.sum(1, keepdims=True)

    def estimate(self, view: Any, num_train: int) -> float:
        return self.settings.cost


class Broken(Ridge):
    def _learn(self, view: Any, labelled: Labelled) -> None:
        raise ArithmeticError("17 is not a kernel")


class Undefined(Ridge):
    def outputs(self, view: Any) -> np.ndarray:
        return np.full((view.num_items, self.facts["outputs"]), np.nan)
