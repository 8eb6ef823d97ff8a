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
from demonet.methods.model import Labelled, Model
from demonet.schema import Array, check_arrays, from_json, values_of
from demonet.tensorfile import read_tensors, write_tensors
from demonet.train.checkpoint import digest

FORMAT = "demonet-candidate-4"
Stage = Literal["fit", "refit"]
_OUTPUTS = {"outputs": Array("f", ("items", "outputs")), "judged": Array("f", ("judged", "outputs"))}


class Checkpoint:
    """A folder with a file for every finished candidate.

    Args:
        folder: The folder; it must exist.
        fingerprint: What the candidates belong to: a digest of graphs, targets, split and seed. Files of another
            problem are an error.
        labelled: The problem.
    """

    def __init__(self, folder: Path, fingerprint: str, labelled: Labelled) -> None:
        self.folder, self.fingerprint, self.labelled = folder, fingerprint, labelled

    @classmethod
    def open(cls, folder: str | Path, data: Data | Any, labelled: Labelled) -> Self:
        """The folder, made if there is none."""
        graphs = [data] if isinstance(data, Data) else list(data)
        parts = [[graph.get(name) for name in ("edge_index", "x", "edge_weight")] for graph in graphs]
        own = [torch.from_numpy(np.ascontiguousarray(a)) for a in (labelled.y, labelled.train, labelled.val)]
        Path(folder).mkdir(parents=True, exist_ok=True)
        return cls(Path(folder), digest([parts, own, labelled.task, labelled.outputs, labelled.seed]), labelled)

    def _file(self, name: str, stage: Stage) -> Path:
        return self.folder / f"{name}.{stage}.safetensors"

    def write(self, stage: Stage, trial: Trial) -> None:
        """Store a fitted candidate, atomically."""
        assert trial.model is not None
        facts, arrays = trial.model.state()
        arrays = {f"model.{name}": array for name, array in arrays.items()}
        arrays |= {"outputs": trial.outputs, "judged": trial.judged}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)).reshape(a.shape) for name, a in arrays.items()}
        told = {"fingerprint": self.fingerprint, "row": asdict(trial.row), "model": facts, "chosen": trial.chosen}
        write_tensors(self._file(trial.row.name, stage), FORMAT, tensors, told)

    def read(self, stage: Stage, *models: Model) -> Trial | None:
        """What was stored of a candidate, as one of the models of its name; None where it was not finished."""
        file, known = self._file(models[0].name, stage), [model.options for model in models]
        if not file.exists():
            return None
        tensors, facts, _ = read_tensors(file, FORMAT)
        prefix = "model."
        with values_of(file, "a fitted candidate"):
            if facts.get("fingerprint") != self.fingerprint or facts["model"]["options"] not in known:
                problem = "the candidate belongs to a fit with other data, split or settings"
                raise DemonetError(problem, hint="use another folder for this fit")
            arrays = {name[len(prefix) :]: part.numpy() for name, part in tensors.items() if name.startswith(prefix)}
            found = Model.from_state(facts["model"], arrays)
            train, val, sizes = len(self.labelled.train), len(self.labelled.val), {"outputs": self.labelled.outputs}
            check_arrays(tensors, _OUTPUTS, sizes | {"items": len(self.labelled.y)})
            outputs, judged = (tensors[part].numpy() for part in _OUTPUTS)
            if len(judged) not in (val, train + val):
                raise DemonetError(f"{len(judged)} judged items")
            return Trial(from_json(Candidate, facts["row"]), found, outputs, judged, facts["chosen"])
