"""Predictions and embeddings as files that anything reads, one row a node or graph, whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.atomic import replacing
from demonet.errors import DemonetError

ENDINGS = (".parquet", ".csv", ".npy")


def write_predictions(
    path: Path, noun: str, ids: Sequence[str], class_names: Sequence[str], probabilities: NDArray[np.float32]
) -> None:
    """``noun,prediction,confidence`` and one column a class. Names are quoted as CSV has it and come back as they are.

    Args:
        path: Where to.
        noun: ``"node"`` or ``"graph"``.
        ids: One text a row.
        class_names: One text a class.
        probabilities: ``[rows, classes]``; written with as many digits as tell float32 numbers apart.
    """
    best = probabilities.argmax(1)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n", quoting=_quoting([*ids, *class_names]))
        writer.writerow([noun, "prediction", "confidence", *class_names])
        for name, place, row in zip(ids, best.tolist(), probabilities.tolist(), strict=True):
            numbers = [f"{value:.9g}" for value in row]
            writer.writerow([name, class_names[place], numbers[place], *numbers])


def write_embeddings(path: Path, noun: str, ids: Sequence[str], embedding: NDArray[np.float32]) -> None:
    """Ids and ``e0, e1, ...`` as ``.parquet`` or ``.csv``; as ``.npy`` the bare matrix, in the order of the ids."""
    check_ending(path)
    names = [f"e{column}" for column in range(embedding.shape[1])]
    with replacing(path) as temporary:
        if path.suffix == ".npy":
            with temporary.open("wb") as stream:
                np.save(stream, embedding, allow_pickle=False)
        elif path.suffix == ".parquet":
            import pyarrow as pa
            from pyarrow import parquet

            table = pa.table([pa.array(list(ids), pa.string()), *np.ascontiguousarray(embedding.T)], [noun, *names])
            parquet.write_table(table, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, lineterminator="\n", quoting=_quoting(ids))
                writer.writerow([noun, *names])
                writer.writerows(
                    [name, *(f"{v:.9g}" for v in row)] for name, row in zip(ids, embedding.tolist(), strict=True)
                )


def check_ending(path: Path) -> None:
    """Refuse a file of embeddings that is none of the kinds above, before any work is done."""
    if path.suffix not in ENDINGS:
        raise DemonetError(f"embeddings in a file that ends in {path.suffix!r}", file=path, hint=" or ".join(ENDINGS))
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there, before any work is done."""
    if not path.parent.is_dir():
        raise DemonetError("there is no such folder", file=path)
    if path.is_dir():
        raise DemonetError("this is a folder", file=path, hint="name a file in it")


def _quoting(names: Sequence[str]) -> Any:
    """Only what needs quotes has them, unless a name holds a carriage return, which Python before 3.13 leaves bare."""
    return csv.QUOTE_ALL if any("\r" in name for name in names) else csv.QUOTE_MINIMAL
