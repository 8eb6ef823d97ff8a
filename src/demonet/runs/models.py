"""Which model a run fits: the one that was asked for, or the one that the task and the other options need."""

from __future__ import annotations

from typing import Any, get_args

from demonet.errors import DemonetError, Hint
from demonet.estimators.closed_form import choose_model
from demonet.options import AUTO_OPTIONS, Effort, Settings
from demonet.train.metrics import Task

EFFORT: Effort = "standard"
EFFORTS = get_args(Effort)


def decide_model(settings: Settings, task: Task, columns: int) -> tuple[str, Hint]:
    """``"auto"``, ``"kernel"`` or ``"network"``, and a line that says which and why.

    ``"auto"`` predicts classes. For one number it gives way to ``"kernel"``, for several columns of labels or numbers
    to ``"network"``. Without a model, an option that only networks read chooses ``"network"``.

    Args:
        settings: What was asked for.
        task: What is predicted.
        columns: Of the targets.
    """
    what = {"classify": "classes", "multilabel": "labels", "regress": "numbers"}[task]
    chosen = choose_model(task, columns)
    given = settings.for_networks
    if settings.model is None and given:
        name = next(iter(given))
        return "network", Hint(
            "model: network ({" + name + "} is read by networks alone; {model} takes several kinds of models)",
            **{name: given[name], "model": "auto"},
        )
    if settings.model == "kernel" and columns > 1:
        problem = f"'kernel' predicts one class or number, the labels have {columns} columns"
        raise DemonetError(problem, argument="model", hint=Hint("use {model}", model="network"))
    if settings.model not in (None, "auto"):
        return str(settings.model), Hint(f"model: {settings.model}")
    if chosen == "auto":
        line = "model: auto (several candidates, weighted by validation and fitted again; {model} trains one network)"
        return "auto", Hint(line, model="network")
    for name in AUTO_OPTIONS:
        if getattr(settings, name) is not None:
            problem = f"{getattr(settings, name)!r} does not fit the task {task!r}"
            raise DemonetError(problem, argument=name, hint="only the model 'auto' reads it, which predicts classes")
    if chosen == "kernel":
        line = (
            "model: kernel ('auto' predicts classes, a number is left to the kernel machine; {model} trains a network)"
        )
        return chosen, Hint(line, model="network")
    return chosen, Hint(
        f"model: network ('auto' predicts one class, {columns} columns of {what} are left to a network)"
    )


def model_options(model: str, settings: Settings) -> dict[str, Any]:
    """What an estimator is told about a model, besides the options of networks."""
    if model != "auto":
        return {"model": model}
    effort = settings.effort or EFFORT
    return {"model": model, "effort": effort, "time_limit": settings.time_limit, "metric": settings.metric}
