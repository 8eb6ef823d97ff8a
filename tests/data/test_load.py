"""Every set of the paper, loaded from its real files, has the statistics that are documented for it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.utils import contains_self_loops

from demonet.data import CATALOG, GraphSet, ids_of, load
from demonet.data.catalog import find
from demonet.data.load import degrees, measure
from demonet.errors import DemonetWarning

LOOPS = {"brazil": 71, "europe": 2}


def quiet(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        return load(name, **options)


@pytest.mark.data
@pytest.mark.parametrize("name", CATALOG)
def test_the_files_hold_simple_graphs_of_the_documented_size(use_paper_data, name):
    data, expected = quiet(name), CATALOG[name].statistics
    found = measure(data)
    if not expected.class_counts:  # no labels in the file: quartiles of the degree, tested below
        assert len(found.class_counts) == 4
        found = replace(found, class_counts=())
    assert found == expected
    for graph in data if isinstance(data, GraphSet) else [data]:
        assert graph.is_undirected()
        assert graph.is_coalesced()
        assert not contains_self_loops(graph.edge_index)
        assert graph.y.dtype == torch.int64
        assert len(graph.node_ids) == graph.num_nodes


@pytest.mark.data
@pytest.mark.parametrize(("name", "loops"), LOOPS.items())
def test_loops_are_dropped_aloud_or_kept(use_paper_data, name, loops):
    with pytest.warns(DemonetWarning, match=f"{loops} self-loops"):
        dropped = load(name)
    kept = load(name, self_loops="keep")
    assert kept.edge_index.size(1) == dropped.edge_index.size(1) + loops
    assert measure(kept).edges == measure(dropped).edges + loops
    if name == "brazil":  # a loop counts once
        assert (measure(kept).max_degree, measure(kept).distinct_degrees) == (80, 45)


@pytest.mark.data
def test_reciprocal_votes_are_merged_aloud(use_paper_data):
    with pytest.warns(DemonetWarning, match="2927 edges"):
        load("wiki-vote")


@pytest.mark.data
@pytest.mark.parametrize("name", ["facebook", "wiki-vote"])
def test_classes_by_degree_are_quartiles_with_ties_together(use_paper_data, name):
    data = quiet(name)
    degree = degrees(data).numpy()
    for cut, share in zip(data.degree_cuts, (0.25, 0.5, 0.75), strict=True):
        # the smallest degree that at least this share of the nodes does not exceed
        assert np.mean(degree <= cut) >= share > np.mean(degree < cut)
    for value in np.unique(degree):
        assert data.y[torch.from_numpy(degree == value)].unique().numel() == 1
    first, second, third = data.degree_cuts
    expected = (degree > first).astype(int) + (degree > second) + (degree > third)
    assert np.array_equal(data.y, expected)
    assert data.class_names[1] == f"degree {first + 1} to {second}"


@pytest.mark.data
def test_original_ids_are_kept(use_paper_data):
    usa = quiet("usa")
    assert (usa.node_ids[0], usa.node_ids[-1]) == (10005, 16746)
    assert quiet("wiki-vote").node_ids[:3].tolist() == [3, 4, 5]
    labels = dict(
        line.split() for line in (use_paper_data / "usa-airports/labels-usa-airports.txt").read_text().splitlines()[1:]
    )
    assert [usa.class_names[y] for y in usa.y] == [int(labels[str(node)]) for node in ids_of(usa)]


@pytest.mark.data
def test_attributes_and_node_labels(use_paper_data):
    flickr = quiet("flickr")
    assert flickr.x.layout == torch.sparse_csr
    assert int((flickr.x.crow_indices().diff() == 0).sum()) == 11  # nodes without any attribute
    assert set(flickr.x.values().unique().tolist()) > {1.0, 2.0, 3.0}
    assert flickr.class_names == list(range(1, 10))
    enzymes = quiet("ENZYMES")
    assert enzymes[0].attributes.shape == (37, 18)
    assert enzymes.node_label_names == [1, 2, 3]
    assert quiet("PROTEINS")[0].attributes.shape == (42, 1)
    ptc = quiet("PTC")
    assert ptc.node_label_names == [tag for tag in range(1, 22) if tag not in (10, 12)]
    assert all((graph.x.sum(dim=1) == 1).all() for graph in ptc)
    assert quiet("MUTAG").class_names == [-1, 1]


def test_names_in_any_case_and_near_misses(refuses):
    assert find("mutag").name == "MUTAG"
    assert find("Brazil-Airports").name == "brazil"
    refuses(lambda: load("brasil"), "'brasil'", "'brazil'")
    refuses(lambda: load("cora"), "'cora'")
