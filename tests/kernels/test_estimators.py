"""The kernels as scikit-learn estimators, and what they say to bad input."""

import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC
from tests.kernels.graphs import path, star
from torch_geometric.data import Batch, Data

from demonet.errors import DemonetError
from demonet.kernels import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel, wl_classes

EDGE = torch.tensor([[0, 1], [1, 0]])
CLASSES = pytest.mark.parametrize("kernel_class", [WLSubtreeKernel, MeanWLKernel, DegreeWLKernel])


@CLASSES
def test_parameters_are_stored_and_cloned(kernel_class):
    kernel = kernel_class(n_iter=4, normalize=True)
    assert kernel.get_params().items() >= {"n_iter": 4, "normalize": True}.items()
    copy = clone(kernel.fit([path(3)]))
    assert copy.get_params() == kernel.get_params()
    with pytest.raises(NotFittedError):
        copy.transform([path(3)])
    assert kernel.set_params(n_iter=0).fit([path(3)]) is kernel


@CLASSES
def test_networkx_graphs_are_the_same_as_data(kernel_class):
    edges, given = [path(3), path(5), star(4)], [nx.path_graph(3), nx.path_graph(5), nx.star_graph(4)]
    kernel = kernel_class(n_iter=2)
    expected = kernel.fit_transform([Data(edge_index=one.edge_index, num_nodes=one.num_nodes) for one in edges])
    assert [one.num_nodes for one in edges] == [len(one) for one in given]
    np.testing.assert_allclose(kernel_class(n_iter=2).fit_transform(given), expected)
    np.testing.assert_allclose(kernel.transform(given), expected)


@CLASSES
def test_svc_with_a_precomputed_kernel(kernel_class):
    """Paths against stars, with the degree as x, are separable in all three kernel spaces."""
    graphs = [path(n) for n in range(4, 12)] + [star(n) for n in range(4, 12)]
    for data in graphs:
        data.x = torch.bincount(data.edge_index[1], minlength=data.num_nodes)[:, None].double()
    y = np.repeat([0, 1], 8)
    kernel = kernel_class(n_iter=2, normalize=True)
    classifier = SVC(kernel="precomputed", C=100.0).fit(kernel.fit_transform(graphs[::2]), y[::2])
    assert classifier.score(kernel.transform(graphs[1::2]), y[1::2]) == 1.0


@CLASSES
def test_pickle_keeps_what_was_learned(kernel_class):
    kernel = kernel_class(n_iter=2).fit([path(3), star(4)])
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again.transform([star(3)]), kernel.transform([star(3)]))


@CLASSES
def test_equal_numbers_of_any_dtype_are_the_same_label(kernel_class):
    kinds = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64)
    graphs = [Data(x=EDGE.to(kind), edge_index=EDGE) for kind in kinds]
    matrix = kernel_class(n_iter=1).fit_transform(graphs)
    np.testing.assert_array_equal(matrix, np.full((5, 5), matrix[0, 0]))


@pytest.mark.parametrize("parameters", [{"n_iter": -1}, {"n_iter": 1.5}, {"normalize": "yes"}, {"representations": 3}])
def test_bad_parameters_are_named_at_fit(parameters):
    with pytest.raises(DemonetError, match=next(iter(parameters))):
        MeanWLKernel(**parameters).fit([path(2)])


BAD_GRAPHS = {
    "empty": ([], r"\blist\b.*graphs"),
    "one Data": (path(2), r"\blist\b.*torch_geometric\.data\.data\.Data\b"),
    "a Batch": (Batch.from_data_list([path(2), path(3)]), r"\blist\b.*\bDataBatch\b"),
    "a number": (3, r"\blist\b.*\bint\b"),
    "not Data": ([path(2), "path"], r"graph 1\b.*\bstr\b"),
    "widths": ([path(2, np.ones((2, 1))), path(2, np.ones((2, 3)))], r"graph 1\b.*\bx\b.*\b3\b.*\b1\b"),
    "some without x": ([path(2, np.ones((2, 1))), path(2)], r"graph 1\b.*\bx\b"),
    "NaN": ([path(3, [[0], [np.nan], [1]])], r"graph 0\b.*\bx\b.*NaN.*node 1\b"),
    "infinity": ([path(2, [[0], [np.inf]])], r"graph 0\b.*\bx\b.*infinity.*node 1\b"),
    "flat x": ([Data(x=torch.ones(2), edge_index=EDGE)], r"graph 0\b.*\bx\b.*\[2\]"),
    "no columns": ([Data(x=torch.ones(2, 0), edge_index=EDGE)], r"graph 0\b.*\bx\b.*\[2, 0\]"),
    "complex x": ([Data(x=torch.ones(2, 1, dtype=torch.cfloat), edge_index=EDGE)], "real"),
    "sparse x": ([Data(x=torch.eye(2).to_sparse(), edge_index=EDGE)], "dense"),
    "huge labels": ([Data(x=torch.tensor([[2**53 + 1], [2**53]]), edge_index=EDGE)], "float64"),
    "no arcs given": ([Data(x=torch.ones(2, 1))], "edge_index"),
    "stray arc": ([Data(x=torch.ones(1, 1), edge_index=EDGE)], r"graph 0\b.*\b1 at edge_index"),
    "nothing": ([Data()], "graph 0.*num_nodes"),
}


@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")
@pytest.mark.parametrize(("graphs", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_bad_graphs(graphs, message):
    with pytest.raises(DemonetError, match=message):
        wl_classes(graphs, 1)


@CLASSES
def test_attributes_must_be_those_of_fit(kernel_class):
    kernel = kernel_class(n_iter=1).fit([path(2, [[1], [1]])])
    with pytest.raises(DemonetError, match=r"\bx\b"):
        kernel.transform([path(2)])
    with pytest.raises(DemonetError, match=r"\b2\b.*\b1\b"):
        kernel.transform([path(2, np.ones((2, 2)))])
    with pytest.raises(DemonetError, match=r"\bx\b"):
        kernel_class(n_iter=1).fit([path(2)]).transform([path(2, [[1], [1]])])
