"""The plan of a run: inputs, splits, features and epochs, decided before training."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.checks import check_classes, labelled
from demonet.data.load import degrees
from demonet.data.readers.base import InputFiles
from demonet.data.splits import Split, check_split, fractions, warn_of_rare
from demonet.ensemble.ensemble import Ensemble, portfolio
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators import estimator_class
from demonet.estimators.base import DEMONetEstimator
from demonet.estimators.targets import WEIGHTED, weigh_classes
from demonet.features.blocks import one_hot_is_dense
from demonet.features.views import view_of
from demonet.methods.model import Labelled
from demonet.methods.selection import item_losses
from demonet.options import Effort, Reading, Settings
from demonet.runs.inputs import Inputs, read_inputs
from demonet.runs.targets import with_targets
from demonet.train.metrics import METRICS, Metric, Task, find_metric, imbalance, metric_of_classes, positive_class
from demonet.train.objective import OBJECTIVES
from demonet.train.presets import preset, with_layers
from demonet.train.problem import fitted_objective
from demonet.train.recipes import Trained, family_of

# The budget of a run without a given number of epochs: minutes on two cores. The cost of an epoch is about the number
# of edges (both directions) plus a thirtieth of the number of feature values. 100,000 nodes with a million edges and 40
# degrees get 140 epochs; up to 150,000 edges, a preset gets all of its 1,000 epochs.
WORK = 300_000_000
FEATURES_PER_EDGE = 30
SMALL = 100_000  # below so many edges, one thread is faster than two
EFFORT: Effort = "standard"
CHEAP = 1.0  # seconds that a candidate may take, by its estimate, of those that compare directed and undirected edges
COMPARED_COLUMNS = 100_000  # attributes up to which they are compared: more take a minute to look at
SHARE = 0.1  # of a time limit that they may take together
CLEAR = 2.0  # standard errors by which directed edges have to be better


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a run needs to train."""

    inputs: Inputs
    reading: Reading
    settings: Settings
    splits: list[Split]
    epochs: int
    checksums: dict[str, str]
    metric: Metric
    positive: str | None  # the positive class, if the metric has one
    decision: Hint
    model: str
    model_decision: Hint
    recipe: Callable[..., Trained] | None = None  # what trains a network, if not in this process
    began: float = field(default_factory=time.monotonic)  # from when on a time limit counts

    def estimator(self, number: int) -> DEMONetEstimator:
        """The untrained estimator for a split."""
        settings = self.settings
        options: dict[str, Any] = {"model": self.model, "random_state": settings.seed + number}
        options["device"] = "auto" if settings.uses == "cuda" else "cpu"
        if self.model == "auto":
            options |= {"effort": settings.effort or EFFORT, "n_jobs": settings.jobs}
            options |= {"time_limit": settings.time_limit, "metric": settings.metric}
        elif self.model == "network":
            options |= {name: getattr(settings, name) for name in ("preset", "layers", "scheme", "metric")}
            options["epochs"] = self.epochs
        elif self.metric.needs_decision:
            options["metric"] = settings.metric
        if self.inputs.kind == "nodes":
            options["directed"] = self.inputs.directed
            if self.model == "network":
                options |= {name: getattr(settings, name) for name in ("batch_size", "neighbours")}
        if settings.positive is not None and self.model != "kernel":
            options["positive"] = self.positive
        if settings.class_weight is not None:
            options["class_weight"] = settings.class_weight
        return estimator_class(self.inputs.kind, self.inputs.task)(**options)

    def without_test(self, number: int) -> Plan:
        """The same plan for the graph without the test nodes of a split, and without their edges."""
        data, split = self.inputs.data, self.splits[number]
        assert isinstance(data, Data)
        kept = torch.ones(int(data.num_nodes or 0), dtype=torch.bool)
        kept[split.test] = False
        place = kept.long().cumsum(0) - 1
        splits = list(self.splits)
        splits[number] = replace(split, train=place[split.train], val=place[split.val], test=split.test[:0])
        ids = [name for name, keep in zip(self.inputs.ids, kept.tolist(), strict=True) if keep]
        inputs = replace(self.inputs, data=data.subgraph(kept), ids=ids)
        return replace(self, inputs=inputs, splits=splits)

    @property
    def ranked_by(self) -> int | None:
        """The output that items are ranked by: the positive class, the rarer of two, or the only number; or None."""
        names = list(map(str, self.inputs.names))
        if self.positive is not None or len(names) == 1:
            return 0 if self.positive is None else names.index(self.positive)
        if self.inputs.task != "classify" or len(names) != 2:
            return None
        return int(self.inputs.counts[1] <= self.inputs.counts[0])

    @property
    def chooses(self) -> Metric | None:
        """The metric, if methods choose by it; None if it is the task's default, which leaves them their own rule."""
        default = OBJECTIVES[self.inputs.task].default_metric
        return self.metric if self.settings.metric or self.metric.name != default else None

    @property
    def request(self) -> dict[str, Any]:
        """What identifies this run: every setting but the number of processes, and the checksums of its files."""
        settings = vars(self.settings) | {"device": self.settings.uses, "split": None, "model": self.model}
        settings["jobs"] = None
        if self.settings.fits_candidates:
            settings["engine"] = None
        settings["positive"] = self.positive
        sums = {f"{part} file": value for part, value in self.checksums.items()}
        return {name: value for name, value in {**vars(self.reading), **settings, **sums}.items() if value is not None}

    @property
    def unequal(self) -> float | None:
        """The share of the most frequent class, if it is why the metric is not accuracy; None otherwise."""
        if self.inputs.task != "classify" or self.settings.metric or self.settings.class_weight:
            return None
        return imbalance(self.inputs.counts)

    @property
    def metric_decision(self) -> Hint | None:
        """The metric, its positive class and the reason, in a line; None where there is nothing to say."""
        if self.positive is None and self.unequal is None:
            return None
        title, why = self.metric.title.replace("{", "{{").replace("}", "}}"), []
        if self.unequal is not None:
            why.append(f"{self.unequal:.1%} have one class, so accuracy would say little; {{metric}} chooses")
        if self.positive is not None and self.settings.positive is None:
            why.append("the rarer class, of equals the last; {positive} chooses")
        return Hint(f"metric: {title}" + (f" ({'; '.join(why)})" if why else ""), positive="CLASS", metric="accuracy")

    @property
    def description(self) -> str:
        """The sizes of the problem and of its split, in a line."""
        split = self.splits[0]
        sizes = {name: value for name, value in self.inputs.sizes.items() if value and (name, value) != ("targets", 1)}
        within = {"classes": self.inputs.class_counts}
        counts = ", ".join(f"{value:,} {name}{within.get(name, '')}" for name, value in sizes.items())
        parts = " / ".join(f"{getattr(split, part).numel():,}" for part in ("train", "val", "test"))
        hidden = ", test nodes hidden in training" if self.settings.new_nodes else ""
        return f"{self.inputs.name}: {counts}; {parts} to train / validate / test{hidden}"


def make_plan(
    edges: str,
    labels: str | None,
    features: str | None,
    reading: Reading,
    settings: Settings,
    step: Callable[[str], None] = lambda what: None,
) -> Plan:
    """Read the files, then decide on splits, features and epochs; data that cannot be trained on is an error.

    ``step`` is told what is done after reading.
    """
    if reading.self_loops is None:  # the same for all families of a preset
        reading = replace(reading, self_loops=preset(settings.preset, "nodes").self_loops)
    inputs, decision = with_targets(read_inputs(edges, labels, features, reading), settings.task)
    step("planning")
    _check_settings(inputs, settings)
    y = inputs.data.y
    if y is None or not bool(labelled(y).any()):
        hint = Hint("{labels} is a table of ids and labels, or an attribute in the file", labels=...)
        raise DemonetError("no item has a label", file=inputs.files["edges"], hint=hint)
    if inputs.task == "classify" and len(inputs.names) < 2:
        raise DemonetError(
            f"all labels are {inputs.names[0]!r}", file=inputs.files.get("labels"), hint="at least 2 classes are needed"
        )
    if inputs.task == "classify":
        check_classes(len(inputs.names), file=inputs.files.get("labels"))
    bases = with_layers(preset(settings.preset, family_of(inputs.data)), settings.layers)
    most, blocks = max(base.train.epochs for base in bases), bases[0].features
    epochs = settings.epochs or epoch_limit(most, inputs.num_edges, _num_features(inputs, blocks))
    checksums = dict(inputs.checksums)
    splits = _splits(inputs, settings, checksums)
    if inputs.task == "classify":
        where = settings.split or inputs.files.get("labels") or inputs.files["edges"]
        warn_of_rare(splits, y, names=inputs.names, file=where)
    else:
        columns = zip(inputs.names, y.view(len(y), -1).T, strict=True)
        same = [repr(name) for name, column in columns if column[~column.isnan()].unique().numel() == 1]
        if same:
            problem = f"all known values are equal in {', '.join(same[:5])}{' ...' if len(same) > 5 else ''}"
            file = inputs.files.get("labels") or inputs.files["edges"]
            warn(DemonetWarning(problem, file=file, hint="nothing can be learned of such a column: leave it out"))
    weighted = WEIGHTED if settings.class_weight is not None else None
    default = metric_of_classes(inputs.counts) if inputs.task == "classify" else None
    metric = settings.metric or weighted or default or OBJECTIVES[inputs.task].default_metric
    model = decide_model(settings, inputs.task)
    measured = _with_positive(METRICS[metric], inputs, settings.positive)
    plan = Plan(inputs, reading, settings, splits, epochs, checksums, *measured, decision, *model)
    if inputs.undirected is None:
        return plan
    step("comparing directed and undirected edges")
    return _with_direction(plan, inputs.undirected)


def _with_direction(plan: Plan, undirected: DemonetWarning) -> Plan:
    """Say how edges are read where nobody has said it: undirected, unless validation is clearly better directed.

    Cheap candidates compare both, for an ensemble on one split: other splits would test on what has chosen.
    """
    inputs, other, told = plan.inputs, copy.copy(plan.inputs.as_listed), undirected
    if inputs.sizes["attributes"] > COMPARED_COLUMNS:
        other = None
    if other is not None and plan.model == "auto" and len(plan.splits) == 1 and not plan.settings.new_nodes:
        other.y = inputs.data.y
        with fitting_threads(inputs):
            losses = [_cheap_losses(plan, data) for data in (inputs.data, other)]
        if all(found is not None for found in losses):
            gain, means = losses[0] - losses[1], [float(found.mean()) for found in losses]
            if gain.mean() > CLEAR * gain.std(ddof=1) / math.sqrt(len(gain)):
                problem = f"edges are read as directed: validation loss {means[1]:.3g}, undirected {means[0]:.3g}"
                hint = Hint("{directed} drops the direction", directed=False)
                told = DemonetWarning(problem, file=undirected.file, hint=hint)
                plan = replace(plan, reading=replace(plan.reading, directed=True))
                inputs = replace(inputs, data=other, directed=True)
    warn(told)
    return replace(plan, inputs=replace(inputs, undirected=told, as_listed=None))


def _cheap_losses(plan: Plan, data: Any) -> Any:
    """The loss of each validation item by an ensemble of cheap candidates; None if there are none."""
    split, task, settings = plan.splits[0], plan.inputs.task, plan.settings
    y, weight = data.y.numpy(), None
    if settings.class_weight is not None:
        rows = torch.cat([split.train, split.val]).numpy()
        weight = weigh_classes(settings.class_weight, np.asarray(plan.inputs.names), y[rows])[y]
    objective = fitted_objective(OBJECTIVES[task](), data.y, split)
    labelled = Labelled.of(data.y, objective, split, settings.seed, "cpu", weight)
    view = view_of(data)
    estimates = {model: model.estimate(view, len(labelled.train)) for model in portfolio(view, labelled, "quick")}
    models = [model for model, seconds in estimates.items() if seconds <= CHEAP]
    limit = math.inf if settings.time_limit is None else SHARE * settings.time_limit
    if not models or 2 * sum(estimates[model] for model in models) > limit:
        return None
    options: dict[str, Any] = {"task": task, "effort": "quick", "seed": settings.seed, "refit": False, "weight": weight}
    fitted = Ensemble.fit(data, split, members=models, **options)
    assert fitted.judged is not None
    assert fitted.judged_items is not None
    outputs: Any = sum(row.weight * fitted.judged[row.name] for row in fitted.candidates if row.weight)
    return item_losses(task, outputs, y[fitted.judged_items], labelled.weights(fitted.judged_items))


def _with_positive(metric: Metric, inputs: Inputs, asked: str | None) -> tuple[Metric, str | None]:
    """The metric for its positive class, and this class; None if it has none."""
    if inputs.task != "classify":
        return metric, None
    positive = positive_class(metric.name, inputs.names, inputs.counts, asked)
    name = None if positive is None else str(inputs.names[positive])
    return (metric if positive is None else metric.of_class(positive, name)), name


def _check_settings(inputs: Inputs, settings: Settings) -> None:
    """Refuse settings that do not fit the task."""
    if settings.metric is not None:
        find_metric(settings.metric, inputs.task)
    alone = settings.engine in (None, "local") or settings.fits_candidates
    for argument in ("batch_size", "neighbours", *(() if alone else ("engine",))):
        if getattr(settings, argument) is not None and inputs.kind == "graphs":
            problem = f"{getattr(settings, argument)} for a set of graphs"
            raise DemonetError(problem, argument=argument, hint="it is for the nodes of one graph")
    if settings.new_nodes and (inputs.kind == "graphs" or not alone):
        problem = "for a set of graphs" if inputs.kind == "graphs" else f"with the engine {settings.engine!r}"
        raise DemonetError(problem, argument="new_nodes", hint="it is for the nodes of one graph, in one process")
    for argument, hint in (("class_weight", "only classes have weights"), ("positive", "it is one of two classes")):
        if getattr(settings, argument) is not None and inputs.task != "classify":
            problem = f"{getattr(settings, argument)!r} does not fit the task {inputs.task!r}"
            raise DemonetError(problem, argument=argument, hint=hint)


@contextmanager
def fitting_threads(inputs: Inputs) -> Iterator[None]:
    """One thread for small graphs: it is faster, and results do not depend on the number of cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if inputs.num_edges >= SMALL:
        yield
        return
    with torch_threads(1), threadpool_limits(1):  # NumPy and scikit-learn
        yield


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """PyTorch has so many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _splits(inputs: Inputs, settings: Settings, checksums: dict[str, str]) -> list[Split]:
    """The splits to train on; the checksum of a split file is added to ``checksums``."""
    y = inputs.data.y
    if settings.split is not None:
        opened, path = InputFiles(), Path(settings.split)
        split = Split.from_json(opened.read(path), path)
        checksums["split"] = opened.checksums[path]
        check_split(split, y, names=inputs.names, file=path)
        if not split.val.numel():
            raise DemonetError("the validation part is empty", file=settings.split, hint="early stopping needs one")
        return [split]
    if isinstance(inputs.data, Data) and inputs.data.get("train_mask") is not None:
        return _masked(inputs, settings)
    parts = (1 - settings.val - settings.test, settings.val, settings.test)
    classes = inputs.task == "classify"
    codes = y if classes else labelled(y).long() - 1
    splits = [fractions(codes, parts, settings.seed + i, stratified=classes) for i in range(settings.cv)]
    for name, part, share in (("val", splits[0].val, settings.val), ("test", splits[0].test, settings.test)):
        if share and not part.numel():
            problem = f"a share of {share:g} of {int(labelled(y).sum())} labelled {inputs.kind} is empty"
            hint = "add labels, or use a larger share"
            raise DemonetError(problem, argument=name, file=inputs.files["edges"], hint=hint)
    return splits


def _masked(inputs: Inputs, settings: Settings) -> list[Split]:
    """The splits in the masks of a graph; without a ``val_mask``, validation items are drawn from the training part."""
    data, file = inputs.data, inputs.files["edges"]
    assert isinstance(data, Data)
    own = 1 if data.train_mask.dim() == 1 else data.train_mask.size(1)
    if settings.cv > own:
        message = f"the split is that of train_mask: {own} instead of {settings.cv} random ones"
        warn(DemonetWarning(message, file=file))
    splits = []
    for number in range(min(own, settings.cv)):
        split = Split.from_masks(data, number)
        if not split.val.numel():
            share = settings.val / (1 - settings.test)
            y, trains = data.y, torch.zeros(data.num_nodes, dtype=torch.bool)
            trains[split.train] = True
            classes = inputs.task == "classify"
            codes = torch.where(trains, y if classes else labelled(y).long() - 1, -1)
            drawn = fractions(codes, (1 - share, share, 0.0), settings.seed + number, stratified=classes)
            split = replace(split, train=drawn.train, val=drawn.val)
        check_split(split, data.y, names=inputs.names, file=file)
        splits.append(split)
    return splits


def _num_features(inputs: Inputs, blocks: str) -> int:
    """Approximate number of feature values of all nodes together."""
    total = 0
    if "degree-onehot" in blocks.split("+"):
        every = degrees(inputs.data)
        shape = every.numel(), every.unique().numel() + 1
        total += shape[0] * shape[1] if one_hot_is_dense(*shape) else shape[0] + inputs.num_edges
    for graph in inputs.graphs:
        if graph.x is not None:
            total += graph.x.values().numel() if graph.x.layout == torch.sparse_csr else graph.x.numel()
    return total


def epoch_limit(epochs: int, edges: int, features: int = 0) -> int:
    """The epochs of a preset, fewer on graphs so large that training would take hours.

    Edges are counted in both directions; of sparse features, the values that are not zero.

    >>> epoch_limit(1000, 10_000), epoch_limit(1000, 2_000_000, 5_000_000), epoch_limit(1000, 10**9)
    (1000, 138, 50)
    """
    return min(epochs, max(50, WORK // max(edges + features // FEATURES_PER_EDGE, 1)))


def decide_model(settings: Settings, task: Task) -> tuple[str, Hint]:
    """``"auto"``, ``"kernel"`` or ``"network"``, and a line that says which and why.

    Without a model, an option that only networks read chooses ``"network"``.
    """
    given = settings.for_networks
    if settings.model is None and given:
        name = next(iter(given))
        return "network", Hint(
            "model: network ({" + name + "} is read by networks alone; {model} takes several kinds of models)",
            **{name: given[name], "model": "auto"},
        )
    if settings.model == "kernel" and task == "multilabel":
        problem = "'kernel' predicts one class or numbers, not several labels"
        raise DemonetError(problem, argument="model", hint=Hint("use {model}", model="auto"))
    if settings.model not in (None, "auto"):
        return str(settings.model), Hint(f"model: {settings.model}")
    line = "model: auto (several candidates, weighted by validation and fitted again; {model} trains one network)"
    return "auto", Hint(line, model="network")
