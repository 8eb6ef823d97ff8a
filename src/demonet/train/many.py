"""train_many: several runs on one small graph as one batched computation.

On a graph of a hundred nodes a step is mostly the overhead of calling torch. Ten runs that differ in seed and split
share the graph, so they are stacked: every parameter gets a leading dimension of runs, and one call does the work of
ten. Each run keeps its own first weights, dropout, split, learning curve and early stopping.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch_geometric.data import Data

import demonet.ops.many  # noqa: F401  (how the operators act on many runs)
from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.nn.conv import DEMOConv
from demonet.nn.dropout import Dropout, draw_noise
from demonet.nn.models import NodeDEMONet
from demonet.train.config import TrainConfig
from demonet.train.loop import History, compare
from demonet.train.loss import part_loss
from demonet.train.presets import Preset
from demonet.train.problem import NodeProblem, Part
from demonet.train.recipes import Trained, checked, node_model, train_nodes
from demonet.train.steps import evaluate, loss_and_accuracy, parameter_groups

# Measured on one core: below both, ten runs at once take no longer than ten runs in a row, and mostly less.
MOST_NODES = 2000
MOST_NUMBERS = 2**23  # parameters of all runs together


def train_many(
    data: Data, splits: Sequence[Split], preset: Preset, seeds: Sequence[int], *, class_weight: Tensor | None = None
) -> list[Trained]:
    """What :func:`train_nodes` returns for every pair of a split and a seed; at once where that is faster.

    At once means on a CPU, on a small graph, not for a network whose single step is one function already (such as the
    paper's), and not for the hash scheme, whose functions are each run's own. Such runs take the steps of single runs
    up to rounding, since a batched product may add in another order.

    Args:
        data: The graph, with labels in ``y``.
        splits, seeds: The split and the seed of each run.
        preset: How.
        class_weight: As in :func:`train_nodes`.
    """
    if len(splits) != len(seeds):
        raise DemonetError(f"{len(splits)} splits for {len(seeds)} seeds", hint="one of each for every run")
    pairs = list(zip(splits, seeds, strict=True))
    if len(pairs) > 1 and preset.model.scheme != "hash" and not data.edge_index.is_cuda:
        features = FeatureMap(preset.features)
        x = features.fit_transform(data)
        models = [node_model(data, x, preset, seed) for seed in seeds]
        edge_weight = data.get("edge_weight")
        if _pays(models, x.size(0), edge_weight):
            inputs = (models[0].prepare(x, data.edge_index, edge_weight=edge_weight),)
            problems = [NodeProblem(inputs, checked(data, split), split, class_weight) for split in splits]
            histories = fit_many(models, problems, preset.train, seeds)
            runs = zip(models, problems, histories, strict=True)
            return [Trained(m, features, preset, h, h.best_accuracy, _tested(m, p), inputs) for m, p, h in runs]
    return [train_nodes(data, split, preset, seed=seed, class_weight=class_weight) for split, seed in pairs]


def _pays(models: Sequence[NodeDEMONet], num_nodes: int, edge_weight: Tensor | None) -> bool:
    """Whether they take less time at once than one by one."""
    one = models[0]
    numbers = sum(parameter.numel() for parameter in one.parameters()) * len(models)
    one_function = bool(one.chain(edge_weight)) and isinstance(one.head, nn.Linear)
    return num_nodes <= MOST_NODES and numbers <= MOST_NUMBERS and not one_function


@dataclass
class Run:
    """One of the runs: where its random numbers come from, and how far it is."""

    problem: NodeProblem
    generator: torch.Generator
    history: History = field(default_factory=History)
    waited: int = 0


def fit_many(
    models: Sequence[NodeDEMONet], problems: Sequence[NodeProblem], config: TrainConfig, seeds: Sequence[int]
) -> list[History]:
    """:func:`~demonet.train.fit` for every model, at once; all problems are about one graph."""
    runs = [Run(problem, torch.Generator().manual_seed(seed)) for problem, seed in zip(problems, seeds, strict=True)]
    stack = Stack(models, config)
    for number in range(config.epochs):
        active = [run for run in runs if run.waited < config.patience]
        if not active:
            break
        stack.keep([index for index, run in enumerate(runs) if run.waited < config.patience])
        start = time.perf_counter()
        train = stack.train([run.problem.train for run in active], [run.generator for run in active], number)
        validation = stack.evaluate([run.problem.validation for run in active])
        improved = []
        for run, train_loss, (val_loss, val_accuracy) in zip(active, train, validation, strict=True):
            better, as_good = compare(run.history, val_loss, val_accuracy)
            run.history.train_loss.append(train_loss)
            run.history.val_loss.append(val_loss)
            run.history.val_accuracy.append(val_accuracy)
            if better:
                run.history.best_epoch = number
            improved.append(better)
            run.waited = 0 if as_good else run.waited + 1
        stack.remember(improved)
        for run in active:
            run.history.seconds += (time.perf_counter() - start) / len(active)
    stack.restore()
    return [run.history for run in runs]


class Stack:
    """Models of one shape, their parameters and Adam's moments stacked run by run; some of the runs may have ended."""

    def __init__(self, models: Sequence[NodeDEMONet], config: TrainConfig) -> None:
        self.models, self.config, self.base = models, config, models[0]
        self.active = list(range(len(models)))
        parameters, buffers = stack_module_state(list(models))
        self.parameters = {name: nn.Parameter(value.detach()) for name, value in parameters.items()}
        self.buffers = {name: value for name, value in buffers.items() if name in self.base.state_dict()}
        self.best = {name: value.detach().clone() for name, value in (self.parameters | self.buffers).items()}
        self.optimizer = torch.optim.Adam(self._groups(), lr=config.lr, fused=True)

    def _groups(self) -> list[dict[str, Any]]:
        """Every stacked parameter in the group of one run's."""
        names = {id(parameter): name for name, parameter in self.base.named_parameters()}
        groups = parameter_groups(self.base, self.config)
        return [group | {"params": [self.parameters[names[id(p)]] for p in group["params"]]} for group in groups]

    def keep(self, active: list[int]) -> None:
        """Leave out the runs that have ended."""
        if active == self.active:
            return
        rows = torch.tensor([self.active.index(run) for run in active])
        state = {name: self.optimizer.state[parameter] for name, parameter in self.parameters.items()}
        self.parameters = {name: nn.Parameter(value.detach()[rows]) for name, value in self.parameters.items()}
        self.buffers = {name: value[rows] for name, value in self.buffers.items()}
        self.active, self.optimizer = active, torch.optim.Adam(self._groups(), lr=self.config.lr, fused=True)
        for name, moments in state.items():
            kept = {key: value[rows] if value.dim() else value for key, value in moments.items()}
            self.optimizer.state[self.parameters[name]] = kept

    def train(self, parts: list[Part], generators: list[torch.Generator], number: int) -> list[float]:
        """One step of every run; the losses before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.lr_at(number)
        self.base.train()
        rows = parts[0].inputs[0].layout.num_nodes
        noise: dict[str, list[Tensor]] = {}
        for generator in generators:  # in the order in which a single run draws
            for name, p, width in _dropped(self.base):
                dtype = next(iter(self.parameters.values())).dtype
                noise.setdefault(name, []).append(draw_noise(rows * width, p, dtype, generator))
        self.optimizer.zero_grad(set_to_none=True)
        scores = self._scores(parts[0].inputs, {name: torch.stack(drawn) for name, drawn in noise.items()})
        losses = [part_loss(scores[run][part.rows], part) for run, part in enumerate(parts)]
        values = torch.stack(losses).tolist()
        if not all(map(math.isfinite, values)):
            raise DemonetError(f"a loss of {values} in epoch {number + 1}", hint="scale features or lower lr")
        torch.stack(losses).sum().backward()
        self.optimizer.step()
        return values

    @torch.no_grad()
    def evaluate(self, parts: list[Part]) -> list[list[float]]:
        """Mean cross-entropy and accuracy of every run on its own part."""
        self.base.eval()
        runs = zip(self._scores(parts[0].inputs, {}), parts, strict=True)
        return torch.stack([loss_and_accuracy(scores[part.rows], part) for scores, part in runs]).tolist()

    def _scores(self, inputs: tuple[Any, ...], noise: dict[str, Tensor]) -> Tensor:
        def one(state: dict[str, Tensor]) -> Tensor:
            return functional_call(self.base, state, inputs)

        return torch.vmap(one)(self.parameters | self.buffers | noise)

    @torch.no_grad()
    def remember(self, improved: list[bool]) -> None:
        """Keep the weights of the runs that have improved."""
        here = torch.tensor(improved).nonzero()[:, 0]
        for name, value in (self.parameters | self.buffers).items():
            self.best[name][torch.tensor(self.active)[here]] = value[here]

    def restore(self) -> None:
        """Give every model its best weights."""
        for run, model in enumerate(self.models):
            model.load_state_dict({name: value[run] for name, value in self.best.items()})


def _dropped(model: NodeDEMONet) -> Iterator[tuple[str, float, int]]:
    """Where a forward pass drops entries, in that order: the buffer of the noise, its probability, entries a node."""
    for name, module in model.named_modules():
        if isinstance(module, Dropout) and module.p > 0:
            layer, width = model.get_submodule(name.rpartition(".")[0]), model.config.hidden
            if isinstance(layer, DEMOConv):  # both halves
                width = layer.seed.out_channels + layer.weights.width
            yield f"{name}.noise", module.p, width


def _tested(model: NodeDEMONet, problem: NodeProblem) -> float:
    return evaluate(model, problem.test)[1] if problem.test.rows.numel() else float("nan")
