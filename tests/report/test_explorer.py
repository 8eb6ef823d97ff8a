from __future__ import annotations

import base64
import gzip
import json

import numpy as np
import pytest

from demonet.errors import DemonetError
from demonet.report.explorer import View, pack
from demonet.report.page import script_json
from demonet.report.run import run_page

TYPES = {"Int8Array": "<i1", "Int16Array": "<i2", "Uint16Array": "<u2", "Int32Array": "<i4", "Float32Array": "<f4"}


def unpack(packed):
    kind, text = packed
    return np.frombuffer(gzip.decompress(base64.b64decode(text)), TYPES[kind])


def explorer(run):
    (found,) = [section for section in run_page(run).sections if section.kind == "explorer"]
    return found


def test_all_items_travel(make_run):
    run = make_run(500, 5, kind="graphs")
    packed = json.loads(explorer(run).json)
    assert json.loads(gzip.decompress(base64.b64decode(packed["ids"]))) == run.ids
    for name, column in {"y": run.y, "part": run.part, "size": run.degree, "edges": run.edge_count}.items():
        np.testing.assert_array_equal(unpack(packed["channels"][name]["values"]), column)
    np.testing.assert_array_equal(unpack(packed["channels"]["prediction"]["values"]), run.prediction)
    confidence = packed["channels"]["confidence"]
    np.testing.assert_allclose(unpack(confidence["values"]) * confidence["unit"], run.confidence, atol=1e-5)


def test_places_are_exact_to_a_sixtyfive_thousandth_of_the_longer_side():
    place = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32) * [1, 100]
    packed = View("t", "a", "c", place).packed
    read = np.stack([unpack(packed["x"]), unpack(packed["y"])], 1) * packed["unit"] + packed["corner"]
    np.testing.assert_allclose(read, place, atol=np.ptp(place[:, 1]) / 65534)


@pytest.mark.parametrize("place", [np.zeros((3, 2)), np.full((3, 2), np.nan), np.zeros((0, 2))])
def test_places_that_span_nothing_are_packed(place):
    packed = View("t", "a", "c", place.astype(np.float32)).packed
    assert np.isfinite([packed["unit"], *packed["corner"]]).all()
    assert packed["unit"] > 0
    assert set(unpack(packed["x"]).tolist()) <= {0, packed["absent"]}


def test_an_item_without_a_place_is_marked():
    packed = View("t", "a", "c", np.array([[0, 0], [np.inf, 1], [1, 1]], dtype=np.float32)).packed
    assert unpack(packed["x"]).tolist() == [0, packed["absent"], 65534]


def test_edges_travel_end_by_end():
    packed = View("t", "a", "c", np.zeros((4, 2), np.float32), np.array([[0, 1], [2, 3]])).packed
    assert unpack(packed["edges"]).tolist() == [0, 2, 1, 3]


def test_hostile_names_cannot_leave_their_script(make_run, hostile):
    text = script_json(explorer(make_run(5, 5, ids=list(hostile), class_names=list(hostile))).json)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["channels"]["y"]["names"][:2] == list(hostile[:2])


def test_the_same_numbers_give_the_same_text():
    assert pack(np.arange(9, dtype=np.int32)) == pack(np.arange(9, dtype=np.int32))


def test_columns_of_other_lengths_are_refused(make_run):
    with pytest.raises(DemonetError, match=r"\[59, 60\]"):
        explorer(make_run(60, place=np.zeros((59, 2), np.float32)))
