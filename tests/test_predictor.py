"""`demonet.fit` and `demonet.predict`: files and frames give what the command gives."""

import numpy as np
import pandas as pd
import pytest
from tests.runs.files import write_problem

import demonet
from demonet import DemonetError
from demonet.data.synthetic import role_graph
from demonet.runs import load_run


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    write_problem(folder)
    files = folder / "edges.csv", folder / "labels.csv"
    return files, demonet.fit(*files, out=folder / "run", model="kernel")


def test_frames_give_what_files_give(fitted):
    (edges, labels), model = fitted
    frames = [pd.read_csv(path, dtype=str) for path in (edges, labels)]
    same = demonet.fit(*frames, model="kernel")
    assert same.metrics["test_metric"] == model.metrics["test_metric"]
    pd.testing.assert_frame_equal(same.predictions(), model.predictions())
    item = str(same.run.ids[0])
    pd.testing.assert_frame_equal(same.explain(item), model.explain(item))
    again = model.predict(frames[0])
    np.testing.assert_array_equal(again["prediction"], model.predict(edges)["prediction"])


def test_tables_say_what_the_run_says(fitted):
    (edges, _), model = fitted
    run = load_run(model.folder)
    board = model.leaderboard()
    ours = board[(board["kind"] == "model") & (board["rule"] == run.metrics["rule"])]
    assert ours[run.metric.title].item() == run.metrics["test_metric"]
    written = pd.read_csv(model.folder / "predictions.csv", dtype={"node": str, "label": str, "prediction": str})
    assert model.predictions()["prediction"].tolist() == written["prediction"].tolist()
    name = run.class_names[0]
    ranked = model.rank(name, top=5)
    np.testing.assert_allclose(ranked[name], sorted(written[name], reverse=True)[:5], rtol=1e-6)
    assert "<table" in model._repr_html_()
    assert len(model.importance()) == len(run.metrics["importance"])
    assert model.predict(edges, rank=name, top=3, reasons=2)["reasons"].map(bool).tolist() == [True, True, False]
    why = model.explain(run.ids[0])
    assert why["effect"].abs().is_monotonic_decreasing
    assert not why.empty
    assert model.embed(edges).shape[0] == len(run.ids)


def test_a_copy_is_a_run_of_its_own(fitted, tmp_path):
    (edges, _), model = fitted
    copy = model.save(tmp_path / "copy")
    pd.testing.assert_frame_equal(demonet.predict(tmp_path / "copy", edges), model.predict(edges))
    assert copy.report().read_bytes() == model.report().read_bytes()
    with pytest.raises(DemonetError):
        model.save(tmp_path / "copy")


def test_bad_arguments_are_refused(fitted):
    (edges, labels), model = fitted
    with pytest.raises(DemonetError, match="speed"):
        demonet.fit(edges, labels, speed=3)
    with pytest.raises(DemonetError, match="edges"):
        demonet.fit(role_graph(), labels)
    mixed = pd.DataFrame({"source": [1, "1"], "target": [2, 3]})
    with pytest.raises(DemonetError, match="edges"):
        demonet.fit(mixed, labels)
    for call in (model.rank, model.explain):
        with pytest.raises(DemonetError, match="nobody"):
            call("nobody")
