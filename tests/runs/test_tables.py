"""Tables column by column: the same bytes as Python's writer row by row, and the same values in Parquet and Excel."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook
from pyarrow import parquet

from demonet.errors import DemonetError
from demonet.runs import tables
from demonet.runs.outputs import write_predictions
from demonet.runs.tables import Column, write_csv, write_parquet

TEXT = st.text(st.sampled_from('ab ,"\n\r;ü='), max_size=5)
NUMBER = st.floats(width=32, allow_subnormal=True)


def by_rows(columns, excel=None):
    """Row by row, as Python's csv module writes them."""
    words = [word for column in columns for word in (column.name, *column.words)]
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if any("\r" in word for word in words) else csv.QUOTE_MINIMAL
    writer = csv.writer(out, lineterminator="\n", quoting=quoting, delimiter=";" if excel == "," else ",")
    writer.writerow([column.name for column in columns])
    for row in range(len(columns[0].values)):
        cells = []
        for column in columns:
            value = column.values[row]
            if column.names is not None:
                cells.append("" if value < 0 else column.names[value])
            elif isinstance(value, str | np.integer):
                cells.append(value)
            else:
                cells.append("" if column.gaps and value != value else f"{float(value):.9g}".replace(".", excel or "."))
        writer.writerow(cells)
    return out.getvalue().encode("utf-8-sig" if excel else "utf-8")


@given(
    st.lists(st.tuples(TEXT, NUMBER, st.integers(-1, 1), st.integers(0, 1), st.none() | st.floats()), max_size=8),
    st.tuples(TEXT, TEXT),
)
def test_the_bytes_are_those_of_pythons_writer(tmp_path_factory, rows, names):
    text, numbers, codes, whole, gaps = zip(*rows, strict=True) if rows else ((),) * 5
    columns = [
        Column("node", list(text)),
        Column(names[0], np.array(numbers, dtype=np.float32)),
        Column("label", np.array(codes, dtype=np.int64), names),
        Column("whole", np.array(whole, dtype=np.int64)),
        Column("gaps", np.array([np.nan if value is None else value for value in gaps], dtype=np.float64), gaps=True),
    ]
    path = tmp_path_factory.getbasetemp() / "table.csv"
    for excel in (None, ".", ","):
        write_csv(path, columns, excel)
        assert path.read_bytes() == by_rows(columns, excel)


def test_blocks_are_put_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 3)
    columns = [Column("node", [f"n{i}" for i in range(8)]), Column("e0", np.linspace(0, 1, 8, dtype=np.float32))]
    write_csv(tmp_path / "t.csv", columns)
    assert (tmp_path / "t.csv").read_bytes() == by_rows(columns)


def test_parquet_has_the_same_values_and_null_for_unknown(tmp_path):
    columns = [
        Column("node", ["a", "b"]),
        Column("label", np.array([-1, 1]), ["x", "y"]),
        Column("known", np.array([np.nan, 2.5]), gaps=True),
        Column("score", np.array([0.1, np.nan], dtype=np.float32)),
    ]
    write_parquet(tmp_path / "t.parquet", columns)
    table = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert table["node"] == ["a", "b"]
    assert table["label"] == [None, "y"]
    assert table["known"] == [None, 2.5]
    assert np.float32(table["score"][0]) == np.float32(0.1)
    assert np.isnan(table["score"][1])


def sheet(path):
    """The cells of a workbook by row, as (type, value): n for a number, s for a text, f for a formula."""
    return [[(cell.data_type, cell.value) for cell in row] for row in load_workbook(path).active.iter_rows()]


def test_a_workbook_has_numbers_as_numbers_and_never_a_formula(tmp_path):
    columns = [
        Column("=node", ["=1+1", "007"]),
        Column("id", ["7", "-12"]),
        Column("label", np.array([-1, 1]), ["0", "1"]),
        Column("score", np.array([0.1, np.nan], dtype=np.float32)),
        Column("odd", ["a\x00b", "c" * 40_000]),
    ]
    tables.write_table(tmp_path / "t.xlsx", columns)
    names, *rows = sheet(tmp_path / "t.xlsx")
    assert names[0] == ("s", "=node")
    assert rows[0] == [("s", "=1+1"), ("n", 7), ("n", None), ("n", 0.1), ("s", "a�b")]
    assert rows[1] == [("s", "007"), ("n", -12), ("n", 1), ("n", None), ("s", "c" * 32_767)]


def test_a_table_that_no_sheet_holds_and_an_unknown_suffix_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_SHEET", (3, 2))
    for name in ("t.xlsx", "t.xls", "t.csv.gz", "t"):
        with pytest.raises(DemonetError, match=name):
            tables.write_table(tmp_path / name, [Column("node", list("abc"))])
    assert not list(tmp_path.iterdir())


def test_classes_called_like_other_columns_get_names_of_their_own(tmp_path):
    names = ["node", "prediction", "prediction probability"]
    write_predictions(tmp_path / "p.csv", "node", ["a"], names, np.full((1, 3), 1 / 3, np.float32))
    head = (tmp_path / "p.csv").read_text().splitlines()[0].split(",")
    assert head[:3] == ["node", "prediction", "confidence"]
    assert len(set(head)) == len(head) == 6


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress"])
def test_predictions_in_parquet_are_those_of_the_csv_file(tmp_path, task):
    outputs = np.random.default_rng(0).random((5, 2), dtype=np.float32)
    y = np.array([0, 1, -1, 0, 1]) if task == "classify" else np.array([[0.0, 1.0], [np.nan, 0.0]] * 2 + [[1.0, 1.0]])
    part = np.array([0, 1, 2, -1, 0], dtype=np.int8)
    for ending in ("csv", "parquet"):
        names = ["no", "yes"]
        write_predictions(tmp_path / f"p.{ending}", "node", list("abcde"), names, outputs, task, y, part)
    with (tmp_path / "p.csv").open(newline="") as stream:
        head, *rows = csv.reader(stream)
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names == head
    for place in range(len(head)):
        for cell, value in zip((row[place] for row in rows), table.column(place).to_pylist(), strict=True):
            shown = "" if value is None else value if isinstance(value, str) else f"{value:.9g}"
            assert cell == shown
