"""Some forged files of our own formats; ``make hostile`` makes many more."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.hostile.forged import Forgeries
from tests.hostile.supervise import supervised
from torch_geometric.data import Data

from demonet.data import read_graph
from demonet.methods.forest import predict_trees
from demonet.schema import checked_csr

ROUNDS = 4  # of every file


def test_every_forged_file_is_read_or_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forgeries = Forgeries(tmp_path, 0)
    done = list(supervised(forgeries, range(ROUNDS * len(forgeries.files))))
    assert not [case for case in done if case.failure]
    assert {case.how for case in done} == {"read", "refused"}


def test_a_cycle_in_a_stored_tree_is_refused(refuses):
    """The root points at a node that points back: no item would ever reach a leaf."""
    tree = {"roots": np.array([0]), "feature": np.array([0, 0, 0]), "threshold": np.zeros(3), "value": np.zeros((3, 2))}
    tree |= {"left": np.array([1, 0, 2]), "right": np.array([1, 0, 2])}
    refuses(lambda: predict_trees(tree, np.zeros((4, 1))), "cycle")
    whole = tree | {"left": np.array([1, 1, 2]), "right": np.array([2, 1, 2])}
    assert predict_trees(whole, np.zeros((4, 1))).shape == (4, 2)
    refuses(lambda: predict_trees(whole | {"feature": np.array([5, 0, 0])}, np.zeros((4, 1))), "feature")


@pytest.mark.parametrize(("column", "pointer"), [([0, 9], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1])])
def test_indices_and_pointers_out_of_bounds_are_refused(refuses, column, pointer):
    refuses(lambda: checked_csr(np.ones(2), np.array(column), np.array(pointer), (2, 3)))


def test_a_sparse_tensor_with_an_index_out_of_bounds_is_refused(tmp_path, refuses):
    """It ended the process."""
    index = torch.tensor([[0, 1], [0, 10**6]])
    x = torch.sparse_coo_tensor(index, torch.ones(2), (3, 4), check_invariants=False)
    path = tmp_path / "graph.pt"
    torch.save(Data(x=x, edge_index=torch.tensor([[0, 1], [1, 2]])), path)
    refuses(lambda: read_graph(path), "graph.pt", "")
