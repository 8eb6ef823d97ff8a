"""The options of a run, declared once: values, defaults, help and checks.

The options of the commands, the lines of ``run.toml`` and the arguments of :func:`demonet.runs.fit_run` all follow from
:class:`Reading` and :class:`Settings`. Nothing here imports torch, so that help and completion are fast; where a
package defines what a name stands for, ``tests/test_options.py`` compares the names with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from demonet.errors import DemonetError, Hint

Items = Literal["auto", "nodes", "graphs"]
SelfLoops = Literal["drop", "keep"]
Ids = Literal["auto", "int", "str"]
Decimal = Literal[".", ","]
Merge = Literal["sum", "mean", "max", "last"]
Task = Literal["auto", "classify", "regress", "multilabel"]
Model = Literal["auto", "kernel", "network"]
Effort = Literal["quick", "standard", "best"]
Metric = Literal[
    "accuracy", "balanced", "macro-f1", "auc", "average-precision", "precision@100", "log-loss", "rmse", "mae", "r2"
]
Preset = Literal["strong", "default", "deep-5", "deep-12", "paper", "authors"]
Scheme = Literal["hash", "weight", "smooth", "scale"]  # users may register more
LAYERS = Literal["auto"]  # or a number
Device = Literal["auto", "cpu", "cuda"]
Engine = Literal["local", "torchrun", "ray"]
Partition = Literal["balanced", "hash", "metis"]
_GRAPH_SETS = ("MUTAG", "PTC", "PTC_MR", "PROTEINS", "ENZYMES")
DATASETS = ("facebook", "wiki-vote", "blogcatalog", "flickr", "brazil", "europe", "usa", *_GRAPH_SETS)

Column = str | int
MOST_SPLITS = 1000
READING, TRAINING, NETWORK, PROCESSES = "Reading files", "Training", "Networks alone", "Networks over processes"
COMPARING = "Comparing"
_METRICS, _SCHEMES = ("train.metrics", "METRICS"), ("nn.weights", "SCHEMES")


def option(default: Any, help: str, panel: str, **limits: Any) -> Any:
    """A field of options.

    Args:
        default: Its value where none is given.
        help: What the command line says about it.
        panel: The group of options that it is listed in.
        **limits: ``min`` and ``max`` of a number; ``flag``: how a switch is spelled; ``choices``: the values that help
            and completion name, where users may register others in the ``registry``, a module and a name in it.
    """
    return field(default=default, metadata={"help": help, "panel": panel, **limits})


def check_choices(options: Any) -> None:
    """Refuse a value that is not among those that its type or a registry lists, or that is beyond its limits."""
    hints = get_type_hints(type(options))
    for each in fields(options):
        value = getattr(options, each.name)
        if value is None:
            continue
        known = [choice for part in (hints[each.name], *get_args(hints[each.name])) for choice in get_args(part)]
        known = [choice for choice in known if isinstance(choice, str)]
        if "registry" in each.metadata:
            module, name = each.metadata["registry"]
            known = getattr(import_module(f"demonet.{module}"), name)
        if known and value not in known:
            raise DemonetError(f"{value!r} is unknown", argument=each.name, hint=f"use {', '.join(known)}")
        low, high = each.metadata.get("min"), each.metadata.get("max")
        if low is not None and not low <= value <= (value if high is None else high):
            hint = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
            raise DemonetError(f"{value:,}", argument=each.name, hint=hint)
        if each.name == "time_limit" and not 0 < value < math.inf:
            raise DemonetError(f"{value:g} seconds", argument=each.name, hint="a finite number above 0")
        if each.name == "jobs":
            import_module("demonet.checks").check_jobs(value)


@dataclass(frozen=True)
class Reading:
    """How files are read; saved with a run, so that another graph is read in the same way.

    Attributes:
        items: What the items are; ``"auto"`` depends on the files.
        directed: Whether edges are directed; None for what the file says.
        source, target, weight, graph: Columns of an edge list, by name or by position from 0; None for the defaults of
            :func:`~demonet.data.read_graph`.
        id_column, label_column: Columns of the tables of labels and attributes, by name or by position from 0.
        decimal: The decimal mark of numbers that are text, ``"."`` or ``","``; None to recognise it.
        ignore: Columns of the table of attributes that are left out.
        merge: The weight of an edge that is listed several times; None for the default of
            :func:`~demonet.data.read_graph`.
        add_isolated: Whether ids that occur only in labels or features become isolated nodes; otherwise they are an
            error.
        self_loops: Whether self-loops are dropped or kept; None for the preset's choice.
        ids: ``"int"``: numbers, so that ``007`` is 7; ``"str"``: text; ``"auto"``: as they are written.
        header: Whether a table of edges starts with the names of its columns; None to recognise it.
    """

    items: Items = option("auto", "What has labels: nodes, or graphs.", READING)
    directed: bool | None = option(None, "Default: what the file says.", READING, flag="--directed/--undirected")
    source: Column | None = option(None, "Column of an edge's source.", READING)
    target: Column | None = option(None, "Column of its target.", READING)
    weight: Column | None = option(None, "Column of its weight.", READING)
    graph: Column | None = option(None, "Column of its graph.", READING)
    id_column: Column | None = option(None, "Column of ids in tables of labels and features.", READING)
    label_column: Column | None = option(None, "Column of labels in LABELS.", READING)
    decimal: Decimal | None = option(None, "Decimal mark of numbers. Default: recognised.", READING)
    ignore: list[Column] | None = option(None, "Column of FEATURES to leave out; repeatable.", READING)
    merge: Merge | None = option(None, "Weight of an edge listed several times.", READING)
    add_isolated: bool = option(False, "Add ids without an edge as nodes.", READING, flag="--add-isolated")
    self_loops: SelfLoops | None = option(None, "Default: the preset's choice.", READING)
    ids: Ids = option("auto", "Ids are numbers (007 is 7), or text. Default: as they are written.", READING)
    header: bool | None = option(
        None, "Whether EDGES starts with names of columns. Default: recognised.", READING, flag="--header/--no-header"
    )

    def __post_init__(self) -> None:
        check_choices(self)


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Attributes:
        task: ``"classify"``, ``"multilabel"`` or ``"regress"``; ``"auto"`` depends on the labels, see
            :func:`~demonet.runs.targets.with_targets`.
        model: ``"auto"``: several candidates, weighted on validation; ``"kernel"``; ``"network"``; None for ``"auto"``,
            or for ``"network"`` where an option is given that only networks read: ``preset``, ``layers``, ``scheme``,
            ``epochs``, ``batch_size``, ``neighbours`` or ``log``. See
            :func:`~demonet.runs.plan.decide_model`.
        effort: Of ``"auto"``: ``"quick"``, ``"standard"`` (the default) or ``"best"``.
        time_limit: Of ``"auto"``: seconds for a split; of the first, from reading to the page.
        jobs: Of ``"auto"``: processes that fit candidates at once, where that is worth their start. None: the command
            uses one per core, up to four, for graphs of less than 20,000 nodes; a call from Python uses none.
        metric: The metric that is reported and that chooses weights or the epoch, one of
            :data:`~demonet.train.metrics.METRICS` that fits the task; None for the task's default, see
            :func:`~demonet.train.metrics.metric_of_classes`.
        positive: The positive one of two classes, for a metric that has one; None for the rarer, of equals the last.
        class_weight: ``"balanced"``, or None for equal weights; only for classes. The loss with these weights then
            chooses, unless ``metric`` is given; the balanced accuracy is reported.
        seed: Seed of the split, the initial weights and dropout.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        val, test: Shares of the labelled items for validation (choosing the epoch) and for the test.
        split: A split file, used instead of these shares.
        new_nodes: Whether the model is fitted without the test nodes and their edges, so that its test score is that
            for nodes that it has never seen.
        cv: Number of random splits on which everything is repeated.
        preset: ``"strong"``, ``"default"``, ``"deep-5"``, ``"deep-12"``, ``"paper"`` or ``"authors"``.
        layers: Hidden layers of the preset's network, None for its own number; ``"auto"``: that network and those of
            ``"deep-5"`` and ``"deep-12"`` are trained, and validation chooses.
        scheme: ``"weight"``, ``"hash"``, ``"smooth"`` or ``"scale"``; None for the preset's choice.
        epochs: The largest number of epochs; None for the preset's number, less on large graphs.
        batch_size, neighbours: Training nodes of a batch, and how many neighbours of each are drawn; None for all,
            unless they do not fit into memory. See :func:`~demonet.train.recipes.train_nodes`.
        log: ``"tensorboard"``, or None.
        engine: ``"torchrun"`` or ``"ray"`` for exact training of a network over processes, see
            :mod:`demonet.distributed`; with ``model="auto"``, ``"ray"`` fits candidates on a Ray cluster, ``jobs`` at
            once; ``"local"`` or None for this machine.
        workers: Number of these processes.
        partition: How the graph is cut for them: ``"balanced"`` (the default), ``"hash"`` or ``"metis"``.
    """

    task: Task = option("auto", "What to predict; auto: by the labels.", TRAINING)
    model: Model | None = option(None, "Default: auto, or network with an option of networks.", TRAINING)
    effort: Effort | None = option(None, "How much auto tries. Default: standard.", TRAINING)
    time_limit: float | None = option(None, "Seconds for auto, reading and page included.", TRAINING)
    jobs: int | None = option(
        None,
        "Processes that fit candidates of auto at once. Default: one per core, up to 4, where that is worth it.",
        TRAINING,
        min=1,
    )
    metric: str | None = option(
        None,
        "Chooses weights or epoch, and is reported; precision@K for any K. Default: by task and classes.",
        TRAINING,
        choices=Metric,
        registry=_METRICS,
    )
    positive: str | None = option(
        None, "The positive one of two classes, for average-precision and precision@K. Default: the rarer.", TRAINING
    )
    class_weight: Literal["balanced"] | None = option(None, "Give rare classes more weight, in every model.", TRAINING)
    seed: int = option(0, "Seed of splits, weights and dropout.", TRAINING, min=0, max=2**31)
    device: Device = option("auto", "Where to train.", TRAINING)
    val: float = option(0.2, "Share for choosing.", TRAINING)
    test: float = option(0.2, "Share for the test.", TRAINING)
    split: Path | None = option(None, "A split.json to use instead of shares.", TRAINING)
    new_nodes: bool = option(False, "Hide test nodes and their edges in training.", TRAINING, flag="--new-nodes")
    cv: int = option(1, "Number of random splits; the first model is kept.", TRAINING, min=1, max=MOST_SPLITS)
    preset: Preset = option("strong", "Features, model and training.", NETWORK)
    layers: str | int | None = option(
        None, "Hidden layers; auto: the best depth on validation. Default: the preset's.", NETWORK, choices=LAYERS
    )
    scheme: str | None = option(None, "How degrees get their weights.", NETWORK, choices=Scheme, registry=_SCHEMES)
    epochs: int | None = option(None, "Largest number.", NETWORK, min=1)
    batch_size: int | None = option(None, "Nodes of a batch. Default: all, if they fit into memory.", NETWORK, min=1)
    neighbours: int | None = option(None, "Neighbours of a node drawn in a batch. Default: all.", NETWORK, min=1)
    log: Literal["tensorboard"] | None = option(None, "Also log learning curves.", NETWORK)
    engine: Engine | None = option(
        None,
        "torchrun or ray train a network in several processes; with --model auto, ray fits candidates.",
        PROCESSES,
    )
    workers: int | None = option(
        None, "Number of processes. Default: as many as the store has parts.", PROCESSES, min=1
    )
    partition: Partition | None = option(
        None, "How the graph is divided: balanced by degree, hash, or metis. A store with parts has its own.", PROCESSES
    )

    def __post_init__(self) -> None:
        check_choices(self)
        layers = 1 if self.layers in (None, *get_args(LAYERS)) else self.layers
        if not isinstance(layers, int) or layers < 1:
            raise DemonetError(f"{layers!r} is unknown", argument="layers", hint="use auto, or a number of at least 1")
        if not (self.val > 0 and self.test >= 0 and self.val + self.test < 1):
            problem = f"shares of {self.val:g} for validation and {self.test:g} for the test"
            hint = Hint("{val} must be above 0, {test} at least 0, and their sum below 1", val=..., test=...)
            raise DemonetError(problem, hint=hint)
        if self.cv > 1 and (self.split is not None or not self.test):
            problem = "a split file" if self.split is not None else "no test part"
            need = "repeated splits are random and need a test part"
            raise DemonetError(f"{self.cv} splits with {problem}", argument="cv", hint=need)
        self._check_model()
        self._check_engine()
        if self.device == "cuda" and self.uses != "cuda":
            raise DemonetError("no CUDA device is available", argument="device")

    def _check_model(self) -> None:
        """Refuse options that the model does not read."""
        given = self.for_networks
        if self.model in ("auto", "kernel") and given:
            name = next(iter(given))
            hint = Hint("only networks read it: use {model}", model="network")
            raise DemonetError(f"{given[name]!r} with the model {self.model!r}", argument=name, hint=hint)
        for name in AUTO_OPTIONS:
            if getattr(self, name) is None or (self.model in (None, "auto") and not given):
                continue
            other = f"the model {self.model!r}" if self.model else f"{next(iter(given))}, which chooses a network"
            hint = Hint("only {model} reads it", model="auto")
            raise DemonetError(f"{getattr(self, name)!r} with {other}", argument=name, hint=hint)

    def _check_engine(self) -> None:
        """Refuse options that the engine does not read."""
        over = self.engine in ("torchrun", "ray") and not self.fits_candidates
        for argument in ("workers", "partition") if not over else ("batch_size", "neighbours"):
            if (value := getattr(self, argument)) is not None:
                engine = f"the engine {self.engine or 'local'!r}"
                hint = "it trains on the whole graph" if over else Hint("use {engine}", engine="torchrun")
                raise DemonetError(f"{value!r} with {engine}", argument=argument, hint=hint)

    @property
    def for_networks(self) -> dict[str, Any]:
        """The options that only networks read and that differ from their defaults."""
        own = [each for each in fields(self) if each.metadata["panel"] in (NETWORK, PROCESSES)]
        given = {each.name: getattr(self, each.name) for each in own if getattr(self, each.name) != each.default}
        if self.fits_candidates:
            del given["engine"]
        return given

    @property
    def fits_candidates(self) -> bool:
        """Whether the engine fits candidates of the ensemble: it is Ray, and ``model="auto"`` is asked for."""
        return self.engine == "ray" and self.model == "auto"

    @property
    def uses(self) -> str:
        """The device that is used."""
        import torch

        return "cuda" if self.device != "cpu" and torch.cuda.is_available() else "cpu"


AUTO_OPTIONS = ("effort", "time_limit", "jobs")  # read by the ensemble alone


@dataclass(frozen=True)
class Comparing:
    """What is compared, and how.

    Attributes:
        methods: Names; None for all that apply and are affordable.
        everything: Also those that are expensive.
        splits: Number of random splits; the masks of a graph are used instead, if it has any.
        seed: Seed of the first split and of the methods on it; split i has ``seed + i``.
        val, test: Shares of the labelled items for validation and test.
        metric: By which methods are ranked; None for the task's default.
        positive: The positive one of two classes, for a metric that has one; None for the rarer.
        effort: Of ``demonet-auto``.
        jobs: Processes that work at once.
        time_limit: Seconds, reading included, after which nothing more is computed.
    """

    methods: tuple[str, ...] | None = option(None, "Names, separated by commas.", COMPARING)
    everything: bool = option(False, "Also expensive methods.", COMPARING, flag="--all")
    splits: int = option(5, "Number of random splits.", COMPARING, min=2, max=MOST_SPLITS)
    seed: int = option(0, "Seed of splits and methods.", COMPARING, min=0, max=2**31)
    val: float = option(0.2, "Share for choosing.", COMPARING)
    test: float = option(0.2, "Share for the test.", COMPARING)
    metric: str | None = option(
        None,
        "Ranks the methods; precision@K for any K. Default: by task and classes.",
        COMPARING,
        choices=Metric,
        registry=_METRICS,
    )
    positive: str | None = option(
        None, "The positive one of two classes, for average-precision and precision@K. Default: the rarer.", COMPARING
    )
    effort: Effort = option("quick", "Of demonet-auto.", COMPARING)
    jobs: int = option(1, "Processes at once.", COMPARING, min=1)
    time_limit: float | None = option(None, "Seconds, reading included, then show what there is.", COMPARING)

    def __post_init__(self) -> None:
        check_choices(self)
        if not self.test > 0:
            raise DemonetError("there is no test part", argument="test", hint="use a share above 0")
        known = import_module("demonet.methods").names() if self.methods else []
        for name in self.methods or ():
            if name not in known:
                hint = f"choose from {', '.join(known)}"
                raise DemonetError(f"unknown method {name!r}", argument="methods", hint=hint)
