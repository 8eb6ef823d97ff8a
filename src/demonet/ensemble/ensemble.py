"""The ensemble: candidates fitted one after the other, weighted by validation, fitted again on all labelled items."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import labelled as has_target
from demonet.data.splits import Split, fractions
from demonet.ensemble.calibration import Calibration, LabelCalibration, calibrate, calibration_from_state
from demonet.ensemble.candidate import Candidate, Progress, Trial
from demonet.ensemble.checkpoint import Checkpoint
from demonet.ensemble.fitting import Clock, Fitting, Measure, Work, decoded
from demonet.ensemble.selection import Score, ensemble_weights, soften
from demonet.errors import DemonetError, DemonetWarning, warn
from demonet.features.views import LARGE, Float, Int, View, view_of
from demonet.methods.base import REGISTRY, Items
from demonet.methods.model import Labelled, Model
from demonet.options import Effort
from demonet.schema import Array, check_arrays, from_json
from demonet.tensorfile import to_tensors, under
from demonet.train.finite import check_outputs
from demonet.train.metrics import METRICS, Task
from demonet.train.objective import OBJECTIVES, Objective, Regress, objective_from_state
from demonet.train.problem import fitted_objective, labels
from demonet.workers import Engine

EFFORTS: tuple[Effort, ...] = get_args(Effort)
FOLDS: dict[Effort, int] = {"quick": 3, "standard": 5, "best": 5}  # of cross-validation, with few validation items
FEW = 30  # validation items below which candidates are judged by cross-validation over all labelled items
VALIDATION = 0.25  # share of labelled rows held out where no split is given


def portfolio(view: View, labelled: Labelled, effort: Effort = "standard") -> list[Model]:
    """The candidates for a problem: what every registered model for it offers, in the order of the registry."""
    models = [each for each in REGISTRY.values() if issubclass(each, Model) and view.family in each.kinds]
    models = [each for each in models if labelled.task in each.tasks]
    fitting = [each for each in models if not each.needs_attributes or view.facts["attributes"]]
    return [each.for_problem(labelled) for model in fitting for each in model.candidates(view, labelled, effort)]


class Ensemble:
    """A weighted average of fitted members.

    Attributes:
        objective: The fitted objective: the task, the number of outputs, and the scale of numbers.
        members, weights: What :meth:`outputs` averages.
        inductive_weights: The weights for another graph than the fitted one. Members that know the nodes of that graph
            have none, and the others those that validation chose without them.
        candidates: The table of all that were tried, in order.
        validation: Loss, metric and score of the average on validation, calibrated, with the ``decision``. The weights
            were chosen there, so they flatter. Under ``"inductive"`` the same with the inductive weights.
        calibration, inductive_calibration: What makes probabilities of the average, with either weights.
        strict: The ensemble of members that were fitted on the training part alone, with weights and calibration of
            their own where ``folds`` gave those of a refit; None after :meth:`from_state`.
        strict_outputs: ``[items, outputs]`` of the fitted data by ``strict``: probabilities, or values in the units of
            the targets.
        fitted_outputs: The same by the members as they are, refitted where asked.
        inductive_outputs: Both of these, ``"strict"`` and ``"refit"``, with the inductive weights; None if they are the
            same, or if there are none.
        fitted_member_outputs: What :meth:`member_outputs` gives for the fitted data, member by member.
        judged, judged_items, judged_weight: Outputs of every fitted candidate, by name, for the items that the weights
            were chosen on; these items; and how much each of them counts, None if all count the same. These eight are
            None after :meth:`from_state`.
        decision: What predictions are made by for the metric, as chosen on these items; empty after :meth:`from_state`.
        folds: Whether these outputs are those of cross-validation over all labelled items: where validation items are
            very few, or more than training items, so that a refit has several times the labels of the first fit.
        recognised: How many nodes of the last prediction are known from the fitted graph; None for another graph, or
            if no member knows nodes.
        seconds: Of the whole fit.
    """

    def __init__(self, members: Sequence[Model], weights: Float, facts: dict[str, Any]) -> None:
        self.members, self.weights = list(members), weights
        self.inductive_weights = np.array(facts["inductive_weights"])
        self.candidates = [from_json(Candidate, row) for row in facts["candidates"]]
        self.objective = objective_from_state(facts["objective"])
        self.calibration, self.inductive_calibration = (
            calibration_from_state(self.objective.task, state, self.objective.outputs) for state in facts["calibration"]
        )
        self.validation, self.seconds = facts["validation"], facts["seconds"]
        self.strict_outputs: Float | None = None
        self.strict: Ensemble | None = None
        self.fitted_outputs: Float | None = None
        self.inductive_outputs: dict[str, Float] | None = None
        self.fitted_member_outputs: list[Float] | None = None
        self.judged: dict[str, Float] | None = None
        self.judged_items: Int | None = None
        self.judged_weight: Float | None = None
        self.decision: tuple[float, ...] = ()
        self.folds = bool(facts["folds"])
        self._view_state = facts["view"]
        self.recognised: int | None = None

    @classmethod
    def fit(
        cls,
        data: Items,
        split: Split | Tensor | None = None,
        *,
        task: Task = "classify",
        effort: Effort = "standard",
        time_limit: float | None = None,
        seed: int = 0,
        refit: bool = True,
        members: Sequence[Model] | None = None,
        metric: str | None = None,
        positive: int | None = None,
        weight: Float | None = None,
        told: str | None = None,
        device: str = "cpu",
        jobs: int | None = None,
        engine: Callable[[Work], Engine] | None = None,
        checkpoint: str | Path | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Ensemble:
        """Fit every candidate, weigh them, and fit those that count again on training and validation items.

        Args:
            data: A graph whose nodes have targets in ``y``, or graphs that have: see :mod:`demonet.train.objective`.
            split: Training and validation items; its test items are not looked at. Or labelled items, of which a
                quarter is held out for validation; all that have a label if None.
            task: What the targets are.
            effort: ``"quick"``, ``"standard"`` or ``"best"``.
            time_limit: Seconds, refits included. Candidates that would exceed it, by what others have taken, are
                skipped or fitted as with ``"quick"``, and networks end early; the cheapest is always fitted.
            seed: Of everything random.
            refit: Whether members are fitted again on validation items, too.
            members: Unfitted models in place of those of :func:`portfolio`.
            metric: What greedy selection improves, one of :data:`~demonet.train.metrics.METRICS` for the task; by
                default the loss: log-loss minus accuracy, log-loss of labels, or squared error.
            positive: The number of the positive class, for a metric that has one; by default the rarer of two.
            weight: ``[items]`` how much each item counts, above 0, in fits and in all losses; None if all are 1.
            told: The metric of the table of candidates, where it is not ``metric``; no decision is chosen for it.
            device: Where kernels, random walks and networks are computed; linear models and trees use the CPU.
            jobs: Processes that fit candidates at once, with one thread each, where that is expected to save time; None
                for this process alone. Without a time limit the result is the same for any number.
            engine: Makes the workers in place of ``jobs``, such as :class:`~demonet.workers.RayEngine`.
            checkpoint: A folder to which every finished candidate is written; those that are in it are not fitted
                again. The result is the same, unless a time limit cuts it.
            on_progress: Told about every candidate.
        """
        start = time.monotonic()
        view: View = view_of(data)
        objective, labelled = _labelled(data, split, task, seed, device, weight)
        if effort not in EFFORTS:
            raise DemonetError(f"effort={effort!r}", hint=f"one of {', '.join(EFFORTS)}")
        tried = portfolio(view, labelled, effort) if members is None else [m.for_problem(labelled) for m in members]
        if len({member.name for member in tried}) < len(tried) or not tried:
            raise DemonetError(f"members {[member.name for member in tried]}: at least one, with distinct names")
        tell = on_progress or (lambda progress: None)
        measure = Measure(told or metric, positive, objective, labelled)
        score = None if metric is None else measure.score
        saved = None if checkpoint is None else Checkpoint.open(checkpoint, data, labelled)
        labelled = replace(labelled, metric=metric)
        few = len(labelled.val) < FEW
        folds = FOLDS[effort] if few or (refit and len(labelled.val) > len(labelled.train)) else 0
        fitting = Fitting(view, labelled, folds, Clock(start, time_limit, effort), tell, saved, measure, jobs, engine)
        short = members is None and time_limit is not None and effort != "quick"
        trials = fitting.attempt(tried, portfolio(view, labelled, "quick") if short else ())
        done = [trial for trial in trials if trial.model is not None]
        if not done:
            reasons = "; ".join(f"{trial.row.name}: {trial.row.reason}" for trial in trials)
            raise DemonetError(f"no member could be fitted: {reasons}")
        judged = fitting.judged_items
        every = np.stack([trial.judged for trial in done])
        weights, inductive = both = _weights(done, every, labelled, judged, score)
        calibrated = strictly = _calibrations(both, every, labelled, judged)
        if folds and not few:  # the members that were fitted on the training part alone have weights of their own
            own = np.stack([t.outputs[labelled.val] for t in done])
            both = _weights(done, own, labelled, labelled.val, score)
            strictly = _calibrations(both, own, labelled, labelled.val)
        strict, inductive_strict = (
            each.apply(_average(w, [trial.outputs for trial in done])) for w, each in zip(both, strictly, strict=True)
        )
        for weight, other, trial in zip(weights, inductive, done, strict=True):
            trial.row = replace(trial.row, weight=float(weight), inductive_weight=float(other))
        count, strict_count = (weights > 0) | (inductive > 0), (both[0] > 0) | (both[1] > 0)
        used = [trial for trial, counts in zip(done, count, strict=True) if counts]
        strict_members = [t.model for t, counts in zip(done, strict_count, strict=True) if t.model and counts]
        if refit and len(labelled.val):
            fitting.refit(used)
        pairs = zip((weights, inductive), calibrated, strict=True)
        average, elsewhere = (each.apply(_average(own, every)) for own, each in pairs)
        y, own_weight = labelled.y[judged], labelled.weights(judged)
        decision = () if told else measure.metric.choose_decision(average, y)
        validation = measure.facts(average, y, decision, own_weight)
        members = [trial.model for trial in used if trial.model]
        knows_nodes = any(member.knows_nodes for member in (*members, *strict_members))
        if knows_nodes:
            view.remember_graph()
            validation["inductive"] = measure.facts(elsewhere, y, decision, own_weight)
        facts = {
            "candidates": [asdict(trial.row) for trial in trials],
            "inductive_weights": inductive[count],
            "objective": objective.state(),
            "calibration": [each.state() for each in calibrated],
            "validation": validation,
            "seconds": fitting.clock.elapsed(),
            "folds": bool(folds),
            "view": (view.facts, view.arrays),
        }
        ensemble = cls(members, weights[count], facts)
        ensemble.strict_outputs = decoded(objective, strict)
        own_facts = {"inductive_weights": both[1][strict_count], "calibration": [each.state() for each in strictly]}
        ensemble.strict = cls(strict_members, both[0][strict_count], facts | own_facts)
        ensemble.strict.fitted_outputs = ensemble.strict_outputs
        ensemble.judged = {trial.row.name: decoded(objective, trial.judged) for trial in done}
        ensemble.judged_items, ensemble.judged_weight = judged, own_weight
        ensemble.decision = decision
        ensemble.fitted_member_outputs = [decoded(objective, trial.outputs) for trial in used]
        ensemble.fitted_outputs = ensemble.calibration.apply(_average(ensemble.weights, ensemble.fitted_member_outputs))
        if ensemble.left_out and not ensemble.needs_fitted_graph:
            refitted = ensemble.elsewhere(ensemble.fitted_member_outputs)
            ensemble.inductive_outputs = {"strict": decoded(objective, inductive_strict), "refit": refitted}
        return ensemble

    def outputs(self, data: Items, rows: Int | None = None) -> Float:
        """``[items, outputs]`` of the fitted graphs or others: probabilities, or values in the units of the targets.

        With ``rows``, ``[rows, outputs]`` of these items alone, up to rounding.
        Degrees and attributes that were never seen are allowed. Nodes of the fitted graph are recognised by their ids,
        in any order, and after edges and nodes have changed. For another graph the members that know the nodes of the
        fitted one are left out, with a warning.
        """
        return self.average(self.member_outputs(data, rows))

    def average(self, outputs: Float) -> Float:
        """``[items, outputs]`` the weighted mean of what :meth:`member_outputs` gives, over members that apply.

        Probabilities are calibrated.
        """
        applies = ~np.isnan(outputs).any(axis=(1, 2))
        if applies.all():
            return self.calibration.apply(_average(self.weights, outputs))
        left_out = self.left_out
        if self.needs_fitted_graph:
            raise DemonetError(f"all members ({', '.join(left_out)}) are for the graph that they were fitted on")
        if left_out:
            named, weight = ", ".join(left_out), sum(left_out.values())
            problem = f"not the fitted graph: members that know its nodes are left out ({named}; weight {weight:.2f})"
            both, title = (self.validation, self.validation["inductive"]), METRICS[self.validation["metric"]].title
            scores = [float("nan") if found["score"] is None else found["score"] for found in both]
            hint = f"validation {title} {scores[0]:.4g} with them, {scores[1]:.4g} without"
            warn(DemonetWarning(problem, hint=None if self.folds else hint))  # by folds, others than a page has
        return self.elsewhere(np.nan_to_num(outputs))

    def elsewhere(self, outputs: Sequence[Float] | Float) -> Float:
        """The same with the weights for another graph; members that know nodes have none of them."""
        return self.inductive_calibration.apply(_average(self.inductive_weights, outputs))

    @property
    def left_out(self) -> dict[str, float]:
        """The members that know the nodes of the fitted graph, and so say nothing about another one: their weights."""
        pairs = zip(self.members, self.weights, strict=True)
        return {m.name: float(weight) for m, weight in pairs if weight and m.knows_nodes}

    @property
    def needs_fitted_graph(self) -> bool:
        """Whether every member knows the nodes of the fitted graph, so that there is no answer for another one."""
        return not self.inductive_weights.any()

    def member_outputs(self, data: Items, rows: Int | None = None) -> Float:
        """``[members, items, outputs]`` softened probabilities, or values, of each member; NaN if it does not apply.

        With ``rows``, of these items alone.
        """
        view = self._view(data)
        if any(member.knows_nodes for member in self.members):
            self.recognised = None if view.known is None else int((view.known >= 0).sum())
        none = np.full((view.num_items if rows is None else len(rows), self.objective.outputs), np.nan)
        found = []
        for member in self.members:
            outputs = none
            if len(none) and member.applies_to(view):
                outputs = member.outputs(view) if rows is None else member.some_outputs(view, rows)
                check_outputs(outputs, data, rows)
            found.append(decoded(self.objective, soften(outputs, self.objective.task)))
        return np.stack(found)

    def embed(self, data: Items) -> Float:
        """``[items, width]``: the hidden layer of the network that weighs most; or the leading components of a kernel.

        Without a network or a kernel of weight, what the view knows of an item: structure and attributes.
        """
        view = self._view(data)
        pairs = sorted(zip(self.weights, self.members, strict=True), key=lambda p: (p[1].kind != "network", -p[0]))
        found = (member.embed(view) for weight, member in pairs if weight > 0)
        return next((rows for rows in found if rows is not None), view.description)

    def known_targets(self, data: Items) -> NDArray[Any] | None:
        """The targets near which members look for an answer, by item; None if no member does so on this graph."""
        view = self._view(data)
        reading = (member for member in self.members if member.applies_to(view))
        found = next((found for m in reading if (found := m.known_targets(view)) is not None), None)
        return None if found is None else decoded(self.objective, found)

    def _view(self, data: Items) -> View:
        """The view of some data; known numbers that come with it are standardised."""
        if isinstance(data, Data) and isinstance(self.objective, Regress):
            given = data.get("known_targets")
            if given is not None:
                data = copy.copy(data)
                mean, scale = (given.new_tensor(part) for part in (self.objective.mean, self.objective.scale))
                data.known_targets = (given - mean) / scale
        return view_of(data, self._view_state)

    def predict(self, data: Items) -> NDArray[Any]:
        """``[items]`` the most probable class; or ``[items, outputs]`` 0/1 labels or values."""
        return self.objective.decide(torch.from_numpy(self.outputs(data))).numpy()

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that :meth:`outputs` needs: a part for JSON and plain tensors."""
        described = [member.state() for member in self.members]
        arrays = {f"view.{name}": array for name, array in self._view_state[1].items()}
        for number, (_, own) in enumerate(described):
            arrays |= {f"member.{number}.{name}": array for name, array in own.items()}
        facts = {
            "view": self._view_state[0],
            "members": [facts for facts, _ in described],
            "weights": self.weights.tolist(),
            "inductive_weights": self.inductive_weights.tolist(),
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "objective": self.objective.state(),
            "calibration": [each.state() for each in (self.calibration, self.inductive_calibration)],
            "validation": self.validation,
            "folds": self.folds,
            "seconds": self.seconds,
        }
        return facts, to_tensors(arrays)

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> Ensemble:
        """The ensemble that gave this state."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        members = [Model.from_state(own, under(f"member.{i}", arrays)) for i, own in enumerate(facts["members"])]
        facts = facts | {"view": (facts["view"], under("view", arrays))}
        weights = {name: np.array(facts[name]) for name in ("weights", "inductive_weights")}
        check_arrays(weights, {name: Array("f", (len(members),), 0, finite=True) for name in weights})
        return cls(members, weights["weights"], facts)


def _weights(
    done: list[Trial], outputs: Float, labelled: Labelled, items: Int, score: Score | None
) -> tuple[Float, Float]:
    """``[candidates]`` weights, and those without members that know the nodes of one graph; zeros if these are all."""
    judges = labelled.y[items], labelled.task, labelled.weights(items)
    weights = ensemble_weights(outputs, *judges, score=score)
    others = np.array([not (trial.model and trial.model.knows_nodes) for trial in done])
    if not weights[~others].any():
        return weights, weights
    found = np.zeros(len(done))
    if others.any():
        found[others] = ensemble_weights(outputs[others], *judges, score=score)
    return weights, found


def _calibrations(
    weights: Sequence[Float], outputs: Float, labelled: Labelled, items: Int
) -> list[Calibration | LabelCalibration]:
    """For each of several weights, what makes probabilities of the average; for zeros, it stays as it is."""
    judges = labelled.y[items], labelled.seed, labelled.weights(items)
    none = calibration_from_state(labelled.task, {}, labelled.outputs)
    return [calibrate(labelled.task, _average(each, outputs), *judges) if each.any() else none for each in weights]


def _labelled(
    data: Items, split: Split | Tensor | None, task: Task, seed: int, device: str, weight: Float | None
) -> tuple[Objective, Labelled]:
    y = labels(data, OBJECTIVES[task]()).cpu()
    if not isinstance(split, Split):
        rows = torch.arange(len(y)) if split is None else torch.as_tensor(split)
        classes = task == "classify"
        codes, kept = y if classes else has_target(y).long() - 1, torch.full((len(y),), -1)
        kept[rows] = codes[rows]
        split = fractions(kept, (1 - VALIDATION, VALIDATION, 0.0), seed, stratified=classes)
    objective = fitted_objective(OBJECTIVES[task](), y, split)
    return objective, Labelled.of(y, objective, split, seed, device, weight)


def _average(weights: Float, outputs: Sequence[Float] | Float) -> Float:
    if len(outputs[0]) < LARGE:
        return np.tensordot(weights, np.asarray(outputs), 1)
    total = np.zeros_like(outputs[0])
    for weight, each in zip(weights, outputs, strict=True):  # no copy of them all
        total += weight * each
    return total
