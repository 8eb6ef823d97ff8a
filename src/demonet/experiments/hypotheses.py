"""Three of the paper's claims as hypotheses: comparisons fixed before any run is looked at, answered as they come out.

A claim is a list of comparisons. Each is made on every set by the corrected test of
:mod:`~demonet.experiments.statistics` over the splits that both methods have, and over all sets by the mean of the
sets' differences. Holm's correction is over all comparisons of the claim, for single sets and over all sets apart.

A verdict asks for every run that was wanted: a test that is looked at while runs come in is not the test it says it
is. What is there until then has its difference and interval, and the verdict "not yet run".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from demonet.data.catalog import find
from demonet.experiments.methods import applies, family_in_catalog
from demonet.experiments.parts import graphs, nodes, splits
from demonet.experiments.parts.row import Row
from demonet.experiments.statistics import Difference, holm, paired, pooled, ratio_of

LEVEL = 0.05
Words = Literal["holds", "does not hold", "undecided", "not yet run"]


class Method(NamedTuple):
    """A method and its preset, which is empty for baselines."""

    name: str
    preset: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.preset})" if self.preset not in ("", "default") else self.name


@dataclass(frozen=True)
class Claim:
    """What the paper says, and the comparisons that it comes to.

    Attributes:
        name: What it is called here.
        statement: In words.
        part: The part whose rows it is answered from.
        sets: The sets.
        splits: The protocols of a set; where there are several, a run is the mean over them.
        pairs: (ours, theirs): the claim is that ours is above.
        beside: Comparisons that the paper did not make, and that its claim does not stand or fall with.
    """

    name: str
    statement: str
    part: str
    sets: tuple[str, ...]
    splits: Callable[[str], tuple[str, ...]]
    pairs: tuple[tuple[Method, Method], ...]
    beside: tuple[tuple[Method, Method], ...] = ()


@dataclass(frozen=True)
class Answer:
    """One comparison, on one set or over all.

    Attributes:
        claim: Name of the claim.
        subject, rival: Who is said to be above whom.
        over: The set, or ``"all sets"``.
        sets: On which sets there are runs of both.
        missing: On which sets runs are still missing.
        difference, low, high: By how much the subject is above, with the 95 % interval; NaN without runs.
        p, corrected: Two-sided, before and after Holm's correction; NaN without runs, and corrected only where all
            are there.
        runs: Paired runs, the fewest of any set.
        beside: Whether it is one that the paper did not make.
        verdict: In words.
    """

    claim: str
    subject: Method
    rival: Method
    over: str
    sets: tuple[str, ...]
    missing: tuple[str, ...]
    difference: float
    low: float
    high: float
    p: float
    corrected: float
    runs: int
    beside: bool
    verdict: Words


@dataclass(frozen=True)
class Verdict:
    """A claim for one of our methods: it holds if every comparison over all sets does, and not if one is reversed."""

    claim: Claim
    subject: Method
    verdict: Words
    answers: tuple[Answer, ...]

    def __str__(self) -> str:
        by = {word: [str(answer.rival) for answer in self.answers if answer.verdict == word] for word in WORDS}
        said = [f"{_PHRASES[word]} {', '.join(rivals)}" for word, rivals in by.items() if rivals]
        return f"{self.subject}: {self.verdict}: {'; '.join(said)}"


WORDS: tuple[Words, ...] = ("holds", "does not hold", "undecided", "not yet run")
_PHRASES: dict[Words, str] = {
    "holds": "above",
    "does not hold": "below",
    "undecided": "no difference shown from",
    "not yet run": "not yet compared with",
}

_OURS = tuple(Method(name, preset) for name in ("demonet-hash", "demonet-weight") for preset in ("paper", "authors"))
_DEFAULT = Method("demonet-default", "default")
_NETWORKS = tuple(Method(name) for name in ("sage", "gcn", "gcn-cheby", "union", "intersection", "gat"))
_EMBEDDINGS = tuple(Method(name) for name in ("rolx", "struc2vec", "graphwave"))
_PAPERS = tuple(method for method in _OURS if method.preset == "paper")


def _each(subjects: Sequence[Method], rivals: Sequence[Method]) -> tuple[tuple[Method, Method], ...]:
    return tuple((subject, rival) for subject in subjects for rival in rivals)


def _protocol(dataset: str) -> tuple[str, ...]:
    return (find(dataset).protocol,)


CLAIMS = (
    Claim(
        "networks",
        "DEMO-Net is above other graph neural networks at classifying nodes.",
        "nodes",
        nodes.SETS,
        _protocol,
        _each((*_OURS, _DEFAULT), _NETWORKS),
        _each((*_OURS, _DEFAULT), [Method(name) for name in ("gin", *nodes.FLOORS)]),
    ),
    Claim(
        "embeddings",
        "DEMO-Net is above embeddings of structural roles, on average over shares of training nodes.",
        "splits",
        nodes.AIRPORTS,
        lambda dataset: tuple(f"train:{share}" for share in splits.FRACTIONS),
        _each((*_PAPERS, _DEFAULT), _EMBEDDINGS),
        _each((*_PAPERS, _DEFAULT), [Method(name) for name in ("structural-lr", "degree-knn")]),
    ),
    Claim(
        "pooling",
        "Reading graphs out by degree is above reading them out by the mean of their nodes.",
        "graphs",
        graphs.SETS,
        _protocol,
        tuple((method, Method(method.name.replace("demonet-", "demonet-m-"), "paper")) for method in _PAPERS),
    ),
)


def verdicts(found: Sequence[Answer]) -> list[Verdict]:
    """Every claim, for each of our methods that it speaks of, by all that :func:`answers` found."""
    return [
        _verdict(claim, subject, [a for a in found if (a.claim, a.subject, a.over) == (claim.name, subject, ALL)])
        for claim in CLAIMS
        for subject in dict.fromkeys(subject for subject, _ in claim.pairs)
    ]


def _verdict(claim: Claim, subject: Method, found: Sequence[Answer]) -> Verdict:
    made = tuple(answer for answer in found if not answer.beside)
    words = {answer.verdict for answer in made}
    order: tuple[Words, ...] = ("not yet run", "does not hold", "undecided", "holds")
    return Verdict(claim, subject, next(word for word in order if word in words), made)


ALL = "all sets"


def answers(rows: Sequence[Row]) -> list[Answer]:
    """Every comparison of every claim: over all sets, then on each."""
    return [answer for claim in CLAIMS for answer in _of_claim(claim, rows)]


def _of_claim(claim: Claim, rows: Sequence[Row]) -> Iterator[Answer]:
    table = {(r.dataset, Method(r.method, r.preset), r.split): r for r in rows if r.part == claim.part}
    for pairs, beside in ((claim.pairs, False), (claim.beside, True)):
        over_all, single = [], []
        for subject, rival in pairs:
            compared = {
                name: _on_set(table, claim.splits(name), name, subject, rival)
                for name in claim.sets
                if all(applies(method.name, family_in_catalog(name)) for method in (subject, rival))
            }
            over_all.append(_answer(claim, subject, rival, ALL, compared, beside))
            single += [_answer(claim, subject, rival, name, {name: one}, beside) for name, one in compared.items()]
        yield from _corrected(over_all)
        yield from _corrected(single)


def _on_set(
    table: Mapping[tuple[str, Method, str], Row], protocols: Sequence[str], name: str, subject: Method, rival: Method
) -> tuple[Difference | None, bool]:
    """The difference on one set, if there are paired runs under every protocol, and whether all that were wanted are.

    Runs of one seed under several protocols share nodes, so they are no runs of their own: they are averaged first.
    """
    mine, theirs = ([table.get((name, method, protocol)) for protocol in protocols] for method in (subject, rival))
    there = [row for row in (*mine, *theirs) if row is not None]
    runs = min(len(row.values) for row in there) if len(there) == 2 * len(protocols) else 0
    if runs < 2:
        return None, False
    first, second = (
        [math.fsum(row.values[i] for row in side if row is not None) / len(side) for i in range(runs)]
        for side in (mine, theirs)
    )
    ratios = [ratio_of(protocol) for protocol in protocols]
    tested = math.fsum(ratio / (1 + ratio) for ratio in ratios) / len(ratios)
    return paired(first, second, tested / (1 - tested)), all(row.whole for row in there)


def _answer(
    claim: Claim,
    subject: Method,
    rival: Method,
    over: str,
    compared: Mapping[str, tuple[Difference | None, bool]],
    beside: bool,
) -> Answer:
    """Without its correction, which needs all the others; "undecided" stands for "there is an answer" until then."""
    found = {name: one for name, (one, _) in compared.items() if one is not None}
    missing = tuple(name for name, (_, whole) in compared.items() if not whole)
    whole = pooled(list(found.values())) if found else None
    numbers = (whole.mean, whole.low, whole.high, whole.p) if whole else (math.nan,) * 4
    return Answer(
        claim.name,
        subject,
        rival,
        over,
        tuple(found),
        missing,
        *numbers,
        corrected=math.nan,
        runs=whole.runs if whole else 0,
        beside=beside,
        verdict="not yet run" if missing or not compared else "undecided",
    )


def _corrected(family: Sequence[Answer]) -> Iterator[Answer]:
    """An answer that is still to come is a member of its family, but what is there of it decides nothing yet."""
    made = [math.nan if answer.verdict == "not yet run" else answer.p for answer in family]
    for answer, p in zip(family, holm(made), strict=True):
        verdict = answer.verdict
        if verdict == "undecided" and p < LEVEL:
            verdict = "holds" if answer.difference > 0 else "does not hold"
        yield replace(answer, corrected=p, verdict=verdict)
