"""Splits by the name of their protocol."""

import pytest
import torch

from demonet import DemonetError
from demonet.data.catalog import CATALOG
from demonet.data.splits import nested_k_fold, train_fraction
from demonet_study.protocol import paper_split, split_by

Y = torch.arange(1000) % 4


def sizes(split):
    return [part.numel() for part in (split.train, split.val, split.test)]


@pytest.mark.parametrize(
    ("protocol", "parts"),
    [
        ("thirds", (333, 334, 333)),
        ("10/20/70", (100, 200, 700)),
        ("train:0.3", (240, 60, 700)),
        ("nested:10", (810, 90, 100)),
    ],
)
def test_the_parts_of_each_protocol(protocol, parts):
    split = split_by(protocol, Y, seed=1)
    assert all(abs(size - part) <= 1 for size, part in zip(sizes(split), parts, strict=True))
    assert sum(sizes(split)) == 1000
    assert split == split_by(protocol, Y, seed=1) != split_by(protocol, Y, seed=2)


def test_they_are_those_of_the_splits_room():
    assert split_by("train:0.7", Y, 3) == train_fraction(Y, 0.7, 3)
    assert split_by("nested:5", Y, 2) == nested_k_fold(Y, 5, 10, seed=0)[2][0]


@pytest.mark.parametrize("name", CATALOG)
def test_the_papers_protocol_of_each_set(name):
    social = name in ("facebook", "wiki-vote", "blogcatalog", "flickr")
    assert paper_split(name, Y, 0) == split_by("10/20/70" if social else "thirds", Y, 0)


@pytest.mark.parametrize("protocol", ["halves", "train:", "train:most", "nested:", "nested:-1", ""])
def test_an_unknown_protocol_is_named(protocol):
    with pytest.raises(DemonetError, match=rf"{protocol!r}.*'thirds'"):
        split_by(protocol, Y, 0)


def test_a_fold_that_is_not_there():
    with pytest.raises(DemonetError, match=r"fold 10\b.*\b10\b"):
        split_by("nested:10", Y, 10)
