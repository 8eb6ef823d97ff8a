"""What a run has to say, computed once: its page, its model card and the terminal all tell these facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demonet.runs.evaluate import mean_interval, shown, wilson
from demonet.runs.floors import FLOOR_NAMES
from demonet.runs.run import Run
from demonet.train.metrics import METRICS, imbalance

OURS = "DEMO-Net"
FEW = 200  # test items
RULES = {
    "refit": "Refit: model and simple baselines are fitted again on training and validation items, with everything "
    "that validation chose kept; this is the model that is saved.",
    "strict": "Strict: both are fitted on the training part alone.",
}
_OTHERS = {
    "test_accuracy": "accuracy",
    "auc": "ROC AUC",
    "macro_f1": "macro F1",
    "average_precision": "average precision",
}
_OTHERS |= {"rmse": "RMSE", "mae": "MAE", "r2": "R²"}
PRIVACY = (
    "A kernel machine contains its training data: `model.safetensors` has the attributes and degrees of the labelled "
    "nodes, or the labelled graphs. Do not publish it if these are private."
)


class Score(NamedTuple):
    """A test metric, its 95 % interval, and the metric on each of several splits; None where there is none."""

    value: float
    interval: list[float] | None = None
    over: list[float] | None = None


class Scored(NamedTuple):
    """The model, the model as it is for another graph, or a simple baseline, with its score by each rule."""

    name: str
    kind: Literal["model", "elsewhere", "baseline"]
    scores: dict[str, Score]


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run.

    Attributes:
        rule: The rule by which the saved model was fitted: ``"refit"`` or ``"strict"``.
        rules: The rules that there are scores by, that of the saved model first.
        methods: The model, and the simple baselines from the best to the worst; empty if nothing was held out.
        positive: Of two classes the number of the one that matters: the one asked for, otherwise the rarer.
        question: What the run answers.
        answer: The answer, in the units of the user's problem.
        sure: How sure it is: the test metric, its interval, and the best simple baseline.
        next: What to do with it.
        rules_told: Under which rules the numbers were measured; empty if there is one.
        decisions: Why this metric, what predictions are made by, and how probabilities were calibrated.
        elsewhere: What happens on another graph; empty if that makes no difference.
        chosen_by: What the validation part is for.
        others: Other metrics on the test part, by their titles.
        candidates: Those of an ensemble, the largest weight first, each with its ``cost`` in seconds and a ``note``.
        gain: What the average gained over the best candidate.
        importance: How much the metric loses on validation items without a column, the structure or the degree; empty
            if that was not measured.
        reasons: What moved the predictions of some items, in words, by their numbers.
        degree: Whether the degree matters; empty if the model has no degree-specific member.
        counts: How many items have each class or label, or a number in each target column.
        limits: What to keep in mind.
    """

    rule: str
    rules: list[str]
    methods: list[Scored]
    positive: int | None
    question: str
    answer: str
    sure: str
    next: list[str]
    rules_told: str
    decisions: list[str]
    elsewhere: str
    chosen_by: str
    others: dict[str, float]
    candidates: list[dict[str, Any]]
    gain: str
    importance: list[dict[str, Any]]
    reasons: dict[int, list[str]]
    degree: str
    counts: dict[str, int]
    limits: list[str]

    @property
    def best_baseline(self) -> Scored | None:
        """The best simple baseline."""
        return next((method for method in self.methods if method.kind == "baseline"), None)

    def tables(self, run: Run) -> list[tuple[str, list[str], list[list[str]]]]:
        """The scores as text: title, heads and rows of a table; of several splits, a second one with the means."""
        title = run.metric.title[0].upper() + run.metric.title[1:]
        better = "" if run.metric.larger_is_better else ", smaller is better"
        tables = [f"{title} on {run.metrics['split']['test']:,} test {run.kind}{better}"]
        if "cv" in run.metrics:
            tables.append(f"Mean ± deviation over {run.metrics['cv']['splits']} splits")
        heads = ["", *self.rules] if len(self.rules) > 1 else ["", run.metric.title]

        def cell(score: Score | None, number: int) -> str:
            if score is None or (number and score.over is None):
                return ""
            if not number:
                return f"{shown(score.value)}{interval_text(score.interval)}"
            mean, deviation = np.mean(score.over or 0), np.std(score.over or 0, ddof=1)
            bounds = mean_interval(run.metric, score.over or [])
            return f"{shown(float(mean))} ± {shown(float(deviation))}{interval_text(bounds)}"

        found = []
        for number, name in enumerate(tables):
            rows = [[one.name, *(cell(one.scores.get(rule), number) for rule in self.rules)] for one in self.methods]
            found.append((name, heads, [row for row in rows if any(row[1:])]))
        return found if self.methods else []


def run_facts(run: Run) -> RunFacts:
    """The facts of a run, from its metrics, settings and predictions."""
    metrics = run.metrics
    rule = metrics["rule"]
    rules = [rule, *(name for name in RULES if name != rule and metrics.get(name))]
    methods = _methods(run, rules) if metrics["test_metric"] is not None else []
    baseline = next((method for method in methods if method.kind == "baseline"), None)
    positive, tested = _positive(run), np.flatnonzero((run.part == 2) & run.known)
    unequal = imbalanced(run) is not None
    better = baseline if _beaten(run, methods, baseline, rule) else None
    return RunFacts(
        rule=rule,
        rules=rules,
        methods=methods,
        positive=positive,
        question=_question(run, positive),
        answer=_answer(run, positive, tested),
        sure=_sure(run, methods[0].scores[rule] if methods else None, baseline, rule),
        next=_next(run, positive, better),
        rules_told=" ".join(RULES[name] for name in rules) if methods and len(rules) > 1 else "",
        decisions=_decisions(run),
        elsewhere=_elsewhere(run),
        chosen_by={"network": "choosing the epoch", "auto": "choosing weights"}.get(
            run.model, "the comparison of settings"
        ),
        others={
            title: metrics[key]
            for key, title in _OTHERS.items()
            if metrics.get(key) is not None and title != run.metric.title and not (title == "accuracy" and unequal)
        },
        candidates=[
            {
                **row,
                "cost": row["seconds"] + row["refit_seconds"],
                "note": row["reason"] if row["status"] == "fitted" else f"{row['status']}: {row['reason']}",
            }
            for row in sorted(metrics.get("candidates") or [], key=lambda row: -row["weight"])
        ],
        gain=_gain(run) if metrics.get("candidates") else "",
        importance=metrics.get("importance") or [],
        reasons={int(item): told for item, told in (metrics.get("reasons") or {}).items()},
        degree=_degree(metrics.get("degree_effect")),
        counts=_counts(run),
        limits=_limits(run, better),
    )


def percent(share: float) -> str:
    """A proportion as a percentage with one decimal, rounded as with three decimals.

    >>> percent(0.7251), percent(0.7125), shown(0.7125)
    ('72.5\xa0%', '71.3\xa0%', '0.713')
    """
    return f"{100 * round(share, 3):.1f}\u00a0%"


def signed(value: float) -> str:
    """A difference with its sign.

    >>> signed(0.01234), signed(-0.0001)
    ('+0.012', '+0.000')
    """
    return f"{round(value, 3) + 0.0:+.3f}"


def interval_text(bounds: list[float] | None) -> str:
    """An interval in parentheses, or nothing.

    >>> interval_text([0.25, 0.5]), interval_text(None)
    (' (0.250 to 0.500)', '')
    """
    return f" ({shown(bounds[0])} to {shown(bounds[1])})" if bounds else ""


def _methods(run: Run, rules: list[str]) -> list[Scored]:
    metrics, sign = run.metrics, 1 if run.metric.larger_is_better else -1
    over, inductive = metrics.get("cv", {}), metrics.get("inductive", {})
    total = metrics["split"]["test"]

    def values(rule: str, name: str | None = None) -> list[float] | None:
        found = over.get(rule, {})
        found = found.get("test_metric") if name is None else found.get("floors", {}).get(name)
        return None if not found or None in found else found

    def baseline(rule: str, name: str, value: float) -> Score:
        interval = wilson(round(value * total), total) if run.metric.name == "accuracy" else None
        return Score(value, interval, values(rule, name))

    def tested(facts: dict[str, Any], over: list[float] | None = None) -> Score:
        return Score(facts["test_metric"], facts["test_metric_interval"], over)

    found = [Scored(OURS, "model", {rule: tested(metrics[rule], values(rule)) for rule in rules})]
    if "refit" in inductive:
        scores = {rule: tested(inductive[rule]) for rule in rules}
        found.append(Scored(f"{OURS}, on another graph", "elsewhere", scores))
    floors = metrics[rules[0]]["floors"]
    for name in sorted(floors, key=lambda name: -sign * floors[name]):
        known = {rule: metrics[rule]["floors"].get(name) for rule in rules}
        scores = {rule: baseline(rule, name, value) for rule, value in known.items() if value is not None}
        found.append(Scored(FLOOR_NAMES.get(name, name), "baseline", scores))
    return found


def _positive(run: Run) -> int | None:
    if run.task != "classify" or len(run.class_names) != 2:
        return None
    asked, counts = run.config.get("positive"), np.bincount(run.y[run.y >= 0], minlength=2)
    return int(counts[1] <= counts[0]) if asked is None else int(asked != run.class_names[0])


def imbalanced(run: Run) -> float | None:
    """The share of the most frequent class, if it makes accuracy meaningless; None otherwise."""
    if run.task != "classify" or not (run.y >= 0).any():
        return None
    return imbalance(np.bincount(run.y[run.y >= 0]))


def _decisions(run: Run) -> list[str]:
    metrics, found = run.metrics, []
    if run.task != "classify":
        return []
    if metrics.get("unequal"):
        told = f"The metric is {run.metric.title}: {percent(metrics['unequal'])} of the labelled {run.kind} have one"
        found.append(f"{told} class, so accuracy would say little.")
    if run.factors:
        least = (metrics["decision"].get("thresholds") or [None])[-1]
        rule = (
            f"“{run.class_names[1]}” is predicted from a probability of {shown(least)} on"
            if least is not None
            else f"probabilities times factors from {shown(min(run.factors))} to 1, of which the largest counts"
        )
        found.append(f"Predictions are made for {run.metric.title}: {rule}, as chosen on validation {run.kind}.")
    made = metrics.get("calibration")
    if not made or not made["losses"]:
        why = f", for which there are too few validation {run.kind}" if made else ""
        found.append(f"Probabilities were not calibrated{why}: read them as an order, not as frequencies.")
    elif made["method"] == "none":
        found.append(f"Calibration did not lower the log-loss on validation {run.kind}: probabilities are as averaged.")
    else:
        how = f"a temperature of {made['temperature']:.2f}"
        if made["method"] == "bias":
            how += f" and {math.exp(made['bias']):.2f} times the odds of “{run.class_names[1]}”"
        losses = [f"{made['losses'][name]:.3f}" for name in ("none", made["method"])]
        found.append(
            f"Probabilities were calibrated on validation {run.kind} by {how}: log-loss {losses[1]} instead of "
            f"{losses[0]} there, by cross-validation."
        )
    return found


def _question(run: Run, positive: int | None) -> str:
    label, names, what = run.config.get("label"), run.class_names, run.kind
    if positive is not None:
        return f"Which {what} have {label or 'label'} “{names[positive]}”?"
    if run.task == "regress":
        named = "the value" if len(names) > 1 or names[0] in ("", "y") else f"“{names[0]}”"
        return f"How large is {named} of each {what.removesuffix('s')}?" if len(names) == 1 else f"{len(names)} numbers"
    if run.task == "multilabel":
        return f"Which of {len(names):,} labels does each {what.removesuffix('s')} have?"
    return f"Which {f'“{label}”' if label else 'class'} does each {what.removesuffix('s')} have?"


def _answer(run: Run, positive: int | None, tested: NDArray[np.int64]) -> str:
    """What the test says in the units of the problem: hits at the top of a list, right answers, or typical errors."""
    what = run.kind
    if not tested.size:
        return f"Every {what.removesuffix('s')} has a prediction; none was held out to test them."
    y, outputs = run.y[tested], run.outputs[tested]
    if positive is not None:
        true, name = y == positive, run.class_names[positive]
        first = int(np.clip(true.sum(), min(10, len(true)), 100))
        hits = int(true[np.argsort(-outputs[:, positive], kind="stable")][:first].sum())
        return (
            f"Of the {first:,} test {what} that rank first for “{name}”, {hits:,} are “{name}”. "
            f"In a random order it would be {first * true.mean():.1f}."
        )
    if run.task == "classify":
        right = int((run.prediction[tested] == y).sum())
        return f"Of {len(y):,} test {what}, {right:,} are predicted correctly: {percent(right / len(y))}."
    if run.task == "multilabel":
        known = ~np.isnan(y)
        right = int((run.prediction[tested] == y).sum())
        return f"Of {known.sum():,} labels of test {what}, {right:,} are predicted correctly."
    errors = np.abs(y - run.prediction[tested])
    told = [
        f"{shown(float(np.nanmedian(error)))}{f' for “{name}”' if len(run.class_names) > 1 else ''}"
        for name, error in list(zip(run.class_names, errors.T, strict=True))[:3]
        if not np.isnan(error).all()
    ]
    return f"Half of the predictions for test {what} are off by at most {', '.join(told)}."


def _sure(run: Run, found: Score | None, baseline: Scored | None, rule: str) -> str:
    noun, metric = run.kind, run.metric
    if found is None:
        return f"No {noun} with known labels were held out, so the quality of this model on new {noun} is unknown."
    total, value, accuracy = run.metrics["split"]["test"], found.value, metric.name == "accuracy"
    text = percent if accuracy else shown
    told = f"{total:,} test {noun}, which were not used for training or for choosing anything, the model "
    if accuracy:
        told = f"Of {told}predicts {round(value * total):,} correctly: {percent(value)}."
    else:
        article = "an" if metric.title[0] in "aRM" else "a"
        told = f"On {told}has {article} {metric.title} of {shown(value)}."
        told += "" if metric.larger_is_better else " Smaller is better."
    low, high = found.interval or (np.nan, np.nan)
    if found.interval:
        told += f" The 95 % interval for such {noun} is {text(low)} to {text(high)}."
    if baseline is None:
        return told
    best, sign = baseline.scores[rule].value, 1 if metric.larger_is_better else -1
    told += f" The best simple baseline, {baseline.name}, has {text(best)}"
    order = _order(run, rule) if accuracy else ""
    if order:
        return f"{told}. {order}"
    if sign * best >= sign * value:
        return f"{told}. The model does not beat it: on this test the simple baseline is as good or better."
    if low <= best <= high:
        return f"{told}, inside that interval. The model is ahead, but with so few {noun} this may be chance."
    if not found.interval:
        return f"{told}: the model is ahead."
    return f"{told}, {'below' if sign > 0 else 'above'} that interval. The model is better than its simple baselines."


def _areas(run: Run, rule: str) -> tuple[float, str, float] | None:
    """The area under the ROC curve of the model, and name and area of the best baseline; None if it is not known."""
    tested = run.metrics.get(rule) or {}
    floors = tested.get("floors_auc") or {}
    if tested.get("auc") is None or not floors:
        return None
    best = max(floors, key=lambda name: floors[name])
    return tested["auc"], FLOOR_NAMES.get(best, best), floors[best]


def _order(run: Run, rule: str) -> str:
    """What the order of the probabilities is worth, where classes are too unequal for accuracy to tell."""
    share, areas = imbalanced(run), _areas(run, rule)
    if share is None or areas is None:
        return ""
    ours, name, best = areas
    told = f"{percent(share)} have the most frequent class, so accuracy says little. By ROC AUC, which judges the order"
    verdict = "the model is better" if ours > best else "the baseline is as good or better"
    return f"{told}, the model has {shown(ours)} and the best baseline, {name}, {shown(best)}: {verdict}."


def _beaten(run: Run, methods: list[Scored], baseline: Scored | None, rule: str) -> bool:
    """Whether a simple baseline is as good; with classes of very unequal size, accuracy alone does not decide that."""
    if baseline is None:
        return False
    sign = 1 if run.metric.larger_is_better else -1
    if sign * baseline.scores[rule].value < sign * methods[0].scores[rule].value:
        return False
    areas = _areas(run, rule)
    alone = run.metric.name == "accuracy" and imbalanced(run) is not None and areas is not None
    return not alone or areas[0] <= areas[2]  # type: ignore[index]


def _next(run: Run, positive: int | None, better: Scored | None) -> list[str]:
    what, waiting = run.kind, int((~run.known).sum())
    found = []
    if better:
        found.append(f"Do not act on it yet: “{better.name}”, a simple baseline, is as good. More labels may help.")
    if waiting:
        how = (
            "Begin at the top of the list"
            if run.task != "multilabel"
            else "Choose a label, begin at the top of its list"
        )
        found.append(f"{how}: it has the {waiting:,} {what} without a label, in order.")
    else:
        found.append(f"Every {what.removesuffix('s')} has a label: `demonet predict RUN EDGES` predicts others.")
    if positive is not None or run.task == "multilabel":
        found.append("Where to stop depends on what a miss and a false alarm cost: set both below.")
    if run.metrics["split"]["test"] < FEW:
        found.append(f"With fewer than {FEW} test {what} the score is uncertain: `--cv 5` repeats it on five splits.")
    return found


def _elsewhere(run: Run) -> str:
    inductive, hidden = run.metrics.get("inductive"), ""
    if run.metrics.get("new_nodes"):
        hidden = "Test nodes and their edges were hidden while the model was fitted: its score is that for new nodes. "
    if not inductive:
        return hidden.strip()
    names, weight = ", ".join(inductive["left_out"]), sum(inductive["left_out"].values())
    told = (
        f"{hidden}Candidates that know the nodes of this graph by their ids ({names}; weight {weight:.2f}) are used "
        "while it changes, and left out for another graph"
    )
    found = inductive.get("refit", {})
    if found.get("test_metric") is None:
        return f"{told}."
    value = f"{shown(found['test_metric'])}{interval_text(found['test_metric_interval'])}"
    return f"{told}: without them, test {run.metric.title} is {value}."


def _gain(run: Run) -> str:
    """What the average gained over its best candidate, on the items that the weights were chosen on."""
    gains, judged = run.metrics["gain"], run.metrics["judged"]
    told = []
    for metric, gain in gains.items():
        if not gain:
            continue
        bounds = gain["interval"]
        apart = bounds and any(round(bound, 3) for bound in bounds)
        within = f", 95 % interval {signed(bounds[0])} to {signed(bounds[1])}" if apart else ""
        verb = "better" if gain["difference"] > 0 else "worse"
        size = f"{shown(abs(gain['difference']))} {verb}" if round(gain["difference"], 3) else "level"
        told.append(
            f"{run.metric.title if metric == run.metric.name else METRICS[metric].title} "
            f"{shown(gain['ensemble_score'])}, where the best candidate, {gain['best']}, has "
            f"{shown(gain['best_score'])} ({size}{within})"
        )
    how = f"{judged['items']:,} {run.kind} of {judged['by']}"
    return f"On {how} the ensemble has {'; '.join(told)}. Its weights were chosen on these items, which flatters it."


def _degree(effect: dict[str, Any] | None) -> str:
    if not effect or effect.get("weight") == 0:
        return ""
    return effect.get("verdict") or f"Not measured: {effect['skipped']}."


def _counts(run: Run) -> dict[str, int]:
    if run.task == "classify":
        counted = np.bincount(run.y[run.y >= 0], minlength=len(run.class_names))
    else:
        counted = (run.y == 1 if run.task == "multilabel" else ~np.isnan(run.y)).sum(0)
    return dict(zip(run.class_names, counted.tolist(), strict=True))


def _limits(run: Run, better: Scored | None) -> list[str]:
    limits = []
    if better:
        limits.append(f"It does not beat {better.name!r} on this test: prefer the simpler model.")
    if run.metrics["split"]["test"] < FEW:
        limits.append("The test part is small: the interval above is wide, and another split can move it by points.")
    kinds = {row["kind"] for row in run.metrics.get("candidates") or () if row["weight"]}
    if run.model == "kernel" or "kernel" in kinds:
        limits.append(PRIVACY)
    if "adjacency" in run.config.get("features", "").split("+"):
        limits.append("Its features are rows of the adjacency matrix, so it works on this graph only.")
    else:
        limits.append("Predictions for degrees not seen in training are less certain.")
    if run.config.get("sizes", {}).get("attributes"):
        limits.append("Another graph needs the same attributes, in columns of the same names.")
    limits.append("It was tested on random items of the same data, not on data of another time or source.")
    return limits
