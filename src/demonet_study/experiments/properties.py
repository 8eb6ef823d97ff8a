"""The paper's Table 1 by computation: which convolutions are seed-oriented, degree-aware and order-free.

``python -m demonet_study.experiments.properties [--out results]`` writes ``properties_marks.csv`` (the marks),
``properties_pairs.csv`` (the deciding pairs under every model) and ``properties_reals.csv`` (see
:mod:`demonet_study.experiments.expressive.reals`). A single mark is a run of the ledger.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demonet.errors import DemonetError
from demonet.runs.measure import Meter
from demonet_study.experiments.expressive.convolutions import table_one, tally
from demonet_study.experiments.expressive.reals import real_collisions
from demonet_study.experiments.expressive.subtrees import Pairs, all_subtrees, pair_shares, property_pairs
from demonet_study.experiments.rows import write_rows
from demonet_study.ledger.job import Job, Outcome


@dataclass(frozen=True)
class Mark:
    """Whether a model has a property, by computation and by the paper's Table 1."""

    model: str
    property: str  # the property; subtree-only is not in the paper
    pairs_taken: str  # "lemma" (every pair that the lemma covers) or "alone" (those that differ in nothing else)
    holds: bool  # False if a pair that should differ collides in every draw, or one that should agree differs in some
    paper: str  # the paper's mark
    pairs: int  # number of pairs tried
    always: int  # of these, how many collide in every draw of the weights
    sometimes: int  # how many collide in some draws and not in others
    left: str  # the pair that decides or, where the property holds, the one that comes nearest to breaking it
    right: str  # the other subtree of that pair
    share: float  # the share of draws in which that pair collides


@dataclass(frozen=True)
class PairShare:
    """The share of draws in which a pair that decided some model's mark collides under this model."""

    property: str
    left: str
    right: str
    model: str
    share: float


def table_one_by_computation(
    *, max_nodes: int = 4, num_colours: int = 3, draws: int = 100, seed: int = 0
) -> tuple[list[Mark], list[PairShare]]:
    """All marks, and every deciding pair under every model.

    Args:
        max_nodes: Subtrees come from all connected graphs with at most this many nodes; two neighbours need three.
        num_colours: Number of one-hot attributes.
        draws: Number of draws of the weights.
        seed: Seed of the first draw; each draw has the next.
    """
    if max_nodes < 3 or num_colours < 2 or draws < 1:
        raise DemonetError(
            f"max_nodes={max_nodes}, num_colours={num_colours}, draws={draws}: at least 3, 2 and 1 are needed"
        )
    pairs = property_pairs(all_subtrees(max_nodes, num_colours))
    models = table_one(max_degree=max_nodes - 1)
    shares = [pair_shares(model, pairs, num_colours=num_colours, draws=draws, seed=seed) for model in models]
    marks: list[Mark] = []
    deciding_shares: list[PairShare] = []
    for place, p in enumerate(pairs):
        deciding: set[int] = set()
        for model, share in zip(models, shares, strict=True):
            for taken in ("lemma",) if p.should_agree else ("lemma", "alone"):
                paper = [*model.paper, ""][place]
                mark, witness = _mark(model.name, paper, p, taken, share[place])
                marks.append(mark)
                deciding.add(witness)
        deciding_shares += [
            PairShare(p.name, *p.names(pair), model.name, float(share[place][pair]))
            for pair in sorted(deciding)
            for model, share in zip(models, shares, strict=True)
        ]
    return marks, deciding_shares


def properties(job: Job, device: str = "cpu") -> Outcome:
    """One run of kind ``properties``, on the CPU: the cell's data set names the property; the value is 1 or 0.

    Options are ``model``, a layer of :func:`~demonet_study.experiments.expressive.convolutions.table_one` by its name,
    ``max_nodes``, ``num_colours`` and ``draws``, as above. A run draws the weights many times; another seed gives other
    draws.
    """
    meter, options = Meter(), json.loads(job.cell.options)
    draws, colours, nodes = (options[name] for name in ("draws", "num_colours", "max_nodes"))
    found = [p for p in property_pairs(all_subtrees(nodes, colours)) if p.name == job.cell.dataset]
    models = [model for model in table_one(max_degree=nodes - 1) if model.name == options["model"]]
    if not found or not models:
        raise DemonetError(f"no property {job.cell.dataset!r} of a layer {options['model']!r}")
    (share,) = pair_shares(models[0], found, num_colours=colours, draws=draws, seed=draws * job.seed)
    mark, _ = _mark(models[0].name, "", found[0], "lemma", share)
    kept = ("pairs", "always", "sometimes", "left", "right", "share")
    return Outcome(float(mark.holds), meter.seconds, meter.peak_memory_mb, {name: asdict(mark)[name] for name in kept})


def _mark(model: str, paper: str, pairs: Pairs, taken: str, share: NDArray[np.float64]) -> tuple[Mark, int]:
    """The mark and the pair that decides it: the first that collides most often (least often, if it should)."""
    among = np.flatnonzero(pairs.alone) if taken == "alone" else np.arange(len(share))
    chosen = share[among]
    witness = int(among[chosen.argmin() if pairs.should_agree else chosen.argmax()])
    always, sometimes = tally(chosen)
    holds = always == len(among) if pairs.should_agree else always == 0
    left, right = pairs.names(witness)
    mark = Mark(
        model, pairs.name, taken, holds, paper, len(among), always, sometimes, left, right, float(share[witness])
    )
    return mark, witness


def main(argv: Sequence[str] | None = None) -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(prog="python -m demonet_study.experiments.properties", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the files")
    parser.add_argument("--draws", type=int, default=100, help="draws of the weights")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first draw")
    options = parser.parse_args(argv)
    marks, shares = table_one_by_computation(draws=options.draws, seed=options.seed)
    write_rows(marks, options.out / "properties_marks.csv")
    write_rows(shares, options.out / "properties_pairs.csv")
    write_rows(real_collisions(draws=options.draws, seed=options.seed), options.out / "properties_reals.csv")


if __name__ == "__main__":
    main()
