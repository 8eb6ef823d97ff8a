"""The closed-form kernel machine of :mod:`demonet.closedform` as a member, for nodes and for graphs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from demonet.closedform import GraphSetting, KernelMachine, NodeSetting
from demonet.closedform.nodes import NodeInputs, NodeRows
from demonet.ensemble.member import Labelled, Member, some_of
from demonet.features.views import LARGE, Float, GraphView, NodeView, View

DUAL = 5000  # labelled items up to which the machine solves for one coefficient an item
ROWS = 100_000  # training nodes of a large graph that it is fitted on, at most
SCREEN, COARSE_SCREEN = 1000, 400  # items on which settings are compared, at most


class MachineMember(Member):
    """DEMO-Net in closed form: settings by leave-one-out and validation, several of the best averaged.

    Options: ``task`` (``"classes"`` or ``"ordinal"``); ``settings``, how many are averaged; ``coarse``, whether they
    are compared on fewer items.
    """

    kind = "kernel"

    @property
    def search(self) -> dict[str, Any]:
        """What a :class:`~demonet.closedform.KernelMachine` is told about the search."""
        screen = COARSE_SCREEN if self.options.get("coarse") else SCREEN
        return {"members": self.options["settings"], "screen": screen}

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        settings = None
        if chosen is not None:
            make = GraphSetting if isinstance(view, GraphView) else NodeSetting
            settings = [make(**setting) for setting in chosen["settings"]]
        options: dict[str, Any] = {"settings": settings, "dual": DUAL, "seed": labelled.seed, "device": labelled.device}
        machine = KernelMachine(self.options["task"], **self.search, **options)
        train = some_of(labelled, self.name, view.num_items, ROWS)
        seen, y = np.unique(labelled.y[train], return_inverse=True)
        val = labelled.val[np.isin(labelled.y[labelled.val], seen)]
        val_y = np.searchsorted(seen, labelled.y[val])
        if isinstance(view, NodeView) and view.num_items < LARGE:  # the same inputs for all machines and folds
            machine.inputs_, every = kernel_inputs(view)
            judges = (every.take(val), val_y) if len(val) else (None, None)
            machine.fit_views(every.take(train), y, *judges)
        else:
            machine.fit(view.data, train, y, val, val_y)
        self.facts["chosen"] = {"settings": [asdict(setting) for setting, _ in machine.members_]}
        self.facts["machine"], tensors = machine.state()
        self.arrays = {name: tensor.numpy() for name, tensor in tensors.items()} | {"seen": seen}

    def predict_proba(self, view: View) -> Float:
        """The machine's probabilities; 0 for classes that it did not see."""
        result = np.zeros((view.num_items, self.facts["classes"]))
        machine, kept = self.machine(), view.kept.get("machine")
        known = kept is not None and _same(kept[0], machine.inputs_)
        f = machine.decision_of(kept[1]) if kept and known else machine.decision_function(view.data)
        result[:, self.arrays["seen"]] = np.exp(machine.link_.log_probabilities(f))
        return result

    def machine(self) -> KernelMachine:
        """The fitted machine; its classes are ``arrays["seen"]``."""
        tensors = {name: torch.from_numpy(array) for name, array in self.arrays.items() if name != "seen"}
        return KernelMachine.from_state(self.facts["machine"], tensors)

    def pool_choices(self, chosen: list[dict[str, Any]]) -> dict[str, Any]:
        """The settings of the first fold: settings have no median."""
        return chosen[0]

    def cost(self, view: View, num_train: int) -> float:
        """Some fifty eigendecompositions of at most 1,000 items, a solution on all, and products of attributes."""
        few, count, items = min(num_train, self.search["screen"]), self.options["settings"], view.num_items
        dual = count * (1e-10 * num_train**3 + 1e-8 * items * num_train)
        solution = dual if num_train <= DUAL else 10.0
        nodes = view.sizes.sum() if isinstance(view, GraphView) else 0  # all of them are pooled
        return 0.1 + 50 * 5e-10 * few**3 + solution + 1.5e-7 * items * view.facts["columns"] + 4e-5 * float(nodes)

    def memory(self, view: View, num_train: int) -> float:
        """The attributes of all items and of their neighbours, and Gram matrices or explicit features."""
        items = view.sizes.sum() if isinstance(view, GraphView) else view.num_items
        width = max(12, view.facts["columns"])
        return super().memory(view, num_train) + 8.0 * 7 * float(items) * width + 24.0 * min(num_train, DUAL) ** 2


def kernel_inputs(view: NodeView) -> tuple[NodeInputs, NodeRows]:
    """The preprocessing of a kernel machine, learned from this graph, and all nodes under it."""
    if "machine" not in view.kept:
        inputs = NodeInputs().fit(view.data)
        view.kept["machine"] = inputs, inputs.transform(view.data)
    return view.kept["machine"]


def _same(left: NodeInputs, right: NodeInputs) -> bool:
    """Whether two have learned the same."""
    arrays = left.arrays.keys() == right.arrays.keys() and all(
        np.array_equal(array, right.arrays[name]) for name, array in left.arrays.items()
    )
    return arrays and left.info == right.info
