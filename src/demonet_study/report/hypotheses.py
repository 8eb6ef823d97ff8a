"""Three of the paper's claims and one about its idea: comparisons that were fixed before any run was looked at.

A claim is a list of comparisons. Each is tested on every data set by the corrected test of
:mod:`~demonet.runs.statistics`, over the splits that both methods have, and over all sets by the mean of the
sets' differences. Holm's correction covers all comparisons of the claim, separately for single sets and for all sets.

A verdict needs every wanted run, because a test that is repeated while runs come in is biased. Until then a comparison
has its difference and interval, and the verdict "not yet run".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from demonet import methods
from demonet.data.catalog import find
from demonet.runs.statistics import Difference, paired
from demonet_study.experiments.default import ARMS, GENERATED, KERNEL
from demonet_study.experiments.methods import family_in_catalog
from demonet_study.experiments.statistics import Comparison, ratio_of, with_holm
from demonet_study.protocol import FRESH
from demonet_study.report.grid import ResultRow
from demonet_study.report.names import NODE_FLOORS
from demonet_study.report.parts import default, graphs, nodes, splits
from demonet_study.report.standing import STRICT

Words = Literal["holds", "does not hold", "undecided", "not yet run"]


class MethodPreset(NamedTuple):
    """A method and its preset; the preset of a baseline is empty."""

    name: str
    preset: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.preset})" if self.preset not in ("", "default") else self.name


Pair = tuple[MethodPreset, MethodPreset]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the comparisons that test it.

    Attributes:
        name: A short name.
        statement: The claim in words.
        part: The part whose rows answer it.
        sets: The data sets.
        generated: Generated graphs on which it is tested, too; they do not count in the mean over all sets.
        rule: The rule of the rows, in a part that has several.
        splits: The protocols of a data set; if there are several, a run is the mean over them.
        pairs: (ours, theirs): the claim is that ours is above.
        beside: Further comparisons, which the paper does not make and the verdict does not depend on.
    """

    name: str
    statement: str
    part: str
    sets: tuple[str, ...]
    splits: Callable[[str], tuple[str, ...]]
    pairs: tuple[Pair, ...]
    beside: tuple[Pair, ...] = ()
    generated: tuple[str, ...] = ()
    rule: str = ""


@dataclass(frozen=True)
class Answer(Comparison):
    """One comparison of a claim, on one data set or over all: whether the subject is above the rival.

    Attributes:
        claim: Name of the claim.
        beside: Whether it is a further comparison, see :class:`Claim`.
    """

    claim: str = ""
    beside: bool = False

    @property
    def verdict(self) -> Words:
        """The answer in words."""
        if self.missing or self.difference is None:
            return "not yet run"
        ways: dict[int, Words] = {1: "holds", -1: "does not hold", 0: "undecided"}
        return ways[self.way(self.corrected)]


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on a claim for one of our methods: it holds if every comparison over all sets does."""

    claim: Claim
    subject: MethodPreset
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

_OURS = tuple(
    MethodPreset(name, preset) for name in ("demonet-hash", "demonet-weight") for preset in ("paper", "authors")
)
_DEFAULT = MethodPreset("demonet-default", "default")
_NETWORKS = tuple(MethodPreset(name) for name in ("sage", "gcn", "gcn-cheby", "union", "intersection", "gat"))
_EMBEDDINGS = tuple(MethodPreset(name) for name in ("rolx", "struc2vec", "graphwave"))
_PAPERS = tuple(method for method in _OURS if method.preset == "paper")


def _each(subjects: Sequence[MethodPreset], rivals: Sequence[MethodPreset]) -> tuple[Pair, ...]:
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
        _each((*_OURS, _DEFAULT), [MethodPreset(name) for name in ("gin", *NODE_FLOORS)]),
    ),
    Claim(
        "embeddings",
        "DEMO-Net is above embeddings of structural roles, on average over shares of training nodes.",
        "splits",
        nodes.AIRPORTS,
        lambda dataset: tuple(f"train:{share}" for share in splits.FRACTIONS),
        _each((*_PAPERS, _DEFAULT), _EMBEDDINGS),
        _each((*_PAPERS, _DEFAULT), [MethodPreset(name) for name in ("structural-lr", "degree-knn")]),
    ),
    Claim(
        "pooling",
        "Reading graphs out by degree is above reading them out by the mean of their nodes.",
        "graphs",
        graphs.SETS,
        _protocol,
        tuple((method, MethodPreset(method.name.replace("demonet-", "demonet-m-"), "paper")) for method in _PAPERS),
    ),
    Claim(
        "degree",
        "The degree-specific part pays: the closed form is above itself without it, and above itself with shuffled "
        "degrees.",
        "default",
        default.ARM_SETS,
        lambda dataset: (f"{FRESH}thirds",) if dataset in GENERATED else _protocol(dataset),
        _each([MethodPreset(KERNEL)], [MethodPreset(default.arm_name(arm)) for arm in ARMS if arm != "best"]),
        generated=tuple(GENERATED),
        rule=STRICT,
    ),
)


def verdicts(found: Sequence[Answer]) -> list[ClaimVerdict]:
    """The verdict on every claim for each of our methods, from all that :func:`answers` found."""
    return [
        _verdict(claim, subject, [a for a in found if (a.claim, a.subject, a.over) == (claim.name, subject, ALL)])
        for claim in CLAIMS
        for subject in dict.fromkeys(subject for subject, _ in claim.pairs)
    ]


def _verdict(claim: Claim, subject: MethodPreset, found: Sequence[Answer]) -> ClaimVerdict:
    made = tuple(answer for answer in found if not answer.beside)
    words = {answer.verdict for answer in made}
    order: tuple[Words, ...] = ("not yet run", "does not hold", "undecided", "holds")
    return ClaimVerdict(claim, subject, next(word for word in order if word in words), made)


ALL = "all sets"


def answers(rows: Sequence[ResultRow]) -> list[Answer]:
    """Every comparison of every claim: over all data sets, then on each."""
    return [answer for claim in CLAIMS for answer in _of_claim(claim, rows)]


def _of_claim(claim: Claim, rows: Sequence[ResultRow]) -> Iterator[Answer]:
    table = {
        (r.dataset, MethodPreset(r.method, r.preset), r.split): r
        for r in rows
        if r.part == claim.part and r.rule == claim.rule
    }
    for pairs, beside in ((claim.pairs, False), (claim.beside, True)):
        over_all, single = [], []
        for subject, rival in pairs:
            compared = {
                name: _on_set(table, claim.splits(name), name, subject, rival)
                for name in claim.sets
                if all(_applies(method.name, name) for method in (subject, rival))
            }
            more = {"claim": claim.name, "beside": beside}
            over_all.append(Answer.over_sets(subject, rival, ALL, compared, **more))
            compared |= {name: _on_set(table, claim.splits(name), name, subject, rival) for name in claim.generated}
            single += [Answer.over_sets(subject, rival, name, {name: one}, **more) for name, one in compared.items()]
        yield from with_holm(over_all)
        yield from with_holm(single)


def _applies(method: str, dataset: str) -> bool:
    known = KERNEL if method.startswith(KERNEL) else method  # an arm of the closed form is the same method
    return methods.get(known).applies(family_in_catalog(dataset))


def _on_set(
    table: Mapping[tuple[str, MethodPreset, str], ResultRow],
    protocols: Sequence[str],
    name: str,
    subject: MethodPreset,
    rival: MethodPreset,
) -> tuple[Difference | None, bool]:
    """The difference on one data set, if there are paired runs under every protocol, and whether no run is missing.

    Runs of one seed under several protocols share nodes, so they are not independent: they are averaged first.
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
