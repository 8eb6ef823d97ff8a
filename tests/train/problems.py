"""Small problems to train on."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split, thirds
from demonet.data.synthetic import role_graph, small_graphs
from demonet.train import Preset, preset


def quick(name: str, family: str, *, model: dict | None = None, **train) -> Preset:
    """A preset with small changes."""
    base = preset(name, family)
    return replace(base, model=base.model.changed(**model or {}), train=replace(base.train, **train))


def same_bits(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    """Whether two states hold the same numbers."""
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def nodes() -> tuple[Data, Split]:
    """Roles, no attributes."""
    data = role_graph(0, motifs=8)
    return data, thirds(data.y, 0, stratified=True)


def attributes() -> tuple[Data, Split]:
    """Roles, with counts that give some of them away, sparse as in the social networks."""
    data, split = nodes()
    words = torch.rand(data.num_nodes, 20, generator=torch.Generator().manual_seed(0)) < 0.2
    words[torch.arange(data.num_nodes), data.y] = True
    data.x = words.float().to_sparse_csr()
    return data, split


def graphs(num: int = 30) -> tuple[list[Data], Split]:
    """Families of graphs; a node carries one of two labels."""
    data = small_graphs(num, 0, largest=16)
    for graph in data:
        graph.x = torch.eye(2)[torch.arange(graph.num_nodes) % 2]
    return data, thirds(torch.cat([graph.y for graph in data]), 0, stratified=True)
