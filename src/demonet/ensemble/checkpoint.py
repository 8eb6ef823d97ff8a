"""Finished candidates as tensor files in a folder, so that an interrupted fit goes on with the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.ensemble.member import Labelled, Member
from demonet.errors import DemonetError
from demonet.features.views import Float
from demonet.tensorfile import read_tensors, write_tensors
from demonet.train.checkpoint import digest

FORMAT = "demonet-candidate-1"
Stage = Literal["fit", "refit"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted candidate: its row of the table, the member, its probabilities of all items and of those judged."""

    row: dict[str, Any]
    member: Member
    proba: Float
    judged: Float
    cost: float


class Checkpoint:
    """A folder with a file for every finished candidate.

    Args:
        folder: The folder; it must exist.
        fingerprint: What the candidates belong to: a digest of graphs, labels, split and seed. Files of another problem
            are an error.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, self.fingerprint = folder, fingerprint

    @classmethod
    def open(cls, folder: str | Path, data: Data | Any, labelled: Labelled) -> Self:
        """The folder, made if there is none."""
        graphs = [data] if isinstance(data, Data) else list(data)
        parts = [[graph.get(name) for name in ("edge_index", "x", "edge_weight")] for graph in graphs]
        own = [torch.from_numpy(np.ascontiguousarray(a)) for a in (labelled.y, labelled.train, labelled.val)]
        Path(folder).mkdir(parents=True, exist_ok=True)
        return cls(Path(folder), digest([parts, own, labelled.classes, labelled.seed]))

    def _file(self, name: str, stage: Stage) -> Path:
        return self.folder / f"{name}.{stage}.safetensors"

    def write(self, stage: Stage, fitted: Fitted) -> None:
        """Store a candidate, atomically."""
        facts, arrays = fitted.member.state()
        arrays = {f"member.{name}": array for name, array in arrays.items()}
        arrays |= {"proba": fitted.proba, "judged": fitted.judged}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)).reshape(a.shape) for name, a in arrays.items()}
        told = {"fingerprint": self.fingerprint, "row": fitted.row, "member": facts, "cost": fitted.cost}
        write_tensors(self._file(fitted.member.name, stage), FORMAT, tensors, told)

    def read(self, member: Member, stage: Stage) -> Fitted | None:
        """What was stored of a candidate; None where it was not finished."""
        file = self._file(member.name, stage)
        if not file.exists():
            return None
        tensors, facts, _ = read_tensors(file, FORMAT)
        if facts.get("fingerprint") != self.fingerprint or facts["member"]["options"] != member.options:
            hint = "use another folder for this fit"
            raise DemonetError(
                "the candidate belongs to a fit with other data, split or settings", file=file, hint=hint
            )
        return Fitted(
            facts["row"],
            Member.from_state(facts["member"], _arrays(tensors, "member.")),
            tensors["proba"].numpy(),
            tensors["judged"].numpy(),
            facts["cost"],
        )


def _arrays(tensors: dict[str, Tensor], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: tensor.numpy() for name, tensor in tensors.items() if name.startswith(prefix)}
