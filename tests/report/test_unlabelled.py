"""What the page says of items without a label: counted, listed from both ends, and saved as a file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from tests.report.browsing import opened, overflow

from demonet.report import run_unlabelled
from demonet.report.page import Table, write
from demonet.report.run import run_page
from demonet.report.run_unlabelled import unlabelled


@pytest.fixture
def run(make_run):
    """A run in which every second node has no label; one id is long."""
    made = make_run(90, 3, ids=[f"customer-{10**9 + i}" for i in range(90)])
    made.y[::2], made.part[::2] = -1, -1
    return made


def rows_of(file: tuple[str, str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file[1])))


def test_the_most_certain_and_the_most_doubtful_are_listed_and_all_are_saved(run):
    text, table = unlabelled(run, run.ids)
    assert "45 of 90 nodes" in text.text
    counts = np.bincount(run.prediction[::2])
    assert all(f"{name} {count}" in text.text for name, count in zip(run.class_names, counts, strict=True))
    assert [size for _, size in table.groups] == [10, 10]
    shown, everyone = [row[2] for row in table.rows], np.sort(run.confidence[::2])
    assert shown[:10] == pytest.approx(everyone[:-11:-1])
    assert shown[10:] == pytest.approx(everyone[:10])
    saved = rows_of(table.file)
    assert sorted(row["node"] for row in saved) == sorted(run.ids[::2])
    place = {name: i for i, name in enumerate(run.ids)}
    assert all(row["prediction"] == run.class_names[run.prediction[place[row["node"]]]] for row in saved)


def test_few_are_one_list_and_none_is_no_section(make_run, run):
    run.y[12:], run.part[12:] = 0, 0
    _, table = unlabelled(run, run.ids)
    assert (len(table.rows), list(table.groups)) == (6, [])
    assert unlabelled(make_run(30), []) == []


@pytest.mark.parametrize("make", ["make_numbers", "make_labels"])
def test_other_tasks_have_them_too(make, request):
    made = request.getfixturevalue(make)()
    made.y[:25], made.part[:25] = np.nan, -1
    text, table = unlabelled(made, made.ids)
    missing = int((~made.known).sum())
    assert missing >= 25
    assert f"{missing} of {len(made.ids)}" in text.text
    assert len(rows_of(table.file)) == missing
    assert "unlabelled" in {section.anchor for section in run_page(made).sections}


def test_a_file_that_would_be_too_large_is_left_to_the_folder(run, monkeypatch):
    monkeypatch.setattr(run_unlabelled, "MOST_SAVED", 44)
    _, table = unlabelled(run, run.ids)
    assert table.file is None
    assert "predictions.csv" in table.caption


@pytest.mark.browser
def test_the_file_is_saved_and_a_phone_shows_whole_ids_and_lists(run, browser, tmp_path):
    """Long ids were broken in the middle, and lists were cut at 32 lines' height."""
    write(run_page(run), tmp_path / "page.html")
    with opened(
        browser, tmp_path / "page.html", silent=("data:", "blob:"), viewport={"width": 390, "height": 844}
    ) as view:
        with view.page.expect_download() as waiting:
            view.page.click("button.save")
        table = next(s for s in run_page(run).sections if isinstance(s, Table) and s.file)
        assert (waiting.value.suggested_filename, Path(waiting.value.path()).read_text()) == table.file
        assert overflow(view.page) == 0
        lines = """all => all.map((cell) => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            return new Set([...text.getClientRects()].map((box) => box.top)).size;
        })"""
        assert set(view.page.eval_on_selector_all("tbody th.id", lines)) == {1}
        cut = "all => all.filter((box) => box.scrollHeight > box.clientHeight + 1).length"
        assert view.page.eval_on_selector_all(".scroll", cut) == 0
        assert [line for line in view.heard if not line.startswith("request: file:")] == []
