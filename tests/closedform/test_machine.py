"""Kernel ridge in closed form: against leaving items out one by one, against the primal, and on generated data."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_arrays
from safetensors.torch import save as save_arrays
from tests.kernels.graphs import graph, star

from demonet.closedform.link import LabelLink, Link
from demonet.closedform.machine import KernelMachine
from demonet.closedform.nodes import NodeInputs, NodeSetting
from demonet.closedform.pooled import GraphInputs, GraphSetting
from demonet.closedform.primal import PrimalRidge
from demonet.closedform.ridge import ridge, solve
from demonet.data.synthetic import small_graphs

EXACT = {"dtype": torch.float64}
LINEAR = NodeSetting(seed=0.6, shared=0.4, degree=0.5, bias=0.2, hop=0.5)


def random_graph(n=120, seed=0, edges=3, columns=3):
    """Degrees that differ widely, and numbers as attributes."""
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.5, n) + 0.2
    ends = rng.choice(n, size=(edges * n, 2), p=weight / weight.sum())
    pairs = {(min(u, v), max(u, v)) for u, v in ends.tolist() if u != v}
    return graph(n, sorted(pairs), rng.normal(size=(n, columns)))


def flipped(data, flip=True):
    """The class is the sign of the neighbours' mean, the other way round above the median degree if ``flip``."""
    view = NodeInputs().fit(data).transform(data)
    sign = np.where(view.degree > np.median(view.degree), -1, 1) if flip else 1
    return (sign * view.near[0][:, 0] > 0).astype(np.int64)


def stored(machine):
    """What comes back after JSON and safetensors."""
    info, arrays = machine.state()
    arrays = load_arrays(save_arrays({name: array.contiguous() for name, array in arrays.items()}))
    return KernelMachine.from_state(json.loads(json.dumps(info)), arrays)


def test_outputs_for_unseen_items():
    """Each training item by a regression without it, validation items by the regression on all training items."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(15, 4)))
    gram, targets = x @ x.T + 1, torch.from_numpy(rng.normal(size=(15, 2)))
    solution = solve(gram[:12, :12], targets, [0.3], gram[12:, :12])
    alpha, left_out = ridge(gram[:12, :12], targets[:12], 0.3)
    for i in range(15):
        rest = [j for j in range(12) if j != i]
        without, _ = ridge(gram[rest][:, rest], targets[rest], 0.3)
        np.testing.assert_allclose(solution.unseen[i], gram[i, rest] @ without)
    np.testing.assert_allclose(left_out, solution.unseen[:12])
    np.testing.assert_allclose(solution.alpha, alpha)
    assert solution.error == pytest.approx(float((solution.unseen - targets).square().mean()))


def test_a_weight_is_a_number_of_copies():
    """An item of weight k is as k equal items; left out, all of them are."""
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(15, 4)))
    gram, targets = x @ x.T + 1, torch.from_numpy(rng.normal(size=(15, 2)))
    weight = torch.tensor([1.0, 3, 2, 1, 4, 1, 1, 2, 1, 5, 1, 1, 2, 1, 3], dtype=torch.float64)
    solution = solve(gram[:12, :12], targets, [0.3], gram[12:, :12], weight)
    alpha, left_out = ridge(gram[:12, :12], targets[:12], 0.3, weight[:12])
    for i in range(15):
        rest = [j for j in range(12) if j != i for _ in range(int(weight[j]))]
        copies, _ = ridge(gram[rest][:, rest], targets[rest], 0.3)
        np.testing.assert_allclose(solution.unseen[i], gram[i, rest] @ copies)
    np.testing.assert_allclose(left_out, solution.unseen[:12])
    np.testing.assert_allclose(solution.alpha, alpha)
    mean = torch.repeat_interleave((solution.unseen - targets).square(), weight.long(), 0).mean()
    assert solution.error == pytest.approx(float(mean))


@pytest.mark.parametrize("columns", [3000, 1])  # normal equations, or conjugate gradients
def test_a_weight_is_a_number_of_copies_in_the_primal(monkeypatch, columns):
    monkeypatch.setattr("demonet.closedform.primal.COLUMNS", columns)
    data, copies = random_graph(), np.arange(40) % 4 + 1
    view, targets = NodeInputs().fit(data).transform(data), torch.randn(40, 2, dtype=torch.float64)
    exact = {"dtype": torch.float64, "tolerance": 1e-12, "steps": 2000}
    weighted = PrimalRidge(LINEAR, 0.1, **exact).fit(view.take(np.arange(40)), targets, torch.from_numpy(copies))
    rows = np.repeat(np.arange(40), copies)
    repeated = PrimalRidge(LINEAR, 0.1, **exact).fit(view.take(rows), targets[rows])
    torch.testing.assert_close(weighted.predict(view), repeated.predict(view), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dual", [15_000, 10])
@pytest.mark.parametrize("task", ["classes", "ordinal", "regression"])
def test_the_machine_with_weights(monkeypatch, task, dual):
    """With a given noise: weights are numbers of copies, and equal weights a smaller noise."""
    data, rows = random_graph(), np.arange(60)
    y = np.digitize(data.x[:60, 0].numpy(), [-0.4, 0.4]) if task != "regression" else data.x[:60, :2].double().numpy()

    def outputs(noise, rows, **weight):
        monkeypatch.setattr("demonet.closedform.machine.NOISES", np.array([noise / unit(rows)]))
        machine = KernelMachine(task, settings=[LINEAR], dual=dual, **EXACT).fit(data, rows, y[rows], **weight)
        assert machine.members_[0][1] == pytest.approx(noise)
        return machine.decision_function(data)

    def unit(rows):  # in which a machine has its noises
        view = NodeInputs().fit(data).transform(data).take(rows)
        return float(view.pair(view, torch.float64, "cpu").gram(LINEAR).diagonal().mean())

    copies = rows % 3 + 1
    weighted, repeated = outputs(0.3, rows, weight=copies.astype(float)), outputs(0.3, np.repeat(rows, copies))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs(0.6, rows, weight=np.full(60, 2.0)), outputs(0.3, rows), rtol=1e-5, atol=1e-6)


def test_noise_is_judged_on_validation_items_too():
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.normal(size=(40, 2)))
    gram, targets = torch.exp(-torch.cdist(x, x).square()), torch.from_numpy(rng.normal(size=(40, 1)))
    noises = (0.01, 0.1, 1.0, 10.0)
    each = [solve(gram[:20, :20], targets, [noise], gram[20:, :20]).error for noise in noises]
    assert solve(gram[:20, :20], targets, noises, gram[20:, :20]).noise == noises[int(np.argmin(each))]


@pytest.mark.parametrize(
    ("scheme", "counts", "columns"), [("smooth", False, 0), ("smooth", True, 3000), ("weight", True, 0)]
)
def test_primal_and_dual_are_equal(scheme, counts, columns, monkeypatch):
    monkeypatch.setattr("demonet.closedform.primal.RANK", 1e-13)
    monkeypatch.setattr("demonet.closedform.primal.COLUMNS", columns)
    data, other = random_graph(40), star(60, np.random.default_rng(1).normal(size=(61, 3)))
    if counts:
        data.x, other.x = (torch.poisson(d.x.abs(), generator=torch.Generator().manual_seed(0)) for d in (data, other))
    inputs = NodeInputs().fit(data)
    train, new = inputs.transform(data), inputs.transform(other)  # degree 60 is unseen
    s = replace(LINEAR, scheme=scheme, structure=0.3, additive=0.2)
    targets = torch.from_numpy(np.random.default_rng(2).normal(size=(40, 2)))
    alpha, _ = ridge(train.pair(train, torch.float64, "cpu").gram(s), targets, 0.1)
    primal = PrimalRidge(s, 0.1, torch.float64, tolerance=1e-12, steps=2000).fit(train, targets)
    for view in (train, new):
        np.testing.assert_allclose(
            primal.predict(view), view.pair(train, torch.float64, "cpu").gram(s) @ alpha, rtol=1e-4, atol=1e-5
        )


def test_many_nodes_in_blocks_have_the_same_predictions(monkeypatch):
    data, other = random_graph(60), random_graph(50, seed=5)
    settings = [LINEAR, replace(LINEAR, structure=0.3, additive=0.2)]
    machine = KernelMachine("classes", settings=settings, dual=10, **EXACT)
    machine.fit(data, np.arange(60), flipped(data))
    assert machine.primal_
    expected = machine.decision_function(other)
    monkeypatch.setattr("demonet.closedform.machine.BLOCK", 7)
    np.testing.assert_allclose(machine.decision_function(other), expected, atol=1e-9)
    distinct = len(np.unique(np.concatenate([_degrees(data), _degrees(other)])))
    monkeypatch.setattr("demonet.closedform.machine.BLOCK", 20_000)
    monkeypatch.setattr("demonet.closedform.primal.MANY", distinct + 1)  # once for each degree
    np.testing.assert_allclose(machine.decision_function(other), expected, atol=1e-9)


def _degrees(data):
    return torch.bincount(data.edge_index[1], minlength=data.num_nodes).numpy()


def test_the_primal_refuses_a_nonlinear_kernel(refuses):
    refuses(lambda: PrimalRidge(NodeSetting(height=0.5), 0.1), "height", "0.5")


@pytest.mark.parametrize("dual", [15_000, 10])
def test_shares_add_up_to_the_prediction(dual):
    data = random_graph(60)
    settings = [LINEAR, replace(LINEAR, structure=0.3, degree=0.1)]
    machine = KernelMachine("classes", settings=settings, dual=dual, **EXACT)
    machine.fit(data, np.arange(0, 60, 2), flipped(data)[::2])
    shares = machine.shares(data, np.arange(20))
    assert set(shares) == {"seed", "shared", "degree", "bias", "structure", "constant"}
    np.testing.assert_allclose(sum(shares.values()), machine.decision_function(data, np.arange(20)), atol=1e-9)


def test_shares_of_graphs_and_of_the_nonlinear_map_add_up():
    graphs = small_graphs(30, seed=1)
    y = np.array([int(g.y) for g in graphs])
    machine = KernelMachine("classes", **EXACT).fit(graphs, np.arange(20), y[:20])
    np.testing.assert_allclose(sum(machine.shares(graphs).values()), machine.decision_function(graphs), atol=1e-9)


@pytest.mark.parametrize("task", ["classes", "ordinal", "regression"])
@pytest.mark.parametrize("dual", [15_000, 20])
def test_a_stored_node_machine_predicts_the_same(task, dual):
    data, other = random_graph(60), random_graph(30, seed=5)
    y = flipped(data) + flipped(data, flip=False)
    machine = KernelMachine(task, members=2, dual=dual, screen=25).fit(data, np.arange(40), y[:40])
    assert bool(machine.primal_) == (dual == 20)
    back = stored(machine)
    np.testing.assert_array_equal(back.decision_function(other), machine.decision_function(other))
    np.testing.assert_array_equal(back.predict(other), machine.predict(other))


def test_a_stored_graph_machine_predicts_the_same_and_batches_do_not_matter():
    graphs = small_graphs(30, seed=2)
    y = np.array([int(g.y) for g in graphs])
    machine = KernelMachine(members=2, **EXACT).fit(graphs, np.arange(25), y[:25])
    p = machine.predict_proba(graphs[25:])
    np.testing.assert_array_equal(stored(machine).predict_proba(graphs[25:]), p)
    np.testing.assert_allclose([machine.predict_proba([g])[0] for g in graphs[25:]], p, atol=1e-9)
    assert (p.argmax(1) == y[25:]).mean() > 0.8


def test_a_stored_graph_machine_keeps_shuffled_degrees():
    """It read the true degrees of its training graphs, so that another model came back."""
    graphs = small_graphs(seed=4)[:20]
    machine = KernelMachine(settings=[GraphSetting(degree=3.0, pooling=1.0, wl=0.0)])
    machine.inputs_ = GraphInputs().fit(graphs)
    rows = machine.inputs_.transform(graphs).shuffled(1)
    machine.fit_views(rows, np.array([int(g.y) for g in graphs]))
    np.testing.assert_array_equal(stored(machine).decision_of(rows), machine.decision_of(rows))


def test_the_degree_pays_where_the_rule_flips_with_it_and_not_where_it_does_not():
    data = random_graph(400, columns=2)
    rows = np.arange(200)
    effect = KernelMachine(members=3).fit(data, rows, flipped(data)[:200]).degree_effect()
    assert effect.items == 200
    assert effect.accuracy["degree"] > 0.85 > max(effect.accuracy["none"], effect.accuracy["shuffled"])
    assert effect.gain["none"]["accuracy"][1] > 0
    assert effect.gain["shuffled"]["loss"][2] < 0
    plain = KernelMachine(members=3).fit(data, rows, flipped(data, flip=False)[:200]).degree_effect()
    assert abs(plain.gain["none"]["accuracy"][0]) < 0.05


def test_the_effect_on_labels_is_told_by_the_log_loss_of_those_that_are_known():
    data, rows = random_graph(400, columns=2), np.arange(200)
    flips = flipped(data)[:200].astype(float)
    labels = np.stack([flips, 1 - flips], 1)
    labels[::4, 1] = 0.5  # unknown
    machine = KernelMachine("regression", members=3).fit(data, rows, labels)
    effect = machine.degree_effect(labels=True)
    assert not effect.regression
    assert effect.accuracy["degree"] > 0.85 > max(effect.accuracy["none"], effect.accuracy["shuffled"])
    values = machine.values(machine.left_out_)
    found = LabelLink.fit(values, labels).probabilities(values)
    losses = -np.log(np.where(labels == 1, found, 1 - found))
    expected = [losses[i, labels[i] != 0.5].mean() for i in rows]
    assert effect.loss["degree"] == pytest.approx(np.mean(expected))


def test_without_the_degree_no_member_has_a_degree_term():
    data = random_graph(60)
    machine = KernelMachine(degree=False).fit(data, np.arange(40), flipped(data)[:40])
    assert {setting.degree for setting, _, _ in machine.table_} == {0.0}


def test_probabilities_are_calibrated():
    """Classes drawn with known chances: confidence and accuracy differ by little, in ten bins."""
    data = random_graph(1500, columns=4)
    rng = np.random.default_rng(0)
    view = NodeInputs().fit(data).transform(data)
    logits = 3 * view.own[:, :3] + 2 * view.near[0][:, 1:4]
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    p = KernelMachine("classes", members=3).fit(data, np.arange(400), y[:400]).predict_proba(data)[400:]
    np.testing.assert_allclose(p.sum(axis=1), 1)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y[400:]
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [abs((confidence - right)[bins == b].sum()) for b in range(10)]
    assert sum(gaps) / len(right) < 0.05


def test_ordered_classes_are_recognised():
    data = random_graph(300)
    degree = NodeInputs().fit(data).transform(data).degree
    noisy = np.log1p(degree) + np.random.default_rng(0).normal(scale=0.3, size=300)
    ranks = np.searchsorted(np.quantile(noisy, [0.25, 0.5, 0.75]), noisy)
    y = np.array([2, 0, 3, 1])[ranks]
    machine = KernelMachine(members=2).fit(data, np.arange(150), y[:150])
    assert machine.task_ == "ordinal"
    assert machine.ranks_ == (1, 3, 0, 2)
    p = machine.predict_proba(data)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == y)[150:].mean() > 0.5


def test_an_ordinal_link_is_the_cumulative_logit():
    link = Link(2.0, (-1.0, 0.5), (0, 1, 2))
    f = np.array([[0.3]])
    above = 1 / (1 + np.exp(-2.0 * (0.3 - np.array([-1.0, 0.5]))))
    np.testing.assert_allclose(np.exp(link.log_probabilities(f)), [[1 - above[0], above[0] - above[1], above[1]]])


def test_validation_items_only_choose():
    """With one setting and a fixed noise there is nothing to choose, so their labels change no coefficient."""
    data = random_graph(60)
    y = flipped(data)
    rows, val = np.arange(30), np.arange(30, 50)
    fitted = [
        KernelMachine("classes", settings=[LINEAR], **EXACT).fit(data, rows, y[:30], val, labels)
        for labels in (y[30:50], 1 - y[30:50])
    ]
    noise = [machine.members_[0][1] for machine in fitted]
    gram = fitted[0].train_.pair(fitted[0].train_, torch.float64, "cpu").gram(LINEAR)
    for machine, value in zip(fitted, noise, strict=True):
        alpha, _ = ridge(gram, torch.eye(2, dtype=torch.float64)[y[:30]] - 0.5, value)
        np.testing.assert_allclose(machine.alpha_[0], alpha)
        assert len(machine.left_out_) == 50


def test_unknown_tasks_and_probabilities_of_numbers_are_refused(refuses):
    refuses(lambda: KernelMachine("ranking"), "ranking")
    data = random_graph(30)
    machine = KernelMachine("regression", settings=[LINEAR]).fit(data, np.arange(30), np.arange(30.0))
    refuses(lambda: machine.predict_proba(data), "regression")
    refuses(lambda: stored(machine).degree_effect(), "loaded")
