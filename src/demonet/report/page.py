"""The page: a title and sections, written as one HTML file that needs nothing else.

A new kind of section is a dataclass here and a macro of the same name in ``template.html``. All text is escaped by
Jinja; data for scripts is JSON with the characters that could end a script written as escapes; and the page's content
security policy runs exactly two scripts, its own and plotly's, known by their hashes, and allows no request at all.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from demonet.atomic import replacing
from demonet.errors import DemonetError
from demonet.report.cells import MARKS, Cell, Column, Shown, Verdict, show, show_column, tsv
from demonet.report.palette import DARK_TWIN

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, kw_only=True)
class Section:
    """What every section has: a heading, or none, and on a wide screen the whole width, or half of it.

    Args:
        title: The heading.
        half: Whether it stands beside another.
        anchor: The name by which a link finds it (``page.html#anchor``); letters, digits and hyphens.
        below: Whether it belongs to the section before it: its heading is smaller, and no entry of the contents.
    """

    kind: ClassVar[str]
    plots: ClassVar[bool] = False
    title: str = ""
    half: bool = False
    anchor: str = ""
    below: bool = False


@dataclass(frozen=True)
class Text(Section):
    """Prose; an empty line starts a new paragraph, `what a machine reads` stands between backticks."""

    kind: ClassVar[str] = "text"
    text: str

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs, in order."""
        return [paragraph for part in re.split(r"\n\s*\n", self.text) if (paragraph := part.strip())]


@dataclass(frozen=True)
class Facts(Section):
    """Names with a value each: what was trained on what, and how well it does."""

    kind: ClassVar[str] = "facts"
    facts: Mapping[str, Cell]

    @property
    def shown(self) -> dict[str, Shown]:
        """Each value as the page shows it."""
        return {name: show(value) for name, value in self.facts.items()}


@dataclass(frozen=True)
class Legend(Section):
    """What the marks and colours of cells mean, and first the numbers of a cell, on one that there is."""

    kind: ClassVar[str] = "legend"
    sample: str
    meanings: Mapping[Verdict, str]
    example: Cell = None

    @property
    def shown(self) -> Shown | None:
        """The example in words."""
        return None if self.example is None else show(self.example)

    @property
    def entries(self) -> list[tuple[Verdict, str, str]]:
        """Verdict, mark and meaning of each."""
        return [(verdict, MARKS[verdict], meaning) for verdict, meaning in self.meanings.items()]


@dataclass(frozen=True)
class Table(Section):
    """Rows under columns, copied as tab-separated values by a button; the first cell of a row is its name.

    Args:
        columns: What stands at the head of each; a bare name is a column with nothing to win.
        rows: A cell for each column.
        caption: What stands below.
        groups: Names and sizes of runs of rows that are set apart, in order; none, where all rows are one.
        sortable: Whether a click on a head sorts the rows, those of a group among themselves.
    """

    kind: ClassVar[str] = "table"
    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    groups: Sequence[tuple[str, int]] = ()
    sortable: bool = False

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise DemonetError(f"row {number} has {len(row)} cells under {len(self.columns)} columns")
        if self.groups and (total := sum(size for _, size in self.groups)) != len(self.rows):
            raise DemonetError(f"{total} rows in groups, but {len(self.rows)} rows")

    @property
    def head(self) -> list[Column]:
        """The columns; a bare name is a column with nothing to win."""
        return [Column(column) if isinstance(column, str) else column for column in self.columns]

    @property
    def shown(self) -> list[tuple[Shown, ...]]:
        """The rows as the page shows them."""
        columns = [show_column(column, [row[i] for row in self.rows]) for i, column in enumerate(self.head)]
        return list(zip(*columns, strict=True))

    @property
    def bodies(self) -> list[tuple[str, list[tuple[Shown, ...]]]]:
        """The name and the rows of each group."""
        rows = iter(self.shown)
        return [(name, list(islice(rows, size))) for name, size in self.groups or [("", len(self.rows))]]

    @property
    def tsv(self) -> str:
        """The rows as the button copies them."""
        return tsv(self.head, self.rows)


@dataclass(frozen=True)
class Figure(Section):
    """A plotly figure from ``figures.py``.

    Args:
        figure: The figure. Text in it that a user wrote has gone through ``figures.plain``.
        alt: What the figure shows, in words, for those who do not see it.
        caption: What stands below it.
        numbers: What it shows as a table, for the button that copies it; without, there is no button.
    """

    kind: ClassVar[str] = "figure"
    plots: ClassVar[bool] = True
    figure: go.Figure
    alt: str
    caption: str = ""
    numbers: Table | None = None

    def __post_init__(self) -> None:
        if not self.alt.strip():
            raise DemonetError("a figure needs a text alternative", hint="say in alt= what the figure shows")

    @property
    def json(self) -> str:
        """The figure as plotly's JavaScript reads it; numbers as compact typed arrays."""
        return self.figure.to_json(engine="json")

    @property
    def height(self) -> int:
        """Height in pixels, so that the page does not jump when the figure arrives."""
        return self.figure.layout.height or 420


@dataclass(frozen=True)
class Page:
    """A page: what it is about, a line below that, its sections in order, and with ``contents`` links to them."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    contents: bool = False

    def __post_init__(self) -> None:
        anchors = [section.anchor for section in self.sections if section.anchor]
        for anchor in anchors:
            if not re.fullmatch("[a-z0-9-]+", anchor) or anchors.count(anchor) > 1:
                raise DemonetError(f"no link can lead to {anchor!r}", hint="an anchor is a-z, 0-9 and -, and only once")


def render(page: Page) -> str:
    """The page as the text of one HTML file, the same for the same page."""
    import json

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("demonet.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["script_json"] = lambda text: Markup(script_json(text))
    environment.filters["dump"] = json.dumps
    environment.filters["code"] = lambda text: Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))
    style, script = _asset("style.css"), "".join(map(_asset, ("explorer.js", "sort.js", "page.js")))
    library, library_hash = _plotly() if any(section.plots for section in page.sections) else ("", "")
    html = environment.get_template("template.html").render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        library=library,
        script_hashes=Markup(" ".join(f"'{digest}'" for digest in (_sha256(script), library_hash) if digest)),
        dark_twin=DARK_TWIN,
    )
    # A lone surrogate, as in a file name that is not UTF-8, has no place in a file that is.
    return html.lstrip().encode("utf-8", "replace").decode("utf-8")


def write(page: Page, path: str | Path) -> None:
    """Render ``page`` into the file ``path``, whole or not at all."""
    html = render(page)
    try:
        with replacing(path) as draft:
            draft.write_text(html, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DemonetError(f"the page cannot be written: {error.strerror}", file=path) from error


def script_json(text: str) -> str:
    r"""JSON that can stand inside a script tag: nothing in it ends the tag, opens a comment or breaks a line.

    >>> script_json('"</script>"')
    '"\\u003c/script\\u003e"'
    """
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _asset(name: str) -> str:
    return resources.files("demonet.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _plotly() -> tuple[str, str]:
    """Plotly's JavaScript, gzipped in base64 (two fifths of its size), and the hash of the plain text."""
    from plotly.offline import get_plotlyjs

    source = get_plotlyjs()
    return base64.b64encode(gzip.compress(source.encode(), 9, mtime=0)).decode("ascii"), _sha256(source)


def _sha256(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
