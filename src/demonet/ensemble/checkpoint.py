"""Finished candidates as tensor files in a folder, so that an interrupted fit goes on with the others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.ensemble.candidate import Candidate, Trial
from demonet.errors import DemonetError
from demonet.features.views import View
from demonet.methods.model import Labelled, Model
from demonet.schema import Array, check_arrays, from_json, values_of
from demonet.tensorfile import read_tensors, to_tensors, under, write_tensors
from demonet.train.checkpoint import digest

FORMAT = "demonet-candidate-4"
Stage = Literal["fit", "refit"]
_NUMBERS = ("loss", "seconds", "refit_seconds", "estimate")
_SCHEMA = {"outputs": Array("f", ("items", "columns"), finite=True)}
_SCHEMA |= {"judged": Array("f", ("judged", "columns"), finite=True)}
_SCHEMA |= {name: Array("if", (), 0, finite=True) for name in _NUMBERS}


class Checkpoint:
    """A folder with a file for every finished candidate.

    Args:
        folder: The folder; it must exist.
        fingerprint: What the candidates belong to: a digest of graphs, targets, split and seed. Files of another
            problem are an error.
        columns: How many outputs an item has.
    """

    def __init__(self, folder: Path, fingerprint: str, columns: int) -> None:
        self.folder, self.fingerprint, self.columns = folder, fingerprint, columns

    @classmethod
    def open(cls, folder: str | Path, data: Data | Any, labelled: Labelled) -> Self:
        """The folder, made if there is none."""
        graphs = [data] if isinstance(data, Data) else list(data)
        parts = [[graph.get(name) for name in ("edge_index", "x", "edge_weight")] for graph in graphs]
        given = (labelled.y, labelled.train, labelled.val, *(() if labelled.weight is None else (labelled.weight,)))
        own = [torch.from_numpy(np.ascontiguousarray(a)) for a in given]
        Path(folder).mkdir(parents=True, exist_ok=True)
        return cls(Path(folder), digest([parts, own, labelled.task, labelled.outputs, labelled.seed]), labelled.outputs)

    def _file(self, name: str, stage: Stage) -> Path:
        return self.folder / f"{name}.{stage}.safetensors"

    def write(self, stage: Stage, trial: Trial) -> None:
        """Store a fitted candidate, atomically."""
        assert trial.model is not None
        facts, arrays = trial.model.state()
        arrays = {f"model.{name}": array for name, array in arrays.items()}
        arrays |= {"outputs": trial.outputs, "judged": trial.judged}
        told = {"fingerprint": self.fingerprint, "row": asdict(trial.row), "model": facts, "chosen": trial.chosen}
        write_tensors(self._file(trial.row.name, stage), FORMAT, to_tensors(arrays), told)

    def read(self, stage: Stage, view: View, judged: int, *models: Model) -> Trial | None:
        """What was stored of a candidate, which is one of these models of its name; None where it was not finished.

        The stored model has to give outputs for the problem; ``judged`` is how many items candidates are judged on.
        """
        file = self._file(models[0].name, stage)
        if not file.exists():
            return None
        tensors, facts, _ = read_tensors(file, FORMAT)
        with values_of(file, "a candidate"):
            told = facts["model"]
            model = next((model for model in models if model.options == told["options"]), None)
            if facts.get("fingerprint") != self.fingerprint or model is None:
                problem = "the candidate belongs to a fit with other data, split or settings"
                raise DemonetError(problem, file=file, hint="use another folder for this fit")
            row = from_json(Candidate, facts["row"])
            named = (row.name, row.kind, told["name"], told["method"])
            if row.status != "fitted" or named != (model.name, model.kind, model.name, type(model).name):
                raise DemonetError("it is another candidate")
            numbers = {name: np.array(value) for name, value in asdict(row).items() if name in _NUMBERS}
            sizes = {"items": view.num_items, "judged": judged, "columns": self.columns}
            check_arrays(tensors | numbers, _SCHEMA, sizes)
            arrays = {name: part.numpy() for name, part in under("model", tensors).items()}
            found, rows = Model.from_state(told, arrays), np.arange(min(view.num_items, 2))
            for chosen in (found.chosen, facts["chosen"]):
                found.check_chosen(chosen)
            some = found.some_outputs(view, rows)
            check_arrays({"outputs": some}, {"outputs": _SCHEMA["outputs"]}, sizes | {"items": len(rows)})
            return Trial(row, found, tensors["outputs"].numpy(), tensors["judged"].numpy(), facts["chosen"])
