"""All that there is to say about a finished run: what its folder keeps and its page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model seen from outside. Items are the nodes of one graph, or graphs.

    Attributes:
        kind: What is classified.
        config: What was trained on what and how: files, sizes, preset, scheme, seed, device, versions. Plain JSON.
        metrics: What ``metrics.json`` holds: ``test_accuracy``, ``val_accuracy``, ``macro_f1``, ``floors`` (name to
            test accuracy), ``epochs``, ``seconds``, ``seed``, ``split`` (sizes of the parts), and ``cv`` where splits
            were repeated.
        history: ``train_loss``, ``val_loss``, ``val_accuracy``, one value an epoch, and ``best_epoch``.
        class_names: One text a class.
        ids: One text an item.
        y: ``[items]`` the true class, -1 where it is unknown.
        part: ``[items]`` 0 training, 1 validation, 2 test, -1 neither.
        probabilities: ``[items, classes]``.
        degree: ``[items]`` the degree of each node; for graphs the number of nodes of each.
        edge_count: ``[items]`` for graphs the number of edges of each; None for nodes.
        place: ``[items, 2]`` the embedding in two dimensions.
        degrees: ``[k]`` the distinct degrees of all nodes, ascending.
        degree_counts: ``[k]`` how many nodes have each.
        degree_task: ``[k]`` which task each degree belongs to: equal numbers share a task.
        edges: ``[2, m]`` the graph itself (each edge once) where it is small enough to be drawn; None otherwise.
        drawing: ``[items, 2]`` where its nodes are drawn; None otherwise.
        columns: The names of the attributes, where they have names.
    """

    kind: Literal["nodes", "graphs"]
    config: dict[str, Any]
    metrics: dict[str, Any]
    history: dict[str, Any]
    class_names: list[str]
    ids: list[str]
    y: NDArray[np.int64]
    part: NDArray[np.int8]
    probabilities: NDArray[np.float32]
    degree: NDArray[np.int64]
    edge_count: NDArray[np.int64] | None
    place: NDArray[np.float32]
    degrees: NDArray[np.int64]
    degree_counts: NDArray[np.int64]
    degree_task: NDArray[np.int64]
    edges: NDArray[np.int64] | None = None
    drawing: NDArray[np.float32] | None = None
    columns: list[str] | None = None

    @property
    def prediction(self) -> NDArray[np.int64]:
        """``[items]`` the likeliest class."""
        return self.probabilities.argmax(1)

    @property
    def confidence(self) -> NDArray[np.float32]:
        """``[items]`` its probability."""
        return self.probabilities.max(1)
