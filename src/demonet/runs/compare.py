r"""``compare_run``: every method of the package on one problem over the same splits, and a leaderboard.

A cell is one method on one split. Each finished cell is a file of its own, written atomically, sealed by a checksum and
keyed by the settings and by the checksums of the input files. So an interrupted comparison goes on where it stopped,
more splits or more methods need only the missing cells, and changed files start again.

Splits of one data set overlap, so intervals and differences have the corrected variance of Nadeau and Bengio
(:mod:`demonet.runs.statistics`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

import demonet
from demonet import methods as registry
from demonet.atomic import locked, part_of, whole_of
from demonet.data.splits import Split
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.methods.attributes import kind_of
from demonet.methods.cost import Size
from demonet.options import Comparing, Reading, Settings
from demonet.runs.evaluate import metric_range, shown
from demonet.runs.folder import LOCK, check_listed, remove_listed
from demonet.runs.inputs import Inputs
from demonet.runs.measure import Meter
from demonet.runs.plan import Plan, make_plan
from demonet.runs.progress import RunProgress
from demonet.runs.statistics import holm, paired
from demonet.schema import values_of
from demonet.sealed import canonical, member, move, read_sealed, remove, sha256_of, write_sealed
from demonet.train.metrics import METRICS, Metric, metrics_for
from demonet.train.objective import value_of
from demonet.train.recipes import family_of
from demonet.workers import Engine, LocalEngine

MOST_SECONDS = 60.0  # of one fit, by the estimate; a method that needs more is left out unless it is asked for
ASKED = ("splits", "seed", "val", "test", "effort", "metric", "positive")  # what the cells depend on
RECOMMENDED = "demonet-auto"  # what `fit` fits
CELLS, ABOUT = "cells", "compare.json"
TABLE, BOARD, PAGE = OUTPUTS = "leaderboard.csv", "leaderboard.json", "report.html"
STAGE = part_of("outputs")  # where these are written before they get their place
_OTHER = Hint("choose another {out}", out=...)
Status = Literal["compared", "incomplete", "failed", "left out"]


@dataclass(frozen=True)
class Row:
    """A method in the leaderboard.

    Attributes:
        method, group: Its name and kind.
        status: ``"compared"``: on all splits; ``"incomplete"``: on some; ``"failed"`` or ``"left out"``: on none.
        reason: Why it is not ``"compared"``.
        values: The metric on each finished split, by the number of the split.
        mean, deviation: Over these splits.
        low, high: The 95 % interval of the mean.
        difference: This mean minus that of the best method on the same splits, with its 95 % interval in
            ``difference_low`` and ``difference_high``; None for the best itself and below two splits.
        p: Of that difference, two-sided, after Holm's correction over all methods.
        seconds: Mean processor time of a fit.
        peak_memory_mb: Largest peak memory of its process, libraries and graph included, in 10^6 bytes.
        means: Of every metric over these splits, by name; None where it is not defined on any.
    """

    method: str
    group: str
    status: Status
    reason: str = ""
    values: dict[int, float] = field(default_factory=dict)
    mean: float | None = None
    deviation: float | None = None
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None
    seconds: float | None = None
    peak_memory_mb: float | None = None
    means: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """The result: rows from the best to the worst, then those with fewer splits or none, and what it was made with."""

    rows: list[Row]
    about: dict[str, Any]

    @property
    def best(self) -> Row | None:
        """The method with the best mean, of those with the most finished splits."""
        first = self.rows[0] if self.rows else None
        return first if first is not None and first.mean is not None else None

    @property
    def level(self) -> list[str]:
        """The methods that are not shown to differ from the best."""
        return [row.method for row in self.rows if row.p is not None and row.p >= 0.05]

    @property
    def verdict(self) -> str:
        """What came out, in a sentence or two: the best method, those level with it, and the best simple baseline."""
        best, metric = self.best, self.about["title"]
        if best is None or best.mean is None:
            return "No method has been compared yet."
        level = [name for name in self.level if name != best.method]
        finished = "one split that is" if len(best.values) == 1 else f"{len(best.values)} splits that are"
        over = "" if best.status == "compared" else f" over the {finished} finished"
        highest = "highest" if self.about["larger_is_better"] else "lowest"
        text = f"`{best.method}` has the {highest} mean {metric}{over}, {shown(best.mean)}."
        if level:
            named = ", ".join(f"`{name}`" for name in level[:6]) + (
                f" and {len(level) - 6} more" if len(level) > 6 else ""
            )
            text += f" Not shown to differ from it: {named}."
        simple = next((row for row in self.rows if row.group == "simple baseline" and row.mean is not None), None)
        if simple is not None and simple is not best and simple.mean is not None:
            text += f" The best simple baseline is `{simple.method}`, {shown(simple.mean)}."
        return text

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"about": self.about, "rows": [asdict(row) for row in self.rows]}


def compare_run(
    edges: str | Path,
    labels: str | Path | None = None,
    features: str | Path | None = None,
    *,
    out: str | Path,
    reading: Reading | None = None,
    comparing: Comparing | None = None,
    overwrite: bool = False,
    progress: RunProgress | None = None,
    page: Callable[[Leaderboard, Path], None] | None = None,
    engine: Callable[[int], Engine] | None = None,
) -> Leaderboard:
    """Compare methods on the user's own graph, or graphs, and write a folder with a leaderboard.

    The folder has ``leaderboard.csv``, ``leaderboard.json`` and ``cells/``, one file per finished cell. A second call
    with the same files and settings computes only what is missing. A method that fails is a row with its reason.

    Args:
        edges, labels, features, out, reading, progress: As for :func:`~demonet.runs.fit_run`.
        comparing: What is compared, and how.
        overwrite: Start again in the folder of another comparison.
        page: Writes a page about the leaderboard to a path.
        engine: Makes the pool of workers; local processes by default.
    """
    out, reading, comparing, began = Path(out), reading or Reading(), comparing or Comparing(), time.monotonic()
    progress = progress or RunProgress()
    deadline = math.inf if comparing.time_limit is None else began + comparing.time_limit
    asked: dict[str, Any] = {
        "files": [None if name is None else str(name) for name in (edges, labels, features)],
        "reading": asdict(reading),
        "settings": {name: getattr(comparing, name) for name in ASKED},
    }
    _plan.cache_clear()  # the files may have changed since the last call
    plan = _plan(canonical(asked))
    progress.message(plan.description)
    _check(plan, comparing)
    if (decision := plan.metric_decision) is not None:
        progress.message(decision)
    about = _about(plan, asked)
    with _alone(out):
        _open(out, about, overwrite=overwrite)
        member(out, CELLS).mkdir(exist_ok=True)
        left_out = _left_out(plan, comparing)
        wanted = list(dict.fromkeys(comparing.methods or methods_for(plan.inputs)))
        methods = [name for name in wanted if name not in left_out]
        cells = {
            (name, number): _load(out, about, name, number) for name in methods for number in range(len(plan.splits))
        }
        found = {place: cell for place, cell in cells.items() if cell is not None}
        if found:
            progress.message(f"{len(found)} of {len(cells)} cells are finished")
        size = Size.of(plan.inputs.graphs, plan.epochs)
        todo = [place for place in cells if place not in found]
        # Every method once, then again: what `fit` fits comes first, then the others from the cheapest on.
        todo.sort(key=lambda place: (place[1], place[0] != RECOMMENDED, registry.get(place[0]).cost(size)))
        failed: dict[str, str] = {}
        if todo:
            progress.step("comparing")
            jobs = min(comparing.jobs, len(todo))
            made = engine(jobs) if engine is not None else LocalEngine(perform, jobs)
            text = canonical(asked | {"checksums": plan.checksums})
            for name, number, cell in _work(made, text, todo, failed, deadline, plan.metric, progress, len(cells)):
                found[name, number] = cell
                _save(out, about, name, number, cell)
        with values_of(out / CELLS):
            rows = _rows(wanted, found, failed, left_out, plan)
        told = {
            name: {"title": each.title, "larger_is_better": each.larger_is_better}
            for name, each in _metrics(plan).items()
        }
        ranked = {"metric": plan.metric.name, **told[plan.metric.name], "metrics": told}
        board = Leaderboard(rows, about | ranked | {"splits": len(plan.splits)})
        _write(out, about, board, page)
        return board


@lru_cache(maxsize=1)
def _plan(asked: str) -> Plan:
    """The problem and its splits; in a worker, read once for all cells."""
    request = json.loads(asked)
    settings = request["settings"]
    same = {name: settings[name] for name in ("seed", "val", "test", "metric", "positive")}
    made = Settings(task="auto", device="cpu", cv=settings["splits"], **same)
    edges, labels, features = request["files"]
    return make_plan(edges, labels, features, Reading(**request["reading"]), made)


def methods_for(inputs: Inputs) -> list[str]:
    """Every registered method that applies."""
    family, attributes, task = family_of(inputs.data), inputs.graphs[0].x is not None, inputs.task
    return [name for name in registry.names() if registry.get(name).applies(family, attributes=attributes, task=task)]


def _metrics(plan: Plan) -> dict[str, Metric]:
    """Every metric of the task and that of the plan; of two classes, for the positive one."""
    found = {name: METRICS[name] for name in metrics_for(plan.inputs.task)}
    if plan.inputs.task == "classify" and (positive := plan.ranked_by) is not None:
        found = {name: metric.of_class(positive, plan.inputs.names[positive]) for name, metric in found.items()}
    return found | {plan.metric.name: plan.metric}


class Attempt(NamedTuple):
    """A method on a split of what was asked for."""

    asked: str
    method: str
    number: int


def perform(attempt: Attempt) -> dict[str, Any]:
    """The content of one cell, in a worker."""
    asked = attempt.asked
    with warnings.catch_warnings():  # the parent has shown what there is to say about the files
        warnings.simplefilter("ignore", DemonetWarning)
        plan = _plan(asked)
    if plan.checksums != json.loads(asked)["checksums"]:
        raise DemonetError("the files have changed since the comparison was started")
    settings, data, y = json.loads(asked)["settings"], plan.inputs.data, plan.inputs.data.y
    # The same for all methods; networks read attributes as they are where these are counts.
    numbers = plan.inputs.graphs[0].x is not None and kind_of(plan.inputs.graphs) == "numbers"
    conditions = registry.Conditions(family_of(data), plan.epochs, settings["effort"], numbers, settings["seed"])
    method, split = registry.get(attempt.method).under(conditions), plan.splits[attempt.number]
    meter = Meter()
    items, seed, task = data if isinstance(data, Data) else list(data), plan.settings.seed, plan.inputs.task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        fitted = method.fit(items, split, seed + attempt.number, task=task, metric=plan.chooses)
    seconds, memory = meter.seconds, meter.peak_memory_mb
    return {
        "metrics": measured(fitted, y, split, plan.metric, _metrics(plan)),
        "split": split.hash,
        "seconds": round(seconds, 3),
        "peak_memory_mb": round(memory, 1),
    }


def measured(
    fitted: registry.Method, y: Tensor, split: Split, metric: Metric, metrics: Mapping[str, Metric]
) -> dict[str, float | None]:
    """Metrics of a fitted method on the test part, of predictions made for one of them; None where not defined."""
    known, outputs = y[split.test].numpy(), fitted.predict_proba()[split.test].numpy()
    decision, task = fitted.decision(metric, y, split), fitted.task
    return {name: value_of(replace(each, decision=decision), task, known, outputs) for name, each in metrics.items()}


def _work(
    engine: Engine,
    asked: str,
    todo: list[tuple[str, int]],
    failed: dict[str, str],
    deadline: float,
    metric: Metric,
    progress: RunProgress,
    total: int,
) -> Iterable[tuple[str, int, dict[str, Any]]]:
    """Compute cells until all are done or time is up; the reason of a method that fails goes into ``failed``."""
    waiting, running, done = list(todo), 0, total - len(todo)
    try:
        while waiting or running:
            while waiting and running < engine.slots and time.monotonic() < deadline:
                name, number = waiting.pop(0)
                engine.start(Attempt(asked, name, number))
                running += 1
            left = deadline - time.monotonic()
            if not running or left <= 0:
                return
            for ended in engine.wait(min(left, 3600.0)):
                running, done = running - 1, done + 1
                name, number = ended.task.method, ended.task.number
                if ended.outcome is None:
                    reason = ended.error.strip().splitlines()[-1].removeprefix("demonet.errors.DemonetError: ")
                    failed.setdefault(name, reason)
                    dropped = [place for place in waiting if place[0] == name]
                    waiting, done = [place for place in waiting if place[0] != name], done + len(dropped)
                    progress.cell(name, number, done, total, f"failed: {reason}")
                    continue
                value = ended.outcome["metrics"][metric.name]
                told = "undefined" if value is None else shown(value)
                progress.cell(name, number, done, total, f"{metric.title} {told}")
                yield name, number, ended.outcome
    finally:
        engine.close()


def _check(plan: Plan, comparing: Comparing) -> None:
    """Refuse methods that do not fit the task."""
    fitting = methods_for(plan.inputs)
    for name in comparing.methods or ():
        if name not in fitting:
            what = f"{plan.inputs.kind} with attributes" if "attributes" in name else plan.inputs.kind
            hint = f"choose from {', '.join(fitting)}"
            raise DemonetError(f"{name} does not apply to these {what}", argument="methods", hint=hint)


def _left_out(plan: Plan, comparing: Comparing) -> dict[str, str]:
    """The methods that would take too long, with the reason."""
    if comparing.methods is not None or comparing.everything:
        return {}
    size = Size.of(plan.inputs.graphs, plan.epochs)
    methods = [registry.get(name) for name in methods_for(plan.inputs)]
    found = {method.name: method.cost(size) for method in methods if not method.at_any_size}
    return {name: f"about {seconds:,.0f} s for each split" for name, seconds in found.items() if seconds > MOST_SECONDS}


def _about(plan: Plan, asked: dict[str, Any]) -> dict[str, Any]:
    """What identifies a comparison: data, splits, metric and program. More splits or methods are the same one."""
    settings = {name: value for name, value in asked["settings"].items() if name != "splits"}
    settings |= {"metric": plan.chooses and plan.chooses.name, "positive": plan.positive}
    return {
        "name": plan.inputs.name,
        "kind": plan.inputs.kind,
        "task": plan.inputs.task,
        "sizes": plan.inputs.sizes,
        "files": {part: str(path) for part, path in plan.inputs.files.items()},
        "checksums": plan.checksums,
        "reading": asked["reading"],
        "settings": settings,
        "version": demonet.__version__,
    }


def _identity(about: dict[str, Any]) -> str:
    return canonical({name: about[name] for name in ("checksums", "reading", "settings", "version")})


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Make the folder of a comparison, and lock it for this process."""
    if out.exists() and not (member(out, ABOUT).exists() or _is_empty(out)):
        raise DemonetError("this is not an empty folder, nor a comparison", file=out, hint=_OTHER)
    out.mkdir(parents=True, exist_ok=True)
    with locked(member(out, LOCK)) as ours:
        if not ours:
            raise DemonetError("another process is using this folder", file=out)
        yield


def _open(out: Path, about: dict[str, Any], *, overwrite: bool) -> None:
    """Check that a folder holds this comparison, or make it; with ``overwrite``, remove what another has written.

    Beside what identifies a comparison, its file lists the checksums of the outputs, ``files``, and of those that were
    there ``earlier``. Of these, what is not among the new ones is removed, also after a kill.
    """
    path, listed = member(out, ABOUT), dict[str, dict[str, str]](files={}, earlier={})
    if path.exists():
        before = read_sealed(path, _OTHER)
        with values_of(path):
            listed = {name: dict(before[name]) for name in listed}
            check_listed(out, OUTPUTS, *listed.values())
            same = _identity(before) == _identity(about)
        if overwrite:
            listed = {"files": {}, "earlier": _checksums(out, (*OUTPUTS, *_cells_of(out)))}
        elif not same:
            problem = "the folder holds a comparison of other files, by another metric or with other settings"
            hint = Hint("choose another {out}, or replace it with {overwrite}", out=..., overwrite=True)
            raise DemonetError(problem, file=out, hint=hint)
        elif listed["earlier"].keys() <= listed["files"].keys():
            return
    write_sealed(path, about | listed)
    if others := listed["earlier"].keys() - listed["files"]:
        remove_listed(out, others)
        kept = {name: known for name, known in listed["earlier"].items() if name not in others}
        write_sealed(path, about | listed | {"earlier": kept})


def _checksums(out: Path, names: Iterable[str]) -> dict[str, str]:
    """The checksums of those files that are there."""
    return {name: sha256_of(member(out, name)) for name in names if (out / name).exists()}


def _cells_of(out: Path) -> list[str]:
    """The files in the folder of cells; anything that a comparison has not written there is refused, and so is a link.

    A cell seals itself, so no list of their checksums is needed.
    """
    folder = member(out, CELLS)
    names = [f"{CELLS}/{entry.name}" for entry in folder.iterdir()] if folder.exists() else []
    for name in names:
        path = member(out, name)
        if whole_of(path.name) == path.name:  # otherwise a killed process has left
            cell = read_sealed(path, "it is not a cell of a comparison, so it is not removed: move it away")
            if "key" not in cell:
                raise DemonetError("not written by a comparison, so it is not removed", file=path, hint="move it away")
    return names


def _is_empty(out: Path) -> bool:
    """Whether this is a folder with nothing but what a process that was killed at its first file has left."""
    return out.is_dir() and all(entry.name in (part_of(ABOUT), LOCK) for entry in out.iterdir())


def _key(about: dict[str, Any], name: str, number: int) -> str:
    metrics = metrics_for(about["task"])  # a cell without one of them is computed again
    return hashlib.sha256(f"{_identity(about)}|{metrics}|{name}|{number}".encode()).hexdigest()


def _cell_path(out: Path, name: str, number: int) -> Path:
    return member(out, f"{CELLS}/{name}-{number:03}.json")


def _load(out: Path, about: dict[str, Any], name: str, number: int) -> dict[str, Any] | None:
    """A finished cell; None if there is none, or if it is of other files or settings, or damaged."""
    path = _cell_path(out, name, number)
    if not path.exists():
        return None
    try:
        cell = read_sealed(path, hint="it is computed again")
    except DemonetError as error:
        warn(DemonetWarning(error.message, file=path, hint=error.hint))
        return None
    numbers = [*cell["metrics"].values()] if isinstance(cell.get("metrics"), dict) else [""]
    numbers += [cell.get("seconds", ""), cell.get("peak_memory_mb", "")]
    whole = all(isinstance(value, int | float | None) for value in numbers)
    return cell if whole and cell.get("key") == _key(about, name, number) else None


def _save(out: Path, about: dict[str, Any], name: str, number: int, cell: dict[str, Any]) -> None:
    content = {"key": _key(about, name, number), "method": name, "number": number, **cell}
    write_sealed(_cell_path(out, name, number), content)


def _rows(
    wanted: Sequence[str],
    found: dict[tuple[str, int], dict[str, Any]],
    failed: dict[str, str],
    left_out: dict[str, str],
    plan: Plan,
) -> list[Row]:
    split, splits, metric = plan.splits[0], len(plan.splits), plan.metric
    sign, (least, most_value) = 1 if metric.larger_is_better else -1, metric_range(metric)
    ratio = split.test.numel() / max(1, split.train.numel() + split.val.numel())
    values = {
        name: {
            number: cell["metrics"][metric.name]
            for (owner, number), cell in found.items()
            if owner == name and cell["metrics"][metric.name] is not None
        }
        for name in wanted
    }
    means = {name: statistics.mean(runs.values()) for name, runs in values.items() if runs}
    most = max(map(len, values.values()), default=0)
    best = max((name for name in means if len(values[name]) == most), key=lambda name: sign * means[name], default=None)
    against = {}
    for name in means:
        if best is None or best == name:
            continue
        shared = sorted(values[name].keys() & values[best].keys())
        if len(shared) > 1:
            against[name] = paired([values[name][i] for i in shared], [values[best][i] for i in shared], ratio)
    corrected = dict(zip(against, holm([one.p for one in against.values()]), strict=True))
    rows = []
    for name in wanted:
        runs, group = dict(sorted(values[name].items())), registry.get(name).group
        finished = sum(owner == name for owner, _ in found)
        undefined = f"{metric.title} is not defined on {finished - len(runs)} splits" if finished > len(runs) else ""
        if not runs:
            reason = left_out.get(name) or failed.get(name) or undefined or "not finished within the time limit"
            status: Status = "failed" if name in failed else "left out"
            rows.append(Row(name, group, status, reason))
            continue
        cells, numbers, facts = [found[name, number] for number in runs], list(runs.values()), dict[str, Any]()
        whole = len(runs) == splits
        if len(numbers) > 1:
            over = paired(numbers, [0.0] * len(numbers), ratio)
            facts["deviation"] = statistics.stdev(numbers)
            facts |= {"low": max(least, over.low), "high": min(most_value, over.high)}
        if (gap := against.get(name)) is not None:
            facts |= {"difference": gap.mean, "p": corrected[name]}
            facts["difference_low"] = max(least - most_value, gap.low)
            facts["difference_high"] = min(most_value - least, gap.high)
        facts["seconds"] = statistics.mean(cell["seconds"] for cell in cells)
        facts["peak_memory_mb"] = max(cell["peak_memory_mb"] for cell in cells)
        facts["means"] = {name: _mean(cell["metrics"][name] for cell in cells) for name in _metrics(plan)}
        missing = failed.get(name) or undefined or f"{len(runs)} of {splits} splits within the time limit"
        told: tuple[Status, str] = ("compared", "") if whole else ("incomplete", missing)
        rows.append(Row(name, group, *told, runs, means[name], **facts))
    order = ("compared", "incomplete", "failed", "left out")
    return sorted(
        rows, key=lambda row: (order.index(row.status), -len(row.values), -sign * (row.mean or 0.0), row.seconds or 0.0)
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _write(
    out: Path, about: dict[str, Any], board: Leaderboard, page: Callable[[Leaderboard, Path], None] | None
) -> None:
    text = io.StringIO()
    columns = [name for name in Row.__dataclass_fields__ if name not in ("values", "means")]
    metrics, splits = list(board.about["metrics"]), range(board.about["splits"])
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, *metrics, *(f"split {number}" for number in splits)])
    for row in board.rows:
        cells = [getattr(row, name) for name in columns]
        cells += [row.means.get(name) for name in metrics] + [row.values.get(number) for number in splits]
        writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells])
    stage = member(out, STAGE)
    remove_listed(out, [f"{STAGE}/{name}" for each in OUTPUTS for name in (each, part_of(each))])
    stage.mkdir()
    (stage / TABLE).write_text(text.getvalue(), encoding="utf-8", newline="\n")
    (stage / BOARD).write_text(json.dumps(board.to_json(), indent=1), encoding="utf-8", newline="\n")
    if page is not None:
        page(board, member(out, f"{STAGE}/{PAGE}"))
    staged = _checksums(out, [f"{STAGE}/{name}" for name in OUTPUTS])
    files = {name.removeprefix(f"{STAGE}/"): checksum for name, checksum in staged.items()}
    with values_of(out / ABOUT):
        before = read_sealed(member(out, ABOUT), _OTHER)
        check_listed(out, OUTPUTS, before["files"], before["earlier"])
        earlier = _checksums(out, OUTPUTS)
    # From here to the end, a killed process leaves files of this list or of the earlier one.
    write_sealed(member(out, ABOUT), about | {"files": files, "earlier": earlier})
    remove_listed(out, earlier.keys() - files)
    for name in files:
        move(member(out, f"{STAGE}/{name}"), member(out, name))
    remove(stage)
