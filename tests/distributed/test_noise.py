"""Dropout by node: the same for a node wherever it is, another one for each layer and epoch, at the right rate."""

from __future__ import annotations

import pytest
import torch
from tests.reference.layers import PAPER

from demonet.degree.tasks import DegreeTasks
from demonet.distributed.noise import key_dropout
from demonet.nn.models import NodeDEMONet

EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


X = torch.arange(1.0, 25).view(4, 6)


def keyed(nodes, x=X, epoch=0, **options):
    """A model whose dropout is that of these nodes."""
    model = NodeDEMONet(6, 2, DegreeTasks.log2(4), PAPER, hidden=10, dropout=0.4, **options).train()
    key_dropout(model, model.prepare(x, EDGES), nodes).epoch = epoch
    return model


def factors(nodes, size, **options):
    """The factors of every dropout of a model."""
    return [module.source(size, 0.4, X) for module in keyed(nodes, **options).modules() if hasattr(module, "source")]


def test_a_node_has_the_same_factors_wherever_it_is():
    nodes = torch.tensor([7, 0, 2**40, 3])
    order = torch.tensor([2, 3, 0, 1])
    for here, there in zip(factors(nodes, 40), factors(nodes[order], 40), strict=True):
        left, right = (noise.split(20) for noise in (here, there))  # both halves of a concatenation
        for half, moved in zip(left, right, strict=True):
            assert torch.equal(half.view(4, 5)[order], moved.view(4, 5))


def test_layers_halves_epochs_and_nodes_differ():
    nodes = torch.arange(4)
    first, second = factors(nodes, 40)
    halves = first.split(20)
    later = factors(nodes, 40, epoch=1)[0]
    different = [(first, second), halves, (first, later), halves[0].view(4, 5)[:2]]
    assert all(not torch.equal(a, b) for a, b in different)


def test_the_rate_is_right_and_columns_are_independent():
    nodes = torch.arange(20_000)
    noise = factors(nodes, 200_000, refine=True)[0].view(-1, 10)
    kept = (noise > 0).double()
    assert set(noise.unique().tolist()) == {0.0, noise.max().item()}
    assert noise.max().item() == pytest.approx(1 / 0.6, rel=1e-4)
    assert kept.mean(0).tolist() == pytest.approx([0.6] * 10, abs=0.02)
    assert (torch.corrcoef(kept.t()) - torch.eye(10)).abs().max() < 0.04
    assert (kept[:-1] * kept[1:]).mean().item() == pytest.approx(0.36, abs=0.01)


def test_entries_of_sparse_rows_are_dropped_by_node_and_position():
    nodes = torch.tensor([5, 6, 7, 8])
    order = torch.tensor([3, 1, 0, 2])
    models = [keyed(some, X.to_sparse_csr(), stem=True, input_dropout=0.5) for some in (nodes, nodes[order])]
    here, there = (model.stem.drop_entries.noise(24, (1, 0), X).values for model in models)
    assert torch.equal(here.view(4, 6)[order], there.view(4, 6))
    assert 0 < (here > 0).sum() < 24
