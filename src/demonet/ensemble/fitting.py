"""Candidates one after the other, the cheapest of each kind first: what is fitted or skipped, and the second fit."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

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

SCREENED: dict[Effort, float] = {"quick": 3.0, "standard": 10.0, "best": 60.0}
"""Seconds by its own estimate from which on a candidate is first fitted on a part of the training items."""
SCREEN_ITEMS = 1000  # in that part
SCREEN_GAIN = 4.0  # how much cheaper such a fit has to be
SCREEN_WEIGHT = 0.1  # beside the best candidate so far, below which one is not fitted on all of them
JUDGES = 1000  # items, at most, that tell which of the candidates so far will be fitted again
CUT = 0.25  # share of the expected time that a candidate that improves step by step can do with
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


class Fitting:
    """Fits candidates, and those that count a second time.

    Args:
        view, labelled: The problem.
        folds: Of cross-validation over all labelled items; 0 where candidates are judged on validation items.
        clock: Time and memory that are left.
        tell: Told about every candidate.
        saved: Where finished candidates are kept.
        measure: The metric that candidates are told by.

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
    ) -> None:
        self.view, self.labelled, self.folds = view, labelled, folds
        self.clock, self._tell, self.saved, self.measure = clock, tell, saved, measure
        self.judged_items: Int = labelled.joined().train if folds else labelled.val
        self._waiting: list[Trial] = []
        self._screens: dict[str, Float] = {}

    def attempt(self, models: Sequence[Model], instead: Sequence[Model] = ()) -> list[Trial]:
        """Every candidate as it was fitted, skipped, or as it failed; in the order of the models.

        The cheapest comes first: it is never skipped for lack of time, and costs and losses of the cheap ones tell
        which of the others are worth their time. The cheapest of every kind comes before a second one of any kind:
        where time is short, five kinds of models are worth more than five of a kind.

        Args:
            models: The candidates.
            instead: Cheaper ones, each in place of the one of its name where time is short.
        """
        cheaper = {model.name: model for model in instead}
        trials = [self._begin(model, cheaper.get(model.name)) for model in models]
        order = _by_kind_and_cost(trials)
        self._waiting = [trials[place] for place in order]
        for number, place in enumerate(order):
            trial = trials[place]
            if trial.row.status == "waiting":
                self.tell("fit", trial, number, len(models))
                self._attempt(models[place], cheaper, trial, [trials[other] for other in order[:number]])
            self._waiting.remove(trial)
            self.tell("done", trial, number, len(models))
        return trials

    def tell(self, stage: Any, trial: Trial, number: int, total: int) -> None:
        """Report on a candidate, with the seconds that are expected for it and all others."""
        clock, fits = self.clock, 1 + self.folds
        seconds = sum(clock.expected(each.row.kind, fits * each.row.estimate) for each in self._waiting if each.todo)
        self._tell(Progress(stage, trial.row, number, total, clock.elapsed(), min(seconds, max(0.0, clock.left()))))

    def _begin(self, model: Model, cheaper: Model | None) -> Trial:
        """A candidate with its estimate, or as it was before an interruption."""
        known = self.saved and self.saved.read("fit", *([model, cheaper] if cheaper else [model]))
        if known:
            self.clock.note(known.row.kind, (1 + self.folds) * known.row.estimate, known.row.seconds)
            self.clock.add(known.row.seconds)
            return known
        machine = {"task": model.machine_task(self.labelled), **model.search} if isinstance(model, Kernel) else {}
        trial = Trial(Candidate(model.name, model.kind, machine=machine))
        with self._failures(trial):
            estimates = [each.estimate(self.view, len(self.labelled.train)) for each in (model, cheaper) if each]
            trial.row, trial.cost = replace(trial.row, estimate=estimates[0]), min(estimates)
            if trial.cost > self.clock.most:
                trial.todo = False  # unless it is the first
        return trial

    def _attempt(self, model: Model, cheaper: dict[str, Model], trial: Trial, before: list[Trial]) -> None:
        start = time.monotonic()
        with self._failures(trial):
            first = not any(other.model for other in before)
            reason = self._too_much(model, trial.row, before, first=first)
            if reason and model.name in cheaper:
                model = cheaper[model.name]
                row = replace(trial.row, estimate=model.estimate(self.view, len(self.labelled.train)))
                if not self._too_much(model, row, before, first=first):
                    reason, trial.row = "", row
            reason = reason or self._hopeless(model, trial.row, before)
            if reason:
                trial.row = replace(trial.row, status="skipped", reason=reason, seconds=time.monotonic() - start)
            else:
                self._fit(model, trial, start)
        if self.saved and trial.model is not None:
            self.saved.write("fit", trial)

    @contextmanager
    def _failures(self, trial: Trial) -> Iterator[None]:
        """The failure of one candidate is reported, and must not take the others with it."""
        start = time.monotonic()
        try:
            yield
        except Exception as error:
            trial.row = replace(trial.row, status="failed", reason=repr(error), seconds=time.monotonic() - start)
            problem = f"member {trial.row.name!r} failed and is left out: {error!r}"
            warnings.warn(problem, RuntimeWarning, stacklevel=3)

    def _too_much(self, model: Model, row: Candidate, before: list[Trial], *, first: bool) -> str:
        """Why a candidate is skipped, if it is; the first one is never skipped for lack of time."""
        clock, fits = self.clock, 2 + self.folds
        if not first and row.estimate > clock.most:
            return f"one fit would take about {row.estimate:.0f} s, the effort's limit is {clock.most:.0f} s"
        need = model.memory(self.view, len(self.labelled.train)) if self.view.num_items >= LARGE else 0.0
        if need > clock.free:
            return f"a fit would take about {need / 1e9:.1f} GB, {clock.free / 1e9:.1f} GB can be used"
        seconds = clock.expected(row.kind, fits * row.estimate)
        if not first and (CUT if model.stops_early else 1.0) * seconds + self._refits(before) > clock.left():
            return f"about {seconds:.0f} s would exceed the time limit"
        return ""

    def _refits(self, before: list[Trial]) -> float:
        """Seconds that second fits of the candidates so far would take, of those that have a weight by now."""
        done = [trial for trial in before if trial.model]
        if not done or self.clock.limit == math.inf:
            return 0.0
        some = np.linspace(0, len(self.judged_items), min(len(self.judged_items), JUDGES), endpoint=False, dtype=int)
        y = self.labelled.y[self.judged_items[some]]
        weights = greedy_weights(np.stack([trial.judged[some] for trial in done]), y, self.labelled.task)
        return sum(t.row.seconds for t, weight in zip(done, weights, strict=True) if weight) / (1 + self.folds)

    def _hopeless(self, model: Model, row: Candidate, before: list[Trial]) -> str:
        """Why an expensive candidate is not fitted: on a part of the training items it adds nothing to the best one."""
        view, labelled, done = self.view, self.labelled, [trial for trial in before if trial.row.loss is not None]
        total, fits = len(labelled.train), row.estimate / max(1e-9, model.estimate(view, SCREEN_ITEMS))
        if (
            self.folds
            or not done
            or row.estimate < self.clock.screened
            or total < 2 * SCREEN_ITEMS
            or fits < SCREEN_GAIN
        ):
            return ""
        best = min(done, key=lambda trial: trial.row.loss or 0.0)
        assert best.model is not None
        pair = np.stack([self._screen(best.model), self._screen(model)])
        weight = greedy_weights(pair, labelled.y[labelled.val], labelled.task)[1]
        if weight >= SCREEN_WEIGHT:
            return ""
        return f"on {SCREEN_ITEMS:,} of {total:,} training items it adds nothing to {best.row.name}"

    def _screen(self, model: Model) -> Float:
        """Outputs for validation items by a copy that was fitted on a part of the training items."""
        if model.name not in self._screens:
            labelled = self.labelled
            some = np.random.default_rng(labelled.seed).choice(labelled.train, SCREEN_ITEMS, replace=False)
            copied = model.fit_on(self.view, replace(labelled, train=np.sort(some), deadline=self._deadline(1)))
            self._screens[model.name] = _outputs(copied, self.view)[labelled.val]
        return self._screens[model.name]

    def _deadline(self, fits: int) -> float:
        """Until when the next of so many fits has to end."""
        return time.monotonic() + max(0.0, self.clock.left()) / fits

    def _fit(self, model: Model, trial: Trial, start: float) -> None:
        fitted = model.fit_on(self.view, replace(self.labelled, deadline=self._deadline(2 + self.folds)))
        trial.outputs, trial.chosen = _outputs(fitted, self.view), fitted.chosen
        trial.judged = self._out_of_fold(model, trial) if self.folds else trial.outputs[self.judged_items]
        seconds = time.monotonic() - start
        self.clock.note(trial.row.kind, (1 + self.folds) * trial.row.estimate, seconds)
        y, measure = self.labelled.y[self.judged_items], self.measure
        loss, score = item_losses(self.labelled.task, trial.judged, y), measure.value(trial.judged, y)
        trial.row, trial.model = trial.row.scored(loss, measure.metric.name, score, seconds), fitted

    def _out_of_fold(self, model: Model, trial: Trial) -> Float:
        """Outputs for all labelled items, each by a copy that was fitted without its fold; choices are pooled."""
        labelled, every = self.labelled, self.labelled.joined().train
        order = np.random.default_rng(labelled.seed).permutation(every)
        if labelled.task == "classify":
            order = order[np.argsort(labelled.y[order], kind="stable")]  # dealt out class by class
        result, chosen = np.zeros((len(every), labelled.outputs)), []
        for number in range(self.folds):
            fold, deadline = np.sort(order[number :: self.folds]), self._deadline(1 + self.folds - number)
            part = replace(labelled, train=np.setdiff1d(every, fold), val=fold, deadline=deadline)
            copied = model.fit_on(self.view, part)
            result[np.searchsorted(every, fold)] = _outputs(copied, self.view)[fold]
            chosen.append(copied.chosen)
        if chosen[0] is not None:
            trial.chosen = model.pool_choices(chosen)
        return result

    def refit(self, trials: Sequence[Trial]) -> None:
        """Fit candidates again on training and validation items."""
        self._waiting = list(trials)
        for number, trial in enumerate(trials):
            self.tell("refit", trial, number, len(trials))
            self._refit(trial)
            self._waiting.remove(trial)
            self.tell("refitted", trial, number, len(trials))

    def _refit(self, trial: Trial) -> None:
        assert trial.model is not None
        known = self.saved and self.saved.read("refit", trial.model)
        if known:
            trial.row = replace(trial.row, refit_seconds=known.row.refit_seconds)
            trial.outputs, trial.model = known.outputs, known.model
            self.clock.add(trial.row.refit_seconds)
            return
        start, before = time.monotonic(), copy.copy(trial.model)
        before.chosen = trial.chosen
        growth = before.estimate(self.view, len(self.labelled.joined().train)) / max(1e-9, trial.row.estimate)
        try:
            if trial.row.seconds / (1 + self.folds) * max(1.0, growth) > self.clock.left():
                raise OutOfTimeError("the time limit is near")
            refitted = before.refit_on(self.view, replace(self.labelled, deadline=self._deadline(1)))
            trial.outputs, trial.model = _outputs(refitted, self.view), refitted
            trial.row = replace(trial.row, refit_seconds=time.monotonic() - start)
        except OutOfTimeError:
            trial.row = replace(trial.row, reason="not refitted: time limit")
        except Exception as error:
            trial.row = replace(trial.row, reason=f"not refitted: {error!r}")
            warnings.warn(f"member {trial.row.name!r} could not be refitted: {error!r}", RuntimeWarning, stacklevel=3)
        else:
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

    def value(self, outputs: Float, y: NDArray[Any]) -> float | None:
        """The metric; None where it is not defined."""
        task = self.objective.task
        return value_of(self.metric, task, decoded(self.objective, y), decoded(self.objective, outputs))

    def score(self, outputs: Float, y: NDArray[Any]) -> float:
        """The same, so that higher is better; 0 where it is not defined."""
        value = self.value(outputs, y)
        return 0.0 if value is None else value if self.metric.larger_is_better else -value

    def facts(self, outputs: Float, y: NDArray[Any]) -> dict[str, Any]:
        """Loss, metric and score."""
        loss = float(item_losses(self.objective.task, outputs, y).mean())
        return {"loss": loss, "metric": self.metric.name, "score": self.value(outputs, y)}


def decoded(objective: Objective, outputs: NDArray[Any]) -> NDArray[Any]:
    """Probabilities or classes as they are; standardised numbers in the units of the targets."""
    return objective.decode(torch.from_numpy(outputs)).numpy()


def _outputs(model: Model, view: View) -> Float:
    outputs = model.outputs(view)
    if not np.isfinite(outputs).all():
        raise DemonetError(f"{model.name} gives outputs that are not finite")
    return soften(outputs, model.facts["task"])
