"""The paper's three claims on the page: the verdict for each of our methods, and the comparisons behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from demonet.experiments.hypotheses import ALL, CLAIMS, Answer, Claim, Method, Verdict
from demonet.report.cells import Beside, Cell, Column
from demonet.report.page import Section, Table, Text
from demonet.report.paper.tables import in_words
from demonet.report.paper.words import method_name, set_name

INTRODUCTION = """Three of the paper's claims as hypotheses. Each is a list of comparisons, fixed before any run was \
looked at; the number of runs was not, for the second: it had 10, and was given 50 after its verdict with 10 had been \
seen. A comparison is made over the splits that both methods have, by the corrected resampled t-test of Nadeau and \
Bengio, where all that is known to a method (training and validation part) counts as training; on every set, and over \
all sets by the mean of their differences. Holm's correction is over all comparisons of the claim, for single sets and \
over all sets apart. A claim holds for a method if it is above every rival over all sets, and does not hold if it is \
below one of them: it may do so because of some sets only, which the second table of each claim shows."""
_CELL = {"holds": "above", "does not hold": "below"}


def claim_sections(verdicts: Sequence[Verdict], answers: Sequence[Answer]) -> list[Section]:
    """A table for each claim, and one for what stands beside it."""
    sections: list[Section] = [Text(INTRODUCTION, title="The three claims", anchor="claims")]
    for number, claim in enumerate(CLAIMS, start=1):
        over_all = [answer for answer in answers if (answer.claim, answer.over) == (claim.name, ALL)]
        found = {verdict.subject: verdict.verdict for verdict in verdicts if verdict.claim.name == claim.name}
        sections.append(_table(claim, number, [one for one in over_all if not one.beside], found))
        single = [one for one in answers if one.claim == claim.name and one.over != ALL and not one.beside]
        sections.append(_on_sets(claim, single))
        if beside := [one for one in over_all if one.beside]:
            sections.append(_beside(claim, beside))
    return sections


def _table(claim: Claim, number: int, answers: Sequence[Answer], found: Mapping[Method, str]) -> Section:
    if claim.name == "pooling":  # each has one rival of its own
        columns = [Column("method"), Column("verdict"), Column("against"), Column("difference", signed=True)]
        rows: list[list[Cell]] = [
            [_name(one.subject), found[one.subject], _name(one.rival), _cell(one)] for one in answers
        ]
    else:
        columns, rows = _cross(answers)
        columns.insert(1, Column("verdict"))
        for row, verdict in zip(rows, found.values(), strict=True):
            row.insert(1, verdict)
    caption = f"Mean difference of test accuracy over {', '.join(map(set_name, claim.sets))}, ± half its 95 % interval."
    if len(claim.splits(claim.sets[0])) > 1:
        caption += " A run is the mean over all shares of training nodes; on average, half of the nodes are tested."
    title = f"Claim {number}: {claim.statement}"
    anchor = f"claim-{claim.name}"
    return Table(columns, rows, caption, sortable=True, title=title, anchor=anchor, below=True)


def _on_sets(claim: Claim, answers: Sequence[Answer]) -> Section:
    """The same comparisons on each set for itself; one of our methods after the other."""
    sets = [name for name in claim.sets if any(one.over == name for one in answers)]
    places = {(one.subject, one.rival, one.over): one for one in answers}
    pairs = list(dict.fromkeys((one.subject, one.rival) for one in answers))
    rows: list[list[Cell]] = [
        [_name(rival), *(_cell(places[own, rival, name]) for name in sets)] for own, rival in pairs
    ]
    groups = [
        (_name(own), sum(subject == own for subject, _ in pairs)) for own in dict.fromkeys(own for own, _ in pairs)
    ]
    columns = [Column("against"), *(Column(set_name(name), signed=True) for name in sets)]
    caption = "Mean difference of test accuracy on each set, ± half its 95 % interval; p by Holm over this table."
    anchor = f"claim-{claim.name}-sets"
    return Table(columns, rows, caption, groups, sortable=True, title="On each set", anchor=anchor, below=True)


def _beside(claim: Claim, answers: Sequence[Answer]) -> Section:
    columns, rows = _cross(answers)
    caption = (
        "What the paper did not compare with, and what its claim does not stand or fall with; on the sets that each "
        "rival is made for."
    )
    anchor = f"claim-{claim.name}-beside"
    return Table(columns, rows, caption, sortable=True, title="Beside the claim", anchor=anchor, below=True)


def _cross(answers: Sequence[Answer]) -> tuple[list[Column], list[list[Cell]]]:
    """Our methods down, rivals across."""
    rivals = list(dict.fromkeys(one.rival for one in answers))
    columns = [Column("method"), *(Column(_name(rival), signed=True) for rival in rivals)]
    places = {(one.subject, one.rival): one for one in answers}
    subjects = dict.fromkeys(one.subject for one in answers)
    return columns, [[_name(own), *(_cell(places[own, rival]) for rival in rivals)] for own in subjects]


def _cell(one: Answer) -> Cell:
    note = "" if math.isnan(one.corrected) else f"p {in_words(one.corrected)}"
    if one.verdict == "not yet run":
        sets = {*one.sets, *one.missing}
        note = f"{len(sets) - len(one.missing)} of {len(sets)} sets" if one.runs else "not yet run"
    verdict = _CELL.get(one.verdict)
    return Beside(one.difference, (one.high - one.low) / 2, verdict=verdict, note=note)  # type: ignore[arg-type]


def _name(method: Method) -> str:
    return method_name(method.name, method.preset)
