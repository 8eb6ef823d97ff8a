"""One split of one problem: an estimator trained on it, tested once, beside its floors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch_geometric.data import Data

from demonet.baselines.attributes import are_counts
from demonet.checks import check_split
from demonet.data.splits import Split, fractions
from demonet.data.statistics import degrees
from demonet.errors import DemonetError
from demonet.estimators import DEMONetClassifier, DEMONetGraphClassifier
from demonet.runs.floors import floors, wilson
from demonet.runs.folder import MODEL, Workshop, read_json, write_json
from demonet.runs.inputs import Inputs
from demonet.runs.scalars import scalars
from demonet.runs.settings import Reading, Settings, epoch_limit
from demonet.runs.watch import Watch
from demonet.train.presets import preset
from demonet.train.recipes import family_of

Estimator = DEMONetClassifier | DEMONetGraphClassifier


@dataclass(frozen=True, eq=False)
class Plan:
    """A problem with everything settled: nothing that follows asks the user anything."""

    inputs: Inputs
    reading: Reading
    settings: Settings
    splits: list[Split]
    features: str | None
    epochs: int

    def estimator(self, number: int) -> Estimator:
        """The untrained estimator of one split."""
        settings = self.settings
        options: dict[str, Any] = {
            "preset": settings.preset,
            "scheme": settings.scheme,
            "features": self.features,
            "epochs": self.epochs,
            "class_weight": settings.class_weight,
            "random_state": settings.seed + number,
            "device": "auto" if settings.uses == "cuda" else "cpu",
        }
        data = self.inputs.data
        if isinstance(data, Data):
            directed = self.reading.directed
            return DEMONetClassifier(directed=not data.is_undirected() if directed is None else directed, **options)
        return DEMONetGraphClassifier(**options)


def make_plan(inputs: Inputs, reading: Reading, settings: Settings) -> Plan:
    """Settle splits, features and the number of epochs; what cannot be trained is refused here."""
    y = inputs.data.y
    if y is None or not bool((y >= 0).any()):
        hint = "--labels names a table of id and label, or an attribute inside the file"
        raise DemonetError("nothing has a label", file=inputs.files["edges"], hint=hint)
    if len(inputs.class_names) < 2:
        raise DemonetError(f"every label is {inputs.class_names[0]!r}", hint="at least 2 classes are needed")
    base = preset(settings.preset, family_of(inputs.data))
    arcs = sum(graph.edge_index.size(1) for graph in inputs.graphs)
    epochs = settings.epochs or epoch_limit(base.train.epochs, arcs, _num_features(inputs, base.features))
    return Plan(inputs, reading, settings, _splits(inputs, settings), _features(inputs, base.features), epochs)


def run_trial(plan: Plan, number: int, shop: Workshop, watch: Watch) -> dict[str, Any]:
    """Train and test on one split, or read what came of it before an interruption; the first one's model is kept."""
    result = shop.path(f"split-{number:03}.json")
    if result.exists():
        known: dict[str, Any] = read_json(result)
        return known
    split, inputs = plan.splits[number], plan.inputs
    checkpoint = shop.path(f"checkpoint-{number:03}.safetensors")
    label = "training" if len(plan.splits) == 1 else f"split {number + 1} of {len(plan.splits)}"
    log = shop.draft("tensorboard") / f"split-{number:03}" if plan.settings.log else None
    with watch.training(label, plan.epochs) as told, scalars(log, told) as on_epoch:
        estimator = plan.estimator(number).fit_split(inputs.data, split, on_epoch=on_epoch, checkpoint=checkpoint)
    history = estimator.history_
    scores = measure(probabilities(estimator, inputs), inputs.data.y.numpy(), split)
    found = {
        **scores,
        "floors": floors(inputs, split, plan.settings.seed + number),
        "epochs": history.epochs,
        "best_epoch": history.best_epoch + 1,
        "seconds": round(history.seconds, 3),
    }
    if number == 0:
        estimator.save(shop.path(MODEL))
    write_json(result, found)
    checkpoint.unlink(missing_ok=True)
    return found


def load_estimator(path: Path, inputs: Inputs) -> Estimator:
    """A saved model, beside the graph where it is one of nodes."""
    if inputs.kind == "nodes":
        return DEMONetClassifier.load(path, graph=inputs.data)
    return DEMONetGraphClassifier.load(path)


def probabilities(estimator: Estimator, inputs: Inputs) -> NDArray[np.float64]:
    """``[items, classes]`` of everything that was read; an estimator of nodes has its graph already."""
    if isinstance(estimator, DEMONetClassifier):
        return estimator.predict_proba()
    return estimator.predict_proba(inputs.data)


def embedding(estimator: Estimator, inputs: Inputs) -> NDArray[np.float32]:
    """``[items, width]`` of everything that was read."""
    if isinstance(estimator, DEMONetClassifier):
        return estimator.transform()
    return estimator.transform(inputs.data)


def measure(found: NDArray[np.float64], y: NDArray[np.int64], split: Split) -> dict[str, Any]:
    """Accuracy on validation and test, Wilson's interval, and macro F1 on the test part; None where it is empty."""
    prediction = found.argmax(1)
    val, test = split.val.numpy(), split.test.numpy()
    val_accuracy = float((prediction[val] == y[val]).mean())
    if not test.size:
        return {"test_accuracy": None, "test_interval": None, "val_accuracy": val_accuracy, "macro_f1": None}
    right = int((prediction[test] == y[test]).sum())
    return {
        "test_accuracy": right / test.size,
        "test_interval": wilson(right, test.size),
        "val_accuracy": val_accuracy,
        "macro_f1": float(f1_score(y[test], prediction[test], average="macro")),
    }


def _splits(inputs: Inputs, settings: Settings) -> list[Split]:
    y = inputs.data.y
    if settings.split is not None:
        split = Split.load(settings.split)
        check_split(split, y)
        if not split.val.numel():
            raise DemonetError("its validation part is empty", file=settings.split, hint="early stopping needs one")
        return [split]
    parts = (1 - settings.val - settings.test, settings.val, settings.test)
    splits = [fractions(y, parts, settings.seed + i, stratified=True) for i in range(settings.cv)]
    for name, part in (("validation", splits[0].val), ("test", splits[0].test)):
        if not part.numel() and (name == "validation" or settings.test):
            labelled = int((y >= 0).sum())
            problem = f"with {labelled} labelled {inputs.kind} the {name} part is empty"
            raise DemonetError(problem, file=inputs.files["edges"], hint="more labels, or a larger share")
    return splits


def _num_features(inputs: Inputs, wanted: str) -> int:
    """About how many numbers all nodes have together."""
    total = 0
    if "degree-onehot" in wanted.split("+"):
        every = degrees(inputs.data)
        total += every.numel() * every.unique().numel()
    for graph in inputs.graphs:
        if graph.x is not None:
            total += graph.x.values().numel() if graph.x.layout == torch.sparse_csr else graph.x.numel()
    return total


def _features(inputs: Inputs, wanted: str) -> str | None:
    """tf-idf is for counts: other attributes are standardised in its place. None where the preset is right."""
    blocks = wanted.split("+")
    if "tfidf" not in blocks or are_counts(inputs.graphs):
        return None
    return "+".join("standardised" if block == "tfidf" else block for block in blocks if block != "neighbour-tfidf")
