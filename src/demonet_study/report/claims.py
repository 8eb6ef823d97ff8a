"""The claims on the page: the verdict for each of our methods, and its comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from demonet.report.page import Section, Table, Text
from demonet.report.table_cells import Cell, Column
from demonet_study.report.grid import NOT_YET, cross, difference_cell, p_text
from demonet_study.report.hypotheses import ALL, CLAIMS, Answer, Claim, ClaimVerdict, MethodPreset
from demonet_study.report.names import method_name, set_name

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
