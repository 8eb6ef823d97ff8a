"""Tables as people have them: separators, decimal commas, missing values, categories, headers of any name."""

import gzip
import os
import warnings

import numpy as np
import pytest
import torch

from demonet import DemonetError, DemonetWarning
from demonet.data import ids_of, read_graph, read_graphs
from demonet.data.columns import Columns, column_kinds
from demonet.data.ids import is_missing
from demonet.data.read import read_problem
from demonet.data.readers.base import InputFiles, ReadOptions
from demonet.features import FeatureMap
from demonet.features.attributes import fitting_features, matrix_kind

PATH = "source,target\na,b\nb,c\nc,d\n"


@pytest.fixture
def path(write):
    """A path of four nodes."""
    return write("edges.csv", PATH)


@pytest.mark.parametrize("word", ["", "n/a", "NULL", " na "])
def test_a_missing_label_is_unlabelled(path, write, word):
    labels = write("labels.csv", f"node,kind\na,x\nb,{word}\nc,y\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_graph(path, labels)
    assert (data.y.tolist(), data.class_names) == ([0, -1, 1, -1], ["x", "y"])
    assert [word.strip() in str(warning.message) for warning in caught] == ([True] if word.strip() else [])


def test_missing_words_in_integer_labels_and_in_mappings(path, write):
    assert read_graph(path, write("l.csv", "node,kind\na,1\nb,NA\nc,2\n")).class_names == [1, 2]
    with pytest.warns(DemonetWarning, match="1 'nan'"):
        assert read_graph(path, {"a": "x", "b": "nan", "c": None, "d": float("nan")}).y.tolist() == [0, -1, -1, -1]
    assert not is_missing("no")


def test_minus_one_is_a_class_name_and_unlabelled_only_in_a_tensor(path, write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_graph(path, write("l.csv", "node,kind\na,-1\nb,1\n")).class_names == [-1, 1]
        assert read_graph(path, torch.tensor([-1, 0, 1, 0])).y.tolist() == [-1, 0, 1, 0]
    with pytest.warns(DemonetWarning, match="-1"):
        assert read_graph(path, {"a": -1, "b": 0, "c": 1}).class_names == [-1, 0, 1]


@pytest.mark.parametrize(("separator", "ending"), [(",", "\r\n"), (";", "\r\n"), ("\t", "\n"), ("|", "\n")])
def test_separators_marks_quotes_and_line_ends(write, separator, ending):
    rows = [["source", "target", "weight"], ['"a b"', '"c"', "0.5"], ["c", '"d, e"' if separator != "," else "d", "2"]]
    text = ending.join(separator.join(row) for row in rows) + ending
    data = read_graph(write("edges.csv", b"\xef\xbb\xbf" + text.encode()))
    assert ids_of(data) == ["a b", "c", "d, e" if separator != "," else "d"]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2, 2]


def test_a_decimal_comma_is_a_number(write):
    edges = write("edges.csv", "source;target;weight\na;b;1,5\nb;c;2\n")
    features = write("features.csv", "id;size;city\na;1,25;X\nb;-2;Y\nc;3,5;X\n")
    data = read_graph(edges, write("labels.csv", "id;score\na;0,5\nb;1\n"), features)
    assert data.edge_weight.tolist() == [1.5, 1.5, 2, 2]
    assert data.x[:, 0].tolist() == [1.25, -2, 3.5]
    assert data.class_names == ["0.5", "1"]
    no_header = write("plain.csv", "a;1,5\nb;2,5\nc;0,5\n")
    assert read_graph(edges, features=no_header).x.tolist() == [[1.5], [2.5], [0.5]]


def test_columns_by_name_and_by_position(path, write):
    table = write("nodes.csv", "age,user,role\n31,a,x\n27,b,y\n44,c,x\n50,d,\n")
    data = read_graph(path, table, table, id_column="user", label_column="role")
    assert (data.y.tolist(), data.class_names) == ([0, 1, 0, -1], ["x", "y"])
    assert (data.columns.names, data.x[:, 0].tolist()) == (["age"], [31, 27, 44, 50])
    by_place = read_graph(path, table, table, id_column=1, label_column=2)
    assert torch.equal(by_place.x, data.x)
    with pytest.raises(DemonetError, match=r"nodes\.csv: label_column: .*'rank'.*role"):
        read_graph(path, table, id_column="user", label_column="rank")
    usual, other = (
        write("usual.csv", "node,user,role\na,1,x\nb,2,y\n"),
        write("other.csv", "user,age\na,3\nb,4\nc,5\nd,6\n"),
    )
    with pytest.raises(DemonetError, match=r"usual\.csv: id_column: .*'usr'"):  # before, the ids were those of "node"
        read_graph(path, usual, id_column="usr", label_column="role")
    labels = write("labels.csv", "node,role\na,x\nb,y\n")
    assert read_graph(path, labels, other, id_column="user").y.tolist() == [0, 1, -1, -1]


def test_an_id_column_is_found_by_its_name(path, write):
    data = read_graph(path, write("labels.csv", "kind,node\nx,a\ny,b\n"))
    assert (data.y.tolist(), data.class_names) == ([0, 1, -1, -1], ["x", "y"])


MESSY = """user;age;city;premium;nickname;joined;income
a;31;Madrid;true;aa;2020-01-02;1000
b;;Oslo;false;bb;2020-01-03;2.000,5
c;44;;true;cc;2020-01-04;3000
d;50;Madrid;;dd;2020-01-05;NA
"""


def test_kinds_of_columns_in_one_table(path, write):
    """Before, dates stopped the run, and so did 2.000,5 among plain numbers."""
    with pytest.warns(DemonetWarning) as caught:
        data = read_graph(path, features=write("f.csv", MESSY), id_column="user", ignore=["nickname"])
    told = " ".join(str(warning.message) for warning in caught)
    assert all(part in told for part in ("'age', 'city', 'premium', 'income'", "dates in 'joined'"))
    names = ["age", "age missing", "city=Madrid", "city=Oslo", "city missing", "premium", "premium missing"]
    dates = ["joined days", "joined month", "joined weekday"]
    assert data.columns.names == [*names, *dates, "income", "income missing"]
    assert data.x.tolist() == [
        [31, 0, 1, 0, 0, 1, 0, 18263, 1, 3, 1000, 0],
        [44, 1, 0, 1, 0, 0, 0, 18264, 1, 4, 2000.5, 0],
        [44, 0, 0, 0, 1, 1, 0, 18265, 1, 5, 3000, 0],
        [50, 0, 1, 0, 0, 1, 1, 18266, 1, 6, 2000.5, 1],
    ]
    assert data.columns.kinds == ["number", *["indicator"] * 6, *["number"] * 4, "indicator"]


@pytest.mark.parametrize("form", ["{1}.{0}.2024", "{0}/{1}/2024", "2024-{0}-{1} 12:00", "{1}/{0}/24"])
def test_dates_in_any_form_and_in_another_table(path, write, form):
    days = [(1, 31), (2, 29), (3, 1), (12, 24)]
    rows = [form.format(month, day) for month, day in days]
    table = "node,joined\n" + "".join(f"{node},{row}\n" for node, row in zip("abcd", rows, strict=True))
    data = read_graph(path, features=write("f.csv", table))
    assert data.x[:, 1].tolist() == [1, 2, 3, 12]
    assert np.floor(data.x[:, 0]).tolist() == [19753, 19782, 19783, 20081]
    other = write("g.csv", f"node,joined\na,{form.format(5, 6)}\nb,\n")
    again = read_graph(path, features=other, columns=data.columns)
    assert again.x[0, 1] == 5
    assert again.x[1, 1] in (2, 3), "the missing date is the median, at the end of February"
    with pytest.raises(DemonetError, match=r"h\.csv:2: 'soon'.*'joined'"):
        read_graph(path, features=write("h.csv", "node,joined\na,soon\n"), columns=data.columns)


def test_dates_that_may_be_read_in_two_ways_and_times(path, write):
    for rows, part in ((["1/2/2024", "3/4/2024"], "day or month"), (["10:30", "11:00"], "times")):
        table = "node,joined\n" + "".join(f"{node},{rows[i % 2]}\n" for i, node in enumerate("abcd"))
        with pytest.raises(DemonetError, match=rf"f\.csv: .*{part}.*ignore='joined'"):
            read_graph(path, features=write("f.csv", table))


def test_a_typing_error_names_the_line_and_the_column(path, write):
    with pytest.raises(DemonetError, match=r"f\.csv:3: '2k'.*'income'.*ignore"):
        read_graph(path, features=write("f.csv", MESSY.replace("2.000,5", "2k")), id_column="user")


NUMBERS = [
    (["1.116,51", "950,50", "1.234", "7"], [1116.51, 950.5, 1234, 7]),  # 1.234 was 1.234
    (["1,116.51", "950.50", "1,234", "7"], [1116.51, 950.5, 1234, 7]),
    (["1'116.51", "950.50", "1'234", "7"], [1116.51, 950.5, 1234, 7]),
    (["1.234", "5.678", "9", "-2.500"], [1.234, 5.678, 9, -2.5]),
]


@pytest.mark.parametrize(("texts", "values"), NUMBERS)
def test_thousands_are_recognised_from_the_whole_column(write, texts, values):
    edges = write("e.csv", "source;target;weight\n" + "".join(f"a;{i};{text}\n" for i, text in enumerate(texts)))
    data = read_graph(edges, directed=True)
    assert data.edge_weight.tolist() == pytest.approx(values)
    table = "node;x\na;1\n" + "".join(f"{i};{text}\n" for i, text in enumerate(texts))
    assert read_graph(edges, features=write("f.csv", table)).x[:4, 0].tolist() == pytest.approx(values)
    assert set(map(float, read_graph(edges, write("l.csv", table)).class_names)) == {1, *values}


def test_a_number_that_may_be_read_in_two_ways(write):
    edges = write("e.csv", "source;target;weight\na;b;1,234\nb;c;5,678\n")
    with pytest.raises(DemonetError, match=r"e\.csv: .*'weight'.*decimal=','.*(1234|5678)"):
        read_graph(edges)
    assert read_graph(edges, decimal=",").edge_weight[0] == pytest.approx(1.234)
    assert read_graph(edges, decimal=".").edge_weight[0] == 1234
    plain = write("p.csv", "source;target\na;b\nb;c\n")
    table = write("f.csv", "node;limit;rate\na;1.500;2,5\nb;2.000;3,5\nc;3.000;4\n")
    assert read_graph(plain, features=table).x.tolist() == [[1500, 2.5], [2000, 3.5], [3000, 4]]


def test_rows_that_repeat_are_merged_and_counted(path, write):
    """Before, the same customer twice was an error."""
    table = write("f.csv", "node,size,kind\na,1,x\nb,3,y\na,1,x\nc,4,x\nd,8,y\na,1,x\n")
    with pytest.warns(DemonetWarning, match="2 rows"):
        data = read_graph(path, table, table, label_column="kind")
    assert (data.x[:, 0].tolist(), data.y.tolist()) == ([1, 3, 4, 8], [0, 1, 0, 1])
    with pytest.raises(DemonetError, match=r"g\.csv:4: .*'a'"):
        read_graph(path, features=write("g.csv", "node,size\na,1\nb,3\na,2\n"))


def test_the_ends_of_an_edge_are_only_guessed_where_that_is_safe(write):
    """Before, the date was the source, and nothing was said."""
    rows = [f"2024-01-{i % 28 + 1:02};k{i % 5};c{i};c{i * 7 % 300};{i},5" for i in range(300)]
    with pytest.raises(DemonetError) as caught:
        read_graph(write("e.csv", "\n".join(["datum;art;konto;gegenkonto;betrag", *rows])))
    assert all(part in str(caught.value) for part in ("'datum' (2024-01-01", "'betrag' (0,5", "source='art'"))
    short = [";".join(row.split(";")[1:4]) for row in rows]
    with pytest.raises(DemonetError, match="source='konto' target='gegenkonto'"):
        read_graph(write("f.csv", "\n".join(["art;konto;gegenkonto", *short])), header=True)
    assert read_graph(write("g.csv", "\n".join(["Datum;Art;Von;Nach;Betrag", *rows]))).num_nodes == 300


def test_the_column_of_labels_is_only_guessed_where_that_is_safe(path, write):
    table = "node,branch,risk\na,bank,high\nb,shop,low\nc,shop,high\n"
    with pytest.raises(DemonetError) as caught:
        read_graph(path, write("l.csv", table))
    assert all(part in str(caught.value) for part in ("'branch' (bank, shop", "'risk' (high, low", "label_column="))
    assert read_graph(path, write("m.csv", table.replace("risk", "Label"))).class_names == ["high", "low"]


def test_columns_beside_the_labels_are_told(path, write):
    table = write("l.csv", "node,town,label,income\na,x,hoch,3\nb,y,hoch,4\nc,x,nied,5\n")
    with pytest.warns(DemonetWarning, match=r"l\.csv: not used: 'town', 'income' \(features=.*l\.csv"):
        read_graph(path, table)
    with pytest.warns(DemonetWarning, match="not used: 'town', 'income'$"):
        read_graph(path, table, write("f.csv", "node,age\na,1\nb,2\nc,3\n"))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*not used: ")
        assert read_graph(path, table, table).x is not None
        read_graph(path, write("m.csv", "node,label\na,hoch\nb,hoch\nc,nied\n"))


def test_windows_1252_is_read_and_told(write):
    text = "source;target\nMünchen;Köln\nKöln;Ulm\n"
    with pytest.warns(DemonetWarning, match=r"e\.csv: .*Windows-1252.*'ü'"):
        data = read_graph(write("e.csv", text.encode("cp1252")))
    assert ids_of(data) == ["Köln", "München", "Ulm"]


def test_two_columns_of_one_name_are_refused(path, write):
    with pytest.raises(DemonetError, match=r"f\.csv:1: .*'size'"):
        read_graph(path, features=write("f.csv", "node,size,size\na,1,2\n"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("source,target", "source,target"),
        ("source;target", "SOURCE;Target"),
        ("source,target", ' Source , "target"'),
        ("source\ttarget", '\ufeff"source"\ttarget'),
        ("source target", '"SOURCE"  target'),
        ("source,target,größe", "source,target,GRÖSSE"),
    ],
)
def test_a_second_header_is_no_edge(write, first, second):
    """Before, it was one where it was written otherwise than the first, and nothing was said."""
    mark = next(mark for mark in ",;\t " if mark in first)
    rows = [mark.join((*ends, "1")[: first.count(mark) + 1]) for ends in ("ab", "bc")]
    with pytest.warns(DemonetWarning, match=r"e\.csv: a line that repeats the header"):
        data = read_graph(write("e.csv", f"# both\n{first}\n{rows[0]}\n{second}\n{rows[1]}\n"))
    assert ids_of(data) == ["a", "b", "c"]


def test_lines_keep_their_numbers_where_a_second_header_is_left_out(write):
    with pytest.raises(DemonetError, match=r"f\.csv:5: "):
        read_graph(write("f.csv", "source,target\na,b\nsource,target\nb,c\nc\n"))


def test_names_and_too_many_categories_are_left_out(write):
    edges = write("edges.csv", "source,target\n" + "".join(f"n{i},n{i + 1}\n" for i in range(119)))
    rows = "".join(f"n{i},name{i},k{i % 60},{i}\n" for i in range(120))
    with pytest.warns(DemonetWarning) as caught:
        data = read_graph(edges, features=write("f.csv", f"node,who,kind,size\n{rows}"))
    assert [name for name in ("'who'", "'kind'") if any(name in str(w.message) for w in caught)] == ["'who'", "'kind'"]
    assert data.columns.names == ["size"]


def test_a_node_without_a_row_counts_as_missing(path, write):
    features = write("f.csv", "node,size,kind\na,1,x\nb,3,y\nc,,x\n")
    with pytest.warns(DemonetWarning, match="node 'd'.*1 of 4"):
        data = read_graph(path, features=features)
    assert data.x.tolist() == [[1, 0, 1, 0], [3, 0, 0, 1], [2, 1, 1, 0], [2, 1, 0, 0]]


def test_another_table_is_encoded_as_the_first(path, write):
    first = read_graph(path, features=write("f.csv", "node,size,kind\na,1,x\nb,3,y\nc,4,x\nd,8,y\n"))
    learned = Columns.from_state(first.columns.state())
    assert learned == first.columns
    other = write("g.csv", "kind,more,size,node\ny,1,5,a\nz,1,,b\nx,1,6,c\n,1,7,d\n")
    with pytest.warns(DemonetWarning) as caught:
        data = read_graph(path, features=other, columns=learned)
    assert data.x.tolist() == [[5, 0, 1], [3.5, 0, 0], [6, 1, 0], [7, 0, 0]]
    text = " ".join(str(warning.message) for warning in caught)
    assert all(word in text for word in ("'more'", "'z' in 'kind'"))
    with pytest.raises(DemonetError, match=r"h\.csv: .*missing: 'size'"):
        read_graph(path, features=write("h.csv", "node,kind\na,x\nb,y\nc,x\nd,y\n"), columns=learned)
    with pytest.raises(DemonetError, match=r"i\.csv:2: 'big'.*'size'"):
        read_graph(path, features=write("i.csv", "node,kind,size\na,x,big\nb,y,1\n"), columns=learned)


def test_columns_without_names_that_are_not_those_of_training(path, write):
    """Before, columns in another order were read as those of training, and nothing was said."""
    rows = [("a", 100, 0.5), ("b", 200, 0.25), ("c", 300, 0.75), ("d", 400, 0.125)]
    first, second, named = (
        "".join(f"{n},{x},{y}\n" for n, x, y in rows),
        "".join(f"{n},{y},{x}\n" for n, x, y in rows),
        "node,big,small\n" + "".join(f"{n},{x},{y}\n" for n, x, y in rows),
    )
    near = "a,1,0\nb,2,1\nc,3,2\nd,4,3\n"
    learned = {text: read_graph(path, features=write("f.csv", text)).columns for text in (first, named, near)}
    for trained, given, fact in (
        (first, second, r"'column 2' \([^)]*; in training [^)]* 100 to 400\), 'column 3' \([^)]* 0.125 to 0.75\)"),
        (near, "a,0,1\nb,1,2\nc,-1,3\nd,3,3\n", r"'column 2' \([^)]*; in training [^)]* 1 to 4\)"),
        (named, first, "no names.*'big', 'small'"),
        (first, named, "has names.*'column 2', 'column 3'"),
    ):
        with pytest.warns(DemonetWarning, match=rf"g\.csv: .*{fact}"):
            read_graph(path, features=write("g.csv", given), columns=Columns.from_state(learned[trained].state()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_graph(path, features=write("g.csv", first), columns=learned[first])


def test_rows_without_ids_need_an_order_that_is_known(write, tmp_path):
    """Before, one id that is a word made the order 1, 10, 2, and rows went to other nodes."""
    np.save(tmp_path / "x.npy", np.arange(4)[:, None])
    words, mixed = write("w.csv", "a,b\nb,c\nc,d\n"), write("m.csv", "1,10\n10,2\n2,x\n")
    assert read_graph(words, features=tmp_path / "x.npy").x[:, 0].tolist() == [0, 1, 2, 3]
    for options in ({"features": tmp_path / "x.npy"}, {"features": np.eye(4)}, {"labels": list("aabb")}):
        with pytest.raises(DemonetError, match="'x'"):
            read_graph(mixed, **options)


@pytest.mark.parametrize("add", [False, True])
def test_a_header_does_not_become_a_node(path, write, add):
    with pytest.warns(DemonetWarning, match=r"'person, role' .*header"):
        data = read_graph(path, write("l.csv", "person,role\na,x\nb,y\nc,x\n"), add_isolated=add)
    assert (ids_of(data), data.class_names) == (["a", "b", "c", "d"], ["x", "y"])
    with pytest.warns(DemonetWarning, match=r"'person, kind' .*header"):
        data = read_graph(path, features=write("f.csv", "person,kind\na,x\nb,y\nc,x\nd,x\n"), add_isolated=add)
    assert data.columns.names == ["kind=x", "kind=y"]
    labels = write("m.csv", "person,score\na,1.5\nb,2\n")  # numbers below words
    assert read_graph(path, labels, add_isolated=add).num_nodes == 4


def test_warnings_point_at_the_line_of_the_user(path):
    with pytest.warns(DemonetWarning) as caught:
        read_graph([("a", "b"), ("a", "b"), ("b", "c")])
    assert caught[0].filename == __file__


def test_kinds_of_columns():
    x = np.array([[0, 1.5, 1, 40], [0, -1, 1, 30], [2, 0, 0, 50], [0, 0, 1, 0]])
    assert column_kinds(x) == ["count", "number", "indicator", "number"]
    graph = read_graph([(0, 1), (1, 2), (2, 3)], features=x.astype(np.float32))
    assert matrix_kind([graph]) == "numbers"
    assert fitting_features("tfidf+degree-rbf", [graph]) == "columns+degree-rbf"
    rows = FeatureMap("columns").fit_transform(graph).numpy()
    np.testing.assert_allclose(rows[:, 0], [0, 0, 1, 0])
    np.testing.assert_allclose(rows[:, 1], (x[:, 1] - x[:, 1].mean()) / x[:, 1].std(), rtol=1e-6)
    np.testing.assert_array_equal(rows[:, 2], x[:, 2])
    counts = read_graph([(0, 1), (1, 2)], features=np.array([[0, 0, 2], [3, 0, 0], [0, 0, 0]]))
    assert (matrix_kind([counts]), fitting_features("tfidf", [counts])) == ("counts", "tfidf")
    ages = read_graph([(0, 1), (1, 2)], features=np.array([[31, 2], [25, 3], [60, 1]]))
    assert matrix_kind([ages]) == "numbers"
    assert matrix_kind([read_graph([(0, 1), (1, 2)], features=np.eye(3))]) == "labels"
    assert matrix_kind([read_graph([(0, 1)])]) == "none"


TU = {"A": "1, 2\n2, 3\n4, 5\n5, 6\n", "graph_indicator": "1\n1\n1\n2\n2\n2\n", "graph_labels": "-1\n1\n"}


def tu(folder, name="SET", **parts):
    folder.mkdir()
    for part, text in parts.items():
        (folder / f"{name}_{part}.TXT.GZ").write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


def test_folders_without_labels_with_attributes_and_in_capitals(tmp_path):
    graphs = read_graphs(tu(tmp_path / "a", **TU))
    assert (graphs.y.tolist(), graphs.class_names) == ([0, 1], [-1, 1])
    unlabelled = read_graphs(tu(tmp_path / "b", A=TU["A"], graph_indicator=TU["graph_indicator"]))
    assert unlabelled.y.tolist() == [-1, -1]
    numbers = read_graphs(tu(tmp_path / "c", **TU, node_attributes="1.5\n2\n3\n4\n5\n6\n"))
    assert numbers[0].x.tolist() == [[1.5], [2], [3]]
    (tmp_path / "a" / "SET_graph_labels.txt").write_text(TU["graph_labels"])
    assert read_graphs(tmp_path / "a").y.tolist() == [0, 1]
    (tmp_path / "a" / "SET_graph_labels.txt").write_text("1\n-1\n")
    with pytest.raises(DemonetError, match=r"SET_graph_labels\.txt: "):  # one of the two was taken before
        read_graphs(tmp_path / "a")


@pytest.mark.parametrize(("mark", "suffix"), [("#", "tsv"), ("%", "csv.gz")])
def test_an_id_may_start_like_a_comment(write, mark, suffix):
    """Before, half of the edges vanished without a word."""
    text = f"{mark} made by hand\n\nsource,target\n{mark}a,b\nb,c\n{mark}a,c\n"
    if suffix == "tsv":
        text = text.replace(",", "\t")
    file = write(f"edges.{suffix}", gzip.compress(text.encode()) if suffix.endswith("gz") else text)
    with pytest.warns(DemonetWarning, match=r"\b1 line\b"):
        data = read_graph(file)
    assert ids_of(data) == [f"{mark}a", "b", "c"]
    assert data.edge_index.size(1) == 6


def test_comments_of_other_text_are_counted(write):
    file = write("edges.txt", "# snap\n1 2\n%3 4\n2 3\n")
    with pytest.warns(DemonetWarning, match=r"edges.txt: 2 lines\b") as caught:
        data = read_graph(file)
    assert len(caught) == 1
    assert data.edge_index.size(1) == 4


def test_columns_of_edges_that_are_not_read_are_named(write):
    """Amounts beside the edges were left out without a word."""
    path = write("e.csv", "von;nach;datum;betrag\na;b;2023-01-01;1,5\nb;c;2023-01-02;2,5\n")
    with pytest.warns(DemonetWarning, match="'datum', 'betrag'") as caught:
        assert "edge_weight" not in read_graph(path)
    told = next(str(warning.message) for warning in caught if "datum', 'betrag" in str(warning.message))
    assert "weight='betrag'" in told
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_graph(path, weight="betrag")
    assert sorted(set(data.edge_weight.tolist())) == [1.5, 2.5]
    assert not any("datum'" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("value", ["2023-01-01 10:30:00", "1,5"])
def test_a_header_above_dates_is_recognised(write, value):
    """Names of firms and a date: the first line was read as an edge whose weight is no number."""
    path = write("e.csv", f"zahler;empfanger;datum\nFirma 1;Firma 2;{value}\nFirma 2;Firma 3;{value}\n")
    with pytest.warns(DemonetWarning, match="'zahler, empfanger, datum' is read as a header"):
        assert read_graph(path).num_nodes == 3


def test_words_in_the_third_column_are_no_weights(write):
    """Without a number or date there may be no header: the error says how to name the columns if there is one."""
    path = write("e.csv", "zahler;empfanger;art\nFirma 1;Firma 2;Kunde\nFirma 2;Firma 3;Kunde\n")
    with pytest.raises(DemonetError, match="'art' is not a number") as caught:
        read_graph(path)
    assert "source='zahler' target='empfanger'" in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_graph(path, source="zahler", target="empfanger").num_nodes == 3


def test_what_labels_leave_out_is_told_once(write):
    edges = write("e.csv", "source,target\na,b\nb,c\nc,a\n")
    labels = write("l.csv", "firma;branche\na;Bau\nb;NA\nc;Handel\n")
    with pytest.warns(DemonetWarning) as caught:
        read_graph(edges, labels=labels)
    assert sum("unlabelled" in str(warning.message) for warning in caught) == 1


def test_a_first_row_with_a_date_is_no_header(write):
    rows = "".join(f"{1 + i % 28}.01.2024;K{i};K{i + 7};{i},50\n" for i in range(60))
    path = write("edges.csv", rows)
    with pytest.raises(DemonetError, match="source=1 target=2"):
        read_graph(path)
    assert read_graph(path, source=1, target=2).num_edges == 120


def test_of_several_columns_the_hint_names_the_one_that_looks_most_like_labels(path, write):
    labels = write("people.csv", "node,name,trade,risk\na,Ann,x,high\nb,Bob,y,\nc,Cem,x,low\nd,Dan,y,low\n")
    with pytest.raises(DemonetError, match="label_column='risk'"):
        read_graph(path, labels)


def test_the_labels_in_another_table_are_no_attribute(path, write):
    labels, people = write("labels.csv", "node,risk\na,1\nb,2\nc,1\n"), "node,age,risk\na,3,1\nb,4,2\nc,5,1\nd,6,2\n"
    with pytest.warns(DemonetWarning, match="'risk'"):
        data = read_graph(path, labels, write("people.csv", people))
    assert data.columns.names == ["age"]


def test_a_column_of_lists_is_refused_by_name(write):
    labels = write("likes.json", '[{"node": "a", "likes": ["x"]}, {"node": "b", "likes": ["x", "y"]}]')
    with pytest.raises(DemonetError, match="'likes'"):
        read_graph(write("edges.csv", PATH), labels)


@pytest.mark.parametrize("columns", [{}, {"label_column": 1}])
@pytest.mark.parametrize("name", ["table.csv", "./table.csv"])
def test_labels_in_a_table_without_names_are_no_attribute_of_it(path, write, columns, name):
    """Before, the labels were among the attributes, and every model was right about all of them."""
    table = write("table.csv", "a,0,5\nb,1,6\nc,0,7\nd,1,8\n")
    given = os.path.join(os.path.dirname(table), name)
    if not columns:
        with pytest.raises(DemonetError, match=r"table\.csv: .*first line"):
            read_graph(path, table, given)
        return
    data = read_graph(path, table, given, **columns)
    assert (data.y.tolist(), data.x.tolist()) == ([0, 1, 0, 1], [[5], [6], [7], [8]])


def test_a_column_called_like_the_labels_in_capitals_or_not_at_all_is_no_attribute(path, write):
    labels = write("labels.csv", "node,label\na,x\nb,y\nc,x\nd,y\n")
    table = write("table.csv", ",node,Label,size\n0,a,x,5\n1,b,y,6\n2,c,x,7\n3,d,y,8\n")
    with pytest.warns(DemonetWarning) as told:
        data = read_graph(path, labels, table)
    assert data.columns.names == ["size"]
    assert ["'Label'" in str(each.message) for each in told] == [True, False]
    assert "column 1" in str(told[1].message)
    again = read_graph(path, features=table, columns=data.columns)
    assert again.x.tolist() == data.x.tolist() == [[5], [6], [7], [8]]


def test_another_table_with_dates_or_gaps_that_training_did_not_have(path, write):
    """Before, dates that may be read in two ways were read day first, and gaps became medians in silence."""
    first = read_graph(path, features=write("f.csv", "node,day,size\na,2024-05-06,1\nb,2024-05-07,2\n"))
    with pytest.raises(DemonetError, match=r"g\.csv: '5/6/2024' in column 'day': day or month"):
        read_graph(path, features=write("g.csv", "node,day,size\na,5/6/2024,1\n"), columns=first.columns)
    for form in ("6.5.2024", "2024-05-06 00:00"):
        table = write("h.csv", f"node,day,size\na,{form},\nb,{form},2\n")
        with pytest.warns(DemonetWarning, match=r"'size' \(1 of 2\)"):
            again = read_graph(path, features=table, columns=first.columns)
        assert again.x[:2].tolist() == [[*first.x[0, :3].tolist(), 1.5], [*first.x[0, :3].tolist(), 2]]


@pytest.fixture
def amounts(write):
    """A function that reads a table of amounts and days of 40 nodes, as training or as a changed one."""
    draw = np.random.default_rng(0)
    given, day = draw.lognormal(5, 2, 40) * draw.choice([-1, 1], 40), draw.integers(0, 300, 40)

    def read(columns=None, amount=lambda given: given, days=lambda day: day, rows=40):
        cells = zip(range(rows), amount(given), np.datetime64("2023-03-01") + days(day), strict=False)
        table = write("f.csv", "node,amount,day\n" + "".join(f"{node},{size:.9g},{at}\n" for node, size, at in cells))
        edges = write("ring.csv", "".join(f"{node},{(node + 1) % rows}\n" for node in range(rows)))
        return read_graph(edges, features=table, columns=columns).columns

    return read


@pytest.mark.parametrize("change", [
    {"amount": lambda given: given / 1000},
    {"amount": lambda given: given * 1000},
    {"amount": lambda given: given / 60},
    {"amount": lambda given: np.round(given / 1e6)},
    {"days": lambda day: day // 300 - 19_400},
    {"days": lambda day: day - 36_525},
    {"days": lambda day: day * 1000 + 3_000},
])  # fmt: skip
def test_a_column_in_other_units_is_told(amounts, change):
    """A thousand times smaller, most of it is within the range of training: before, nothing was said."""
    columns, name = amounts(), "day" if "days" in change else "amount"
    with pytest.warns(DemonetWarning, match=rf"f\.csv: .*'{name}' \(median \S+, .* to .*; in training median") as told:
        amounts(columns, **change)
    assert len(told) == 1


@pytest.mark.parametrize("change", [
    {},
    {"amount": lambda given: given * 4, "days": lambda day: day + 900},
    {"amount": lambda given: given / 4, "days": lambda day: -day},
    {"amount": lambda given: given / 1000, "rows": 9},
    {"amount": lambda given: np.where(np.arange(40) < 28, given / 1000, given)},
    {"amount": lambda given: np.where(np.arange(40) < 35, 0, given)},
])  # fmt: skip
def test_a_column_that_drifts_is_not_told(amounts, change):
    """Growth and later days, few rows, and other shares of small, large and zero values."""
    columns = amounts()
    with warnings.catch_warnings():
        warnings.simplefilter("error", DemonetWarning)
        amounts(columns, **change)


def test_a_column_that_is_empty_now_is_told(path, write):
    edges = write("ring.csv", "".join(f"{node},{(node + 1) % 12}\n" for node in range(12)))
    tables = [
        "node,size\n" + "".join(f"{node},{node if full and node else ''}\n" for node in range(12)) for full in (1, 0)
    ]
    first = read_graph(edges, features=write("f.csv", tables[0]))
    with pytest.warns(DemonetWarning, match=r"g\.csv: .*'size' \(no value; in training median 6, 1 to 11\)"):
        read_graph(edges, features=write("g.csv", tables[1]), columns=first.columns)


def test_a_day_that_does_not_exist_and_numbers_that_are_too_large_are_named(path, write):
    with pytest.raises(DemonetError, match=r"f\.csv: '2024-02-30' in column 'day' is not a date"):
        read_graph(path, features=write("f.csv", "node,day\na,2024-02-28\nb,2024-02-30\n"))
    first = read_graph(path, features=write("f.csv", "node,size\na,1\nb,3e38\nc,3\nd,4\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for columns in (None, first.columns):
            with pytest.raises(DemonetError, match=r"f\.csv:3: 1e\+200 in column 'size'"):
                read_graph(path, features=write("f.csv", "node,size\na,1\nb,1e200\n"), columns=columns)


def test_an_infinite_number_among_labels_that_measure_is_no_class(path, write):
    """Before, all of them became classes."""
    labels = write("l.csv", "node,size\na,1.5\nb,-inf\nc,3.5\nd,4.5\n")
    table = read_problem(path, labels, None, ReadOptions(), InputFiles()).labels
    assert "'-inf'" in str(table.error)
    assert table.error.line == 3


def test_a_typing_error_in_a_column_without_a_name_is_left_out_by_its_number(path, write):
    with pytest.raises(DemonetError, match=r"f\.csv:2: .*ignore=2"):
        read_graph(path, features=write("f.csv", "a,1,5\nb,2,six\nc,3,7\nd,4,8\n"))


def test_byte_order_marks_of_files_that_were_put_together(write):
    text = b"".join(b"\xef\xbb\xbf" + part for part in (b"a,b\r\nb,c\r\n", b"a,c\n", b"c,d\n"))
    assert ids_of(read_graph(write("edges.csv", text))) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("weight", ["1e39", "-1e39"])
def test_a_weight_that_no_float_has_is_refused(write, weight):
    with pytest.raises(DemonetError, match=r"e\.csv: weight -?1e\+39"):
        read_graph(write("e.csv", f"source,target,weight\na,b,1\nb,c,{weight}\n"))
    with pytest.raises(DemonetError, match=r"f\.csv: weight 6e\+38"):
        read_graph(write("f.csv", "source,target,weight\na,b,3e38\nb,a,2.9e38\na,b,1e37\n"))
