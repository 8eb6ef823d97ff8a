"""The protocol under which embeddings were printed: one embedding, splits of 70 and 30 percent."""

from __future__ import annotations

import pytest
import torch

from demonet.data.synthetic import role_graph
from demonet.experiments.published import embeddings
from demonet.experiments.published.embeddings import CLAIMS, seventy_thirty


def test_every_printed_number_is_a_claim():
    assert {(claim.method, claim.dataset): claim.published for claim in CLAIMS}["graphwave", "usa"] == 0.517
    assert len({claim.key for claim in CLAIMS}) == 9


def test_one_embedding_and_seventy_thirty(monkeypatch):
    """The graph is embedded once; 30 % of 56 nodes, 17, are tested each time, and nobody validates."""
    graph = role_graph(0, motifs=8)
    splits, real = [], embeddings.classify
    monkeypatch.setattr(embeddings, "load", lambda name: graph)
    monkeypatch.setattr(embeddings, "classify", lambda z, y, split: splits.append((z, split)) or real(z, y, split))
    found = seventy_thirty("graphwave", "made up", runs=3)
    assert len({id(z) for z, _ in splits}) == 1
    assert [(s.train.numel(), s.val.numel(), s.test.numel()) for _, s in splits] == [(39, 0, 17)] * 3
    assert not torch.equal(splits[0][1].test, splits[1][1].test)
    assert all(round(share * 17) == pytest.approx(share * 17) for share in found)
