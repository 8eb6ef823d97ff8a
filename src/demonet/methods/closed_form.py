"""``demonet-kernel``: DEMO-Net in closed form, a kernel machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from demonet.closedform import GraphSetting, KernelMachine, NodeSetting
from demonet.closedform.link import LabelLink
from demonet.closedform.machine import DUAL, inputs_for
from demonet.errors import DemonetError
from demonet.features.views import LARGE, Float, GraphView, Int, NodeView, View
from demonet.methods.base import Settings, at_least, register
from demonet.methods.cost import Cost
from demonet.methods.model import MOST_SECONDS, TASKS, Labelled, Model, ordered
from demonet.options import Effort

ARMS = ("best", "none", "shuffled")
AVERAGED: dict[Effort, int] = {"quick": 3, "standard": 8, "best": 8}
CANDIDATE_DUAL = 5000  # labelled items up to which a candidate solves for one coefficient an item
ROWS = 100_000  # training nodes of a large graph that it is fitted on, at most
COARSE_SCREEN = 400
TABLE_SCREENS = (1000, 700)  # of labels and numbers the first that takes little time: among 400 few have a rare label
TRIED = 60  # settings whose predictions are kept while others are tried


@dataclass(frozen=True)
class KernelSettings(Settings):
    """Settings of the machine.

    Attributes:
        degree: ``"best"``: s_d is chosen together with all other settings. ``"none"``: s_d = 0. ``"shuffled"``: as
            ``"best"``, but the degrees that kappa compares are those of random other nodes, over all graphs.
        device: Where the machine is fitted.
        task, members, screen, dual: See :class:`~demonet.closedform.KernelMachine`.
    """

    degree: str = "best"
    device: str = "cpu"
    task: str = "auto"
    members: int = at_least(1, 8)
    screen: int = at_least(1, 1000)
    dual: int = at_least(0, DUAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree not in ARMS:
            raise DemonetError(f"degree={self.degree!r}", hint=f"expected one of {', '.join(ARMS)}")


@register
class Kernel(Model):
    """Ridge regression on the degree-specific kernel; leave-one-out and validation choose its settings.

    :meth:`machine` is the fitted :class:`~demonet.closedform.KernelMachine`; ``chosen`` are its task and its settings.
    """

    name = "demonet-kernel"
    in_tables = True
    group = "DEMO-Net"
    kind = "kernel"
    tasks = TASKS
    cost = Cost(0.5, 0.2)
    at_any_size = True
    defaults = KernelSettings("this project")
    settings: KernelSettings

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """One; where the classes of nodes are ordered by degree, also with ordered classes."""
        options: dict[str, Any] = {"members": AVERAGED[effort], "screen": cls.defaults.screen, "dual": CANDIDATE_DUAL}
        if effort == "quick":
            screens = TABLE_SCREENS if labelled.task != "classify" else ()
            tried = (cls(**options | {"screen": screen}) for screen in screens)
            few = (each for each in tried if each.estimate(view, len(labelled.train)) <= MOST_SECONDS[effort])
            options["screen"] = next((each.settings.screen for each in few), COARSE_SCREEN)
        also = view.family == "nodes" and ordered(view, labelled)
        tasks = {"machine": "classes" if labelled.task == "classify" else "regression"}
        tasks |= {"machine-ordinal": "ordinal"} if also else {}
        return [cls(name, task=task, **options) for name, task in tasks.items()]

    @property
    def search(self) -> dict[str, Any]:
        """What a :class:`~demonet.closedform.KernelMachine` is told about the search."""
        return {"members": self.settings.members, "screen": self.settings.screen}

    def machine_task(self, labelled: Labelled) -> Any:
        """The task of a :class:`~demonet.closedform.KernelMachine` for the problem."""
        return self.settings.task if labelled.task == "classify" else "regression"

    def _learn(self, view: View, labelled: Labelled) -> None:
        task = self.machine_task(labelled)
        options: dict[str, Any] = {"dual": self.settings.dual, "seed": labelled.seed, "device": labelled.device}
        if self.chosen is not None:
            make = GraphSetting if isinstance(view, GraphView) else NodeSetting
            task = self.chosen["task"]
            options["settings"] = [make(**setting) for setting in self.chosen["settings"]]
        machine = KernelMachine(task, degree=self.settings.degree != "none", **self.search, **options)
        train = labelled.some(self.name, view.num_items, ROWS)
        val, parts = labelled.judges(train), list[NDArray[Any]]()
        if labelled.task == "classify":
            seen = np.unique(labelled.y[train])
            parts += [np.searchsorted(seen, labelled.y[items]) for items in (train, val)]
        else:
            seen = np.arange(labelled.outputs)
            parts += [labelled.table(items) for items in (train, val)]
        machine.inputs_, rows = self._inputs(view, train, labelled.seed)
        other, weight = rows.take(val) if len(val) else None, labelled.weights(np.concatenate([train, val]))
        machine.fit_views(rows.take(train), parts[0], other, parts[1] if len(val) else None, weight)
        if self.chosen is None:  # a fit on more items may rank what was chosen in another order
            settings = [asdict(setting) for setting, _ in machine.members_]
            self.chosen = {"task": machine.task_, "settings": settings}
        if labelled.task == "multilabel":
            self.facts["link"] = LabelLink.fit(machine.values(machine.left_out_), machine.y_, machine.weight_)
        self.facts["machine"], tensors = machine.state()
        self.facts["seed"] = labelled.seed
        self.arrays = {name: tensor.numpy() for name, tensor in tensors.items()} | {"seen": seen}

    def _inputs(self, view: View, train: Int, seed: int) -> tuple[Any, Any]:
        """The preprocessing, and all items under it; for nodes, the same for all machines and folds."""
        if "machine" in view.kept:
            inputs, rows = view.kept["machine"]
        else:
            inputs = inputs_for(view.data)
            inputs.fit(view.data if isinstance(view, NodeView) else [view.data[i] for i in train])
            rows = inputs.transform(view.data)
            if isinstance(view, NodeView) and view.num_items < LARGE:
                view.kept["machine"] = inputs, rows
        return inputs, rows.shuffled(seed) if self.settings.degree == "shuffled" else rows

    def outputs(self, view: View) -> Float:
        """The machine's values or probabilities; 0 for classes that it did not see."""
        return self._outputs(view, None)

    def some_outputs(self, view: View, rows: Int) -> Float:
        """The kernel of these rows alone."""
        return self._outputs(view, rows)

    def _outputs(self, view: View, some: Int | None) -> Float:
        machine, kept = self.machine(), view.kept.get("machine")
        known = kept is not None and _same(kept[0], machine.inputs_)
        rows = kept[1] if kept and known else machine.inputs_.transform(view.data)
        rows = rows.shuffled(self.facts["seed"]) if self.settings.degree == "shuffled" else rows
        decision = machine.decision_of(rows if some is None else rows.take(some))
        result = np.zeros((len(decision), self.facts["outputs"]))
        if self.facts["task"] == "classify":
            result[:, self.arrays["seen"]] = np.exp(machine.link_.log_probabilities(decision))
            return result
        values = machine.values(decision)
        return LabelLink(*self.facts["link"]).probabilities(values) if "link" in self.facts else values

    def machine(self) -> KernelMachine:
        """The fitted machine; its classes are ``arrays["seen"]``."""
        tensors = {name: torch.from_numpy(array) for name, array in self.arrays.items() if name != "seen"}
        return KernelMachine.from_state(self.facts["machine"], tensors, self.device)

    def in_folds(self) -> Self:
        """The search of a quick fit."""
        screen = min(COARSE_SCREEN, self.settings.screen)
        return type(self)(self.name, **self.options | {"screen": screen})

    def pool_choices(self, chosen: list[Any]) -> Any:
        """The settings of the first fold: settings have no median."""
        return chosen[0]

    def estimate(self, view: View, num_train: int) -> float:
        """Some fifty eigendecompositions of at most 1,000 items, a solution on all, and products of attributes."""
        few, count, items = min(num_train, self.settings.screen), self.settings.members, view.num_items
        dual = count * (1e-10 * num_train**3 + 1e-8 * items * num_train)
        solution = dual if num_train <= self.settings.dual else 10.0
        nodes = view.sizes.sum() if isinstance(view, GraphView) else 0  # all of them are pooled
        return 0.1 + 50 * 5e-10 * few**3 + solution + 1.5e-7 * items * view.facts["columns"] + 4e-5 * float(nodes)

    def memory(self, view: View, num_train: int) -> float:
        """Attributes of all items and of their neighbours, Gram matrices or explicit features, and what was tried."""
        items = view.sizes.sum() if isinstance(view, GraphView) else view.num_items
        width, dual = max(12, view.facts["columns"]), min(num_train, self.settings.dual)
        found = super().memory(view, num_train) + 8.0 * 7 * float(items) * width + 24.0 * dual**2
        return found + 8.0 * TRIED * 3 * min(num_train, self.settings.screen) * self.facts.get("outputs", 4)


def _same(left: Any, right: Any) -> bool:
    """Whether two have learned the same."""
    arrays = left.arrays.keys() == right.arrays.keys() and all(
        np.array_equal(array, right.arrays[name]) for name, array in left.arrays.items()
    )
    return arrays and left.info == right.info
