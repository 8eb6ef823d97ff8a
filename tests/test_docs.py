"""The site says what is true: every block of every page does what is shown, and what code knows is not typed in."""

import doctest
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from tests.pages import DATA, ROOT, blocks, run_page
from tests.report.browsing import opened, overflow

import demonet

DOCS = ROOT / "docs"
IN_WALKS = {"recipes"}  # run with the built package, see tests/walks
PAGES = sorted(path for path in DOCS.glob("*.md") if any(True for _ in blocks(path)) and path.stem not in IN_WALKS)
NEED_DATA = {"data", "baselines", "closed-form"}
SHOW_CANDIDATES = {"tutorial", "quickstart-files"}  # pages that show what ensembles are made of


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_does_what_is_shown(page, folder, request):
    if page.stem not in SHOW_CANDIDATES:
        request.getfixturevalue("few_candidates")
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


def test_attacks_have_the_tests_that_are_named():
    text = (DOCS / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    missing = [pair for pair in named if f"\ndef {pair[1]}(" not in (ROOT / "tests" / pair[0]).read_text("utf-8")]
    assert len(named) > 40
    assert missing == []


@pytest.mark.parametrize(("file", "name"), [("docstrings.py", "to_markdown"), ("formulas.py", "to_mathml")])
def test_docstrings_become_markdown_and_formulas_mathml(file, name):
    names = runpy.run_path(str(DOCS / "site" / file))
    (examples,) = doctest.DocTestFinder().find(names[name], name, module=False, globs=names)
    assert doctest.DocTestRunner().run(examples) == doctest.TestResults(failed=0, attempted=2)


def test_every_public_name_is_in_the_api():
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    told = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    assert {f"demonet.{name}" for name in demonet.__all__} <= told


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_has_the_docstrings(site):
    text = (site / "api" / "nn.html").read_text(encoding="utf-8")
    assert "DEMOConv" in text
    assert not re.search(r":(class|func|math|meth):`|\.\. math::", text), "a docstring's markup shows on the page"


def test_the_site_asks_for_nothing_and_has_its_formulas(site):
    """MathJax came from a CDN: without a network, readers saw LaTeX."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    asked = {
        name: re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="?(https?://[^" >]+)', text)
        for name, text in pages.items()
    }
    assert {name: urls for name, urls in asked.items() if urls} == {}
    assert not any("arithmatex" in text for text in pages.values())
    assert pages["theory.html"].count("<math") >= 12


@pytest.mark.browser
def test_the_search_works_from_disk(site, browser):
    with opened(browser, site / "index.html", drawn=None, silent=("file:", "data:")) as shown:
        shown.page.click('[data-md-component="search-query"]')
        shown.page.keyboard.type("weight scheme")
        shown.page.wait_for_selector(".md-search-result__item")
        assert "Add a weight scheme" in shown.page.inner_text(".md-search-result__list")
        assert shown.heard == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ["closed-form.html", "theory.html", "quickstart-files.html"])
def test_no_page_is_wider_than_a_phone(site, browser, name):
    with opened(
        browser, site / name, drawn=None, silent=("file:", "data:"), viewport={"width": 390, "height": 844}
    ) as shown:
        assert overflow(shown.page) == 0
        assert shown.heard == []
