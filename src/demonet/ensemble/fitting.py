"""Candidates, the cheapest of each kind first, in one process or several: what is fitted or skipped, the second fit."""

from __future__ import annotations

import copy
import io
import math
import pickle
import time
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from demonet.closedform.link import shares
from demonet.ensemble.candidate import Candidate, Progress, Trial
from demonet.ensemble.checkpoint import Checkpoint
from demonet.ensemble.selection import greedy_weights, soften
from demonet.errors import DemonetError
from demonet.features.views import LARGE, Float, Int, View
from demonet.methods.closed_form import Kernel
from demonet.methods.model import MOST_SECONDS, Labelled, Model, OutOfTimeError
from demonet.methods.selection import item_losses
from demonet.options import Effort
from demonet.train.batches import USABLE, available_bytes
from demonet.train.metrics import find_metric, positive_class
from demonet.train.objective import Objective, value_of
from demonet.workers import Engine, InProcess, LocalEngine

SCREENED: dict[Effort, float] = {"quick": 3.0, "standard": 10.0, "best": 60.0}
"""Seconds by its own estimate from which on a candidate is first fitted on a part of the training items."""
SCREEN_ITEMS = 1000  # in that part
SCREEN_GAIN = 4.0  # how much cheaper such a fit has to be
SCREEN_WEIGHT = 0.1  # beside the best candidate so far, below which one is not fitted on all of them
JUDGES = 1000  # items, at most, that tell which of the candidates so far will be fitted again
CUT = 0.25  # share of the expected time that a candidate that improves step by step can do with
MANY = 100  # outputs from which on memory counts, as on a large graph
WORTH = 5.0  # expected seconds of all fits from which on processes are worth their start
OFF = 10.0  # factor by which an estimate is corrected, at most


class Clock:
    """Time and memory that a fit may use.

    The estimates of candidates are constants of a machine that nobody has; each is corrected by what candidates of its
    kind have taken so far, and those of others where there are none yet.
    """

    def __init__(self, start: float, limit: float | None, effort: Effort) -> None:
        self.start, self.limit = start, math.inf if limit is None else limit
        self.most, self.screened = MOST_SECONDS[effort], SCREENED[effort]
        self.estimated: dict[str, float] = defaultdict(float)
        self.taken: dict[str, float] = defaultdict(float)
        self.free = USABLE * available_bytes(torch.device("cpu"))

    def note(self, kind: str, estimate: float, seconds: float) -> None:
        """Learn from a candidate of this kind."""
        self.estimated[kind] += estimate
        self.taken[kind] += seconds

    def expected(self, kind: str, estimate: float) -> float:
        """The corrected estimate: a second of the kind's own counts as much as what is known about all kinds."""
        overall = (1 + sum(self.taken.values())) / (1 + sum(self.estimated.values()))
        ratio = (overall + self.taken[kind]) / (1 + self.estimated[kind])
        return estimate * min(max(ratio, 1 / OFF), OFF)

    def add(self, seconds: float) -> None:
        """Count what was done before an interruption."""
        self.start -= seconds

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def left(self) -> float:
        """Seconds until the limit."""
        return self.limit - self.elapsed()


class Task(NamedTuple):
    """A candidate to fit, or to fit again, within so many seconds.

    An expensive one has a ``rival``, the best candidate so far of those that take little time on a part of the training
    items: it is fitted if it adds something to that one there.
    """

    stage: Literal["fit", "refit"]
    model: Model
    seconds: float
    rival: Model | None = None


class Fit(NamedTuple):
    """What came of a task: a fitted model with its outputs, a ``reason`` why there is none, or an ``error``."""

    model: Model | None = None
    outputs: Float | Any = None
    judged: Float | Any = None
    chosen: Any = None
    reason: str = ""
    error: str = ""
    seconds: float = 0.0


class Work:
    """Performs the tasks of one problem; sent once to every process that works on them.

    Args:
        view, labelled: The problem.
        folds: Of cross-validation over all labelled items; 0 where candidates are judged on validation items.
    """

    def __init__(self, view: View, labelled: Labelled, folds: int) -> None:
        self.view, self.labelled, self.folds = view, labelled, folds
        self._screens: dict[str, Float] = {}

    def __reduce__(self) -> Any:
        # As bytes: the pickler of processes would move tensors into shared memory, of which there may be little.
        found = io.BytesIO()
        _Pickler(found).dump((self.view, self.labelled, self.folds))
        return _received, (found.getvalue(),)

    def __call__(self, task: Task) -> Fit:
        """Perform a task. The failure of one candidate must not take the others with it."""
        start = time.monotonic()
        try:
            found = self._perform(task, start + task.seconds)
        except OutOfTimeError as error:
            found = Fit(reason="time limit") if task.stage == "refit" else Fit(error=repr(error))
        except Exception as error:
            found = Fit(error=repr(error))
        return found._replace(seconds=time.monotonic() - start)

    def _perform(self, task: Task, end: float) -> Fit:
        if task.stage == "refit":
            refitted = task.model.refit_on(self.view, replace(self.labelled, deadline=end))
            return Fit(refitted, _outputs(refitted, self.view))
        if task.rival is not None:
            pair = np.stack([self._screen(model, end) for model in (task.rival, task.model)])
            items = self.labelled.val
            if _greedy(self.labelled, pair, items)[1] < SCREEN_WEIGHT:
                parts = f"{SCREEN_ITEMS:,} of {len(self.labelled.train):,} training items"
                return Fit(reason=f"on {parts} it adds nothing to {task.rival.name}")
        fitted = task.model.fit_on(self.view, self._until(end, 2 + self.folds))
        outputs = _outputs(fitted, self.view)
        if not self.folds:
            return Fit(fitted, outputs, _judged(fitted, outputs, self.labelled.val), fitted.chosen)
        return Fit(fitted, outputs, *self._out_of_fold(task.model, fitted.chosen, end))

    def _until(self, end: float, fits: int, **changes: Any) -> Labelled:
        """The problem with a deadline for the next of so many fits."""
        now = time.monotonic()
        return replace(self.labelled, deadline=now + max(0.0, end - now) / fits, **changes)

    def _screen(self, model: Model, end: float) -> Float:
        """Outputs for validation items by a copy that was fitted on a part of the training items."""
        if model.name not in self._screens:
            rng, items = np.random.default_rng(self.labelled.seed), self.labelled.train
            some = self._until(end, 1, train=np.sort(rng.choice(items, SCREEN_ITEMS, replace=False)))
            fitted = model.fit_on(self.view, some)
            self._screens[model.name] = _judged(fitted, _outputs(fitted, self.view), self.labelled.val)
        return self._screens[model.name]

    def _out_of_fold(self, model: Model, chosen: Any, end: float) -> tuple[Float, Any]:
        """Outputs for all labelled items, each by a copy that was fitted without its fold; choices are pooled."""
        labelled, every = self.labelled, self.labelled.joined().train
        order = np.random.default_rng(labelled.seed).permutation(every)
        if labelled.task == "classify":
            order = order[np.argsort(labelled.y[order], kind="stable")]  # dealt out class by class
        result, choices, model = np.zeros((len(every), labelled.outputs)), [], model.in_folds()
        for number in range(self.folds):
            fold = np.sort(order[number :: self.folds])
            part = self._until(end, 1 + self.folds - number, train=np.setdiff1d(every, fold), val=fold)
            copied = model.fit_on(self.view, part)
            result[np.searchsorted(every, fold)] = _judged(copied, _outputs(copied, self.view), fold)
            choices.append(copied.chosen)
        return result, chosen if choices[0] is None else model.pool_choices(choices)


class _Pickler(pickle.Pickler):
    """Writes of a tensor no more than its own entries: those of many graphs may be parts of one large tensor."""

    def reducer_override(self, value: Any) -> Any:
        """A copy of what is a part."""
        plain = isinstance(value, Tensor) and value.layout == torch.strided
        if plain and value.untyped_storage().nbytes() > value.nbytes:
            return value.clone().__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        return NotImplemented


def _received(state: bytes) -> Work:
    """The work that another process has sent."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return Work(*pickle.loads(state))


class Fitting:
    """Fits candidates, and those that count a second time.

    Without a time limit, the result is the same for any number of processes: what is decided about a candidate follows
    from those before it in the order.

    Args:
        view, labelled, folds: See :class:`Work`.
        clock: Time and memory that are left.
        tell: Told about every candidate.
        saved: Where finished candidates are kept.
        measure: The metric that candidates are told by.
        jobs: Processes that fit at once, with one thread each, where there is work for :data:`WORTH` seconds; None for
            this process alone.
        engine: Makes other workers from what performs a task.

    Attributes:
        judged_items: The items that candidates are judged on: validation, or all labelled items in folds.
    """

    def __init__(
        self,
        view: View,
        labelled: Labelled,
        folds: int,
        clock: Clock,
        tell: Callable[[Progress], None],
        saved: Checkpoint | None,
        measure: Measure,
        jobs: int | None = None,
        engine: Callable[[Work], Engine] | None = None,
    ) -> None:
        self.view, self.labelled, self.folds = view, labelled, folds
        self.clock, self._tell, self.saved, self.measure = clock, tell, saved, measure
        self.judged_items: Int = labelled.joined().train if folds else labelled.val
        if labelled.device != "cpu":
            clock.free = min(clock.free, USABLE * available_bytes(torch.device(labelled.device)))
        work = Work(view, labelled, folds)
        self._engine: Engine = engine(work) if engine else InProcess(work)
        self._processes = None if engine or jobs is None else partial(LocalEngine, work, jobs)
        self._waiting: list[Trial] = []

    def attempt(self, models: Sequence[Model], instead: Sequence[Model] = ()) -> list[Trial]:
        """Every candidate as it was fitted, skipped, or as it failed; in the order of the models.

        With a time limit, the cheapest comes first: it is never skipped for lack of time, and costs and losses of the
        cheap ones tell which of the others are worth their time. The cheapest of every kind comes before a second one
        of any kind: where time is short, five kinds of models are worth more than five of a kind. Without a limit,
        those that are fitted in any case come first, the most expensive of them at the beginning, so that processes
        end together; then, in the order above, those that depend on the others. Where time is short, a cheaper model
        of ``instead`` takes the place of the one of its name.
        """
        cheaper = {model.name: model for model in instead}
        trials = [self._begin(model, cheaper.get(model.name)) for model in models]
        named, places = {model.name: model for model in models}, {model.name: i for i, model in enumerate(models)}
        if self._processes and sum((1 + self.folds) * trial.row.estimate for trial in trials if trial.todo) >= WORTH:
            self._engine = self._processes()
        weakref.finalize(self, self._engine.close)
        done: list[Trial] = []

        def depends(trial: Trial) -> bool:
            """Whether it follows from the others if a candidate is fitted."""
            model, row = named[trial.row.name], trial.row
            return row.estimate > self.clock.most or bool(model.after) or self._screened(model, row)

        def ready(trial: Trial, running: list[Trial]) -> bool:
            """Whether all is known that decides about a candidate, and there is memory for it beside the others."""
            if not running or trial.row.status != "waiting":
                return True
            if self.clock.limit == math.inf and depends(trial):  # otherwise what is known by now has to do
                return False
            return sum(self._memory(named[each.row.name]) for each in (trial, *running)) <= self.clock.free

        def begin(trial: Trial, running: list[Trial]) -> Task | None:
            if trial.row.status != "waiting":
                return None
            task = None
            with self._failures(trial):
                task = self._decide(named[trial.row.name], cheaper, trial, done, first=not running)
            return task

        def end(trial: Trial, fit: Fit) -> None:
            self._fitted(trial, fit)
            if trial.model is not None:
                done.append(trial)
                done.sort(key=lambda each: places[each.row.name])  # whichever ended first

        done += [trial for trial in trials if trial.model]
        order = [trials[place] for place in _by_kind_and_cost(trials)]
        if self.clock.limit == math.inf:
            order.sort(key=lambda trial: math.inf if depends(trial) else -trial.cost)
        self._perform("fit", order, ready, begin, end, done)
        return trials

    def refit(self, trials: Sequence[Trial]) -> None:
        """Fit candidates again on training and validation items."""

        def ready(trial: Trial, running: list[Trial]) -> bool:
            memory = sum(self._memory(each.model) for each in (trial, *running) if each.model)
            return not running or memory <= self.clock.free

        try:
            self._perform("refit", trials, ready, lambda trial, running: self._again(trial), self._refitted, ())
        finally:
            self._engine.close()

    def _perform(
        self,
        stage: Literal["fit", "refit"],
        trials: Sequence[Trial],
        ready: Callable[[Trial, list[Trial]], bool],
        begin: Callable[[Trial, list[Trial]], Task | None],
        end: Callable[[Trial, Fit], None],
        done: Sequence[Trial],
    ) -> None:
        """Perform one stage, in order, as many candidates at once as the engine can.

        Args:
            stage: Which.
            trials: The candidates.
            ready: Whether one can be begun beside others.
            begin: Its task, or None if there is nothing to do.
            end: Told what came of a task.
            done: Those whose second fits have to be possible within the time limit.
        """
        self._waiting, todo, running = list(trials), list(trials), dict[str, Trial]()
        total, count, ended = len(trials), 0, "done" if stage == "fit" else "refitted"

        def finish(trial: Trial) -> None:
            nonlocal count
            self._waiting.remove(trial)
            self.tell(ended, trial, count, total)
            count += 1

        try:
            while todo or running:
                while todo and len(running) < self._engine.slots and ready(todo[0], list(running.values())):
                    trial = todo.pop(0)
                    if trial.row.status == "waiting" or stage == "refit":
                        self.tell(stage, trial, count, total)
                    task = begin(trial, list(running.values()))
                    if task is None:
                        finish(trial)
                    else:
                        self._engine.start(task)
                        running[trial.row.name] = trial
                left = self.clock.left() - self._refits(done) if stage == "refit" or done else math.inf
                for each in self._engine.wait(min(max(0.0, left), 3600.0)) if running else ():
                    trial = running.pop(each.task.model.name)
                    end(trial, each.outcome or Fit(error=each.error))
                    finish(trial)
                if running and self.clock.left() - self._refits(done) <= 0 and (stage == "refit" or done):
                    self._engine.close()
                    for trial in running.values():
                        end(trial, Fit(reason="time limit"))
                        finish(trial)
                    running.clear()
        except BaseException:
            self._engine.close()
            raise

    def tell(self, stage: Any, trial: Trial, number: int, total: int) -> None:
        """Report on a candidate, with the seconds that are expected for it and all others."""
        clock, fits = self.clock, 1 + self.folds
        seconds = sum(clock.expected(each.row.kind, fits * each.row.estimate) for each in self._waiting if each.todo)
        seconds /= self._engine.slots
        self._tell(Progress(stage, trial.row, number, total, clock.elapsed(), min(seconds, max(0.0, clock.left()))))

    def _begin(self, model: Model, cheaper: Model | None) -> Trial:
        """A candidate with its estimate, or as it was before an interruption."""
        known = self._saved("fit", *([model, cheaper] if cheaper else [model]))
        if known:
            self.clock.note(known.row.kind, (1 + self.folds) * known.row.estimate, known.row.seconds)
            self.clock.add(known.row.seconds / self._engine.slots)
            return known
        machine = {"task": model.machine_task(self.labelled), **model.search} if isinstance(model, Kernel) else {}
        trial = Trial(Candidate(model.name, model.kind, machine=machine))
        with self._failures(trial):
            estimates = [each.estimate(self.view, len(self.labelled.train)) for each in (model, cheaper) if each]
            trial.row, trial.cost = replace(trial.row, estimate=estimates[0]), min(estimates)
            if trial.cost > self.clock.most:
                trial.todo = False  # unless it is the first
        return trial

    def _decide(
        self, model: Model, cheaper: dict[str, Model], trial: Trial, done: Sequence[Trial], *, first: bool
    ) -> Task | None:
        """The task of a candidate, as it is or in a cheaper form; None where it is skipped."""
        first = first and not done
        reason = self._hopeless(model, done) or self._too_much(model, trial.row, done, first=first)
        if reason and model.name in cheaper:
            model = cheaper[model.name]
            row = replace(trial.row, estimate=model.estimate(self.view, len(self.labelled.train)))
            if not self._too_much(model, row, done, first=first):
                reason, trial.row = "", row
        if reason:
            trial.row = replace(trial.row, status="skipped", reason=reason)
            return None
        task = Task("fit", model, max(0.0, self.clock.left()))
        if not self._screened(model, trial.row):
            return task
        most = trial.row.estimate / SCREEN_GAIN - model.estimate(self.view, SCREEN_ITEMS)

        def comparable(other: Trial) -> bool:
            return other.model is not None and other.model.estimate(self.view, SCREEN_ITEMS) <= most

        scored = [other for other in done if other.row.loss is not None and comparable(other)]
        return task._replace(rival=min(scored, key=lambda other: other.row.loss or 0.0).model) if scored else task

    @contextmanager
    def _failures(self, trial: Trial) -> Iterator[None]:
        """The failure of one candidate is reported, and must not take the others with it."""
        try:
            yield
        except Exception as error:
            self._fitted(trial, Fit(error=repr(error)))

    def _fitted(self, trial: Trial, fit: Fit) -> None:
        """Take over what came of a fit."""
        if fit.error:
            trial.row = replace(trial.row, status="failed", reason=fit.error, seconds=fit.seconds)
            problem = f"member {trial.row.name!r} failed and is left out: {fit.error}"
            warnings.warn(problem, RuntimeWarning, stacklevel=3)
        elif fit.model is None:
            trial.row = replace(trial.row, status="skipped", reason=fit.reason, seconds=fit.seconds)
        else:
            trial.outputs, trial.judged, trial.chosen, trial.model = fit.outputs, fit.judged, fit.chosen, fit.model
            kept = trial.outputs.nbytes + trial.judged.nbytes  # to the end
            self.clock.free = max(0.0, self.clock.free - kept)
            self.clock.note(trial.row.kind, (1 + self.folds) * trial.row.estimate, fit.seconds)
            labelled, measure = self.labelled, self.measure
            y, weight = labelled.y[self.judged_items], labelled.weights(self.judged_items)
            loss, score = item_losses(labelled.task, trial.judged, y, weight), measure.value(trial.judged, y)
            share = None if weight is None else shares(weight)
            trial.row = trial.row.scored(loss, measure.metric.name, score, fit.seconds, share)
            if self.saved:
                self.saved.write("fit", trial)

    def _saved(self, stage: Literal["fit", "refit"], *models: Model) -> Trial | None:
        """A candidate as it was before an interruption."""
        return None if self.saved is None else self.saved.read(stage, self.view, len(self.judged_items), *models)

    def _memory(self, model: Model) -> float:
        """Bytes that a fit takes, where they count."""
        large = max(self.view.num_items, self.view.facts["columns"]) >= LARGE or self.labelled.outputs >= MANY
        return model.memory(self.view, len(self.labelled.train)) if large else 0.0

    def _too_much(self, model: Model, row: Candidate, done: Sequence[Trial], *, first: bool) -> str:
        """Why a candidate is skipped, if it is; the first one is never skipped for lack of time."""
        clock, fits = self.clock, 2 + self.folds
        if not first and row.estimate > clock.most:
            return f"one fit would take about {row.estimate:.0f} s, the effort's limit is {clock.most:.0f} s"
        need = self._memory(model)
        if need > clock.free:
            return f"a fit would take about {need / 1e9:.1f} GB, {clock.free / 1e9:.1f} GB can be used"
        seconds = clock.expected(row.kind, fits * row.estimate)
        if not first and (CUT if model.stops_early else 1.0) * seconds + self._refits(done) > clock.left():
            return f"about {seconds:.0f} s would exceed the time limit"
        return ""

    def _hopeless(self, model: Model, done: Sequence[Trial]) -> str:
        """Why a candidate is skipped that comes after a similar, cheaper one: that one adds nothing to the best."""
        similar = next((trial for trial in done if trial.row.name == model.after), None)
        others = [trial for trial in done if trial is not similar and trial.row.loss is not None]
        if similar is None or not others:
            return ""
        best = min(others, key=lambda other: other.row.loss or 0.0)
        pair = np.stack([best.judged, similar.judged])
        weak = _greedy(self.labelled, pair, self.judged_items)[1] < SCREEN_WEIGHT
        return f"{model.after} adds nothing to {best.row.name}" if weak else ""

    def _refits(self, done: Sequence[Trial]) -> float:
        """Seconds that second fits of the candidates so far would take, of those that have a weight by now."""
        if not done or self.clock.limit == math.inf:
            return 0.0
        some = np.linspace(0, len(self.judged_items), min(len(self.judged_items), JUDGES), endpoint=False, dtype=int)
        weights = _greedy(self.labelled, np.stack([trial.judged[some] for trial in done]), self.judged_items[some])
        seconds = sum(t.row.seconds for t, weight in zip(done, weights, strict=True) if weight) / (1 + self.folds)
        return seconds / self._engine.slots

    def _screened(self, model: Model, row: Candidate) -> bool:
        """Whether a candidate is first fitted on a part of the training items."""
        if self.folds or row.estimate < self.clock.screened or len(self.labelled.train) < 2 * SCREEN_ITEMS:
            return False
        return row.estimate / max(1e-9, model.estimate(self.view, SCREEN_ITEMS)) >= SCREEN_GAIN

    def _again(self, trial: Trial) -> Task | None:
        """The task of a second fit; None where it was done before an interruption, or would take too long."""
        assert trial.model is not None
        known = self._saved("refit", trial.model)
        if known:
            trial.row = replace(trial.row, refit_seconds=known.row.refit_seconds)
            trial.outputs, trial.model = known.outputs, known.model
            self.clock.add(trial.row.refit_seconds / self._engine.slots)
            return None
        before = copy.copy(trial.model)
        before.chosen = trial.chosen
        growth = before.estimate(self.view, len(self.labelled.joined().train)) / max(1e-9, trial.row.estimate)
        if trial.row.seconds / (1 + self.folds) * max(1.0, growth) > self.clock.left():
            self._refitted(trial, Fit(reason="time limit"))
            return None
        return Task("refit", before, max(0.0, self.clock.left()))

    def _refitted(self, trial: Trial, fit: Fit) -> None:
        """Take over what came of a second fit."""
        if fit.model is None:
            trial.row = replace(trial.row, reason=f"not refitted: {fit.reason or fit.error}")
            if fit.error:
                problem = f"member {trial.row.name!r} could not be refitted: {fit.error}"
                warnings.warn(problem, RuntimeWarning, stacklevel=3)
            return
        trial.outputs, trial.model = fit.outputs, fit.model
        trial.row = replace(trial.row, refit_seconds=fit.seconds)
        if self.saved:
            self.saved.write("refit", trial)


def _by_kind_and_cost(trials: Sequence[Trial]) -> list[int]:
    """The order of fits: the cheapest of each kind by cost, then the second of each, and so on."""
    order = sorted(range(len(trials)), key=lambda number: trials[number].cost)
    turn: dict[int, int] = {}
    for place, number in enumerate(order):
        turn[number] = sum(trials[other].row.kind == trials[number].row.kind for other in order[:place])
    return sorted(order, key=turn.__getitem__)


class Measure:
    """A metric of standardised outputs and targets, in the units of the user.

    Args:
        metric: Its name; by default that of the task.
        positive: The positive class of two; by default the rarer.
        objective: The fitted objective.
        labelled: Its targets.
    """

    def __init__(self, metric: str | None, positive: int | None, objective: Objective, labelled: Labelled) -> None:
        self.objective = objective
        self.metric = find_metric(metric or objective.metric, objective.task)
        if objective.task == "classify":
            counts = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.outputs)
            positive = positive_class(self.metric.name, range(labelled.outputs), counts, positive)
            self.metric = self.metric if positive is None else self.metric.of_class(positive, positive)

    def value(self, outputs: Float, y: NDArray[Any], decision: tuple[float, ...] = ()) -> float | None:
        """The metric; None where it is not defined."""
        task, metric = self.objective.task, replace(self.metric, decision=decision)
        return value_of(metric, task, decoded(self.objective, y), decoded(self.objective, outputs))

    def score(self, outputs: Float, y: NDArray[Any]) -> float:
        """The same, so that higher is better; 0 where it is not defined."""
        value = self.value(outputs, y)
        return 0.0 if value is None else value if self.metric.larger_is_better else -value

    def facts(
        self, outputs: Float, y: NDArray[Any], decision: tuple[float, ...], weight: Float | None
    ) -> dict[str, Any]:
        """Loss (by the weights of the items), metric, and score of predictions that are made by a decision."""
        loss = float(item_losses(self.objective.task, outputs, y, weight).mean())
        return {"loss": loss, "metric": self.metric.name, "score": self.value(outputs, y, decision)}


def decoded(objective: Objective, outputs: NDArray[Any]) -> NDArray[Any]:
    """Probabilities or classes as they are; standardised numbers in the units of the targets."""
    return objective.decode(torch.from_numpy(outputs)).numpy()


def _greedy(labelled: Labelled, outputs: Float, items: Int) -> Float:
    """The greedy weights of some candidates by the loss of some items."""
    return greedy_weights(outputs, labelled.y[items], labelled.task, labelled.weights(items))


def _outputs(model: Model, view: View) -> Float:
    outputs = model.outputs(view)
    if not np.isfinite(outputs).all():
        raise DemonetError(f"{model.name} gives outputs that are not finite")
    return soften(outputs, model.facts["task"])


def _judged(model: Model, outputs: Float, items: Int) -> Float:
    """Outputs of the items that its choices were made on; what is told apart by columns, without their own targets."""
    return outputs[items] if model.judged is None else soften(model.judged, model.facts["task"])
