"""Objectives: losses against loops, targets that are valid, and what unknown entries may not do."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.reference.layers import PAPER
from tests.train import problems

from demonet import DegreeTasks, DemonetError, NodeDEMONet
from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.train import Classify, Multilabel, NodeProblem, Regress, evaluate, train_graphs, train_nodes
from demonet.train.objective import cross_entropy, objective_from_state

NAN = float("nan")


def table(items, columns, seed=0):
    """0 and 1 with a fifth unknown, but none in the first row and the first column."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (items, columns), generator=generator).double()
    unknown = torch.rand(items, columns, generator=generator) < 0.2
    unknown[0], unknown[:, 0] = False, False
    return y.masked_fill(unknown, NAN)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", [Multilabel(), Regress(), Regress(error="mae")])
def test_losses_and_their_gradients_are_those_of_a_loop(objective, weighted):
    generator = torch.Generator().manual_seed(1)
    y = table(7, 3)
    if objective.task == "regress":
        y = y + torch.randn(7, 3, generator=generator).double()
    scores = torch.randn(7, 3, generator=generator, dtype=torch.float64).requires_grad_()
    weight = torch.rand(7, generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    total = share = 0.0
    for i in range(7):
        for j in range(3):
            s, t, w = scores[i, j], float(y[i, j]), 1.0 if weight is None else float(weight[i])
            if math.isnan(t):
                continue
            if objective.task == "multilabel":
                p = 1 / (1 + torch.exp(-s))
                entry = -(t * torch.log(p) + (1 - t) * torch.log(1 - p))
            else:
                entry = (s - t) ** 2 if objective.error == "mse" else (s - t).abs()
            total, share = total + w * entry, share + w
    found = objective.loss(scores, y, weight)
    torch.testing.assert_close(found, total / share)
    ours, loops = (torch.autograd.grad(value, scores)[0] for value in (found, total / share))
    torch.testing.assert_close(ours, loops)
    assert objective.size(y, weight) == pytest.approx(share)


def test_targets_are_standardised_on_the_training_part_and_come_back():
    y = torch.tensor([[1.0, 7.0], [3.0, NAN], [5.0, 7.0], [100.0, 0.0]], dtype=torch.float64)
    objective = Regress().fit(y[:3])
    assert objective.mean == (3.0, 7.0)
    assert objective.scale == (pytest.approx(math.sqrt(8 / 3)), 1.0)  # a constant column is only centred
    encoded = objective.encode(y)
    torch.testing.assert_close(encoded[:3, 0].double().mean(), torch.tensor(0.0, dtype=torch.float64))
    torch.testing.assert_close(objective.decode(encoded), y, equal_nan=True, rtol=1e-6, atol=1e-5)
    assert objective_from_state(objective.state()) == objective


WRONG = [
    (Multilabel(), torch.zeros(3), ["[3]"]),
    (Multilabel(), torch.zeros(4, 2), ["4 targets", "3"]),
    (Multilabel(), torch.tensor([[0, 1], [1, 2], [0, 0]]), ["label 2 ", "item 1", "column 1"]),
    (Multilabel(), torch.tensor([[0.0, 1.0], [0.5, 1.0], [0.0, 0.0]]), ["label 0.5 ", "item 1", "column 0"]),
    (Regress(), torch.tensor([1.0, math.inf, 2.0]), ["inf", "item 1"]),
    (Regress(), torch.tensor([1.0, -1e300, math.nan], dtype=torch.float64), ["-1e+300", "item 1"]),
    (Regress(), torch.tensor([0.0, 1e-300, 2e-300], dtype=torch.float64), ["2e-300", "item 2"]),
    (Regress(), torch.zeros(3, 1, 1), ["[3, 1, 1]"]),
    (Regress(), torch.zeros(2), ["2 targets", "3"]),
    (Classify(), torch.zeros(3), ["[3]", "torch.float32"]),
]


@pytest.mark.parametrize(("objective", "y", "facts"), WRONG)
def test_targets_that_are_not_valid(refuses, objective, y, facts):
    refuses(lambda: objective.check(y, 3), *facts)


def test_splits_of_targets_that_are_not_classes():
    y = torch.tensor([1.0, 2.0, 3.0, NAN])
    with pytest.raises(DemonetError, match=r"item 3\b.*test\b"):
        NodeProblem((), y, Split("s", 0, [0], [1], [3]), objective=Regress())
    with pytest.raises(DemonetError, match=r"\[2\].*\b4\b"):
        NodeProblem((), y, Split("s", 0, [0], [1], [2]), torch.ones(2), objective=Regress())
    problem = NodeProblem((), y, Split("s", 0, [0, 2], [1], []), objective=Regress())
    assert problem.objective.mean == (2.0,)  # fitted on the training part
    labels = torch.tensor([[1, -1], [0, -1], [1, 1]])
    with pytest.raises(DemonetError, match=r"label 1\b"):
        NodeProblem((), labels, Split("s", 0, [0, 1], [2], []), objective=Multilabel())
    with pytest.raises(DemonetError, match="'huber'"):
        Regress(error="huber")


def values(columns=None):
    """Roles with numbers that depend on the degree; one node is unknown."""
    data, split = problems.nodes()
    degree = count_degree(data.edge_index, data.num_nodes).double()
    data.y = degree if columns is None else torch.stack([degree, -(degree**2)], 1)
    return data, split


def tags():
    """Roles with two labels, by degree and by class, of which some are unknown."""
    data, split = problems.nodes()
    degree = count_degree(data.edge_index, data.num_nodes)
    data.y = torch.stack([degree > 2, data.y % 2 == 0], 1).double()
    data.y[::5, 1] = NAN
    return data, split


CASES = {
    "multilabel": (tags, Multilabel()),
    "regress": (lambda: values(2), Regress(error="mae")),
    "classify": (problems.nodes, Classify(metric="macro-f1")),
}


def run(make, objective, epochs=30, **options):
    data, split = make()
    return train_nodes(
        data, split, problems.quick("default", "nodes", epochs=epochs, patience=55), objective=objective, **options
    )


@pytest.mark.parametrize("name", CASES)
def test_a_resumed_run_ends_in_the_same_bits(name, tmp_path):
    make, objective = CASES[name]

    def stop(epoch):
        assert epoch.metric == objective.metric
        if epoch.number == 27:
            raise KeyboardInterrupt

    whole = run(make, objective)
    with pytest.raises(KeyboardInterrupt):
        run(make, objective, on_epoch=stop, checkpoint=tmp_path / "c")
    resumed = run(make, objective, checkpoint=tmp_path / "c")
    assert problems.same_bits(resumed.model.state_dict(), whole.model.state_dict())
    assert resumed.history.val_metric == whole.history.val_metric
    history, better = whole.history, max if objective.larger_is_better else min
    assert history.best_metric == better(history.val_metric) == whole.val_metric
    assert history.metric == objective.metric


def test_a_checkpoint_of_another_objective_is_refused(tmp_path):
    run(values, Regress(), epochs=25, checkpoint=tmp_path / "c")
    with pytest.raises(DemonetError, match=r"/c: .*\bobjective\b"):
        run(values, Regress(error="mae"), epochs=25, checkpoint=tmp_path / "c")


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_unknown_entries_and_the_test_part_teach_nothing(kind):
    """NaN or -1 for unknown, other targets in the test part, other targets outside the split: the same bits."""
    make, objective = (tags, Multilabel()) if kind == "labels" else (lambda: values(2), Regress())
    data, split = make()
    some = Split("s", 0, split.train, split.val, split.test[:5])
    data.y[split.train[0], 0] = NAN
    other = data.clone()
    if kind == "labels":
        other.y = other.y.nan_to_num(-1)
        other.y[split.test] = 1.0
    else:
        other.y[split.test] = 1e6
    one, two = (
        train_nodes(graph, some, problems.quick("default", "nodes", epochs=5), objective=objective)
        for graph in (data, other)
    )
    assert problems.same_bits(one.model.state_dict(), two.model.state_dict())
    assert one.history.val_metric == two.history.val_metric


def test_test_metric_is_the_metric_of_the_test_part_in_the_users_units():
    trained = run(values, Regress(metric="mae"), epochs=20)
    data, split = values()
    with torch.no_grad():
        predicted = trained.objective.activate(trained.model.eval()(*trained.inputs).double())[:, 0]
    expected = (predicted - data.y)[split.test].abs().mean()
    assert trained.test_metric == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("batch_size", [None, 4])
def test_graphs_with_targets_of_their_own(batch_size):
    graphs, split = problems.graphs()
    for graph in graphs:
        size = float(graph.num_nodes)
        graph.y = torch.tensor([[size, -size]], dtype=torch.float64)
    chosen = problems.quick("default", "graphs", epochs=4, batch_size=batch_size)
    trained = train_graphs(graphs, split, chosen, objective=Regress())
    assert trained.objective.outputs == 2
    assert np.isfinite(trained.test_metric)
    graphs[3].y = torch.zeros(1, 3)
    with pytest.raises(DemonetError, match=r"graph 3\b.*\b3\b.*graph 0\b.*\b2\b"):
        train_graphs(graphs, split, chosen, objective=Regress())


def test_weights_and_a_metric_that_scikit_learn_computes():
    data, split = problems.nodes()
    weight = torch.linspace(1, 3, data.num_nodes)
    chosen = problems.quick("paper", "nodes", epochs=3)
    trained = train_nodes(data, split, chosen, objective=Classify(metric="macro-f1"), weight=weight)
    problem = NodeProblem(trained.inputs, data.y, split, weight, trained.objective)
    assert evaluate(trained.model, problem.validation, trained.objective)[1] == trained.val_metric


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
    weight = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(1)) if weighted else None
    part = NodeProblem(inputs, data.y, split, weight).train
    wanted = Classify().loss(model(*part.inputs)[part.rows], part.y, part.weight)
    found = model.loss(part.inputs[0], *part.spread)
    torch.testing.assert_close(found, wanted)
    by = [torch.autograd.grad(loss, list(model.parameters())) for loss in (found, wanted)]
    torch.testing.assert_close(*by, rtol=1e-4, atol=1e-6)
