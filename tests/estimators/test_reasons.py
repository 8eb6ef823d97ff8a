"""Reasons and importance against a model that is written down, so that every effect is known."""

from __future__ import annotations

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from demonet.data.rows import to_torch
from demonet.estimators.explain import fitted_reasons
from demonet.estimators.reasons import Column, _apart, columns_of, explain_items, shuffles


def graph(sparse: bool = False) -> Data:
    club = nx.karate_club_graph()
    ends = torch.tensor(list(club.edges())).T
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (34, 3))).float()
    return Data(x=to_torch(x.numpy()) if sparse else x, edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=34)


KNOWN = np.where(np.arange(34) % 3 == 0, 1, -1)


def of_rows(outputs):
    """The outputs of some items."""
    return lambda items, rows: outputs(items) if rows is None else outputs(items)[rows]


def by_hand(data: Data) -> np.ndarray:
    """3 times the first attribute, the second one of neighbours, and 5 for each neighbour with a known label."""
    x, known = data.x.to_dense().numpy(), data.get("known_targets", torch.from_numpy(KNOWN)).numpy()
    source, target = data.edge_index.numpy()
    each = x[source, 1] + 5.0 * (known[source] >= 0)
    return np.stack([np.zeros(34), 3 * x[:, 0] + np.bincount(target, each, minlength=34)], 1)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_effect_is_the_difference_that_the_thing_makes(sparse):
    data = graph(sparse)
    rows = [11, 16, 20, 33, 5]
    found = explain_items(
        of_rows(by_hand), data, rows, [1] * 5, known=KNOWN, labels=lambda item, output: "yes", most=40
    )
    x = data.x.to_dense().numpy()
    usual = np.zeros(3) if sparse else np.median(x, axis=0)
    for row, reasons in zip(rows, found, strict=True):
        effects = {(reason.kind, reason.name): reason.effect for reason in reasons}
        neighbours = data.edge_index[0][data.edge_index[1] == row].tolist()
        expected = {("column", "column 1"): 3 * (x[row, 0] - usual[0])}
        expected |= {("neighbour", str(u)): x[u, 1] + 5 * (KNOWN[u] >= 0) for u in neighbours}
        expected |= {("label", str(u)): 5.0 for u in neighbours if KNOWN[u] >= 0}
        together = {("columns", "all"): expected["column", "column 1"]} if (x[row] != usual).sum() > 1 else {}
        if len(neighbours) > 1:
            together["neighbours", "all"] = sum(expected["neighbour", str(u)] for u in neighbours)
        expected |= together
        assert effects == pytest.approx({key: value for key, value in expected.items() if value})
        assert [abs(reason.effect) for reason in reasons] == sorted(map(abs, effects.values()), reverse=True)
        assert {reason.value for reason in reasons if reason.kind == "label"} <= {"yes"}


def test_each_output_has_effects_and_known_numbers_of_its_own():
    """Beside a price, what moved a number of rooms counted as nothing, and a neighbour's both numbers were told."""
    data, table = graph(False), np.stack([np.arange(34) * 1e9, np.arange(34) * 1e-3], 1)
    table[KNOWN < 0] = np.nan

    def outputs(items: Data) -> np.ndarray:
        known = items.get("known_targets", torch.from_numpy(table)).nan_to_num().numpy()
        return items.x.numpy()[:, :1] * np.array([1e9, 1e-3]) + known.sum(0)

    fitted = SimpleNamespace(
        model=SimpleNamespace(outputs=of_rows(outputs), known_targets=lambda items: table),
        objective=SimpleNamespace(task="regress"),
        classes=None,
    )
    for output in (0, 1):
        (found,) = fitted_reasons(fitted, data, [33], [output])
        assert "column 1" in {reason.name for reason in found}
        told = {reason.name: reason.value for reason in found if reason.kind == "label"}
        assert told == {name: table[int(name), output] for name in told}
        assert told


def test_few_predictions_for_many_items_that_are_apart():
    ends = torch.tensor([(4 * i, 4 * i + 1) for i in range(20)]).T
    data = Data(edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=80)
    calls = []

    def degree(items: Data) -> np.ndarray:
        calls.append(items)
        return np.bincount(items.edge_index[1].numpy(), minlength=80)[:, None].astype(float)

    found = explain_items(of_rows(degree), data, range(0, 80, 4), [0] * 20)
    assert [[(reason.name, reason.effect) for reason in each] for each in found] == [
        [(str(4 * i + 1), 1.0)] for i in range(20)
    ]
    assert len(calls) == 2
    assert explain_items(of_rows(degree), data, [0], [0], budget=0.5) == [[]]


def test_groups_have_no_two_items_with_a_common_neighbour():
    data = graph()
    close = nx.karate_club_graph()
    groups = _apart(data, list(range(34)))
    assert sorted(row for group in groups for row in group) == list(range(34))
    for group in groups:
        for one in group:
            assert all(nx.shortest_path_length(close, one, other) > 2 for other in group if other != one)


def test_what_is_shuffled_and_what_stays():
    data, rows = graph(), np.arange(0, 34, 2)
    degree = np.bincount(data.edge_index[1].numpy(), minlength=34)

    def three(items: Data) -> np.ndarray:
        there = np.bincount(items.edge_index[1].numpy(), minlength=34).astype(float)
        return np.column_stack([there, items.x.numpy()])

    found = {
        each.name: each for each in shuffles(of_rows(three), data, rows, columns_of(data, ["a", "b", "c"]), repeats=2)
    }
    assert list(found) == ["structure", "neighbours", "all columns", "a", "b", "c"]
    before = three(data)[rows]
    for outputs in found["structure"].outputs:
        np.testing.assert_array_equal(np.sort(outputs[:, 0]), np.sort(degree[rows]))
        np.testing.assert_array_equal(outputs[:, 1:], before[:, 1:])
        assert (outputs[:, 0] != before[:, 0]).mean() > 0.5
    near = [np.abs(np.log1p(each[:, 0]) - np.log1p(before[:, 0])).mean() for each in found["neighbours"].outputs]
    far = [np.abs(np.log1p(each[:, 0]) - np.log1p(before[:, 0])).mean() for each in found["structure"].outputs]
    assert max(near) < min(far)
    for outputs in found["b"].outputs:
        np.testing.assert_array_equal(outputs[:, [0, 1, 3]], before[:, [0, 1, 3]])
        assert (outputs[:, 2] != before[:, 2]).any()
    wide = graph(sparse=True)
    attributes = of_rows(lambda items: items.x.to_dense().numpy())
    (_, _, one) = shuffles(attributes, wide, np.arange(34), [Column("b", [1])], repeats=1)
    np.testing.assert_array_equal(one.outputs[0][:, [0, 2]], data.x[:, [0, 2]])
    np.testing.assert_array_equal(np.sort(one.outputs[0][:, 1]), np.sort(data.x[:, 1]))


def test_graphs_keep_their_edges_in_number_and_their_degrees_where_asked():
    graphs = [graph(), graph()]

    def moments(items: list[Data]) -> np.ndarray:
        degree = [np.bincount(each.edge_index[1].numpy(), minlength=34).astype(float) for each in items]
        return np.array([(d.sum(), (d**2).sum()) for d in degree])

    random, kept = (each.outputs[0] for each in shuffles(of_rows(moments), graphs, np.array([1]), [], repeats=1))
    before = moments(graphs)[0]
    assert random.shape == kept.shape == (1, 2)
    assert 0.7 * before[0] < random[0, 0] <= before[0]
    assert abs(kept[0, 1] - before[1]) < abs(random[0, 1] - before[1])
