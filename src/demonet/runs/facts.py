"""What a run has to say, computed once: its page, its model card and the terminal all tell these facts."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from demonet.runs.evaluate import ALSO, mean_interval, shown, wilson
from demonet.runs.floors import FLOOR_NAMES
from demonet.runs.run import Run
from demonet.runs.statistics import spread
from demonet.train.metrics import METRICS, imbalance

OURS = "DEMO-Net"
FEW = 200  # test items
RULES = {
    "refit": "Refit: model and simple baselines are fitted again on training and validation items, with everything "
    "that validation chose kept; this is the model that is saved.",
    "strict": "Strict: both are fitted on the training part alone.",
}
_OTHERS = {"test_accuracy": "accuracy", "auc": "auc"}  # first
_OTHERS |= {key: name for also in ALSO.values() for key, name in also.items()}
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


class RunFacts:
    """The facts of a run, from its metrics, settings and predictions; each is made when it is asked for first.

    Attributes:
        rule: The rule by which the saved model was fitted: ``"refit"`` or ``"strict"``.
        rules: The rules that there are scores by, that of the saved model first.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.rule = run, run.metrics["rule"]
        self.rules = [self.rule, *(name for name in RULES if name != self.rule and run.metrics.get(name))]

    @cached_property
    def methods(self) -> list[Scored]:
        """The model, and the simple baselines from the best to the worst; empty if nothing was held out."""
        run, metrics = self.run, self.run.metrics
        if metrics["test_metric"] is None:
            return []
        over, inductive, total = metrics.get("cv", {}), metrics.get("inductive", {}), metrics["split"]["test"]

        def values(rule: str, name: str | None = None) -> list[float] | None:
            found = over.get(rule, {})
            found = found.get("test_metric") if name is None else found.get("floors", {}).get(name)
            return None if not found or None in found else found

        def baseline(rule: str, name: str, value: float) -> Score:
            interval = wilson(round(value * total), total) if run.metric.name == "accuracy" else None
            return Score(value, interval, values(rule, name))

        def tested(facts: dict[str, Any], over: list[float] | None = None) -> Score:
            return Score(facts["test_metric"], facts["test_metric_interval"], over)

        found = [Scored(OURS, "model", {rule: tested(metrics[rule], values(rule)) for rule in self.rules})]
        if "refit" in inductive:
            scores = {rule: tested(inductive[rule]) for rule in self.rules}
            found.append(Scored(f"{OURS}, on another graph", "elsewhere", scores))
        floors = metrics[self.rule]["floors"]
        for name in sorted(floors, key=lambda name: -self._sign * floors[name]):
            known = {rule: metrics[rule]["floors"].get(name) for rule in self.rules}
            scores = {rule: baseline(rule, name, value) for rule, value in known.items() if value is not None}
            found.append(Scored(FLOOR_NAMES.get(name, name), "baseline", scores))
        return found

    @property
    def best_baseline(self) -> Scored | None:
        """The best simple baseline."""
        return next((method for method in self.methods if method.kind == "baseline"), None)

    @cached_property
    def positive(self) -> int | None:
        """Of two classes the number of the one that matters: the one asked for, otherwise the rarer."""
        run = self.run
        if run.task != "classify" or len(run.class_names) != 2:
            return None
        asked, counts = run.config.get("positive"), np.bincount(run.y[run.y >= 0], minlength=2)
        return int(counts[1] <= counts[0]) if asked is None else int(asked != run.class_names[0])

    @property
    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """The scores as text: title, heads and rows of a table; of several splits, a second one with the means."""
        run, metric = self.run, self.run.metric
        title, better = metric.title[0].upper() + metric.title[1:], "" if self._sign > 0 else ", smaller is better"
        tables = [f"{title} on {run.metrics['split']['test']:,} test {run.kind}{better}"]
        if "cv" in run.metrics:
            tables.append(f"Mean ± deviation over {run.metrics['cv']['splits']} splits")
        heads = ["", *self.rules] if len(self.rules) > 1 else ["", metric.title]

        def cell(score: Score | None, number: int) -> str:
            if score is None or (number and score.over is None):
                return ""
            if not number:
                return f"{shown(score.value)}{interval_text(score.interval)}"
            mean, deviation, _ = spread(score.over or [])
            return f"{shown(mean)} ± {shown(deviation)}{interval_text(mean_interval(metric, score.over or []))}"

        found = []
        for number, name in enumerate(tables):
            rows = [[one.name, *(cell(one.scores.get(rule), number) for rule in self.rules)] for one in self.methods]
            found.append((name, heads, [row for row in rows if any(row[1:])]))
        return found if self.methods else []

    @property
    def question(self) -> str:
        """What the run answers."""
        label, names, what = self.run.config.get("label"), self.run.class_names, self.run.kind
        if self.positive is not None:
            return f"Which {what} have {label or 'label'} “{names[self.positive]}”?"
        if self.run.task == "regress":
            named = "the value" if len(names) > 1 or names[0] in ("", "y") else f"“{names[0]}”"
            each = what.removesuffix("s")
            return f"How large is {named} of each {each}?" if len(names) == 1 else f"{len(names)} numbers"
        if self.run.task == "multilabel":
            return f"Which of {len(names):,} labels does each {what.removesuffix('s')} have?"
        return f"Which {f'“{label}”' if label else 'class'} does each {what.removesuffix('s')} have?"

    @property
    def answer(self) -> str:
        """What the test says in the units of the problem: hits at the top of a list, right answers, typical errors."""
        run, what = self.run, self.run.kind
        tested = np.flatnonzero((run.part == 2) & run.known)
        if not tested.size:
            return f"Every {what.removesuffix('s')} has a prediction; none was held out to test them."
        y, outputs = run.y[tested], run.outputs[tested]
        if self.positive is not None:
            true, name = y == self.positive, run.class_names[self.positive]
            first = int(np.clip(true.sum(), min(10, len(true)), 100))
            hits = int(true[np.argsort(-outputs[:, self.positive], kind="stable")][:first].sum())
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

    @property
    def sure(self) -> str:
        """How sure it is: the test metric, its interval, and the best simple baseline."""
        noun, metric, baseline = self.run.kind, self.run.metric, self.best_baseline
        if not self.methods:
            return f"No {noun} with known labels were held out, so the quality of this model on new {noun} is unknown."
        found = self.methods[0].scores[self.rule]
        total, value, accuracy = self.run.metrics["split"]["test"], found.value, metric.name == "accuracy"
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
        best, sign = baseline.scores[self.rule].value, self._sign
        told += f" The best simple baseline, {baseline.name}, has {text(best)}"
        order = self._order if accuracy else ""
        if order:
            return f"{told}. {order}"
        if sign * best >= sign * value:
            return f"{told}. The model does not beat it: on this test the simple baseline is as good or better."
        if low <= best <= high:
            return f"{told}, inside that interval. The model is ahead, but with so few {noun} this may be chance."
        if not found.interval:
            return f"{told}: the model is ahead."
        return (
            f"{told}, {'below' if sign > 0 else 'above'} that interval. The model is better than its simple baselines."
        )

    @property
    def next(self) -> list[str]:
        """What to do with it."""
        what, waiting, found = self.run.kind, int((~self.run.known).sum()), []
        if self._better:
            name = self._better.name
            found.append(f"Do not act on it yet: “{name}”, a simple baseline, is as good. More labels may help.")
        if waiting:
            several, counted = self.run.task == "multilabel", f"{waiting:,} {what if waiting > 1 else what[:-1]}"
            how = "Choose a label, begin at the top of its list" if several else "Begin at the top of the list"
            found.append(f"{how}: it has the {counted} without a label, in order.")
        else:
            found.append(f"Every {what.removesuffix('s')} has a label: `demonet predict RUN EDGES` predicts others.")
        if self.positive is not None or self.run.task == "multilabel":
            found.append("Where to stop depends on what a miss and a false alarm cost: set both below.")
        if self.run.metrics["split"]["test"] < FEW:
            found.append(
                f"With fewer than {FEW} test {what} the score is uncertain: `--cv 5` repeats it on five splits."
            )
        return found

    @property
    def rules_told(self) -> str:
        """Under which rules the numbers were measured; empty if there is one."""
        return " ".join(RULES[name] for name in self.rules) if self.methods and len(self.rules) > 1 else ""

    @property
    def decisions(self) -> list[str]:
        """Class weights, why this metric, what predictions are made by, and how probabilities were calibrated."""
        run, metrics, found = self.run, self.run.metrics, []
        if run.task == "regress":
            means = f"{run.metric.title} is the mean over {len(run.class_names)} targets, each in its own units"
            return [] if len(run.class_names) == 1 or run.metric.name == "r2" else [f"{means}; R² has no units."]
        if (run.config.get("estimator") or {}).get("class_weight"):
            found.append(
                "Class weights: all classes count the same in fits and in losses on validation, however rare they are. "
                "Probabilities are those of equally frequent classes."
            )
        if metrics.get("unequal"):
            told = (
                f"The metric is {run.metric.title}: {percent(metrics['unequal'])} of the labelled {run.kind} have one"
            )
            found.append(f"{told} class, so accuracy would say little.")
        if run.decision:
            least, which = metrics["decision"].get("thresholds"), self.positive or 0
            if run.task == "multilabel":
                ends = f"{shown(min(run.decision))} to {shown(max(run.decision))}"
                rule = f"each label is predicted from a probability of its own on ({ends})"
            elif least:
                rule = f"“{run.class_names[which]}” is predicted from a probability of {shown(least[which])} on"
            else:
                rule = f"probabilities times factors from {shown(min(run.decision))} to 1, of which the largest counts"
            found.append(f"Predictions are made for {run.metric.title}: {rule}, as chosen on validation {run.kind}.")
        elif run.task == "multilabel":
            found.append("Each label is predicted from probability 0.5 on.")
        return [*found, self._calibrated]

    @property
    def _calibrated(self) -> str:
        """How probabilities of classes or labels were calibrated."""
        run, made = self.run, self.run.metrics.get("calibration") or {}
        ways: list[dict[str, Any]] = made.get("labels") or [made]
        known = [one for one in ways if one.get("losses")]
        moved = [one for one in known if one["method"] != "none"]
        if not known:
            why = f", for which there are too few validation {run.kind}" if made else ""
            return f"Probabilities were not calibrated{why}: read them as an order, not as frequencies."
        if not moved:
            lower = f"Calibration did not lower the log-loss on validation {run.kind}"
            return f"{lower}: probabilities are as averaged."
        before, after = (
            np.mean([one["losses"]["none" if first else one["method"]] for one in moved]) for first in (True, False)
        )
        if run.task == "multilabel":
            low, high = (bound(one["temperature"] for one in moved) for bound in (min, max))
            how = f"temperatures of {low:.2f} to {high:.2f}" if len(moved) > 1 else f"a temperature of {low:.2f}"
            which = f" of {len(moved):,} of {len(ways):,} labels"
            if any(one["method"] == "bias" for one in moved):
                how += " and a factor of the odds"
        else:
            which, how = "", f"a temperature of {made['temperature']:.2f}"
            if made["method"] == "bias":
                odds = math.exp(made["bias"] if self.positive else -made["bias"])
                how += f" and {odds:.2f} times the odds of “{run.class_names[self.positive or 0]}”"
        return (
            f"Probabilities{which} were calibrated on validation {run.kind} by {how}: log-loss {after:.3f} instead of "
            f"{before:.3f} there, by cross-validation."
        )

    @property
    def elsewhere(self) -> str:
        """What happens on another graph; empty if that makes no difference."""
        run, inductive, hidden = self.run, self.run.metrics.get("inductive"), ""
        if run.metrics.get("new_nodes"):
            hidden = (
                "Test nodes and their edges were hidden while the model was fitted: its score is that for new nodes. "
            )
        if not inductive:
            return hidden.strip()
        names, weight = ", ".join(inductive["left_out"]), sum(inductive["left_out"].values())
        told = (
            f"{hidden}Candidates that know the nodes of this graph by their ids ({names}; weight {weight:.2f}) are "
            "used while it changes, and left out for another graph"
        )
        found = inductive.get("refit", {})
        if found.get("test_metric") is None:
            return f"{told}."
        value = f"{shown(found['test_metric'])}{interval_text(found['test_metric_interval'])}"
        return f"{told}: without them, test {run.metric.title} is {value}."

    @property
    def chosen_by(self) -> str:
        """What the validation part is for."""
        others = {"network": "choosing the epoch", "auto": "choosing weights"}
        return others.get(self.run.model, "the comparison of settings")

    @property
    def others(self) -> dict[str, float]:
        """Other metrics on the test part, by their titles."""
        titles = {key: METRICS[name].title for key, name in _OTHERS.items()}
        told = {title: self.run.metrics.get(key) for key, title in titles.items() if title != self.run.metric.title}
        if self._unequal is not None:
            told.pop("accuracy", None)
        return {title: value for title, value in told.items() if value is not None}

    @cached_property
    def candidates(self) -> list[dict[str, Any]]:
        """Those of an ensemble, the largest weight first, each with its ``cost`` in seconds and a ``note``."""
        return [
            {
                **row,
                "cost": row["seconds"] + row["refit_seconds"],
                "note": row["reason"] if row["status"] == "fitted" else f"{row['status']}: {row['reason']}",
            }
            for row in sorted(self.run.metrics.get("candidates") or [], key=lambda row: -row["weight"])
        ]

    @property
    def gain(self) -> str:
        """What the average gained over its best candidate, on the items that the weights were chosen on."""
        run, metrics, told = self.run, self.run.metrics, []
        for metric, gain in metrics["gain"].items():
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
        how = f"{metrics['judged']['items']:,} {run.kind} of {metrics['judged']['by']}"
        return (
            f"On {how} the ensemble has {'; '.join(told)}. Its weights were chosen on these items, which flatters it."
        )

    @property
    def importance(self) -> list[dict[str, Any]]:
        """How much the metric loses on validation items without a column, the structure or the degree, if measured."""
        return self.run.metrics.get("importance") or []

    @property
    def reasons(self) -> dict[int, list[str]]:
        """What moved the predictions of some items, in words, by their numbers."""
        return {int(item): told for item, told in (self.run.metrics.get("reasons") or {}).items()}

    @property
    def degree(self) -> str:
        """Whether the degree matters; empty if the model has no degree-specific member."""
        effect = self.run.metrics.get("degree_effect")
        if not effect or effect.get("weight") == 0:
            return ""
        return effect.get("verdict") or f"Not measured: {effect['skipped']}."

    @property
    def cut(self) -> str:
        """What a time limit has cut short; empty if nothing."""
        found = [f"{what} ({done})" for what, done in (self.run.metrics.get("cut") or {}).items()]
        return f"The time limit ended what was measured early: {', '.join(found)}." if found else ""

    @property
    def counts(self) -> dict[str, int]:
        """How many items have each class or label, or a number in each target column."""
        run = self.run
        if run.task == "classify":
            counted = np.bincount(run.y[run.y >= 0], minlength=len(run.class_names))
        else:
            counted = (run.y == 1 if run.task == "multilabel" else ~np.isnan(run.y)).sum(0)
        return dict(zip(run.class_names, counted.tolist(), strict=True))

    @property
    def limits(self) -> list[str]:
        """What to keep in mind."""
        run, limits = self.run, [self.cut] if self.cut else []
        if self._better:
            limits.append(f"It does not beat {self._better.name!r} on this test: prefer the simpler model.")
        if run.metrics["split"]["test"] < FEW:
            limits.append(
                "The test part is small: the interval above is wide, and another split can move it by points."
            )
        kinds = {row["kind"] for row in run.metrics.get("candidates") or () if row["weight"]}
        if run.model == "kernel" or "kernel" in kinds:
            limits.append(PRIVACY)
        if "adjacency" in run.config.get("features", "").split("+"):
            limits.append("Its features are rows of the adjacency matrix, so it works on this graph only.")
        else:
            limits.append("Predictions for degrees not seen in training are less certain.")
        if run.config.get("sizes", {}).get("attributes"):
            limits.append("Another graph needs the same attributes, in columns of the same names.")
        return [*limits, "It was tested on random items of the same data, not on data of another time or source."]

    @property
    def _sign(self) -> int:
        """1 where the larger metric is better, else -1."""
        return 1 if self.run.metric.larger_is_better else -1

    @property
    def _unequal(self) -> float | None:
        """The share of the most frequent class, if it makes accuracy meaningless; None otherwise."""
        known = self.run.y[self.run.y >= 0] if self.run.task == "classify" else self.run.y[:0]
        return imbalance(np.bincount(known)) if known.size else None

    @property
    def _areas(self) -> tuple[float, str, float] | None:
        """The area under the ROC curve of the model, and name and area of the best baseline; None if unknown."""
        tested = self.run.metrics.get(self.rule) or {}
        floors = tested.get("floors_auc") or {}
        if tested.get("auc") is None or not floors:
            return None
        best = max(floors, key=lambda name: floors[name])
        return tested["auc"], FLOOR_NAMES.get(best, best), floors[best]

    @property
    def _order(self) -> str:
        """What the order of the probabilities is worth, where classes are too unequal for accuracy to tell."""
        share, areas = self._unequal, self._areas
        if share is None or areas is None:
            return ""
        ours, name, best = areas
        verdict = "the model is better" if ours > best else "the baseline is as good or better"
        return (
            f"{percent(share)} have the most frequent class, so accuracy says little. By ROC AUC, which judges the "
            f"order, the model has {shown(ours)} and the best baseline, {name}, {shown(best)}: {verdict}."
        )

    @cached_property
    def _better(self) -> Scored | None:
        """A simple baseline that is as good; with classes of very unequal size, accuracy alone does not decide that."""
        baseline, areas = self.best_baseline, self._areas
        if baseline is None:
            return None
        worse = self._sign * (baseline.scores[self.rule].value - self.methods[0].scores[self.rule].value) < 0
        if self.run.metric.name == "accuracy" and self._unequal is not None and areas is not None:
            worse = worse or areas[0] > areas[2]
        return None if worse else baseline


def percent(share: float) -> str:
    """A proportion as a percentage with one decimal, rounded as with three decimals.

    >>> percent(0.7251), percent(0.7125), shown(0.7125)
    ('72.5\xa0%', '71.3\xa0%', '0.713')
    """
    return f"{100 * round(share, 3):.1f}\u00a0%"


def signed(value: float) -> str:
    """A difference with its sign.

    >>> signed(0.01234), signed(-0.0001), signed(-26972.754)
    ('+0.012', '+0.000', '-26,973')
    """
    return f"{'-' if value < 0 else '+'}{shown(abs(value))}" if abs(value) >= 1000 else f"{round(value, 3) + 0.0:+.3f}"


def interval_text(bounds: list[float] | None) -> str:
    """An interval in parentheses, or nothing.

    >>> interval_text([0.25, 0.5]), interval_text(None)
    (' (0.250 to 0.500)', '')
    """
    return f" ({shown(bounds[0])} to {shown(bounds[1])})" if bounds else ""
