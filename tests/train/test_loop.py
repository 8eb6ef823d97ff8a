"""The training loop: optimiser, early stopping, best weights, seeds; what a network adds to the objective."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.reference.layers import PAPER
from tests.train import problems
from torch import nn
from torch_geometric.data import Batch

from demonet import DegreeTasks, DemonetError, NodeDEMONet
from demonet.data.splits import Split
from demonet.train import (
    Classify,
    GraphProblem,
    LabelledBatch,
    NodeProblem,
    TrainConfig,
    evaluate,
    fit,
    fit_together,
    predict,
    steps,
    train_graphs,
    train_nodes,
)
from demonet.train.problem import collated
from demonet.train.steps import parameter_groups


class Scripted(nn.Module):
    """Four validation items of class 0; epoch e gets ``script[e] = (right, sure, wrong)``.

    ``right`` items are right with log-odds ``sure``, the others wrong with log-odds ``wrong``. The buffer counts
    epochs, so that restored weights say which epoch they are from.
    """

    def __init__(self, script):
        super().__init__()
        self.script = script
        self.weight = nn.Parameter(torch.zeros(2))
        self.register_buffer("epoch", torch.tensor(-1))

    def forward(self):
        if self.training:
            self.epoch += 1
            return self.weight.expand(4, 2)
        right, sure, wrong = self.script[int(self.epoch)]
        odds = torch.tensor([sure] * right + [-wrong] * (4 - right))
        return torch.stack([odds, torch.zeros(4)], 1)


class Everyone:
    """Train and validate on the same four items."""

    def __init__(self):
        self.objective = Classify(outputs=2)
        self.validation = LabelledBatch((), torch.arange(4), torch.zeros(4, dtype=torch.long))

    def training(self, seed, epoch):
        yield self.validation


def loss_of(right, sure, wrong):
    return (right * math.log1p(math.exp(-sure)) + (4 - right) * math.log1p(math.exp(wrong))) / 4


WORSE = (1, 0.1, 3.0)
SCRIPTS = {
    # The best epoch comes first, and nothing after it is as good: patience runs out.
    "never better": ([(3, 1.0, 1.0)] + [WORSE] * 9, 2, 3, 0),
    # An equal accuracy with a worse loss starts the count anew, but the weights stay.
    "equal accuracy": ([(3, 1.0, 1.0), WORSE, (3, 1.0, 2.0), WORSE, WORSE] + [WORSE] * 9, 2, 5, 0),
    # So does a better loss with a worse accuracy.
    "better loss": ([(3, 1.0, 1.0), WORSE, (2, 9.0, 0.01), WORSE, WORSE] + [WORSE] * 9, 2, 5, 0),
    # ... and a loss equal to the best one.
    "equal loss": ([(3, 1.0, 1.0), (2, 9.0, 0.01), WORSE, (2, 9.0, 0.01), WORSE, WORSE] + [WORSE] * 9, 2, 6, 0),
    # Accuracy and loss each keep a best of their own: this loss beats the best epoch's, not the best one seen.
    "each its own best": ([(3, 1.0, 1.0), (2, 9.0, 0.01), (2, 9.0, 0.3), (2, 9.0, 0.3)] + [WORSE] * 9, 2, 4, 0),
    # Ties in accuracy go to the lower loss; equal on both, to the earlier epoch.
    "ties by loss": ([(3, 1.0, 1.0), (3, 2.0, 1.0), (3, 2.0, 1.0), (3, 1.5, 1.0)] + [WORSE] * 9, 3, 7, 1),
    # A higher accuracy wins whatever its loss.
    "accuracy first": ([(3, 9.0, 0.1), (4, 0.01, 0.0), WORSE, WORSE] + [WORSE] * 9, 2, 4, 1),
    # The last epoch can be the best.
    "to the end": ([(1, 1.0, 1.0), (2, 1.0, 1.0), (3, 1.0, 1.0), (4, 1.0, 1.0)], 1, 4, 3),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_patience_and_the_weights_that_are_kept(name):
    script, patience, epochs, best = SCRIPTS[name]
    model = Scripted(script)
    history = fit(model, Everyone(), TrainConfig(epochs=min(len(script), 12), patience=patience))
    assert history.epochs == epochs
    assert history.best_epoch == best
    assert int(model.epoch) == best
    assert history.val_metric == [right / 4 for right, _, _ in script[:epochs]]
    assert history.val_loss == pytest.approx([loss_of(*step) for step in script[:epochs]], rel=1e-5)
    assert evaluate(model, Everyone().validation)[1] == history.best_metric == script[best][0] / 4


def test_the_lowest_loss_chooses_where_that_is_asked_for():
    """Epoch 1 has the lower loss, epoch 2 the higher accuracy; patience counts epochs without a lower loss."""
    script = [(3, 1.0, 1.0), (3, 9.0, 0.1), (4, 0.01, 0.0), WORSE, WORSE]
    model = Scripted(script)
    history = fit(model, Everyone(), TrainConfig(epochs=5, patience=2, choose_by="loss"))
    assert (history.epochs, history.best_epoch, int(model.epoch)) == (4, 1, 1)
    with pytest.raises(DemonetError, match="choose_by='luck'"):
        TrainConfig(choose_by="luck")


def test_models_trained_together_share_the_epoch_of_the_lowest_mean_loss():
    """Each has its own best epoch, 0 and 2; on average epoch 1 is best."""
    good, fair, bad = (4, 3.0, 0.0), (4, 2.0, 0.0), (1, 0.1, 9.0)
    scripts = [[good, fair, bad, bad, bad], [bad, fair, good, bad, bad]]
    models = [Scripted(script) for script in scripts]
    config = TrainConfig(epochs=5, patience=2, choose_by="loss")
    assert fit_together(models, [Everyone()] * 2, config, choose=True) == 2
    assert [int(model.epoch) for model in models] == [1, 1]
    models = [Scripted(script) for script in scripts]
    assert fit_together(models, [Everyone()] * 2, config, choose=False) == 5, "no early stop"
    assert [int(model.epoch) for model in models] == [4, 4]


@pytest.mark.parametrize(("by", "epochs"), [("loss", 1), ("metric", 2)])
def test_models_trained_together_are_chosen_by_loss_or_metric(by, epochs):
    surer, righter = (3, 9.0, 0.1), (4, 1.0, 0.0)
    assert loss_of(*surer) < loss_of(*righter)
    config = TrainConfig(epochs=3, choose_by=by)
    assert fit_together([Scripted([surer, righter, WORSE])], [Everyone()], config, choose=True) == epochs


@pytest.mark.parametrize("choose", [True, False])
def test_after_the_deadline_no_epoch_begins_but_one_is_trained(choose):
    model = Scripted([WORSE, (4, 3.0, 0.0), (4, 3.0, 0.0)])
    late = time.monotonic()
    assert fit_together([model], [Everyone()], TrainConfig(epochs=3), choose=choose, deadline=late) == 1
    assert int(model.epoch) == 0


def test_the_scripts_say_what_they_mean():
    """A script whose losses are not ordered as its comment says would test nothing."""
    assert loss_of(3, 1.0, 1.0) < loss_of(*WORSE)
    assert loss_of(2, 9.0, 0.01) < loss_of(2, 9.0, 0.3) < loss_of(3, 1.0, 1.0)
    assert loss_of(3, 1.0, 1.0) < loss_of(3, 1.0, 2.0)
    assert loss_of(3, 9.0, 0.1) < loss_of(4, 0.01, 0.0)


class Plain(nn.Module):
    """A linear map in float64."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2, dtype=torch.float64)

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize("decay_biases", [False, True])
def test_adam_with_coupled_l2_by_hand(decay_biases):
    """g + λw goes through Adam's moments; three steps, because the first is little more than a sign."""
    torch.manual_seed(0)
    model, x, y = Plain(), torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 0, 1, 0, 1])
    weight, bias = (p.detach().clone().requires_grad_() for p in model.parameters())
    problem = NodeProblem((x,), y, Split("s", 0, [0, 1, 2, 3], [4, 5], []))
    seen = []
    config = TrainConfig(epochs=3, lr=0.1, weight_decay=0.3, decay_biases=decay_biases)
    fit(model, problem, config, on_epoch=lambda epoch: seen.append([p.detach().clone() for p in model.parameters()]))
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in (weight, bias)]
    for step in range(1, 4):
        log_odds = torch.log_softmax(x[:4] @ weight.T + bias, 1)
        gradients = torch.autograd.grad(-log_odds[range(4), y[:4]].mean(), (weight, bias))
        for i, (p, g) in enumerate(zip((weight, bias), gradients, strict=True)):
            g = g + (0.3 if i == 0 or decay_biases else 0.0) * p.detach()
            m, v = moments[i]
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.999).add_(0.001 * g**2)
            with torch.no_grad():
                p -= 0.1 * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
        for mine, theirs in zip((weight, bias), seen[step - 1], strict=True):
            torch.testing.assert_close(theirs, mine.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("decay_biases", [False, True])
def test_what_decays_and_how_much(decay_biases):
    tasks = DegreeTasks.exact(torch.tensor([1, 2]))
    options = {"scheme": "smooth", "refine": True, "head": "degree", "bias": True, "combine": "add"}
    model = NodeDEMONet(3, 2, tasks, PAPER, hidden=4, **options)
    config = TrainConfig(weight_decay=0.01, degree_decay=4.0, decay_biases=decay_biases)
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = parameter_groups(model, config)
    decay = {names[parameter]: group["weight_decay"] for group in groups for parameter in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(decay) == len(names)
    expected = {}
    for name in decay:
        if name.endswith("weights.own"):
            expected[name] = 0.04
        elif name.endswith("bias") or ".after.0." in name:  # biases and norms
            expected[name] = 0.01 if decay_biases else 0.0
        else:
            expected[name] = 0.01
    assert decay == expected
    assert {value for name, value in decay.items() if "own" in name} == {0.04}
    assert "head.weights.own" in decay


def state(trained):
    return trained.model.state_dict()


def run(kind, seed=0, **changes):
    if kind == "nodes":
        return train_nodes(*problems.nodes(), problems.quick("default", "nodes", epochs=8, **changes), seed=seed)
    size = 4 if kind == "batches" else None
    chosen = problems.quick("default", "graphs", epochs=4, batch_size=size, **changes)
    return train_graphs(*problems.graphs(), chosen, seed=seed)


@pytest.mark.parametrize("kind", ["nodes", "graphs", "batches"])
def test_the_same_seed_twice_is_the_same_bits(kind):
    """Whatever the caller drew before; and the caller's random numbers are left alone."""
    torch.manual_seed(1)
    first = run(kind)
    torch.manual_seed(2)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    second, other = run(kind), run(kind, seed=1)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before[1:]  # noqa: NPY002
    assert problems.same_bits(state(first), state(second))
    assert first.history.train_loss == second.history.train_loss
    assert first.history.val_loss == second.history.val_loss
    assert not problems.same_bits(state(first), state(other))


@pytest.mark.parametrize("kind", ["nodes", "batches"])
def test_the_best_weights_are_restored(kind):
    if kind == "nodes":
        data, split = problems.nodes()
        trained = train_nodes(data, split, problems.quick("default", "nodes", epochs=40))
        y = data.y
    else:
        data, split = problems.graphs()
        trained = train_graphs(data, split, problems.quick("default", "graphs", epochs=8, batch_size=4))
        y = torch.cat([graph.y for graph in data])
    history = trained.history
    assert history.best_metric == max(history.val_metric) == trained.val_metric
    ties = [loss for loss, a in zip(history.val_loss, history.val_metric, strict=True) if a == history.best_metric]
    assert history.val_loss[history.best_epoch] == min(ties)
    validation = LabelledBatch(trained.inputs, split.val, y[split.val])
    loss, accuracy = evaluate(trained.model, validation)
    assert accuracy == history.best_metric
    assert loss == pytest.approx(history.val_loss[history.best_epoch], rel=1e-5)
    right = predict(trained.model, LabelledBatch(trained.inputs, split.test, y[split.test])).argmax(1) == y[split.test]
    assert trained.test_metric == float(right.double().mean())


def test_the_test_part_is_looked_at_once_and_last(monkeypatch):
    asked = []

    def spying(model, batch, objective):
        asked.append(batch.rows.tolist())
        return measure(model, batch, objective)

    measure = steps.measure
    monkeypatch.setattr(steps, "measure", spying)
    data, split = problems.nodes()
    train_nodes(data, split, problems.quick("paper", "nodes", epochs=5))
    assert asked == [split.val.tolist()] * 5 + [split.test.tolist()]


def graph_problem(size):
    graphs, split = problems.graphs()
    y = torch.cat([graph.y for graph in graphs])
    for number, graph in enumerate(graphs):
        graph.number = torch.tensor([number])

    def numbers(batch: Batch):
        return (batch.number.tolist(),)

    return GraphProblem(y, split, collated(graphs, numbers), size), split, y


@pytest.mark.parametrize(("size", "sizes"), [(4, [4, 4, 2]), (3, [3, 3, 4]), (10, [10]), (99, [10]), (None, [10])])
def test_batches_hold_every_training_graph_once(size, sizes):
    problem, split, y = graph_problem(size)
    assert split.train.numel() == 10
    parts = list(problem.training(0, 0))
    assert [part.y.numel() for part in parts] == sizes
    assert sorted(i for part in parts for i in part.inputs[0]) == split.train.tolist()
    for part in parts:
        assert torch.equal(part.y, y[part.inputs[0]])
        assert part.rows.tolist() == list(range(part.y.numel()))


def test_batches_are_drawn_anew_every_epoch_and_the_same_when_asked_again():
    problem = graph_problem(4)[0]

    def drawn(seed, epoch):
        return [part.inputs[0] for part in problem.training(seed, epoch)]

    assert drawn(0, 3) == drawn(0, 3)
    assert drawn(0, 3) != drawn(0, 4)
    assert drawn(0, 3) != drawn(1, 3)


def test_a_loss_that_is_not_a_number_stops_the_run():
    data, split = problems.nodes()
    with pytest.raises(DemonetError, match=r"loss\b.*\b(nan|inf)\b.*epoch \d"):
        train_nodes(data, split, problems.quick("paper", "nodes", epochs=20, lr=1e30))


@pytest.mark.parametrize("kind", ["nodes", "graphs"])
def test_a_given_number_of_epochs_ends_where_the_loop_was_then(kind):
    """The weights after epoch 4 of a longer one, bit by bit, or the mean around it; validation may be empty."""
    data, split = getattr(problems, kind)()
    model = nn.Linear(3, 8)
    x = torch.rand(split.train.numel() + split.val.numel() + split.test.numel(), 3)
    y = data.y if kind == "nodes" else torch.cat([graph.y for graph in data])
    if kind == "nodes":
        x = torch.rand(data.num_nodes, 3)
        model = nn.Linear(3, int(y.max()) + 1)

    def problem(chosen):
        if kind == "nodes":
            return NodeProblem((x,), y, chosen)
        return GraphProblem(y, chosen, lambda batches: [(x[rows],) for rows in batches], batch_size=4)

    start = {name: value.clone() for name, value in model.state_dict().items()}
    seen = []
    config = TrainConfig(lr=0.05, epochs=9, seed=5)
    fit(model, problem(split), config, on_epoch=lambda _: seen.append(model.weight.detach().clone()))
    model.load_state_dict(start)
    blind = Split(split.name, split.seed, split.train, split.val[:0], split.test)
    history = fit(model, problem(blind), TrainConfig(lr=0.05, epochs=4, seed=5), choose=False)
    assert torch.equal(model.weight, seen[3])
    assert (history.epochs, history.val_loss) == (4, [])
    model.load_state_dict(start)
    assert fit_together([model], [problem(blind)], replace(config, epochs=8), choose=False) == 8
    torch.testing.assert_close(model.weight, (seen[7] + seen[8]) / 2)


X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
PROBLEM = NodeProblem((X,), torch.tensor([0, 1, 0, 1]), Split("s", 0, [0, 1], [2], [3]))


class Pulled(nn.Module):
    """A linear map whose own loss pulls it towards a given matrix."""

    def __init__(self, pull):
        super().__init__()
        self.weight, self.pull = nn.Parameter(torch.zeros(2, 2)), pull

    def forward(self, x):
        if self.pull:
            self.auxiliary_loss = self.pull * (self.weight - 3.0).square().sum()
        return x @ self.weight


def test_the_auxiliary_loss_is_part_of_the_objective():
    config = TrainConfig(epochs=300, patience=300, lr=0.05, weight_decay=0.0)
    pulled, alone = Pulled(100.0), Pulled(0.0)
    history = fit(pulled, PROBLEM, config)
    assert history.train_loss[0] == pytest.approx(100 * 4 * 9 + torch.log(torch.tensor(2.0)).item())
    assert history.val_loss[0] == pytest.approx(0.6931, abs=1e-3)  # the cross-entropy alone chooses the epoch
    fit(alone, PROBLEM, config)
    assert float((alone.weight - 3).abs().min()) > 0.5
    pulled.pull = 100.0
    weights = []
    fit(pulled, PROBLEM, config, on_epoch=lambda epoch: weights.append(pulled.weight.detach().clone()))
    assert float((weights[-1] - 3).abs().max()) < 0.1


def test_the_rate_falls_by_halves():
    """Adam's first steps are as long as the rate, whatever the gradient: so is the sum of what a weight can move."""
    moved = {}
    for every in (None, 1):
        model, steps = Pulled(1e6), []
        config = TrainConfig(epochs=3, lr=0.1, weight_decay=0.0, halve_lr_every=every)
        fit(
            model, PROBLEM, config, on_epoch=lambda _, model=model, steps=steps: steps.append(float(model.weight[0, 0]))
        )
        moved[every] = [b - a for a, b in zip([0.0, *steps], steps, strict=False)]
    assert moved[None] == pytest.approx([0.1, 0.1, 0.1], rel=0.01)
    assert moved[1] == pytest.approx([0.1, 0.05, 0.025], rel=0.01)


@pytest.mark.parametrize("value", [0, -1, 2.5])
def test_a_bad_schedule(value):
    with pytest.raises(DemonetError, match="halve_lr_every"):
        TrainConfig(halve_lr_every=value)
