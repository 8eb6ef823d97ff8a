"""Public sets to develop on, and a training loop for modules as PyG's users write them.

The sets lie in one folder as ``cora/cora.npz``, ``minesweeper/minesweeper.npz`` and so on, with matrices in CSR. On a
GPU a whole epoch is one CUDA graph: training step, evaluation, and the scores, which are read after the last epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.utils import coalesce, to_undirected

CAPTURED_AFTER = 3  # epochs


@dataclass(frozen=True)
class Problem:
    """A graph with classes, and its splits into training, validation and test nodes."""

    x: Tensor
    edge_index: Tensor
    y: Tensor
    splits: list[tuple[Tensor, ...]]

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    def to(self, device: str) -> Problem:
        """The same on a device."""
        splits = [tuple(part.to(device) for part in split) for split in self.splits]
        return Problem(self.x.to(device), self.edge_index.to(device), self.y.to(device), splits)


def load(folder: Path, name: str) -> Problem:
    """One of the sets: cora, citeseer, pubmed, minesweeper, amazon-photo."""
    with np.load(folder / name / f"{name}.npz", allow_pickle=False) as found:
        file = dict(found)
    if "edges" in file:
        edges = torch.from_numpy(file["edges"]).long().t()
        x, y = torch.from_numpy(file["node_features"]), torch.from_numpy(file["node_labels"])
        masks = [file["train_masks"], file["val_masks"], file["test_masks"]]
    else:
        adjacency = _matrix(file, "adj").tocoo()
        edges = torch.from_numpy(np.stack([adjacency.row, adjacency.col])).long()
        x, y = torch.from_numpy(_matrix(file, "attr").toarray()), torch.from_numpy(file["labels"])
        masks = [file[f"{part}_mask"][None] for part in ("train", "val", "test") if f"{part}_mask" in file]
    if masks:
        splits = [tuple(torch.from_numpy(mask).nonzero()[:, 0] for mask in split) for split in zip(*masks, strict=True)]
    else:
        with np.load(folder / name / f"{name}_split.npz", allow_pickle=False) as split:
            splits = [tuple(torch.from_numpy(split[part]) for part in ("train", "valid", "test"))]
    edges = coalesce(to_undirected(edges[:, edges[0] != edges[1]], num_nodes=len(y)))
    return Problem(x.float(), edges, y.long(), splits)


def _matrix(file: dict[str, Any], name: str) -> sparse.csr_array:
    parts = tuple(file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(file[f"{name}_shape"]))


def accuracy(scores: Tensor, y: Tensor) -> Tensor:
    """The share of right classes."""
    return (scores.argmax(1) == y).float().mean()


def auc(scores: Tensor, y: Tensor) -> Tensor:
    """The area under the ROC curve of two classes; equal scores count half."""
    value = scores[:, 1] - scores[:, 0]
    ordered = value.sort().values
    rank = (torch.searchsorted(ordered, value) + torch.searchsorted(ordered, value, right=True) + 1).double() / 2
    positive = (y == 1).double()
    count = positive.sum()
    return ((rank * positive).sum() - count * (count + 1) / 2) / (count * (len(y) - count))


def fit(
    model: nn.Module,
    inputs: tuple[Any, ...],
    y: Tensor,
    split: tuple[Tensor, ...],
    groups: Iterable[Any],
    epochs: int,
    lr: float,
    metric: Callable[[Tensor, Tensor], Tensor] = accuracy,
) -> tuple[float, float]:
    """Train with Adam; the validation and the test score of the first epoch with the best validation score."""
    train, validation, test = split
    on_gpu = y.device.type == "cuda"
    optimizer = torch.optim.Adam(list(groups), lr=lr, capturable=on_gpu, foreach=True)
    history = torch.zeros(epochs, 2, dtype=torch.float64, device=y.device)
    place = torch.zeros(1, dtype=torch.long, device=y.device)
    goal = [y[part] for part in split]

    def epoch() -> None:
        model.train()
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(*inputs)[train], goal[0]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(*inputs)
            found = [metric(out[part], want) for part, want in zip((validation, test), goal[1:], strict=True)]
            history.index_copy_(0, place, torch.stack(found).double()[None])
            place.add_(1)

    def several(count: int) -> None:
        for _ in range(count):
            epoch()

    if not on_gpu:
        several(epochs)
    else:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            several(CAPTURED_AFTER)
        torch.cuda.current_stream().wait_stream(side)
        if graph := _captured(epoch):
            for _ in range(epochs - CAPTURED_AFTER):
                graph.replay()
        else:
            several(epochs - CAPTURED_AFTER)
    best = int(history[:, 0].argmax())
    return float(history[best, 0]), float(history[best, 1])


def _captured(epoch: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
    """An epoch as a CUDA graph, or None where a layer waits for the device."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            epoch()
    except RuntimeError as error:
        print(f"not captured: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        torch.cuda.synchronize()
        return None
    return graph
