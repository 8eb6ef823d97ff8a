"""`fit_run`: read files, train on one or more splits, test, and write the folder of the run.

``metrics.json`` has the test metric under two rules. ``strict``: the model was fitted on the training part alone, and
so were its floors. ``refit``: model and floors were fitted again on training and validation items, with all choices
kept. ``test_metric`` and ``floors`` are those of the model that is saved, by the ``rule`` that it was fitted under:
``"refit"`` for ``"auto"`` and ``"kernel"``, ``"strict"`` for a network. Validation metrics are always strict.
"""

from __future__ import annotations

import math
import platform
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from demonet.atomic import check_not_input
from demonet.configfile import write_config
from demonet.distributed.recipe import Lead
from demonet.errors import needed
from demonet.estimators import estimator_class
from demonet.estimators.core import Fitted, fit_checked
from demonet.estimators.explain import has_other_edges
from demonet.estimators.importance import importance_facts
from demonet.estimators.models import EnsembleModel, NetworkModel
from demonet.estimators.reasons import Go
from demonet.features.views import LARGE
from demonet.options import Reading, Settings
from demonet.runs.diagnosis import candidate_facts, degree_facts, reason_facts, residual_facts
from demonet.runs.engines import candidate_engine, recipe_of
from demonet.runs.evaluate import measure, over_splits, shown, test_facts
from demonet.runs.floors import floor_scores
from demonet.runs.folder import (
    FILES,
    LOGS,
    MODEL,
    OPTIONS,
    PAGE,
    RunFolder,
    check_out,
    check_same,
    load_run,
    lock_folder,
    open_folder,
)
from demonet.runs.plan import EFFORT, Plan, fitting_threads, make_plan
from demonet.runs.progress import RunProgress, tensorboard_log
from demonet.runs.run import Run, summarise
from demonet.schema import values_of
from demonet.train.presets import Preset
from demonet.workers import beside

FITTING = 0.85  # share of a time limit by which candidates are fitted: tests, baselines and the page come after
MEASURING = 0.97  # share by which baselines, the degree, importance and reasons are measured, as far as they are
_PACKAGES = ("demonet", "torch", "torch_geometric", "numpy", "scikit-learn")


def fit_run(
    edges: str | Path,
    labels: str | Path | None = None,
    features: str | Path | None = None,
    *,
    out: str | Path,
    reading: Reading | None = None,
    settings: Settings | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: RunProgress | None = None,
    page: Callable[[Run, Path], None] | None = None,
    lead: Lead | None = None,
    jobs: int | None = None,
) -> Run:
    """Read a graph, hold out test items, train, test once, and write the folder of the run.

    The folder has ``model.safetensors``, ``config.json``, ``run.toml`` (the arguments, to repeat the run),
    ``metrics.json``, ``split.json``, ``predictions.csv``, ``MODEL_CARD.md``, ``run.safetensors``, from which the page
    is made, and ``manifest.json``, the checksums of all of them. While the run is incomplete, its files are in the
    subfolder ``unfinished``, and an earlier finished run in the folder is not changed.

    Args:
        edges: A file or folder with one graph or many; a store; or the name of a data set of the paper.
        labels: A table of ids and labels, or the name of an attribute in ``edges``.
        features: A table or matrix of node attributes.
        out: The folder.
        reading: How files are read.
        settings: How the model is trained.
        resume: Continue an interrupted run; its settings and files must be the same.
        overwrite: Start again in the folder of another run, which is replaced at the end.
        progress: Callbacks that show progress.
        page: Writes a page about the run to a path, as one more file of the folder.
        lead: Of an engine with several processes: what trains with all of them, see :func:`demonet.runs.engines.join`.
        jobs: Processes that may fit candidates of a small graph if the settings do not say; None for this one alone, as
            others can only be started by a program that may be started again.
    """
    out, settings, progress, began = Path(out), settings or Settings(), progress or RunProgress(), time.monotonic()
    state = check_out(out, resume=resume, overwrite=overwrite)
    for name in FILES:
        check_not_input(out / name, (edges, labels, features))
    if settings.log == "tensorboard":
        needed("tensorboard", "tensorboard")
    plan = make_plan(str(edges), _text(labels), _text(features), reading or Reading(), settings, progress.step)
    plan = replace(plan, recipe=recipe_of(settings, lead, str(edges), plan.inputs.store), began=began)
    small = sum(int(graph.num_nodes or 0) for graph in plan.inputs.graphs) < LARGE
    if plan.model == "auto" and settings.jobs is None and small and jobs != 1:
        plan = replace(plan, settings=replace(settings, jobs=jobs))
    progress.message(plan.description)
    progress.message(plan.decision)
    progress.message(plan.model_decision)
    if (told := plan.metric_decision) is not None:
        progress.message(told)
    request = plan.request
    if state == "finished" and not overwrite:
        with lock_folder(out):
            finished = load_run(out)
        check_same(finished.config["asked"], request, out)
        progress.message(f"{out} is already finished")
        return finished
    with open_folder(out, state, overwrite=overwrite) as folder, fitting_threads(plan.inputs):
        folder.remember(request)
        options = {"edges": _text(edges), "labels": _text(labels), "features": _text(features)}
        options |= {**asdict(plan.reading), **asdict(settings), "positive": plan.positive}
        with values_of(folder.work) if resume else nullcontext():
            run = None if folder.ready else _train(plan, request, options, folder, progress, page)
        folder.publish()
    return run or load_run(out)


def _train(
    plan: Plan,
    request: dict[str, Any],
    options: dict[str, Any],
    folder: RunFolder,
    progress: RunProgress,
    page: Callable[[Run, Path], None] | None,
) -> Run:
    """Train on every split, then write all files of the run."""
    results, first = [], None
    for number in range(len(plan.splits)):
        result, fitted = _train_split(plan, number, folder, progress)
        first = fitted if number == 0 else first
        results.append(result)
        progress.message(_result_line(result, number, len(plan.splits), plan.metric.title))
    split = plan.splits[0]
    metrics: dict[str, Any] = {
        **results[0],
        "seed": plan.settings.seed,
        "split": {
            "name": split.name,
            "seed": split.seed,
            "hash": split.hash,
            **{part: getattr(split, part).numel() for part in ("train", "val", "test")},
        },
    }
    if len(results) > 1:
        metrics["cv"] = over_splits(results)
    if first is None:  # trained before an interruption
        saved, known = estimator_class(plan.inputs.kind, plan.inputs.task).load(folder.path(MODEL)).fitted_, None
    else:
        saved, known = first.saved, first.results
    progress.step("drawing the predictions")
    run = summarise(plan, saved, _config(plan, request, saved), metrics, known)
    folder.save(run, split)
    write_config(folder.final(OPTIONS), {**options, "out": folder.out}, folder.out)
    if page is not None:
        progress.step("writing the page")
        page(run, folder.final(PAGE))
    shutil.copyfile(folder.path(MODEL), folder.final(MODEL))
    return run


def _train_split(
    plan: Plan, number: int, folder: RunFolder, progress: RunProgress
) -> tuple[dict[str, Any], _Outcome | None]:
    """Train and test on one split; if that was done before an interruption, return its result alone."""
    known = folder.split_result(number)
    if known is not None:
        return known, None
    split, inputs, start = plan.splits[number], plan.inputs, time.monotonic()
    plan = replace(plan, began=start) if number else plan  # a limit is on one split; reading counts for the first
    fit = {"network": _network, "auto": _ensemble, "kernel": _machine}[plan.model]
    part = plan.without_test(number) if plan.settings.new_nodes else plan
    fitted = _outcome(*fit(part, number, folder, progress), inputs.data, whole=part is plan)
    if inputs.task != "regress":  # ties among probabilities are those of predictions.csv
        fitted = fitted._replace(strict=_written(fitted.strict), refit=_written(fitted.refit))
    outputs = fitted.strict if fitted.refit is None else fitted.refit
    metric = replace(plan.metric, decision=fitted.saved.objective.decision)
    cut: dict[str, str] = {}
    going = partial(_going, plan, progress, cut)
    floors = floor_scores(inputs, split, plan.metric, going("simple baselines"))
    rules = {"strict": fitted.strict, "refit": fitted.refit}
    tested = {
        rule: None if rows is None else test_facts(inputs, rows, split, metric) | floors[rule]
        for rule, rows in rules.items()
    }
    rule = "strict" if fitted.refit is None else "refit"
    result = {
        "model": plan.model,
        **measure(inputs, outputs, fitted.strict, split, metric),
        **({} if plan.unequal is None else {"unequal": plan.unequal}),
        **({"decision": _decision_facts(metric.decision, inputs.task)} if metric.decision else {}),
        **({} if plan.positive is None else {"positive": plan.positive}),
        "rule": rule,
        **({"new_nodes": True} if plan.settings.new_nodes else {}),
        **(tested[rule] or {}),
        **tested,
        **({} if inputs.task == "regress" else {"calibration": fitted.saved.model.calibration.state()}),
        **fitted.facts,
    }
    if number == 0 and inputs.task == "regress" and inputs.kind == "nodes":
        result["residuals"] = residual_facts(inputs, outputs, split)
    if fitted.inductive:
        for each, rows in fitted.inductive.items():
            result["inductive"][each] = test_facts(inputs, rows, split, metric)
    if number == 0:
        degree: Callable[[], dict[str, Any]] = dict
        if plan.model != "network":
            progress.message("measuring what the degree is worth")
            labelled = split.train.numel() + split.val.numel()
            effort = plan.settings.effort or EFFORT
            degree = partial(degree_facts, fitted.saved, effort, labelled, plan.settings.seed, _left(plan))
        short = plan.model == "network" or plan.settings.time_limit is not None
        judge, effort = fitted.saved.model.strict, plan.settings.effort or ("quick" if short else EFFORT)
        assert judge is not None
        seed, edges, go = plan.settings.seed, has_other_edges(fitted.saved), going("what matters")
        parts = split.train.numpy(), split.val.numpy()
        given = judge.outputs, inputs.data, inputs.data.y.numpy(), parts, metric, inputs.task, effort, seed
        with beside(degree, plan.settings.jobs or 1) as degree_effect:
            result["importance"] = importance_facts(*given, names=inputs.columns, edges=edges, go=go)
            go = going("reasons of predictions")
            result["reasons"] = reason_facts(fitted.saved, inputs, split, outputs, plan.ranked_by, effort, go)
            progress.step("measuring what the degree is worth")
            if found := degree_effect():
                result["degree_effect"] = found
        fitted.saved.save(folder.path(MODEL))
    if cut:
        result["cut"] = cut
    result.setdefault("seconds", round(time.monotonic() - start, 3))
    folder.save_split_result(number, result)
    folder.forget(_checkpoint(number))
    return result, fitted


def _decision_facts(decision: tuple[float, ...], task: str) -> dict[str, Any]:
    """What predictions are made by: factors of probabilities; of two classes and of labels, the threshold of each."""
    if task == "multilabel":
        return {"thresholds": list(decision)}
    found: dict[str, Any] = {"factors": list(decision)}
    two = {"thresholds": [decision[1] / sum(decision), decision[0] / sum(decision)]} if len(decision) == 2 else {}
    return found | two


class _Outcome(NamedTuple):
    """A fitted model, and the outputs for all items.

    ``strict`` are those of a model that was fitted on the training part alone, ``refit`` those of the model that is
    saved where it was fitted on training and validation items; None where it is the strict one. ``results`` are the
    outputs and embeddings of the saved model. ``inductive`` are the outputs by both rules with the weights for another
    graph, where an ensemble has members that know the nodes of this one.
    """

    saved: Fitted
    facts: dict[str, Any]
    strict: Any
    refit: Any
    results: tuple[Any, Any]
    inductive: dict[str, Any] | None = None


def _outcome(fitted: Fitted, facts: dict[str, Any], data: Any, *, whole: bool) -> _Outcome:
    """The outputs of a model for all items, which it may know from the fit if that was on the ``whole`` data."""
    model, strict, inductive = fitted.model, fitted.model.strict, None
    assert strict is not None
    results = fitted.outputs_and_embedding(data) if whole else (fitted.outputs(data), fitted.embed(data))
    if isinstance(model, EnsembleModel) and isinstance(strict, EnsembleModel):
        inductive = model.ensemble.inductive_outputs
        if inductive is not None and not whole:
            inductive = {"strict": strict.outputs_elsewhere(data), "refit": model.outputs_elsewhere(data)}
    if strict is model:
        return _Outcome(fitted, facts, results[0], None, results)
    own = strict.fitted_outputs(data) if whole else strict.outputs(data)
    return _Outcome(fitted, facts, own, results[0], results, inductive)


def _written(outputs: Any) -> Any:
    """Probabilities as files have them, in single precision."""
    return None if outputs is None else outputs.astype(np.float32).astype(np.float64)


def _network(plan: Plan, number: int, folder: RunFolder, progress: RunProgress) -> tuple[Fitted, dict[str, Any]]:
    log = folder.final(LOGS) / f"split-{number:03}" if plan.settings.log else None
    with (
        progress.training(_label(plan, number), plan.epochs) as callback,
        tensorboard_log(log, callback) as on_epoch,
    ):
        checkpoint = folder.path(_checkpoint(number))
        fitted = _fit(plan, number, on_epoch=on_epoch, checkpoint=checkpoint, recipe=plan.recipe)
    assert isinstance(fitted.model, NetworkModel)
    history = fitted.model.history
    facts: dict[str, Any] = {"epochs": history.epochs, "best_epoch": history.best_epoch + 1}
    facts["seconds"] = round(history.seconds, 3)
    if history.depths:
        facts |= {"layers": fitted.model.preset.model.layers, "depths": history.depths}
    return fitted, facts


def _ensemble(plan: Plan, number: int, folder: RunFolder, progress: RunProgress) -> tuple[Fitted, dict[str, Any]]:
    with progress.candidates(_label(plan, number)) as on_candidate:
        checkpoint, engine = folder.path(_checkpoint(number)), candidate_engine(plan.settings)
        fitted = _fit(plan, number, on_candidate=on_candidate, checkpoint=checkpoint, engine=engine)
    assert isinstance(fitted.model, EnsembleModel)
    ensemble = fitted.model.ensemble
    facts = candidate_facts(ensemble, fitted.model.candidates, plan.inputs.data.y.numpy(), plan.metric)
    facts |= {"effort": plan.settings.effort or EFFORT, "seconds": round(ensemble.seconds, 3)}
    if ensemble.left_out:
        facts["inductive"] = {"left_out": ensemble.left_out}
    return fitted, facts


def _machine(plan: Plan, number: int, folder: RunFolder, progress: RunProgress) -> tuple[Fitted, dict[str, Any]]:
    """The machine chooses its settings by leave-one-out, so the strict one is fitted without the validation part."""
    split, label = plan.splits[number], _label(plan, number)
    sizes = f"{split.train.numel():,} {plan.inputs.kind}, then again with the {split.val.numel():,} of validation"
    progress.message(f"{label}: kernel machine on {sizes}")
    progress.step(f"{label} a kernel machine")
    return _fit(plan, number), {}


def _fit(plan: Plan, number: int, **options: Any) -> Fitted:
    inputs, estimator, limit = plan.inputs, plan.estimator(number), plan.settings.time_limit
    if limit is not None:
        estimator.set_params(time_limit=max(0.1 * limit, FITTING * limit - _passed(plan)))
    return fit_checked(estimator, inputs.data, plan.splits[number], inputs.names, **options)


def _passed(plan: Plan) -> float:
    """Seconds of a time limit that have passed."""
    return time.monotonic() - plan.began


def _left(plan: Plan) -> float:
    """Seconds that are left to measure in."""
    limit = plan.settings.time_limit
    return math.inf if limit is None else MEASURING * limit - _passed(plan)


def _going(plan: Plan, progress: RunProgress, cut: dict[str, str], what: str) -> Go:
    """Shows how far a step is, and ends it with the time limit; ``cut`` is then told how far it came."""

    def go(done: int, total: int) -> bool:
        progress.step(f"measuring {what}", done, total)
        if _left(plan) > 0:
            return True
        cut[what] = f"{done} of {total}"
        return False

    return go


def _label(plan: Plan, number: int) -> str:
    verb = "training" if plan.model == "network" else "fitting"
    return verb if len(plan.splits) == 1 else f"split {number + 1} of {len(plan.splits)}"


def _checkpoint(number: int) -> str:
    """A file of a network, a folder of an ensemble or of networks of several depths."""
    return f"checkpoint-{number:03}.safetensors"


def _config(plan: Plan, request: dict[str, Any], fitted: Fitted) -> dict[str, Any]:
    """What was trained on which data and how, as plain JSON."""
    inputs = plan.inputs
    return {
        "name": inputs.name,
        "kind": inputs.kind,
        "task": inputs.task,
        "metric": plan.metric.name,
        **({} if inputs.label_name is None else {"label": inputs.label_name}),
        **({} if plan.positive is None else {"positive": plan.positive}),
        **({} if inputs.undirected is None else {"direction": inputs.undirected.message}),
        "files": {part: str(path) for part, path in inputs.files.items()},
        "sizes": inputs.sizes,
        **_network_config(fitted.model.preset if isinstance(fitted.model, NetworkModel) else None),
        "estimator": fitted.parameters,
        "seed": plan.settings.seed,
        "device": plan.settings.uses,
        "threads": torch.get_num_threads(),
        "reading": asdict(plan.reading),
        "asked": request,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
    }


def _network_config(used: Preset | None) -> dict[str, Any]:
    """The preset of a network, with all settings applied."""
    if used is None:
        return {}
    return {
        "preset": used.name,
        "family": used.family,
        "scheme": used.model.scheme,
        "features": used.features,
        "tasks": used.tasks,
        "model": asdict(used.model),
        "train": asdict(used.train),
    }


def _text(name: str | Path | None) -> str | None:
    return None if name is None else str(name)


def _result_line(result: dict[str, Any], number: int, count: int, title: str) -> str:
    values = {"validation": result["val_metric"], "test": result["test_metric"]}
    numbers = ", ".join(f"{part} {title} {shown(value)}" for part, value in values.items() if value is not None)
    what = "trained" if count == 1 else f"split {number + 1} of {count}"
    best = f"best epoch {result['best_epoch']} of {result['epochs']}, " if "best_epoch" in result else ""
    if "depths" in result:
        best = f"{result['layers']} layers of {', '.join(result['depths'])}, {best}"
    return f"{what}: {numbers} ({best}{result['seconds']:.1f} s)"
