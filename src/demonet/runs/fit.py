"""`fit_run`: read files, train on one or more splits, test, and write the folder of the run."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from demonet.estimators.checked import Estimator, fit_checked, load_checked, predict_checked
from demonet.runs.evaluate import measure, over_splits, shown, simple_baselines
from demonet.runs.folder import MODEL, PAGE, READY, RunFolder, check_out, check_same, load_run, open_folder
from demonet.runs.plan import Plan, fitting_threads, make_plan
from demonet.runs.progress import RunProgress, check_tensorboard, tensorboard_log
from demonet.runs.run import Run, summarise
from demonet.runs.settings import Reading, Settings
from demonet.train.metrics import METRICS

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
) -> Run:
    """Read a graph, hold out test items, train, test once, and write the folder of the run.

    The folder has ``model.safetensors``, ``config.json``, ``metrics.json``, ``split.json``, ``predictions.csv``,
    ``MODEL_CARD.md`` and ``run.safetensors``, from which the page is made. While the run is incomplete, its files are
    in the subfolder ``unfinished``, and an earlier finished run in the folder is not changed.

    Args:
        edges: A file or folder with one graph or many; or the name of a data set of the paper.
        labels: A table of ids and labels, or the name of an attribute in ``edges``.
        features: A table or matrix of node attributes.
        out: The folder.
        reading: How files are read.
        settings: How the model is trained.
        resume: Continue an interrupted run; its settings and files must be the same.
        overwrite: Start again in the folder of another run, which is replaced at the end.
        progress: Callbacks that show progress.
        page: Writes a page about the run to a path, as one more file of the folder.
    """
    out, settings, progress = Path(out), settings or Settings(), progress or RunProgress()
    state = check_out(out, resume=resume, overwrite=overwrite)
    if settings.log == "tensorboard":
        check_tensorboard()
    plan = make_plan(str(edges), _text(labels), _text(features), reading or Reading(), settings)
    progress.message(plan.description)
    progress.message(plan.decision)
    request = plan.request
    if state == "finished" and not overwrite:
        finished = load_run(out)
        check_same(finished.config["asked"], request, out)
        progress.message(f"{out} is already finished")
        return finished
    with open_folder(out, overwrite=overwrite) as folder, fitting_threads(plan.inputs):
        folder.remember(request)
        run = None if folder.path(READY).exists() else _train(plan, request, folder, progress, page)
        folder.publish()
    return run or load_run(out)


def _train(
    plan: Plan,
    request: dict[str, Any],
    folder: RunFolder,
    progress: RunProgress,
    page: Callable[[Run, Path], None] | None,
) -> Run:
    """Train on every split, then write all files of the run."""
    results, first = [], None
    for number in range(len(plan.splits)):
        result, estimator = _train_split(plan, number, folder, progress)
        first = estimator if number == 0 else first
        results.append(result)
        progress.message(_result_line(result, number, len(plan.splits), METRICS[plan.metric].title))
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
    estimator = first or load_checked(
        folder.path(MODEL), plan.inputs.kind, plan.inputs.task
    )  # trained before an interruption
    run = summarise(plan, estimator, _config(plan, request, estimator.preset_), metrics)
    folder.save(run, split)
    if page is not None:
        page(run, folder.final(PAGE))
    folder.final(MODEL).write_bytes(folder.path(MODEL).read_bytes())
    return run


def _train_split(
    plan: Plan, number: int, folder: RunFolder, progress: RunProgress
) -> tuple[dict[str, Any], Estimator | None]:
    """Train and test on one split; if that was done before an interruption, return its result and no estimator."""
    known = folder.split_result(number)
    if known is not None:
        return known, None
    split, inputs = plan.splits[number], plan.inputs
    checkpoint = folder.path(f"checkpoint-{number:03}.safetensors")
    label = "training" if len(plan.splits) == 1 else f"split {number + 1} of {len(plan.splits)}"
    log = folder.final("tensorboard") / f"split-{number:03}" if plan.settings.log else None
    with progress.training(label, plan.epochs) as callback, tensorboard_log(log, callback) as on_epoch:
        estimator = fit_checked(
            plan.estimator(number),
            inputs.data,
            split,
            inputs.task,
            inputs.names,
            on_epoch=on_epoch,
            checkpoint=checkpoint,
        )
    history = estimator.history_
    result = {
        **measure(inputs, predict_checked(estimator, inputs.data), split, plan.metric),
        "floors": simple_baselines(inputs, split, plan.settings.seed + number, plan.metric),
        "epochs": history.epochs,
        "best_epoch": history.best_epoch + 1,
        "seconds": round(history.seconds, 3),
    }
    if number == 0:
        estimator.save(folder.path(MODEL))
    folder.save_split_result(number, result)
    checkpoint.unlink(missing_ok=True)
    return result, estimator


def _config(plan: Plan, request: dict[str, Any], used: Any) -> dict[str, Any]:
    """What was trained on which data and how, as plain JSON; ``used`` is the preset with all settings applied."""
    inputs = plan.inputs
    return {
        "name": inputs.name,
        "kind": inputs.kind,
        "task": inputs.task,
        "metric": plan.metric,
        "files": {part: str(path) for part, path in inputs.files.items()},
        "sizes": inputs.sizes,
        "preset": used.name,
        "family": used.family,
        "scheme": used.model.scheme,
        "features": used.features,
        "tasks": used.tasks,
        "seed": plan.settings.seed,
        "device": plan.settings.uses,
        "threads": torch.get_num_threads(),
        "model": asdict(used.model),
        "train": asdict(used.train),
        "reading": asdict(plan.reading),
        "asked": request,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
    }


def _text(name: str | Path | None) -> str | None:
    return None if name is None else str(name)


def _result_line(result: dict[str, Any], number: int, count: int, title: str) -> str:
    values = {"validation": result["val_metric"], "test": result["test_metric"]}
    numbers = ", ".join(f"{part} {title} {shown(value)}" for part, value in values.items() if value is not None)
    what = "trained" if count == 1 else f"split {number + 1} of {count}"
    best = f"best epoch {result['best_epoch']} of {result['epochs']}"
    return f"{what}: {numbers} ({best}, {result['seconds']:.1f} s)"
