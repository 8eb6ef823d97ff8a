"""Pages as text: nothing hostile gets through, and what is invisible is written out."""

import base64
import gzip
import hashlib
import json
import re
import unicodedata
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demonet.errors import DemonetError
from demonet.escape import visible
from demonet.report.figures import confusion
from demonet.report.page import Facts, Figure, Page, Table, Text, render, script_json, write
from demonet.report.table_cells import Column, Estimate


class Reader(HTMLParser):
    """Tags with their attributes, and the text inside each tag, as a browser would see them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append((self.tags[-1][0] if self.tags else "", data))

    def text_of(self, tag):
        return [text for name, text in self.texts if name == tag and text.strip()]


@pytest.fixture(scope="module")
def html(hostile_page):
    return render(hostile_page)


@pytest.fixture(scope="module")
def reader(html):
    return Reader(html)


def test_hostile_text_makes_no_tag_and_no_handler(reader):
    names = {name for name, _ in reader.tags}
    assert not names & {"img", "a", "b", "i", "iframe", "object"}
    assert not [key for _, attributes in reader.tags for key in attributes if key.startswith("on")]
    scripts = [attributes.get("type") for name, attributes in reader.tags if name == "script"]
    assert scripts.count(None) == 1, "only the page's own script runs"
    assert set(scripts) == {None, "application/json", "text/plain"}


def test_hostile_text_is_shown_as_it_was_written(reader, hostile):
    expected = [visible(text, "\n\t") for text in hostile]  # what cannot be seen, and might reorder it, as codes
    assert reader.text_of("title") == [hostile[0]]
    assert [text.strip() for text in reader.text_of("dt")] == [text.strip() for text in expected]


def test_data_in_scripts_has_no_character_that_could_end_one(html):
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert len(blocks) == 5  # a table, three figures, the palette
    for block in blocks:
        assert not re.search("[<>&\u2028\u2029]", block)
        json.loads(block)


def test_script_json_is_the_same_json(hostile):
    assert json.loads(script_json(json.dumps(hostile, ensure_ascii=False))) == list(hostile)


def test_the_policy_allows_exactly_the_two_scripts_and_no_request(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    own = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    packed = re.search(r'<script type="text/plain" id="plotly">(.*?)</script>', html, re.DOTALL)[1]
    hashes = [
        base64.b64encode(hashlib.sha256(source).digest()).decode()
        for source in (own.encode(), gzip.decompress(base64.b64decode(packed)))
    ]
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("script-src " + " ".join(f"'sha256-{digest}'" for digest in hashes))


def test_the_page_is_small_and_loads_nothing(html, reader):
    assert len(html.encode()) < 2_500_000
    addresses = [value for _, attributes in reader.tags for key, value in attributes.items() if key in ("src", "href")]
    assert addresses == ["data:,"]


def test_the_same_page_gives_the_same_text(html, hostile_page):
    assert render(hostile_page) == html


def test_a_page_without_figures_does_not_carry_plotly():
    assert len(render(Page("a", "", [Text("b")]))) < 40_000


def test_text_is_cut_into_paragraphs():
    assert Text("one\nstill one\n\n \n two ").paragraphs == ["one\nstill one", "two"]


def test_a_table_marks_the_best_and_aligns_numbers():
    table = Table(["method", Column("accuracy", best="max")], [["a", Estimate(0.1, 0.01)], ["b", 0.25]], caption="c")
    html = render(Page("t", "s", [table]))
    assert '<th scope="col" class="number">accuracy</th>' in html
    assert '<td class="number">0.100<span class="deviation"> ± 0.010</span></td>' in html
    assert '<td class="number best">0.250<span class="unseen"> (best)</span></td>' in html
    assert '<th scope="row" class="id">b</th>' in html


def test_an_empty_table_keeps_its_head():
    assert '<th scope="col">method</th>' in render(Page("t", "", [Table(["method"], [])]))


def test_facts_and_figures_are_described(reader, hostile):
    labels = [attributes["aria-label"] for _, attributes in reader.tags if attributes.get("role") == "group"]
    assert [label for label in labels if not label.startswith("Table: ")] == [hostile[0], hostile[2], hostile[3]]
    assert '<dd class="number">131</dd>' in render(Page("t", "", [Facts({"nodes": 131})]))


def test_bad_sections_are_refused():
    with pytest.raises(DemonetError, match=r"row 2\b.*\b1\b.*\b2\b"):
        Table(["a", "b"], [[1, 2], [1]])
    with pytest.raises(DemonetError, match="alt="):
        Figure(confusion(np.eye(2, dtype=int), ["a", "b"]), alt=" ")


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DemonetError, match=r"report\.html.*No space left"):
        write(Page("t", "", []), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_a_plain_error(tmp_path):
    with pytest.raises(DemonetError, match=r"absent/report\.html: "):
        write(Page("t", "", []), tmp_path / "absent" / "report.html")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <b>", "plain <b>"),
        ("Köln 東京", "Köln 東京"),
        ("a\u202eb", r"a\u202eb"),
        ("a\x00\x1b\x7f\n", r"a\x00\x1b\x7f\n"),
        ("\u2028\ufeff", r"\u2028\ufeff"),
        ("می\u200cشود", "می\u200cشود"),
        (7, "7"),
    ],
)
def test_what_is_invisible_is_written_out(text, shown):
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_nothing_legible_is_invisible_and_nothing_is_lost(text):
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u202e\u2066\u200f"]
    if not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]:
        assert shown == text
    assert visible(shown) == shown


def test_names_cannot_reorder_a_page():
    """A label or file may have any name."""
    name = "a\u202egpj.exe \x1b[2J \u2066"
    html = render(Page(name, name, [Text(f"`{name}` and {name}", title=name)]))
    assert html.count("\\u202egpj") >= 4
    assert html.replace("\n", "").isprintable()
