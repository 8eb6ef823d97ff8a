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
from demonet.methods.closed_form import ARMS
from demonet.report.page import Section, Table, Text
from demonet.report.table_cells import Cell, Column
from demonet.runs.statistics import Difference, paired
from demonet_study.experiments.accuracy import GENERATED, KERNEL, family_in_catalog
from demonet_study.experiments.statistics import Comparison, ratio_of, with_holm
from demonet_study.protocol import FRESH
from demonet_study.report.grid import NOT_YET, ResultRow, cross, difference_cell, p_text
from demonet_study.report.names import NODE_FLOORS, method_name, set_name
from demonet_study.report.parts import default, tables
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
    """A claim of the paper and the comparisons that test it."""

    name: str
    statement: str  # the claim in words
    part: str  # the part whose rows answer it
    sets: tuple[str, ...]
    # The protocols of a data set; if there are several, a run is the mean over them.
    splits: Callable[[str], tuple[str, ...]]
    pairs: tuple[Pair, ...]  # (ours, theirs): the claim is that ours is above
    # Further comparisons, which the paper does not make and the verdict does not depend on.
    beside: tuple[Pair, ...] = ()
    # Generated graphs on which it is tested, too; they do not count in the mean over all sets.
    generated: tuple[str, ...] = ()
    rule: str = ""  # the rule of the rows, in a part that has several


@dataclass(frozen=True)
class Answer(Comparison):
    """One comparison of a claim, on one data set or over all: whether the subject is above the rival."""

    claim: str = ""
    beside: bool = False  # whether it is a further comparison, see Claim

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
        tables.NODE_SETS,
        _protocol,
        _each((*_OURS, _DEFAULT), _NETWORKS),
        _each((*_OURS, _DEFAULT), [MethodPreset(name) for name in ("gin", *NODE_FLOORS)]),
    ),
    Claim(
        "embeddings",
        "DEMO-Net is above embeddings of structural roles, on average over shares of training nodes.",
        "splits",
        tables.AIRPORTS,
        lambda dataset: tuple(f"train:{share}" for share in tables.FRACTIONS),
        _each((*_PAPERS, _DEFAULT), _EMBEDDINGS),
        _each((*_PAPERS, _DEFAULT), [MethodPreset(name) for name in ("structural-lr", "degree-knn")]),
    ),
    Claim(
        "pooling",
        "Reading graphs out by degree is above reading them out by the mean of their nodes.",
        "graphs",
        tables.GRAPH_SETS,
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


INTRODUCTION = """Three of the paper's claims, and a fourth about its main idea, as hypotheses. Each is a list of \
comparisons that was fixed before any run was looked at. For the second claim the number of runs was not: it was \
raised from 10 to 50 after its verdict with 10 had been seen. For the fourth, 20 runs of four sets had been planned, \
and 10 of them had been seen before the others were made. Methods are compared over the splits that both have, by the \
corrected resampled t-test of Nadeau and Bengio, in which everything a method knows (training and validation part) \
counts as training. A comparison is made on every data set, and over all of them by the mean of their differences. \
Holm's correction covers all comparisons of the claim, separately for single data sets and for all of them. “Over \
splits” is the p of an ordinary paired t-test: it speaks of other random splits of the same items, not of new data, \
and no verdict depends on it. A claim holds for a method if the method is above every rival over all data sets, and \
does not hold if it is below one of them. This may be due to some data sets only: see the second table of each claim. \
Generated graphs do not count in the mean over all data sets."""


def claim_sections(verdicts: Sequence[ClaimVerdict], answers: Sequence[Answer]) -> list[Section]:
    """For each claim its verdicts, its comparisons on single data sets, and further comparisons."""
    sections: list[Section] = [Text(INTRODUCTION, title="The claims", anchor="claims")]
    for number, claim in enumerate(CLAIMS, start=1):
        over_all = [answer for answer in answers if (answer.claim, answer.over) == (claim.name, ALL)]
        found = {verdict.subject: verdict.verdict for verdict in verdicts if verdict.claim.name == claim.name}
        sections.append(_table(claim, number, [one for one in over_all if not one.beside], found))
        single = [one for one in answers if one.claim == claim.name and one.over != ALL and not one.beside]
        sections.append(_on_sets(claim, single))
        if beside := [one for one in over_all if one.beside]:
            sections.append(_beside(claim, beside))
    return sections


def _table(claim: Claim, number: int, answers: Sequence[Answer], found: Mapping[MethodPreset, str]) -> Section:
    if claim.name == "pooling":  # every method has one rival, its own
        columns = [Column("method"), Column("verdict"), Column("against"), Column("difference", signed=True)]
        rows: list[list[Cell]] = [
            [_name(one.subject), found[one.subject], _name(one.rival), _cell(one)] for one in answers
        ]
    else:
        columns, rows = _against(answers)
        columns.insert(1, Column("verdict"))
        for row, verdict in zip(rows, found.values(), strict=True):
            row.insert(1, verdict)
    caption = f"Mean difference in test accuracy over {', '.join(map(set_name, claim.sets))}, ± half its 95 % interval."
    if len(claim.splits(claim.sets[0])) > 1:
        caption += " A run is the mean over all shares of training nodes; on average, half of the nodes are tested."
    title = f"Claim {number}: {claim.statement}"
    anchor = f"claim-{claim.name}"
    return Table(columns, rows, caption, sortable=True, title=title, anchor=anchor, below=True)


def _on_sets(claim: Claim, answers: Sequence[Answer]) -> Section:
    """The same comparisons on each data set, grouped by our methods."""
    columns: list[Column] = []
    rows: list[list[Cell]] = []
    groups = []
    for own in dict.fromkeys(one.subject for one in answers):
        mine = {(_name(one.rival), set_name(one.over)): _cell(one) for one in answers if one.subject == own}
        columns, lines = cross("against", mine)
        rows += lines
        groups.append((_name(own), len(lines)))
    caption = (
        "Mean difference in test accuracy on each data set, ± half its 95 % interval. Both p are corrected by Holm "
        "over this table."
    )
    anchor = f"claim-{claim.name}-sets"
    return Table(columns, rows, caption, groups, sortable=True, title="On each set", anchor=anchor, below=True)


def _beside(claim: Claim, answers: Sequence[Answer]) -> Section:
    columns, rows = _against(answers)
    caption = (
        "Methods that the paper does not compare with, on the data sets to which each applies. The verdict does not "
        "depend on them."
    )
    anchor = f"claim-{claim.name}-beside"
    return Table(columns, rows, caption, sortable=True, title="Further comparisons", anchor=anchor, below=True)


def _against(answers: Sequence[Answer]) -> tuple[list[Column], list[list[Cell]]]:
    """A table with a row per method of ours and a column per rival."""
    return cross("method", {(_name(one.subject), _name(one.rival)): _cell(one) for one in answers})


def _cell(one: Answer) -> Cell:
    note = f"p {p_text(one.corrected)}; over splits {p_text(one.over_splits)}"
    if one.verdict == "not yet run":
        sets = {*one.sets, *one.missing}
        note = f"{len(sets) - len(one.missing)} of {len(sets)} sets" if one.difference else NOT_YET
    return difference_cell(one, note)


def _name(method: MethodPreset) -> str:
    return method_name(method.name, method.preset)
