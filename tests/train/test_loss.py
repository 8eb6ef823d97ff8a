"""The loss is cross-entropy, however many classes and items there are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.reference.layers import PAPER
from tests.train import problems

from demonet import DegreeTasks, NodeDEMONet
from demonet.degree.count import count_degree
from demonet.train import NodeProblem
from demonet.train.objective import Classify, cross_entropy


@pytest.mark.parametrize("items", [5, 4096])
@pytest.mark.parametrize("classes", [2, 15, 16])
def test_cross_entropy_and_its_gradient(items, classes):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(items, classes, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randint(classes, (items,), generator=generator)
    found, expected = cross_entropy(scores, y), F.cross_entropy(scores, y)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("head", ["linear", "degree"])
def test_the_models_own_loss_is_the_parts(head, weighted):
    data, split = problems.nodes()
    x = torch.randn(data.num_nodes, 5, generator=torch.Generator().manual_seed(0))
    tasks = DegreeTasks.exact(count_degree(data.edge_index, data.num_nodes))
    model = NodeDEMONet(5, int(data.y.max()) + 1, tasks, PAPER, head=head).eval()
    inputs = (model.prepare(x, data.edge_index),)  # rows inside stand in degree order, labels in the caller's
    weight = torch.rand(int(data.y.max()) + 1, generator=torch.Generator().manual_seed(1)) if weighted else None
    part = NodeProblem(inputs, data.y, split, weight).train
    wanted = Classify().loss(model(*part.inputs)[part.rows], part.y, part.weight)
    found = model.loss(part.inputs[0], *part.spread)
    torch.testing.assert_close(found, wanted)
    by = [torch.autograd.grad(loss, list(model.parameters())) for loss in (found, wanted)]
    torch.testing.assert_close(*by, rtol=1e-4, atol=1e-6)
