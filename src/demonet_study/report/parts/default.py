"""The default of ``demonet fit`` on the paper's splits, under two rules, with every rival under the same rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demonet import methods
from demonet.data.catalog import find
from demonet.methods.closed_form import ARMS
from demonet.report.page import Section, Table, Text
from demonet.report.table_cells import Beside, Column
from demonet.report.table_cells import Cell as TableCell
from demonet.sealed import canonical
from demonet.train.presets import Family
from demonet_study.experiments.accuracy import AUTO, GENERATED, KERNEL, family_in_catalog
from demonet_study.ledger.job import Cell, Result
from demonet_study.protocol import FRESH
from demonet_study.report.grid import NOT_YET, Layout, beside, p_text
from demonet_study.report.names import GRAPH_FLOORS, NODE_FLOORS, method_name, set_name
from demonet_study.report.parts import tables
from demonet_study.report.parts.part import Entry, Part, Results, Rows, Shown, accuracy_cell
from demonet_study.report.standing import REFIT, STRICT, Standing, in_words, standings

RULES = (STRICT, REFIT)
TITLES = {STRICT: "Strict: fitted on the training part", REFIT: "Refit: fitted on the training and validation part"}
SETS = (*tables.NODE_SETS, *tables.GRAPH_SETS)
# The classes of the other two are quartiles of the degree: whether the degree helps there is no question.
ARM_SETS = tuple(name for name in SETS if name not in ("facebook", "wiki-vote"))
RUNS = 20  # on the larger sets, and of networks with our inputs
GENERATED_RUNS = 20
NODE_NETWORKS = ("sage", "gcn", "gcn-cheby", "union", "intersection", "gat", "gin")
GRAPH_NETWORKS = ("dcnn", "patchy-san", "diffpool", "gin")
OUR_INPUTS = "our inputs"
# What DEMO-Net's preset `default` reads.
INPUTS: dict[Family, dict[str, Any]] = {
    "nodes": {"features": "degree-rbf+degree-onehot", "dropout": 0.5},
    "attributes": {"features": "tfidf+degree-rbf"},
    "graphs": {"features": "attributes+degree-rbf"},
}
# Networks that are run with these inputs, under both rules. With its own inputs every network has the strict runs of
# Tables 4 and 5.
WITH_OUR_INPUTS = dict.fromkeys(tables.NODE_SETS, ("sage", "gcn", "gin")) | dict.fromkeys(tables.GRAPH_SETS, ("gin",))
# Members of the ensemble that are DEMO-Net, in closed form or as a network.
DEMO_MEMBERS = ("machine", "kernel-demo", "network")


def arm_name(arm: str) -> str:
    """The name under which an arm of the study of the degree-specific part is listed."""
    return KERNEL if arm == "best" else f"{KERNEL}-{arm}"


def _both(cell: Cell, runs: int, variant: str = "") -> list[Entry]:
    return [Entry(cell, runs, variant, rule=rule) for rule in RULES]


def _arms(dataset: str, split: str, runs: int) -> list[Entry]:
    found = []
    for arm in ARMS:
        options = canonical({} if arm == "best" else {"degree": arm})
        cell = Cell("default", dataset, KERNEL, "", options, split)
        rules = RULES if arm == "best" else (STRICT,)
        found += [Entry(cell, runs, method=arm_name(arm), rule=rule) for rule in rules]
    return found


def _simple(dataset: str, runs: int) -> list[Entry]:
    """The ensemble, the closed form, floors and kernels."""
    split, family = find(dataset).protocol, family_in_catalog(dataset)
    floors = ("wl", *GRAPH_FLOORS) if family == "graphs" else NODE_FLOORS
    found = _both(Cell("default", dataset, AUTO, split=split), runs)
    if dataset in ARM_SETS:
        found += _arms(dataset, split, runs)
    for name in floors:
        if methods.get(name).applies(family):
            found += _both(Cell("default", dataset, name, split=split), runs)
    return found


def _networks(dataset: str) -> list[Entry]:
    """DEMO-Net alone and every other network: with its own inputs, and some with ours."""
    split, family = find(dataset).protocol, family_in_catalog(dataset)
    names = ("deepwl", *GRAPH_NETWORKS) if family == "graphs" else NODE_NETWORKS
    found = [_borrowed(dataset, "demonet-default", "default")]
    found += [_borrowed(dataset, name) for name in names]
    for name in WITH_OUR_INPUTS.get(dataset, ()):
        found += _both(Cell("default", dataset, name, "", canonical(INPUTS[family]), split), RUNS, OUR_INPUTS)
    return found


def _borrowed(dataset: str, method: str, preset: str = "") -> Entry:
    """A strict cell of Table 4 or 5."""
    return Entry(accuracy_cell(dataset, method, preset), tables.runs_of(dataset), rule=STRICT, borrowed=True)


def _whole() -> list[Entry]:
    found = [entry for name in SETS for entry in (*_simple(name, max(RUNS, tables.runs_of(name))), *_networks(name))]
    return found + [entry for name in GENERATED for entry in _arms(name, f"{FRESH}thirds", GENERATED_RUNS)]


@dataclass(frozen=True)
class Member:
    """A member of the ensemble on a data set: its mean weight over the runs, 0 in runs that did not use it."""

    dataset: str
    member: str
    demo: bool
    weight: float
    runs: int


@dataclass(frozen=True)
class Losses:
    """The ensemble on a data set: mean log-loss on the test part under both rules, and the mean weight of DEMO-Net."""

    dataset: str
    log_loss_strict: float
    log_loss_refit: float
    demo_weight: float
    validation: float
    seconds: float
    runs: int


@dataclass(frozen=True)
class Inside:
    """What the runs of the ensemble say about its members."""

    members: Sequence[Member]
    losses: Sequence[Losses]


def is_demo(member: str) -> bool:
    """Whether a member of the ensemble is DEMO-Net.

    >>> [is_demo(name) for name in ("machine-ordinal", "kernel-demo", "network", "kernel-degree", "forest-wl")]
    [True, True, True, False, False]
    """
    return member.startswith(DEMO_MEMBERS)


def inside(entries: Sequence[Entry], results: Results) -> Inside:
    """Weights and losses of the ensemble, from the runs that are there."""
    members, losses = [], []
    for entry in entries:
        done = results.get(entry.cell, ())
        if entry.cell.method != AUTO or entry.rule != STRICT or not done:
            continue
        found = _weights(entry.cell.dataset, done)
        members += found
        extras = [result.outcome.extra for result in done]
        losses.append(
            Losses(
                entry.cell.dataset,
                log_loss_strict=statistics.mean(extra["log_loss"][STRICT] for extra in extras),
                log_loss_refit=statistics.mean(extra["log_loss"][REFIT] for extra in extras),
                demo_weight=math.fsum(one.weight for one in found if one.demo),
                validation=statistics.mean(extra["validation"] for extra in extras),
                seconds=statistics.mean(result.outcome.seconds for result in done),
                runs=len(done),
            )
        )
    return Inside(members, losses)


def _weights(dataset: str, done: Sequence[Result]) -> list[Member]:
    given = [result.outcome.extra["weights"] for result in done]
    names = dict.fromkeys(name for weights in given for name in weights)
    return [
        Member(dataset, name, is_demo(name), math.fsum(w.get(name, 0.0) for w in given) / len(given), len(given))
        for name in names
    ]


def standing_table(rows: Rows) -> Section:
    """Ours and the best rival on every data set, under both rules."""
    columns = [Column("set"), Column("ensemble"), Column("best rival"), Column("its name")]
    columns += [Column("difference", signed=True), Column("over splits"), Column("for new data")]
    cells: list[list[TableCell]] = []
    groups = []
    for rule in RULES:
        found = standings(rows, rule)
        cells += [_standing_cells(one) for one in found]
        groups.append((TITLES[rule], len(found)))
    caption = (
        "Mean ± standard deviation over the runs. Difference: ours minus the best rival under the same rule, paired by "
        "split, ± its standard error over splits. Two tests, both corrected by Holm over all rivals on the data set. "
        "Over splits (paired t-test): other random splits of the same items. For new data (corrected resampled "
        "t-test): other items of the same kind. Above all: significantly above every rival, not only the best. Below: "
        "significantly below those that are named."
    )
    title = "The ensemble against the best rival"
    return Table(columns, cells, caption, groups, sortable=True, title=title, anchor="default-standing", below=True)


def _standing_cells(one: Standing) -> list[TableCell]:
    gap: TableCell = Beside(math.nan, math.nan, note=NOT_YET)
    if one.difference is not None:
        gap = Beside(one.difference.mean, one.difference.splits_error)
    best = one.best
    name = best.full_name if best else None
    verdicts = [
        str(verdict) if math.isnan(verdict.p) else f"{verdict}, p {p_text(verdict.p)}"
        for verdict in (one.over_splits, one.new_data)
    ]
    return [set_name(one.ours.dataset), beside(one.ours), beside(best), name, gap, *verdicts]


def members_table(found: Inside) -> Section | None:
    """The mean weight of each member on each data set, and the log-loss of the ensemble."""
    if not found.losses:
        return None
    names = list(dict.fromkeys(one.member for one in found.members))
    weights = {(one.member, one.dataset): one.weight for one in found.members}
    losses = {one.dataset: one for one in found.losses}
    columns = [Column("member"), *(Column(set_name(name), digits=2) for name in losses)]
    cells: list[list[TableCell]] = []
    groups = []
    for title, demo in (("DEMO-Net", True), ("Others", False)):
        members = [name for name in names if is_demo(name) is demo]
        cells += [[name, *(weights.get((name, dataset)) for dataset in losses)] for name in members]
        groups.append((title, len(members)))
    lines: dict[str, list[TableCell]] = {
        "weight of DEMO-Net": [one.demo_weight for one in losses.values()],
        "log-loss, strict": [one.log_loss_strict for one in losses.values()],
        "log-loss, refit": [one.log_loss_refit for one in losses.values()],
    }
    cells += [[name, *numbers] for name, numbers in lines.items()]
    groups.append(("All together", len(lines)))
    caption = "Mean weights over the runs; – where a member is not in the portfolio. Log-loss on the test part."
    title = "What the ensemble is made of"
    return Table(columns, cells, caption, groups, title=title, anchor="default-members", below=True)


def not_refitted(rows: Rows) -> str:
    """Which methods have no runs under ``refit``, and on which data sets, as a sentence; empty if all have."""
    known = {(row.full_name, row.dataset) for row in rows if row.rule == REFIT}
    left: dict[str, list[str]] = {}
    for row in rows:
        arm = row.method.startswith(f"{KERNEL}-")  # compared under strict alone
        if row.rule == STRICT and not arm and (row.full_name, row.dataset) not in known:
            left.setdefault(row.full_name, []).append(set_name(row.dataset))
    if not left:
        return ""
    listed = "; ".join(f"{name} ({', '.join(sets)})" for name, sets in left.items())
    return f"Not run under `refit`, because it would take too long; strict runs are those of Tables 4 and 5: {listed}."


def _sections(shown: Shown) -> list[Section | None]:
    said = "\n\n".join(in_words(standings(shown.rows, rule), rule) for rule in RULES)
    found = [Text(said, title="In words", anchor="default-words", below=True), standing_table(shown.rows)]
    missing = not_refitted(shown.rows)
    note = Text(missing, title="What is missing", anchor="default-missing", below=True) if missing else None
    inside_table = members_table(shown.extra) if shown.extra else None
    return [*found, inside_table, *shown.tables, note, *shown.figures]


DEFAULT = Part(
    "default",
    "What demonet fit does by default",
    "The ensemble that `demonet fit` chooses, on the paper's splits, beside every floor, kernel and network of Tables "
    "4 and 5. There is one rule for all. `strict`: fitted on the training part alone; settings, epochs and weights are "
    "chosen on validation. `refit`: what was chosen is kept, and the method is fitted again on the training and "
    "validation part together; a network trains for as many epochs as were best on validation. Strict is compared with "
    "strict, refit with refit. Run i of every method uses split i and seed i, and looks at the test part once under "
    f"each rule. “{OUR_INPUTS.capitalize()}”: the network reads what DEMO-Net reads (radial functions of the degree "
    "and its one-hot, with dropout 0.5, where nodes have no attributes; tf-idf of unit length and radial functions of "
    "the degree for counts; node labels and radial functions of the degree for graphs). The closed form has three "
    f"arms, for the fourth claim: {method_name(arm_name('none'))} has no degree-specific part, and in "
    f"{method_name(arm_name('shuffled'))} the degrees that it compares are permuted among all nodes. Each arm makes "
    "its own search for settings, and they are compared under `strict`. The generated graphs (a new one for each run) "
    "have a rule that changes with the degree.",
    _whole,
    lambda: [entry for name in ("brazil", "MUTAG") for entry in _simple(name, 2)],
    layout=Layout(table=lambda row: TITLES[row.rule], line=lambda row: row.full_name),
    sections=_sections,
    extra=inside,
    files=lambda extra: {"default_members.csv": extra.members, "default_ensemble.csv": extra.losses},
)
