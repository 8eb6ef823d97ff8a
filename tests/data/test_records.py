"""Workbooks, databases and JSON: the table that is meant, values as they are shown, and what cannot be a table."""

import json
import sqlite3
import sys
import warnings
from contextlib import closing
from datetime import datetime

import openpyxl
import pandas as pd
import pytest

from demonet.data import ids_of, read_graph
from demonet.data.readers import base
from demonet.errors import DemonetWarning

EDGES = [("source", "target"), *((i, (i + 1) % 4) for i in range(4))]


def workbook(path, change=lambda book: None):
    book = openpyxl.Workbook()
    edges, people = book.active, book.create_sheet("People")
    edges.title = "Calls"
    book.create_sheet("Empty")
    for row in EDGES:
        edges.append(row)
    people.append([])
    people.append(["id", "role", "since", "limit"])
    for i in range(4):
        people.append([i, "ab"[i % 2], datetime(2024, 2, 28 + i % 2), f"1.{i}00,50"])
    change(book)
    book.save(path)
    return f"{path}#Calls", f"{path}#People"


def test_sheets_of_one_workbook(tmp_path, refuses):
    calls, people = workbook(tmp_path / "a.xlsx")
    with pytest.warns(DemonetWarning) as caught:
        data = read_graph(calls, people, people, label_column="role")
    assert (data.y.tolist(), data.class_names) == ([0, 1, 0, 1], ["a", "b"])
    assert data.columns.names == ["since days", "since month", "since weekday", "limit"]
    assert data.x[:, 1:].tolist() == [[2, 2, 1000.5], [2, 3, 1100.5], [2, 2, 1200.5], [2, 3, 1300.5]]
    assert any("'since'" in str(warning.message) for warning in caught)
    refuses(lambda: read_graph(tmp_path / "a.xlsx"), "a.xlsx: ", "'Calls', 'People'", "#Calls")
    refuses(lambda: read_graph(f"{tmp_path / 'a.xlsx'}#Others"), "'Others'", "'Calls', 'People'")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda book: book["People"].merge_cells("A3:A4"), ["#People: ", "A3:A4"]),
        (lambda book: book["People"].__setitem__("B3", "=1+1"), ["#People: ", "B3"]),
        (lambda book: book["People"].__setitem__("A4", "7"), ["#People:4: ", "id 7"]),
        (lambda book: book["People"].__setitem__("A4", "2"), ["#People: ", "2 and '2'", "'id'"]),
    ],
)
def test_sheets_that_are_no_table(tmp_path, refuses, change, words):
    calls, people = workbook(tmp_path / "a.xlsx", change)
    refuses(lambda: read_graph(calls, people, label_column="role"), *words)


def test_ids_are_as_a_sheet_shows_them(tmp_path):
    def zeros(book):
        for sheet, columns in (("Calls", 2), ("People", 1)):
            for row in book[sheet].iter_rows(max_col=columns):
                for cell in row:
                    cell.number_format = "0000"

    calls, people = workbook(tmp_path / "a.xlsx", zeros)
    data = read_graph(calls, people, label_column="role")
    assert ids_of(data) == ["0000", "0001", "0002", "0003"]
    assert ids_of(read_graph(calls, ids="int")) == [0, 1, 2, 3]


def test_without_the_library_a_line_says_what_to_install(tmp_path, refuses, monkeypatch):
    calls, _ = workbook(tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    refuses(lambda: read_graph(calls), "a.xlsx", "demonet[excel]")


def test_tables_of_a_database_and_changes_that_are_not_in_it(tmp_path, refuses):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("CREATE TABLE calls (source TEXT, target TEXT, amount REAL)")
        base.execute('CREATE TABLE "odd ""name" (id TEXT PRIMARY KEY, role TEXT)')
        base.execute("CREATE VIEW everything AS SELECT * FROM calls")
        base.executemany("INSERT INTO calls VALUES (?, ?, ?)", [("007", "7", 1.5), ("7", "x", 2.5)])
        base.executemany('INSERT INTO "odd ""name" VALUES (?, ?)', [("x", "a"), ("7", "b"), ("007", None)])
        base.commit()
        refuses(lambda: read_graph(f"{path}#calls"), "a.db#calls: ", "a.db-wal")
    data = read_graph(f"{path}#calls", f'{path}#odd "name', weight="amount")
    assert (ids_of(data), data.y.tolist()) == (["007", "7", "x"], [-1, 1, 0])
    assert data.edge_weight.tolist() == [1.5, 1.5, 2.5, 2.5]
    refuses(lambda: read_graph(path), "a.db: ", "2 tables")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \xff\xff\xff\xff\xff"))
    refuses(lambda: read_graph(f"{path}#calls"), "a.db#calls: ", "damaged")  # its message is no UTF-8 either
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db"]


def test_json_by_record_by_line_and_by_name(write, refuses):
    links = [{"source": "a", "target": "b"}, {"target": "c", "source": "b", "note": None}]
    graph = {"links": links, "nodes": [{"id": "a", "kind": 1}, {"id": "c", "kind": 2}], "name": "x"}
    file = write("g.json", json.dumps(graph))
    lines = write("g.jsonl", "\n\n".join(map(json.dumps, links)))
    for data in (read_graph(f"{file}#links", f"{file}#nodes"), read_graph(lines, f"{file}#nodes")):
        assert (ids_of(data), data.y.tolist(), data.class_names) == (["a", "b", "c"], [0, -1, 1], [1, 2])
    for text, words in (
        ('[{"source": 1, "target": 2,}]', ["h.json:1: "]),
        ('[{"source": 1, "source": 2, "note": 3}]', [": source"]),
        ('[{"source": 1, "target": [2]}]', ["'target'"]),
        ("[1, 2]", ["record 0"]),
        ("[]", ["h.json: "]),
        ("7", ["h.json: "]),
    ):
        path = write("h.json", text)
        refuses(lambda path=path: read_graph(path), *words)


def test_binary_files_are_named_by_what_they_are(write, refuses, tmp_path):
    workbook(tmp_path / "a.xlsx")
    for content, word in (((tmp_path / "a.xlsx").read_bytes(), ".xlsx"), (b"\xd0\xcf\x11\xe0\0", ".xlsx")):
        path = write("a.xls", content)
        refuses(lambda path=path: read_graph(path), "a.xls: ", word)
    refuses(lambda: read_graph(f"{write('e.csv', 'a,b')}#sheet"), "e.csv#sheet: ")


@pytest.mark.parametrize("first", ["node,edge", "from,to", "source,target", "source,target,2"])
def test_a_first_edge_of_words_that_are_names_of_columns(write, first):
    """Before, the edge was lost as a header, and nothing was said."""
    u, v, *weight = first.split(",")
    rows = [first, *(",".join([*ends, *weight]) for ends in ((v, "graph"), ("graph", u)))]
    with pytest.warns(DemonetWarning, match=f"'{u}, {v}.*' is read as an edge.*header=True"):
        data = read_graph(write("w.csv", "\n".join(rows)))
    assert ids_of(data) == sorted([u, v, "graph"])


def test_a_header_is_one_where_other_columns_or_the_format_say_so(write, tmp_path):
    """A node that is called like a column of a Parquet file or a data frame was a NotImplementedError."""
    with pytest.warns(DemonetWarning, match=r"'node, edge' is read as a header.*header=False"):
        assert read_graph(write("v.csv", "node,edge\na,b\nb,c\n")).num_nodes == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_graph(write("x.csv", "from,to,weight\na,to,2\nto,b,1\n"), directed=False).num_nodes == 3
        pd.DataFrame({"ann": ["a", "ann"], "bob": ["b", "c"]}).to_parquet(tmp_path / "p.parquet")
        assert read_graph(tmp_path / "p.parquet", directed=False).num_nodes == 4


@pytest.mark.parametrize("cell", ["XFD1048576", "A1048576"])
def test_a_cell_far_from_the_others_takes_neither_time_nor_memory(tmp_path, refuses, cell):
    """Before, a million rows of 16,384 empty cells each were made."""
    calls, _ = workbook(tmp_path / "a.xlsx", lambda book: book["Calls"].__setitem__(cell, 1))
    refuses(lambda: read_graph(calls, source="source", target="target"), "a.xlsx#Calls:1048576: ")


def test_an_error_in_a_cell_is_no_id(tmp_path, refuses):
    def change(book):
        book["Calls"]["A3"].value, book["People"]["C3"].value = "#REF!", "#N/A"

    calls, people = workbook(tmp_path / "a.xlsx", change)
    refuses(lambda: read_graph(calls), "#Calls: ", "A3", "#REF!")
    calls, people = workbook(tmp_path / "b.xlsx", lambda book: book["People"].__setitem__("D4", "#N/A"))
    assert "limit missing" in read_graph(calls, features=people).columns.names


def test_small_files_whose_tables_are_large_are_refused(tmp_path, refuses, monkeypatch):
    monkeypatch.setattr(base, "_MAX_EXPANSION", 1)
    monkeypatch.setattr(base.check_expansion, "__defaults__", (1 << 20,))
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE t (source, target AS (hex(zeroblob(100000))))")
        made.executemany("INSERT INTO t (source) VALUES (?)", [(i,) for i in range(20)])
        made.commit()
    refuses(lambda: read_graph(file), "a.db: ", "bytes expand")
    records = tmp_path / "a.json"
    records.write_text(json.dumps([{"source": i, "target": i + 1, f"c{i}": 1} for i in range(400)]))
    refuses(lambda: read_graph(records), "a.json: ", "bytes expand")
