r"""Ridge regression on the degree-specific kernel: DEMO-Net trained to its optimum, without epochs, seeds or dropout.

Targets are one column a class (:math:`1 - 1/C` or :math:`-1/C`), normal scores of ordered classes, or standardised
numbers. With Gram matrix :math:`K` and noise :math:`\sigma`, :math:`\alpha = (K + \sigma I)^{-1} Y`, the prediction is
:math:`f(v) = \sum_i k(v, i)\, \alpha_i`, and what the model without item i predicts for it is
:math:`y_i - \alpha_i / [(K + \sigma I)^{-1}]_{ii}`. Settings of the kernel, noise and the link from f to probabilities
are chosen on these leave-one-out predictions, with those of validation items beside them where there are some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.closedform.link import SCALES, LabelLink, Link, log_loss, normal_scores, shares
from demonet.closedform.nodes import Array, NodeInputs, NodeRows, NodeSetting
from demonet.closedform.pooled import GraphInputs, GraphSetting
from demonet.closedform.primal import PrimalRidge
from demonet.closedform.ridge import Solution, ridge, solve
from demonet.closedform.sharing import degree_sharing, some_degrees
from demonet.errors import DemonetError
from demonet.schema import Array as Stored
from demonet.schema import check_arrays
from demonet.tensorfile import under

Task = Literal["auto", "classes", "ordinal", "regression"]
TASKS = ("auto", "classes", "ordinal", "regression")
NOISES = np.geomspace(1e-3, 10, 17)  # of the mean self-kernel
FACTS = ("num_classes", "ranks", "mean", "deviation")
COST = 40_000  # members times training items: with more items, fewer settings are averaged
DUAL = 15_000  # labelled items up to which the Gram matrix is solved
DOUBLE = 1_000  # labelled items up to which it is in double precision: a small noise magnifies rounding a thousandfold
ENTRIES = 2**28  # of the kernel between all nodes and labelled ones; beyond, it is fitted in the primal, too
BLOCK = 20_000  # items whose explicit features are in memory at once


@dataclass(frozen=True)
class DegreeEffect:
    """What the degree-specific part is worth, out of sample: by leave-one-out, and on validation items beside it.

    ``accuracy`` and ``loss`` (log-loss; for numbers, R² and squared error) have the keys ``degree``, ``none`` (s_d = 0)
    and ``shuffled`` (degrees permuted among nodes); ``gain`` has for each of the two others the paired difference
    of accuracy and of loss, each with its 95 % interval: (mean, low, high). ``sharing`` is what the machine has
    learned: :func:`~demonet.closedform.sharing.degree_sharing` of ``degrees``.
    """

    accuracy: dict[str, float]
    loss: dict[str, float]
    gain: dict[str, dict[str, tuple[float, float, float]]]
    items: int
    regression: bool = False
    degrees: tuple[int, ...] = ()
    sharing: tuple[tuple[float, ...], ...] = ()


@dataclass(eq=False, repr=False)
class KernelMachine:
    """Kernel ridge regression whose kernel, noise and link are chosen by leave-one-out.

    A graph and rows of nodes, or a list of graphs and rows of graphs, go into ``fit``; ``predict_proba`` takes any
    other graph (or graphs), with degrees never seen.

    Args:
        task: ``"classes"``; ``"ordinal"``: one latent number, classes ordered by ``order``; ``"regression"``;
            ``"auto"``: classes, ordered if that has the lower log-loss under the setting at which the search starts.
        members: How many of the best settings are averaged; fewer where there are many items.
        settings: Exactly these settings, instead of a search.
        degree: Whether the degree-specific part may be used; ``False`` fixes s_d at zero.
        order: For ordered classes, the rank of each; by default the rank of the mean log-degree of its items.
        screen: Items on which settings are compared where there are more; and twice as many of validation.
        dual: Items up to which the Gram matrix is solved; beyond, the linear settings are fitted in the primal. For
            the nodes of a large graph, fewer: their kernel with all nodes has at most :data:`ENTRIES` entries.
        dtype: Of the Gram matrices; by default double precision for at most `DOUBLE` items, single precision for more.
        device: Where they are.
        seed: Of the screening sample.

    Attributes:
        task_: The task, with ``auto`` decided.
        inputs_: The preprocessing.
        table_: Settings that were compared, with score and noise, best first.
        members_: The settings that are averaged, with their noise.
        link_: From f to probabilities.
        left_out_: ``[n + m, C]`` f of the training items without themselves, then of the validation items.
    """

    task: Task = "auto"
    _: KW_ONLY
    members: int = 8
    settings: Sequence[Any] | None = None
    degree: bool = True
    order: Sequence[int] | None = None
    screen: int = 1000
    dual: int = DUAL
    dtype: torch.dtype | None = None
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise DemonetError(f"task={self.task!r} of a kernel machine", hint=f"known are {', '.join(TASKS)}")

    def fit(
        self,
        data: Any,
        rows: Array | Tensor,
        y: Array | Tensor,
        val_rows: Any = None,
        val_y: Any = None,
        weight: Array | None = None,
    ) -> Self:
        """Fit on labelled rows; validation rows, if given, only help to choose.

        Args:
            data: A graph (rows are its nodes) or a list of graphs (rows are graphs).
            rows: ``[n]`` indices of the labelled items.
            y: ``[n]`` their classes 0, 1, ..., or numbers; or ``[n, C]`` numbers.
            val_rows, val_y: The same for validation.
            weight: ``[n + m]`` weights of the labelled, then of the validation items; None if all are 1.
        """
        rows = np.asarray(rows)
        self.inputs_ = inputs_for(data).fit(data if isinstance(data, Data) else [data[i] for i in rows])
        view = self.inputs_.transform(data)
        if isinstance(data, Data) and self.settings is None:  # those that are given may have no primal
            self.dual = min(self.dual, ENTRIES // max(1, len(view)))
        val = None if val_rows is None or not len(val_rows) else view.take(np.asarray(val_rows))
        return self.fit_views(view.take(rows), np.asarray(y), val, None if val is None else np.asarray(val_y), weight)

    def fit_views(
        self, train: Any, y: Array, val: Any = None, val_y: Array | None = None, weight: Array | None = None
    ) -> Self:
        """Fit on views of the items, as ``inputs_.transform(data).take(rows)`` gives them."""
        self._parts = (train, y, val, val_y, weight)
        self.dtype_ = self.dtype or (torch.float64 if len(train) <= DOUBLE else torch.float32)
        self.y_, self.weight_ = y if val_y is None else np.concatenate([y, val_y]), weight
        train_weight = None if weight is None else weight[: len(y)]
        parts = ((y, self.screen), (self.y_[len(y) :], 2 * self.screen))
        rows, judges = (self._sample(len(part), most) for part, most in parts)
        sample = train.take(rows)
        pair, cross = self._pair(sample, sample), None if val is None else self._pair(val.take(judges), sample)
        some = np.concatenate([rows, len(y) + judges])
        labels, weights = self.y_[some], None if weight is None else weight[some]
        whole = len(labels) == len(self.y_)
        tried: dict[Any, tuple[float, float, Array]] = {}

        def evaluate(setting: Any) -> tuple[float, float, Array]:
            kernel = None if cross is None else cross.gram(setting)
            gram = pair.gram(setting)
            noises = NOISES * float(gram.diagonal().mean())
            own = None if weights is None else torch.from_numpy(weights).to(gram)
            return self._judged(solve(gram, self._encode(labels), noises.tolist(), kernel, own), labels, weights)

        def score(setting: Any) -> float:
            setting = setting.canonical()
            if setting not in tried:
                tried[setting] = evaluate(setting)
            return tried[setting][0]

        start, choices = train.space(self.degree, linear=len(train) > self.dual)
        self._code(train, y, "classes" if self.task == "auto" else self.task, train_weight)
        if self.task == "auto" and self.num_classes_ > 2:
            losses: dict[Task, float] = {"ordinal": 0.0, "classes": 0.0}
            for task in losses:
                self._code(train, y, task, train_weight)
                f = evaluate(start)[2]
                link = Link.fit(f, labels, self.ranks_, weights)
                losses[task] = log_loss(link.log_probabilities(f), labels, weights)
            self._code(train, y, min(losses, key=losses.__getitem__), train_weight)
        if self.settings is not None:
            for setting in self.settings:
                score(setting)
        else:
            search(score, start, choices)
        order = sorted(tried, key=lambda setting: tried[setting][0])
        self.table_ = [(setting, tried[setting][0], tried[setting][1]) for setting in order]
        most = max(1, min(self.members, COST // len(train)))
        self.members_ = [(setting, noise) for setting, _, noise in self.table_[:most]]
        if whole:
            self.left_out_ = np.mean([tried[setting][2] for setting, _ in self.members_], axis=0)
        self._solve(train, self._encode(y), val, whole, None if weight is None else torch.from_numpy(weight[: len(y)]))
        if self.task_ != "regression":
            self.link_ = Link.fit(self.left_out_, self.y_, self.ranks_, self.weight_)
        return self

    def _sample(self, size: int, most: int) -> Array:
        """At most so many items, in order."""
        if size <= most:
            return np.arange(size)
        return np.sort(np.random.default_rng(self.seed).choice(size, most, replace=False))

    def _solve(self, train: Any, targets: Tensor, val: Any, whole: bool, weight: Tensor | None) -> None:
        """Coefficients of every member on all training items; their predictions for items left out."""
        self.train_, self.alpha_ = train, list[Tensor]()
        self.primal_: list[PrimalRidge] = []
        if len(train) > self.dual:
            return self._solve_primal(train, targets, val, weight)
        pair, left_out = self._pair(train, train), []
        for setting, noise in self.members_:
            alpha, out = ridge(pair.gram(setting), targets, noise, weight)
            self.alpha_.append(alpha)
            left_out.append(out.double().cpu().numpy())
        if not whole:
            others = [] if val is None else [self.decision_of(val)]
            self.left_out_ = np.concatenate([np.mean(left_out, axis=0), *others])
        return None

    def _solve_primal(self, train: NodeRows, targets: Tensor, val: NodeRows | None, weight: Tensor | None) -> None:
        """Leave-one-out has no closed form here: without validation items, a tenth is held out to fit the link."""
        models = [PrimalRidge(setting, noise, self.dtype_, self.device) for setting, noise in self.members_]
        if val is None:
            held = np.random.default_rng(self.seed).random(len(train)) < 0.1
            val, judges, some = train.take(held), held, torch.from_numpy(~held)
            own = None if weight is None else weight[some]
            self.primal_ = [model.fit(train.take(~held), targets[some], own) for model in models]
            self.left_out_ = self.decision_of(val)
            self.primal_ = [model.fit(train, targets, weight) for model in models]
        else:
            self.primal_ = [model.fit(train, targets, weight) for model in models]
            self.left_out_, judges = self.decision_of(val), np.arange(len(self.y_)) >= len(train)
        self.y_, self.weight_ = self.y_[judges], None if self.weight_ is None else self.weight_[judges]

    def _judged(self, solution: Solution, labels: Array, weight: Array | None) -> tuple[float, float, Array]:
        """Score, noise and out-of-sample predictions."""
        out = solution.unseen.double().cpu().numpy()
        if self.task_ != "classes":
            return solution.error, solution.noise, out
        scaled = torch.log_softmax(torch.as_tensor(SCALES[:, None, None] * out), -1)
        share = 1.0 if weight is None else torch.from_numpy(shares(weight))
        losses = -(share * scaled[:, torch.arange(len(labels)), torch.from_numpy(labels)]).mean(1)
        return float(losses.min()), solution.noise, out

    def _code(self, train: Any, y: Array, task: Task, weight: Array | None) -> None:
        """Learn how targets are coded."""
        self.task_ = task
        self.ranks_: tuple[int, ...] = ()
        if task == "regression":
            table = y.reshape(len(y), -1)
            mean, deviation = table.mean(0), table.std(0)
            if weight is not None:
                mean = np.average(table, 0, weight)
                deviation = np.sqrt(np.average((table - mean) ** 2, 0, weight))
            self.mean_ = mean.tolist()
            self.deviation_ = np.where(deviation > 0, deviation, 1.0).tolist()
            return
        self.num_classes_ = int(self.y_.max()) + 1
        if task == "ordinal":
            of_class = [y == c for c in range(self.num_classes_)]
            degree = train.mean_log_degree()
            means = [np.average(degree[c], weights=None if weight is None else weight[c]) for c in of_class]
            ranks = np.argsort(np.argsort(means)) if self.order is None else np.asarray(self.order)
            self.scores_ = normal_scores(np.bincount(ranks[y], weight, minlength=len(ranks)))
            self.ranks_ = tuple(ranks.tolist())

    def _encode(self, y: Array) -> Tensor:
        """``[n, C]`` targets: a column a class, one of normal scores, or standardised numbers."""
        if self.task_ == "regression":
            targets = (np.asarray(y, dtype=np.float64).reshape(len(y), -1) - self.mean_) / self.deviation_
        elif self.task_ == "ordinal":
            targets = self.scores_[np.array(self.ranks_)[y]][:, None]
        else:
            targets = np.eye(self.num_classes_)[y] - 1 / self.num_classes_
        return torch.from_numpy(targets).to(self.device, self.dtype_)

    def _pair(self, left: Any, right: Any) -> Any:
        return left.pair(right, self.dtype_, self.device)

    def decision_of(self, view: Any) -> Array:
        """``decision_function`` of the items of a view."""
        step = BLOCK if self.primal_ else max(1, 2**26 // max(1, len(self.train_)))
        blocks = []
        for start in range(0, len(view), step):
            some = (
                view
                if self.primal_ and len(view) <= step
                else view.take(np.arange(start, min(start + step, len(view))))
            )
            if self.primal_:
                blocks.append(np.mean([m.predict(some).double().cpu().numpy() for m in self.primal_], axis=0))
                continue
            pair = self._pair(some, self.train_)
            f = sum(pair.gram(s) @ alpha for (s, _), alpha in zip(self.members_, self.alpha_, strict=True))
            blocks.append((f / len(self.members_)).double().cpu().numpy())
        return np.concatenate(blocks)

    def _view(self, data: Any, rows: Any) -> Any:
        view = self.inputs_.transform(data)
        return view if rows is None else view.take(np.asarray(rows))

    def decision_function(self, data: Any, rows: Any = None) -> Array:
        """``[items, C]`` the posterior mean f of each item, averaged over the members."""
        return self.decision_of(self._view(data, rows))

    def predict_proba(self, data: Any, rows: Any = None) -> Array:
        """``[items, C]`` probabilities."""
        if self.task_ == "regression":
            raise DemonetError("predict_proba of a regression", hint="predict gives the numbers")
        return np.exp(self.link_.log_probabilities(self.decision_function(data, rows)))

    def values(self, f: Array) -> Array:
        """``[items, C]`` of a regression: the decision function in the units of the targets."""
        return np.asarray(self.mean_) + np.asarray(self.deviation_) * f

    def predict(self, data: Any, rows: Any = None) -> Array:
        """The most probable class, the number, or ``[items, C]`` numbers."""
        if self.task_ == "regression":
            found = self.values(self.decision_function(data, rows))
            return found[:, 0] if found.shape[1] == 1 else found
        return self.predict_proba(data, rows).argmax(axis=1)

    def shares(self, data: Any, rows: Any = None) -> dict[str, Array]:
        """f of each item, split into what each term of the kernel adds; the shares add up to ``decision_function``.

        Keys: ``seed``, ``shared``, ``degree``, ``bias``, ``structure``, ``constant`` (and ``wl`` for graphs); ``map``
        holds what the nonlinear map of some members does not let apart.
        """
        view, total = self._view(data, rows), dict[str, Array]()
        for i, (setting, _) in enumerate(self.members_):
            if self.primal_:
                parts = self.primal_[i].shares(view)
            else:
                terms = self._pair(view, self.train_).terms(setting)
                parts = {name: term @ self.alpha_[i] for name, term in terms}
            for name, part in parts.items():
                total[name] = total.get(name, 0.0) + part.double().cpu().numpy() / len(self.members_)
        return total

    def degree_effect(self, seed: int = 0, *, labels: bool = False) -> DegreeEffect:
        """Out-of-sample accuracy and log-loss with the degree-specific part, with s_d = 0, and with shuffled degrees.

        Without it, settings are searched again; the shuffled arm keeps the settings and permutes the degrees that the
        degree-specific map reads among the items. Noise and link are fitted in each arm. With ``labels``, the numbers
        are labels: 0 or 1, or between them where unknown.
        """
        if not hasattr(self, "_parts"):
            raise DemonetError("degree_effect of a machine that was loaded", hint="call it after fit")
        train, y, val, val_y, weight = self._parts
        given = None if self.settings is None else [replace(s, degree=0.0) for s in self.settings]
        like = partial(replace, self, task=self.task_)
        none = like(degree=False, settings=given).fit_views(*self._parts)
        settings = [setting for setting, _ in self.members_]
        others = (train.shuffled(seed), y, None if val is None else val.shuffled(seed + 1), val_y, weight)
        arms = {"degree": self, "none": none, "shuffled": like(settings=settings).fit_views(*others)}
        outcomes = {name: arm._outcomes(labels) for name, arm in arms.items()}
        gain = {
            name: {kind: _interval(outcomes["degree"][kind] - outcomes[name][kind]) for kind in ("accuracy", "loss")}
            for name in ("none", "shuffled")
        }
        means = {
            kind: {name: float(outcome[kind].mean()) for name, outcome in outcomes.items()}
            for kind in ("accuracy", "loss")
        }
        degrees = some_degrees(getattr(train, "nodes", train).degree)
        sharing = degree_sharing(settings, degrees)
        return DegreeEffect(
            **means,
            gain=gain,
            items=len(self.y_),
            regression=self.task_ == "regression" and not labels,
            degrees=tuple(degrees.tolist()),
            sharing=tuple(map(tuple, sharing.tolist())),
        )

    def _outcomes(self, labels: bool) -> dict[str, Array]:
        """Of each item that was left out: whether its class is right and its log-loss, or its share of R² and error.

        Each times the weight of the item, which is 1 on average; of labels, the means over those that are known.
        """
        share = 1.0 if self.weight_ is None else shares(self.weight_)
        if labels:
            values = self.values(self.left_out_)
            found = LabelLink.fit(values, self.y_, self.weight_).probabilities(values)
            unknown = (self.y_ > 0) & (self.y_ < 1)
            right, loss = (found >= 0.5) == self.y_, -np.log(np.where(self.y_ > 0.5, found, 1 - found))
            means = (np.ma.masked_array(each, unknown).mean(1).filled(0.0) for each in (right, loss))
            return {kind: share * mean for kind, mean in zip(("accuracy", "loss"), means, strict=True)}
        if self.task_ == "regression":
            error = ((self.left_out_ - self._encode(self.y_).cpu().numpy()) ** 2).mean(1)
            return {"accuracy": share * (1 - error), "loss": share * error}
        log_p = self.link_.log_probabilities(self.left_out_)
        loss = -log_p[np.arange(len(self.y_)), self.y_]
        return {"accuracy": share * (log_p.argmax(1) == self.y_), "loss": share * loss}

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Everything that predictions need: a part for JSON and a part for safetensors."""
        inputs_info, inputs = self.inputs_.state()
        info = {name: getattr(self, f"{name}_") for name in FACTS if hasattr(self, f"{name}_")}
        info |= {"task": self.task_, "inputs": inputs_info, "graphs": isinstance(self.inputs_, GraphInputs)}
        info["members"] = [[asdict(setting), noise] for setting, noise in self.members_]
        info |= {"dtype": str(self.dtype_).removeprefix("torch."), "primal": bool(self.primal_)}
        if self.task_ != "regression":
            info["link"] = self.link_._asdict()
        arrays = {f"inputs.{name}": array for name, array in inputs.items()}
        arrays |= {f"alpha.{i}": alpha.cpu() for i, alpha in enumerate(self.alpha_)}
        for i, model in enumerate(self.primal_):
            arrays |= {f"primal.{i}.{name}": array for name, array in model.state().items()}
        if info["graphs"]:
            nodes = self.train_.nodes  # the others follow from the graphs
            arrays |= {} if np.array_equal(nodes.task, nodes.degree) else {"train.task": torch.from_numpy(nodes.task)}
        elif not info["primal"]:
            arrays |= {f"train.{name}": array for name, array in self.train_.state().items()}
        return info, arrays

    @classmethod
    def from_state(cls, info: Mapping[str, Any], arrays: Mapping[str, Tensor], device: str = "cpu") -> Self:
        """The fitted machine that gave this state, on any device."""
        machine = cls(info["task"], device=device)
        machine.task_, machine.dtype_ = info["task"], getattr(torch, info["dtype"])
        for name in FACTS:
            if name in info:
                setattr(machine, f"{name}_", info[name])
        inputs, setting = (GraphInputs, GraphSetting) if info["graphs"] else (NodeInputs, NodeSetting)
        machine.inputs_ = inputs.from_state(info["inputs"], under("inputs", arrays))
        machine.members_ = [(setting(**fields), noise) for fields, noise in info["members"]]
        if "link" in info:
            link = info["link"]
            machine.link_ = Link(link["scale"], tuple(link["cuts"]), tuple(link["order"]))
        machine.alpha_, machine.primal_ = [], []
        for i, (member, noise) in enumerate(machine.members_):
            if info["primal"]:
                model = PrimalRidge(member, noise, machine.dtype_, device)
                machine.primal_.append(model.load(under(f"primal.{i}", arrays)))
            else:
                machine.alpha_.append(arrays[f"alpha.{i}"].to(device))
        if info["graphs"]:
            rows = machine.inputs_.transform(machine.inputs_.graphs)
            if "train.task" in arrays:  # shuffled
                check_arrays(arrays, {"train.task": Stored("i", (len(rows.owner),), 0)})
                rows = replace(rows, nodes=replace(rows.nodes, task=arrays["train.task"].numpy()))
            machine.train_ = rows
        elif not info["primal"]:
            machine.train_ = NodeRows.from_state(under("train", arrays))
        machine._check_stored()
        return machine

    def _check_stored(self) -> None:
        """Check that what a file says of settings, coefficients, classes and link fits together."""
        ordinal, regression = self.task_ == "ordinal", self.task_ == "regression"
        outputs = len(self.mean_) if regression else self.num_classes_
        columns = 1 if ordinal else outputs
        for alpha in self.alpha_:
            check_arrays({"alpha": alpha.cpu()}, {"alpha": Stored("f", (len(self.train_), columns))})
        for model in self.primal_:
            check_arrays({"weight": model.arrays["weight"].cpu()}, {"weight": Stored("f", ("terms", columns))})
        cuts, order = ((), ()) if regression else self.link_[1:]
        ranks = list(range(outputs)) if ordinal else []
        if not self.members_ or len(cuts) != max(0, len(ranks) - 1) or sorted(order) != ranks:
            raise DemonetError("settings, classes and link of a kernel machine do not fit together")


def _interval(difference: Array) -> tuple[float, float, float]:
    """Mean and its 95 % interval."""
    mean, error = float(difference.mean()), float(difference.std(ddof=1) / math.sqrt(len(difference)))
    return mean, mean - 1.96 * error, mean + 1.96 * error


def inputs_for(data: Any) -> Any:
    """Preprocessing of nodes for one graph, of graphs for a list."""
    return NodeInputs() if isinstance(data, Data) else GraphInputs()


def search(score: Callable[[Any], float], start: Any, choices: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Coordinate descent, two passes: each field in turn takes the value of least score, until nothing changes."""
    best = start
    for _ in range(2):
        before = best
        for name, values in choices:
            options = [replace(best, **(value if isinstance(value, dict) else {name: value})) for value in values]
            best = min([best, *options], key=score)
        if best == before:
            break
