"""The site says what is true: every block of every page does what is shown, and what code knows is not typed in."""

from __future__ import annotations

import doctest
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from tests.pages import DATA, ROOT, blocks, run_page

import demonet
from demonet.ensemble import ensemble

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if any(True for _ in blocks(path)))
NEED_DATA = {"data", "baselines"}


@pytest.fixture
def folder(tmp_path, request):
    """An empty folder; for the page about data, with the files that it speaks of."""
    page = request.getfixturevalue("page")
    if page.stem in NEED_DATA and not DATA.is_dir():
        pytest.skip("the page loads the paper's data sets, and they are not here")
    if page.stem == "data":
        (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
        (tmp_path / "labels.csv").write_text("node,label\n1,a\n2,b\n")
        shutil.copytree(DATA / "MUTAG", tmp_path / "MUTAG")
    return tmp_path


@pytest.fixture
def fewer(monkeypatch, request):
    """Ensembles without the candidates for ordered classes, the slowest; not where a page shows what they reach."""
    if request.getfixturevalue("page").stem != "tutorial":
        every = ensemble.portfolio
        monkeypatch.setattr(ensemble, "portfolio", lambda *of: [one for one in every(*of) if "ordinal" not in one.name])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_does_what_is_shown(page, folder, fewer):
    run_page(page, folder)


def test_a_page_that_shows_something_else_fails(tmp_path):
    for wrong in (
        "python\nassert 1 == 2",
        "console\n$ echo a\nb",
        "console\n$ demonet fit no.csv --out run",
        "ruby\n1",
    ):
        page = tmp_path / "page.md"
        page.write_text(f"```{wrong}\n```\n")
        with pytest.raises(AssertionError):
            run_page(page, tmp_path)


def test_what_is_left_out_has_a_reason():
    reasons = {f"{page.name}:{block.line}": block.reason for page in PAGES for block in blocks(page) if block.reason}
    assert all(len(reason.split()) > 3 for reason in reasons.values()), reasons


GENERATED = runpy.run_path(str(DOCS / "site" / "generate.py"))


@pytest.mark.parametrize("page", GENERATED["PARTS"])
def test_generated_parts_are_as_the_code_has_them(page):
    stale = "run python docs/site/generate.py"
    assert (DOCS / page).read_text(encoding="utf-8") == GENERATED["written"](page), stale


def test_docstrings_become_markdown():
    names = runpy.run_path(str(DOCS / "site" / "docstrings.py"))
    (examples,) = doctest.DocTestFinder().find(names["to_markdown"], "to_markdown", module=False, globs=names)
    assert doctest.DocTestRunner().run(examples) == doctest.TestResults(failed=0, attempted=2)


def test_every_public_name_is_in_the_api():
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    told = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    assert {f"demonet.{name}" for name in demonet.__all__} <= told


def test_the_site_is_built_without_a_warning(tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    text = (site / "api" / "nn.html").read_text(encoding="utf-8")
    assert "DEMOConv" in text
    assert not re.search(r":(class|func|math|meth):`|\.\. math::", text), "a docstring's markup shows on the page"
