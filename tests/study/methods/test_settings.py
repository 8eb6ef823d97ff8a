"""Settings of the compared systems that cannot be: the error names the setting and its value."""

from __future__ import annotations

import sys

import pytest
from tests.kernels.graphs import path

from demonet import DemonetError, methods
from demonet.data.synthetic import role_graph
from demonet_study.methods.deepwl import DeepWLKernel


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("struc2vec", {"walks": 0}, r"walks .*0"),
        ("struc2vec", {"neighbours": -1}, r"neighbours .*-1"),
        ("struc2vec", {"stay": 0.0}, r"stay .*0\.0"),
        ("graphwave", {"points": 1}, r"points .*1"),
        ("graphwave", {"kept": (0.5, 0.9)}, r"kept .*0\.5, 0\.9"),
        ("graphwave", {"orders": 3}, r"^graphwave .*'orders'.*scales, points"),
        ("rolx", {"share": 1.0}, r"share .*1\.0"),
        ("rolx", {"bits": ()}, "bits"),
        ("dcnn", {"hops": -1}, r"hops .*-1"),
        ("patchy-san", {"field": 16}, r"field .*\b15\b.*\b16\b"),
        ("diffpool", {"ratio": 1.5}, "ratio"),
        ("union", {"alpha": 0.0}, r"alpha .*0"),
        ("wl", {"rounds": ()}, "rounds"),
        ("wl-lr", {"rounds": (-1,)}, r"rounds .*0.*-1"),
        ("degree-wl", {"strengths": (0.0,)}, r"C .*0\.0"),
        ("deepwl", {"windows": (0,)}, r"windows .*0"),
    ],
)
def test_bad_settings(name, changes, message):
    with pytest.raises(DemonetError, match=message):
        methods.get(name)(**changes)


def test_gensim_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(DemonetError, match=r"deepwl.*gensim.*demonet\[paper\]"):
        DeepWLKernel().fit([path(2)])
    with pytest.raises(DemonetError, match=r"struc2vec.*gensim.*demonet\[paper\]"):
        methods.get("struc2vec")(walks=1, length=4).embed(role_graph(0, motifs=4))
