"""Pages from the files of results: their tables between markers, and the running-time figures.

python benchmarks/page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import t

from demonet.atomic import replacing
from demonet_study.bench.measure import Row, best, slope
from demonet_study.bench.methods import METHODS, OURS
from demonet_study.experiments.rows import read_rows
from demonet_study.report.bench import running_time

ROOT = Path(__file__).parent.parent
MARKED = re.compile(
    r"(?P<start><!-- (?P<kind>[a-z-]+) from (?P<file>[a-z_]+)\.csv -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
PAGES = ("performance.md", "results.md")
FIGURES = {"cpu_sizes": "Time per epoch on two CPU cores", "gpu_scaling": "Time per epoch on one GPU"}


def epochs(rows: Sequence[Row]) -> str:
    """A table for each graph, thread count and precision: a line for each method, a column for each mode."""
    parts = []
    for key in dict.fromkeys((row.graph, row.nodes, row.arcs, row.precision, row.threads) for row in rows):
        part = [row for row in rows if (row.graph, row.nodes, row.arcs, row.precision, row.threads) == key]
        modes = list(dict.fromkeys(row.mode for row in part))
        fastest = best(part)
        ours = [name for name in OURS if name in fastest]
        where = f"{key[0]}, {key[1]:,} nodes, {key[2]:,} arcs, {key[3]}" + _threads(part[0])
        head = ["method", "input", *(f"{mode}, ms" for mode in modes), *(f"× {name}" for name in ours)]
        lines = []
        for name in dict.fromkeys(row.method for row in part):
            times = [_milliseconds(_one(part, name, mode)) for mode in modes]
            ratios = [f"{fastest[name] / fastest[other]:.2f}" if name in fastest else "–" for other in ours]
            found = [row for row in part if row.method == name]
            form = METHODS[name].form if name in METHODS else ""
            lines.append([name, form, *times, *ratios, _memory(found), _floor(found)])
        parts.append(
            f"{where}:\n\n" + markdown([*head, "peak, MiB", "of its lower bounds"], lines, words=2) + _failures(part)
        )
    return "\n\n".join(parts)


def by_graph(rows: Sequence[Row]) -> str:
    """Methods against graphs, the fastest mode of each, and how much slower the last graph is than the first."""
    return _against(rows, lambda row: row.graph, lambda times: f"{times[-1] / times[0]:.2f}", "last of first")


def by_size(rows: Sequence[Row]) -> str:
    """Methods against numbers of arcs, the fastest mode of each, and the slope on logarithmic axes from 10^5 arcs."""
    sizes = sorted({row.arcs for row in rows})
    chosen = [arcs for arcs in sizes if arcs >= 100_000]

    def fitted(times: Sequence[float]) -> str:
        kept = [time for arcs, time in zip(sizes, times, strict=True) if arcs >= 100_000]
        return f"{slope(chosen, kept):.2f}"

    return _against(sorted(rows, key=lambda row: row.arcs), lambda row: f"{row.arcs:,} arcs", fitted, "slope")


def of_sets(rows: Sequence[Row]) -> str:
    """Presets on the paper's sets, a column for each number of threads, and the peak memory."""
    threads = sorted({row.threads for row in rows})
    head = ["set", "preset and scheme", *(f"{count} thread{'s' * (count > 1)}, ms" for count in threads), "peak, MiB"]
    lines = []
    for graph, method in dict.fromkeys((row.graph, row.method) for row in rows):
        found = [row for row in rows if (row.graph, row.method) == (graph, method)]
        by_threads = {row.threads: row for row in found}
        times = [_milliseconds(by_threads.get(count)) for count in threads]
        lines.append([graph, method, *times, _memory(found)])
    return markdown(head, lines, words=2)


SETS = {
    **{"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "amazon-photo": "Amazon Photo"},
    **{"brazil": "Brazil's airports", "europe": "Europe's airports", "usa": "airports of the USA"},
    **{"flip": "rule that flips with the degree", "roles": "roles", "minesweeper": "Minesweeper, AUC"},
}
PUBLISHED = {  # "Classic GNNs are strong baselines", NeurIPS 2024: GCN, GraphSAGE, GAT
    "minesweeper": (0.979, 0.978, 0.977),
    "cora": (0.851, 0.839, 0.845),
    "citeseer": (0.731, 0.723, 0.722),
    "pubmed": (0.811, 0.797, 0.803),
    "amazon-photo": (0.961, 0.968, 0.966),
}
PEERS = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}
BEST_PEER = "the best peer on validation"
NAMES = PEERS | {
    "peer": BEST_PEER,
    **{"ours-gcn": "`DEMOConv`, settings of GCN", "ours-sage": "`DEMOConv`, settings of GraphSAGE"},
    "ours": "`DEMOConv`, the better of both on validation",
    **{"ours-gcn-without": "settings of GCN, no degree term", "ours-gcn-shuffled": "settings of GCN, shuffled degrees"},
    "ours-sage-without": "settings of GraphSAGE, no degree term",
}
Plain = Mapping[str, str]  # a row of a CSV file
Scores = Mapping[tuple[str, str], float]  # of a split and a seed


def degree_term(rows: Sequence[Plain]) -> str:
    """A line for each network: the test scores of its variants, and what the default has more."""
    lines = []
    for key in dict.fromkeys((row["set"], row["width"], row["aggr"]) for row in rows):
        own = [row for row in rows if (row["set"], row["width"], row["aggr"]) == key]
        scores = {one: _scores(own, "variant", one) for one in ("without", "shuffled", "default")}
        several = len({row["width"] for row in rows if row["set"] == key[0]}) > 1
        shown = f"{SETS[key[0]]}, {key[1] if several else f'`{key[2]}`'} ({len(scores['default'])})"
        gaps = (_gap(scores["default"], scores[one]) for one in ("without", "shuffled"))
        lines.append([shown, *(_score(fmean(each.values())) for each in scores.values()), *gaps])
    head = ["set, width or `aggr` (runs)", "no degree term", "shuffled degrees", "default"]
    return markdown([*head, "default less none", "default less shuffled"], lines)


def tuned(rows: Sequence[Plain]) -> str:
    """A line for each set and method: test score, what it has more than peers, and what was published."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        scores = {method: _scores(own, "method", method) for method in NAMES}
        scores["ours"] = _chosen(own, "ours-gcn", "ours-sage")
        scores["peer"] = _chosen(own, *(peer for peer in PEERS if scores[peer]))
        for method, found in scores.items():
            if found:
                gaps = ["" if method == peer else _gap(found, scores[peer]) for peer in (*PEERS, "peer")]
                published = _score(PUBLISHED[name][list(PEERS).index(method)]) if method in PEERS else ""
                shown = [SETS[name], NAMES[method], str(len(found)), _score(fmean(found.values())), *gaps, published]
                lines.append(shown)
    head = ["set", "network", "runs", "test", *(f"less {peer}" for peer in (*PEERS.values(), BEST_PEER)), "published"]
    return markdown(head, lines, words=2)


def _scores(rows: Iterable[Plain], column: str, value: str, score: str = "test") -> dict[tuple[str, str], float]:
    return {(row["split"], row["seed"]): float(row[score]) for row in rows if row[column] == value}


def _chosen(rows: Sequence[Plain], *methods: str) -> dict[tuple[str, str], float]:
    """Of every run that all methods have, the test score of the one that is best on validation."""
    of = [(_scores(rows, "method", method, "validation"), _scores(rows, "method", method)) for method in methods]
    runs = [run for run in of[0][0] if all(run in validation for validation, _ in of)]
    return {run: max(of, key=lambda each: each[0][run])[1][run] for run in runs}


def _gap(one: Scores, other: Scores) -> str:
    """The mean of paired differences with its 95 % interval, which one pair has not."""
    gaps = [one[run] - other[run] for run in one if run in other]
    if not gaps:
        return ""
    shown = _score(fmean(gaps), "+")
    if len(gaps) == 1:
        return shown
    return f"{shown} ± {_score(t.ppf(0.975, len(gaps) - 1) * stdev(gaps) / len(gaps) ** 0.5)}"


def _score(value: float, sign: str = "") -> str:
    """Three decimals, without the zero before them."""
    return f"{round(value, 3) + 0.0:{sign}.3f}".replace("0.", ".", 1)  # no -0


PLAIN: dict[str, Callable[[Sequence[Plain]], str]] = {"degree-term": degree_term, "tuned": tuned}
TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "epochs": epochs,
    "by-graph": by_graph,
    "by-size": by_size,
    "of-sets": of_sets,
}


def fill(document: str, results: Path) -> str:
    """The document with everything between markers made anew from its file in ``results``.

    A marked table is ``<!-- epochs from gpu_small.csv -->``, anything, ``<!-- end -->``; the kind ``figure`` stands for
    the image of the same name as the file.
    """

    def made(match: re.Match[str]) -> str:
        path = results / f"{match['file']}.csv"
        if not path.exists():
            shown = f"Not measured: there is no `{path.name}`."
        elif match["kind"] == "figure":
            shown = f"![{FIGURES[path.stem]}](images/{path.stem}.svg)"
        elif match["kind"] in PLAIN:
            with path.open(newline="", encoding="utf-8") as file:
                shown = PLAIN[match["kind"]](list(csv.DictReader(file)))
        else:
            rows = read_rows(Row, path)
            shown = f"{TABLES[match['kind']](rows)}\n\n{source(rows)}"
        return f"{match['start']}\n{shown}\n\n{match['end']}"

    return MARKED.sub(made, document)


def source(rows: Sequence[Row]) -> str:
    """Where rows were measured, and with which command."""
    devices, versions, commands = (
        ", ".join(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("device", "versions", "command")
    )
    return f"{devices}; {versions}; `{commands}`."


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table, the first columns of words, the others of numbers; a vertical bar inside a cell stays one."""
    rows = [head, ["---"] * words + ["---:"] * (len(head) - words), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _against(
    rows: Sequence[Row], column: Callable[[Row], str], last: Callable[[Sequence[float]], str], title: str
) -> str:
    """Methods (with precision, where there are several) against columns; ``last`` sums up a line."""
    columns = list(dict.fromkeys(column(row) for row in rows))
    several = len({row.precision for row in rows}) > 1
    lines = []
    for method, precision in dict.fromkeys((row.method, row.precision) for row in rows):
        mine = [row for row in rows if (row.method, row.precision) == (method, precision)]
        times = [best(row for row in mine if column(row) == name).get(method, math.nan) for name in columns]
        name = f"{method}, {precision}" if several else method
        lines.append([name, *map(_number, times), last(times).replace("nan", "–")])
    return markdown(["method, ms", *columns, title], lines)


def _one(rows: Iterable[Row], method: str, mode: str) -> Row | None:
    return next((row for row in rows if (row.method, row.mode) == (method, mode)), None)


def _milliseconds(row: Row | None) -> str:
    """Median, and the quartiles around it."""
    if row is None:
        return ""
    return "failed" if row.failed else f"{_number(row.ms)} ({_number(row.q1)} to {_number(row.q3)})"


def _number(value: float) -> str:
    """Three figures that carry meaning."""
    if math.isnan(value):
        return "–"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def _memory(rows: Iterable[Row]) -> str:
    peaks = [row.memory_mib for row in rows if not math.isnan(row.memory_mib)]
    return f"{min(peaks):,.0f}" if peaks else "–"


def _floor(rows: Iterable[Row]) -> str:
    """How many times the floor by layer, and the floor in one step, the fastest mode takes."""
    timed = [row for row in rows if not row.failed and not math.isnan(row.floor_ms)]
    fastest = min(timed, key=lambda row: row.ms, default=None)
    return "" if fastest is None else f"{fastest.ms / fastest.floor_ms:.2f} / {fastest.ms / fastest.step_floor_ms:.2f}"


def _failures(rows: Iterable[Row]) -> str:
    """A line for each reason, with those who gave it."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.failed:
            reasons.setdefault(row.error, []).append(f"{row.method} ({row.mode})")
    return "".join(f"\n\nFailed: {', '.join(names)}: {error}" for error, names in reasons.items())


def _threads(row: Row) -> str:
    """The number of threads, which only a CPU is asked for."""
    return "" if "NVIDIA" in row.device else f", {row.threads} thread{'s' * (row.threads > 1)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    for page in (options.docs / name for name in PAGES):
        text = fill(page.read_text(encoding="utf-8"), options.results)
        with replacing(page) as draft:
            draft.write_text(text, encoding="utf-8")
    for name, title in FIGURES.items():
        if (options.results / f"{name}.csv").exists():
            image = running_time(read_rows(Row, options.results / f"{name}.csv"), title)
            (options.docs / "images" / f"{name}.svg").write_text(image, encoding="utf-8")


if __name__ == "__main__":
    main()
