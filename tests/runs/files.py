"""Small problems as files: a ring with triangles on it, whose corners are one class and the ring the other."""

from __future__ import annotations

import csv
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from demonet.data.synthetic import flip_graph, role_graph, small_graphs
from demonet.runs import Run, RunProgress, Settings, demo, fit_run

MOTIFS = 12
FAST = Settings(epochs=12)
FILES = [".lock", "MODEL_CARD.md", "config.json", "manifest.json", "metrics.json", "model.safetensors"]
FILES += ["predictions.csv", "report.html", "run.safetensors", "run.toml", "split.json"]


class Killed(BaseException):
    """Nobody catches it, as nobody catches kill -9."""


class Told(RunProgress):
    """Keeps what is told, and kills the process at a stage and number of a candidate."""

    def __init__(self, kill=None):
        self.lines, self.stages, self.kill = [], [], kill

    def message(self, text):
        self.lines.append(str(text))

    def candidates(self, label):
        return nullcontext(self.candidate)

    def candidate(self, progress):
        self.stages.append((progress.stage, progress.candidate.name))
        if self.kill == (progress.stage, progress.number):
            raise Killed


def page(run: Run, path: Path) -> None:
    path.write_text(f"{len(run.ids)} items", encoding="utf-8")


def fit(**options) -> Run:
    """A run on the problem in the folder at hand."""
    return fit_run("edges.csv", "labels.csv", **{"out": "run", "settings": FAST, "page": page} | options)


def roles(motifs: int = MOTIFS) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Edges and labels: every third node of a ring carries a triangle."""
    length = 3 * motifs
    edges = [(f"r{i}", f"r{(i + 1) % length}") for i in range(length)]
    labels = {f"r{i}": "ring" for i in range(length)}
    for i in range(0, length, 3):
        edges += [(f"r{i}", f"a{i}"), (f"r{i}", f"b{i}"), (f"a{i}", f"b{i}")]
        labels |= {f"r{i}": "foot", f"a{i}": "corner", f"b{i}": "corner"}
    return edges, labels


def read_table(path: Path) -> list[list[str]]:
    """The rows of a CSV file, its header first."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def write_table(path: Path, header: tuple[str, ...], rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def write_problem(folder: Path, motifs: int = MOTIFS) -> None:
    """``edges.csv``, ``labels.csv`` and ``features.csv``."""
    edges, labels = roles(motifs)
    write_table(folder / "edges.csv", ("source", "target"), edges)
    write_table(folder / "labels.csv", ("node", "label"), labels.items())
    noise = np.random.default_rng(0).normal(size=(len(labels), 2)).round(3).tolist()
    write_table(
        folder / "features.csv",
        ("node", "height", "age"),
        [
            (node, float(kind == "foot") - row[0] / 9, row[1])
            for (node, kind), row in zip(labels.items(), noise, strict=True)
        ],
    )


def write_graphs(folder: Path, count: int = 24) -> None:
    """``graphs.csv`` with a column of graphs, cycles and stars, and ``kinds.csv``."""
    rows, kinds = [], []
    for number in range(count):
        name, size, cycle = f"g{number:02}", 5 + number % 4, number % 2 == 0
        kinds.append((name, "cycle" if cycle else "star"))
        rows += [(name, i if cycle else 0, (i + 1) % size if cycle else i + 1) for i in range(size)]
    write_table(folder / "graphs.csv", ("graph", "source", "target"), rows)
    write_table(folder / "kinds.csv", ("graph", "kind"), kinds)


def write_tu(folder: Path, count: int, **parts: list[str]) -> dict[str, str]:
    """A TU folder ``SET`` of graphs with four nodes, with further parts line by line; its texts by part."""
    (folder / "SET").mkdir()
    arcs = [f"{4 * g + 1}, {4 * g + 1 + i}" for g in range(count) for i in range(1, 3 + g % 2)]
    lines = {"A": arcs, "graph_indicator": [str(g + 1) for g in range(count) for _ in range(4)], **parts}
    texts = {part: "\n".join(rows) for part, rows in lines.items()}
    for part, text in texts.items():
        (folder / "SET" / f"SET_{part}.txt").write_text(text)
    return texts


def small_demo(patch) -> None:
    """The demo on a few graphs, with networks that hardly train."""
    patch.setattr(demo, "EPOCHS", 2)
    patch.setattr(demo, "role_graph", lambda seed: role_graph(seed, motifs=8))
    patch.setattr(demo, "flip_graph", lambda seed: flip_graph(seed, num_nodes=120))
    patch.setattr(demo, "small_graphs", lambda num, seed, **options: small_graphs(20, seed, **options))


def write_tasks(folder: Path, motifs: int = MOTIFS) -> None:
    """Beside ``edges.csv``: ``scores.csv`` (numbers), ``tags.csv`` (three labels) and ``sides.csv`` (two numbers)."""
    _, labels = roles(motifs)
    noise = np.random.default_rng(1).normal(size=len(labels)).round(3).tolist()
    level = {"ring": 1.0, "foot": 5.0, "corner": 3.0}
    scores = [(node, f"{level[kind] + off / 5:.3f}") for (node, kind), off in zip(labels.items(), noise, strict=True)]
    scores[3], scores[7] = (scores[3][0], ""), (scores[7][0], "nan")
    write_table(folder / "scores.csv", ("node", "score"), scores)
    tags = [
        (node, int(kind == "corner"), int(kind == "foot"), int(off > 0))
        for (node, kind), off in zip(labels.items(), noise, strict=True)
    ]
    tags[4] = (tags[4][0], "", "", "")
    tags[5] = (*tags[5][:3], "")
    write_table(folder / "tags.csv", ("node", "corner", "foot", "odd, one"), tags)
    sides = [(node, level[kind] * 1000 + off, off) for (node, kind), off in zip(labels.items(), noise, strict=True)]
    write_table(folder / "sides.csv", ("node", "left", "right"), sides)


def write_classes(*names: str, shares: list[float], follow: float = 0.2) -> None:
    """Labels that follow the roles a little: a share ``follow`` of the feet has the first one."""
    generator = np.random.default_rng(0)
    kinds = {
        node: names[0 if kind == "foot" and generator.random() < follow else generator.choice(len(names), p=shares)]
        for node, kind in read_table(Path("labels.csv"))[1:]
    }
    write_table(Path("labels.csv"), ("node", "label"), kinds.items())
