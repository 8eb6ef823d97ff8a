"""Kernels on representations that the user gives: WL colours, the layers of a network."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.graphs import drawn_graphs, graph, lists_of, path, star
from tests.reference import kernels as reference
from torch_geometric.nn import GraphConv

from demonet.errors import DemonetError
from demonet.kernels import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel, wl_colours

VECTOR_KERNELS = pytest.mark.parametrize("kernel_class", [MeanWLKernel, DegreeWLKernel])


def one_hot_colours(graphs, rounds):
    """A callable that gives the colours of these rounds of each of these graphs, one-hot over all colours."""
    ends = np.cumsum([data.num_nodes for data in graphs])[:-1]
    colours = wl_colours(graphs, max(rounds))
    one_hot = {k: np.split(np.eye(colours[k].max(initial=0) + 1)[colours[k]], ends) for k in rounds}
    place = {id(data): i for i, data in enumerate(graphs)}
    return lambda data: [torch.from_numpy(one_hot[k][place[id(data)]]) for k in rounds]


@given(graphs=lists_of(drawn_graphs(), max_size=5), h=st.integers(1, 3))
def test_the_three_kernels_coincide_on_colours_from_round_one_on(graphs, h):
    """A colour of round k >= 1 contains the multiset of the neighbours' colours, hence the degree."""
    from_one = one_hot_colours(graphs, range(1, h + 1))
    degree = DegreeWLKernel(n_iter=h - 1, representations=from_one).fit_transform(graphs)
    mean = MeanWLKernel(n_iter=h - 1, representations=from_one).fit_transform(graphs)
    subtree = WLSubtreeKernel(n_iter=h).fit_transform(graphs) - WLSubtreeKernel(n_iter=0).fit_transform(graphs)
    np.testing.assert_array_equal(degree, mean)
    np.testing.assert_array_equal(mean, subtree)


@given(graphs=lists_of(drawn_graphs(), max_size=5), h=st.integers(0, 3))
def test_at_round_zero_only_mean_and_subtree_coincide(graphs, h):
    """The label alone does not fix the degree: there the degree kernel counts the pairs that agree in both."""
    colours = one_hot_colours(graphs, range(h + 1))
    mean = MeanWLKernel(n_iter=h, representations=colours).fit_transform(graphs)
    np.testing.assert_array_equal(mean, WLSubtreeKernel(n_iter=h).fit_transform(graphs))
    assert (DegreeWLKernel(n_iter=h, representations=colours).fit_transform(graphs) <= mean).all()


@pytest.mark.parametrize(
    ("kernel_class", "equation"), [(MeanWLKernel, reference.mean_wl), (DegreeWLKernel, reference.degree_wl)]
)
def test_layers_of_a_network(kernel_class, equation):
    """Levels of different widths, in float32 and with a gradient, as a model gives them."""
    torch.manual_seed(0)
    first, second = GraphConv(2, 5), GraphConv(5, 3)

    def layers(data):
        x = data.x.float()
        h = first(x, data.edge_index).relu()
        return [x, h, second(h, data.edge_index)]

    graphs = [star(4, np.eye(2)[[0, 1, 1, 0, 1]]), path(3, np.eye(2)[[0, 0, 1]]), graph(1, x=[[0, 1]])]
    expected = reference.gram(
        lambda a, b, h: equation(a, b, h, lambda data, _: [level.detach().double().numpy() for level in layers(data)]),
        graphs,
        graphs,
        2,
    )
    np.testing.assert_allclose(kernel_class(n_iter=2, representations=layers).fit_transform(graphs), expected)


@VECTOR_KERNELS
@pytest.mark.parametrize(
    ("representations", "message"),
    [
        (lambda data: [torch.ones(data.num_nodes, 2)], r"\b1\b.*n_iter=1\b.*\b2\b"),
        (lambda data: torch.ones(2, data.num_nodes, 2), r"representations\b.*\blist\b.*\bTensor\b"),
        (lambda data: [torch.ones(data.num_nodes, 2), torch.ones(1, 2)], r"level 1\b.*graph 0\b.*\[1, 2\]"),
        (lambda data: [torch.ones(data.num_nodes)] * 2, r"level 0\b.*graph 0\b.*\[2\]"),
        (lambda data: [np.ones((data.num_nodes, 2))] * 2, r"numpy\.ndarray"),
        (lambda data: [torch.full((data.num_nodes, 2), torch.nan)] * 2, "NaN"),
        (lambda data: [torch.ones(data.num_nodes, data.num_nodes)] * 2, r"level 0 .*\[2, 3\]"),
    ],
)
def test_bad_representations(kernel_class, representations, message):
    with pytest.raises(DemonetError, match=message):
        kernel_class(n_iter=1, representations=representations).fit([path(2), path(3)])


@VECTOR_KERNELS
def test_widths_must_be_those_of_fit(kernel_class):
    kernel = kernel_class(n_iter=0, representations=lambda data: [torch.ones(data.num_nodes, data.num_nodes)])
    with pytest.raises(DemonetError, match=r"\[3\].*\[2\]"):
        kernel.fit([path(2)]).transform([path(3)])
