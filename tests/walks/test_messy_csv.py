"""A person with CSV files as spreadsheets and databases write them, through the command, with what it prints alone."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path

import pytest
from tests.runs.files import roles
from tests.walks.command import demonet

QUICK = ("--epochs", "3")
PAIRS, ROLES = roles(8)
PEOPLE = list(ROLES)
UNLABELLED = {0: "NA", 5: "", 9: "null", 13: "NaN"}


def write(name: str, rows: list[list[str]], separator: str = ";", ending: str = "\r\n") -> None:
    """A file with a byte order mark, quoted fields where they need it, and the line ends of Windows."""
    text = "".join(separator.join(f'"{c}"' if separator in c or " " in c else c for c in row) + ending for row in rows)
    Path(name).write_bytes(b"\xef\xbb\xbf" + text.encode())


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Calls between people, repeated and with decimal commas; one table with roles, gaps, categories, flags, dates."""
    monkeypatch.chdir(tmp_path)
    calls = [["when", "caller", "callee", "minutes"]]
    calls += [["2024-01-02", u, v, f"{1 + i % 5},5"] for i, (u, v) in enumerate(PAIRS)]
    calls += [["2024-02-03", *reversed(PAIRS[0]), "7,25"], ["2024-02-04", PEOPLE[0], PEOPLE[0], "1"]]
    write("Calls.CSV", calls)
    people = [["age", "user", "role", "city", "active", "joined", "mail", "income"]]
    for i, (name, role) in enumerate(ROLES.items()):
        label = UNLABELLED.get(i, role)
        age, city = "" if i % 11 == 4 else str(20 + i), ("New York", "Oslo", "n/a")[i % 3]
        income = "N/A" if i == 7 else f"{1000 + i},5"
        people.append([age, name, label, city, "true" if i % 2 else "false", "2020-01-02", f"{name}@x.org", income])
    write("people.csv", people, separator="\t", ending="\n")
    return tmp_path


FIT = ("fit", "Calls.CSV", "--source", "caller", "--target", "callee", "--weight", "minutes", "--labels", "people.csv")
FIT += ("--label-column", "role", "--id-column", "user", "--features", "people.csv", "--out", "run", *QUICK)


def test_from_messy_files_to_predictions(files):
    code, out, err = demonet(*FIT)
    assert code == 0, err
    counts = Counter(role for i, role in enumerate(ROLES.values()) if i not in UNLABELLED)
    classes = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
    assert f"3 classes ({classes}), 36 labelled" in err
    for fact in (
        "1 self-loop",
        "1 edge listed with different weights",
        "'age', 'city', 'income'",
        "dates in 'joined'",
        "undirected",
        "'mail'",
        "1 'null'",
    ):
        assert any(fact in line for line in err.splitlines() if line.startswith("warning: ")), fact
    assert "predictions are in run/predictions.csv" in out
    with Path("run/predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(PEOPLE)
    unlabelled = [row["node"] for row in rows if row["label"] == ""]
    assert sorted(unlabelled) == sorted(PEOPLE[i] for i in UNLABELLED)
    assert {row["part"] for row in rows} == {"train", "val", "test", ""}
    assert all(row["prediction"] in ("corner", "foot", "ring") for row in rows)


def test_predict_and_embed_on_another_file_with_other_names(files):
    assert demonet(*FIT, "--ignore", "joined")[0] == 0
    code, _, err = demonet("predict", "run", "Calls.CSV", "--features", "people.csv", "--out", "same.csv")
    assert code == 0, err
    assert Path("same.csv").read_bytes() == Path("run/predictions.csv").read_bytes()
    write("links.tsv", [["from", "to", "w"], *([u, v, "1"] for u, v in PAIRS)], separator="\t")
    columns = ("--source", "from", "--target", "to", "--weight", "w", "--id-column", "person", "--merge", "max")
    head = ["income", "person", "city", "age", "active"]
    write("others.csv", [head, *(["1,5", name, "Lima", "", "true"] for name in PEOPLE)])
    other = ("links.tsv", "--features", "others.csv", *columns)
    code, _, err = demonet("predict", "run", *other, "--out", "p.csv")
    assert code == 0, err
    assert "'Lima' in 'city'" in err
    with Path("p.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["node", "prediction", "confidence", "corner", "foot", "ring"]
    assert demonet("embed", "run", *other, "--out", "e.npy")[0] == 0
    write("others.csv", [head[:-1], *(["1,5", name, "Oslo", "3"] for name in PEOPLE)])
    code, _, err = demonet("predict", "run", *other, "--out", "p.csv")
    assert code == 2
    assert "missing: 'active'" in err.splitlines()[-1]


def folder(name: str, *, labels: bool, count: int = 16, strange: bool = False) -> str:
    """A TU folder whose members are gzipped: cycles and stars with node labels, attributes and edge labels."""
    parts: dict[str, list[str]] = {"A": [], "graph_indicator": [], "node_labels": [], "node_attributes": []}
    parts |= {"edge_labels": [], "graph_labels": [str(g % 2 * 2 - 1) for g in range(count)]}
    for g in range(count):
        first, star = len(parts["graph_indicator"]) + 1, g % 2
        parts["A"] += [f"{first if star else first + i}, {first + (i + 1) % 5}" for i in range(4 + (not star))]
        parts["graph_indicator"] += [str(g + 1)] * 5
        parts["node_labels"] += ["7" if strange and i == 0 else str(i % 2) for i in range(5)]
        parts["node_attributes"] += [f"{g * 0.5}, {i}" for i in range(5)]
    parts["edge_labels"] = ["1"] * len(parts["A"])
    if not labels:
        del parts["graph_labels"]
    Path(name).mkdir()
    for part, lines in parts.items():
        (Path(name) / f"{name}_{part}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    return name


def test_a_folder_of_graphs_and_one_without_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = demonet("fit", folder("GRAPHS", labels=True), "--out", "run", *QUICK)
    assert code == 0, err
    said = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert any("edge labels" in line for line in said)
    assert any("2 node attributes" in line and "--features attributes" in line for line in said)
    code, _, err = demonet("predict", "run", folder("NEW", labels=False, strange=True), "--out", "p.csv")
    assert code == 0, err
    assert "'7' (16 nodes)" in err
    assert len(Path("p.csv").read_text().splitlines()) == 17
    code, _, err = demonet("fit", "GRAPHS", "--features", "attributes", "--out", "both", *QUICK)
    assert code == 0, err
    assert "4 attributes" in err
    code, _, err = demonet("predict", "both", "NEW", "--out", "p.csv")
    assert (code, "--features attributes" in err.splitlines()[-1]) == (2, True)
    assert demonet("predict", "both", "NEW", "--features", "attributes", "--out", "p.csv")[0] == 0
    code, _, err = demonet("fit", "NEW", "--out", "none", *QUICK)
    assert (code, "no item has a label" in err) == (2, True)
