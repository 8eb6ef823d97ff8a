"""A page: a title and sections, written as one self-contained HTML file.

A new kind of section is a dataclass here and a macro of the same name in ``template.html``. Jinja
escapes all text. Data for scripts is JSON, with characters that could end a script escaped. The content security policy
allows exactly two scripts, the page's own and plotly's, by their hashes, and no requests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from demonet.atomic import replacing
from demonet.errors import DemonetError
from demonet.escape import visible
from demonet.report.chart import Chart
from demonet.report.chart_plotly import draw
from demonet.report.palette import DARK_TWIN
from demonet.report.table_cells import MARKS, Cell, Column, Shown, Verdict, show, show_column, tsv

if TYPE_CHECKING:
    import plotly.graph_objects as go

GENERATOR = b'<meta name="generator" content="demonet">'  # in each page


@dataclass(frozen=True, kw_only=True)
class Section:
    """The base class of sections.

    Args:
        title: The heading; may be empty.
        half: Whether it takes half of the width on a wide screen.
        anchor: The target of links (``page.html#anchor``): letters, digits and hyphens.
        below: Whether it belongs to the previous section: its heading is smaller and not in the table of contents.
        fold: The name of a part of the page that is closed until it is asked for; neighbours of one name are together.
    """

    plots: ClassVar[bool] = False
    listing: ClassVar[bool] = False  # whether it needs items.js
    title: str = ""
    half: bool = False
    anchor: str = ""
    below: bool = False
    fold: str = ""

    @property
    def kind(self) -> str:
        """The name of the macro that draws it."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Text(Section):
    """Text. An empty line starts a new paragraph; backticks mark code.

    Args:
        text: The text.
        style: ``"lead"`` for a large type, ``"steps"`` for a list; otherwise paragraphs.
    """

    text: str
    style: Literal["", "lead", "steps"] = ""

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs."""
        return [paragraph for part in re.split(r"\n\s*\n", self.text) if (paragraph := part.strip())]


@dataclass(frozen=True)
class Facts(Section):
    """A list of names with a value each."""

    facts: Mapping[str, Cell]

    @property
    def shown(self) -> dict[str, Shown]:
        """The formatted values."""
        return {name: show(value) for name, value in self.facts.items()}


@dataclass(frozen=True)
class Legend(Section):
    """The meaning of marks and colours of cells, with an example cell."""

    sample: str
    meanings: Mapping[Verdict, str]
    example: Cell = None

    @property
    def shown(self) -> Shown | None:
        """The formatted example."""
        return None if self.example is None else show(self.example)

    @property
    def entries(self) -> list[tuple[Verdict, str, str]]:
        """Verdict, mark and meaning of each entry."""
        return [(verdict, MARKS[verdict], meaning) for verdict, meaning in self.meanings.items()]


@dataclass(frozen=True)
class Table(Section):
    """A table, with a button that copies it as tab-separated values; the first cell of a row is its name.

    Args:
        columns: The columns; a plain name is a column in which no cell is marked as best.
        rows: A cell for each column.
        caption: The text below.
        groups: Names and sizes of consecutive groups of rows; may be empty.
        sortable: Whether a click on a column head sorts the rows inside each group.
    """

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
        """The columns as :class:`Column` objects."""
        return [Column(column) if isinstance(column, str) else column for column in self.columns]

    @property
    def shown(self) -> list[tuple[Shown, ...]]:
        """The formatted rows."""
        columns = [show_column(column, [row[i] for row in self.rows]) for i, column in enumerate(self.head)]
        return list(zip(*columns, strict=True))

    @property
    def bodies(self) -> list[tuple[str, list[tuple[Shown, ...]]]]:
        """Name and formatted rows of each group."""
        rows = iter(self.shown)
        return [(name, list(islice(rows, size))) for name, size in self.groups or [("", len(self.rows))]]

    @property
    def tsv(self) -> str:
        """The rows as tab-separated values."""
        return tsv(self.head, self.rows)


@dataclass(frozen=True)
class Figure(Section):
    """A chart, or a plotly figure.

    Args:
        figure: What is drawn. User-written text in a plotly figure must be escaped by ``chart_plotly.plain``.
        alt: A text alternative; a chart has its own.
        caption: The text below.
        numbers: Its data as a table, for a copy button; without it, there is no button.
    """

    plots: ClassVar[bool] = True
    figure: Chart | go.Figure
    alt: str = ""
    caption: str = ""
    numbers: Table | None = None

    def __post_init__(self) -> None:
        if not self.told.strip():
            raise DemonetError("a figure needs a text alternative", hint="describe the figure in alt=")

    @property
    def told(self) -> str:
        """What it shows, in words."""
        return self.alt or (self.figure.alt if isinstance(self.figure, Chart) else "")

    @cached_property
    def drawn(self) -> go.Figure:
        """The plotly figure."""
        return draw(self.figure) if isinstance(self.figure, Chart) else self.figure

    @property
    def json(self) -> str:
        """The figure as JSON for plotly.js, with numbers as typed arrays."""
        return self.drawn.to_json(engine="json")

    @property
    def height(self) -> int:
        """Height in pixels, reserved before the figure is drawn."""
        return self.drawn.layout.height or 420


@dataclass(frozen=True)
class Page:
    """A page: title, subtitle, sections, and with ``contents`` a table of contents."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    contents: bool = False

    def __post_init__(self) -> None:
        anchors = [section.anchor for section in self.sections if section.anchor]
        for anchor in anchors:
            if not re.fullmatch("[a-z0-9-]+", anchor) or anchors.count(anchor) > 1:
                raise DemonetError(f"invalid or duplicate anchor {anchor!r}", hint="use a-z, 0-9 and -")

    @property
    def groups(self) -> list[tuple[str, list[tuple[str, Section]]]]:
        """The sections by the name of their fold, each with its id."""
        numbered = ((section.anchor or f"section-{i}", section) for i, section in enumerate(self.sections, start=1))
        return [(fold, list(group)) for fold, group in groupby(numbered, key=lambda pair: pair[1].fold)]


@cache
def _template() -> Any:
    """The template of all pages, compiled."""
    import json

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("demonet.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value, "\n\t") if type(value) is str else value,
    )
    environment.filters["script_json"] = lambda text: Markup(script_json(text))
    environment.filters["dump"] = json.dumps
    environment.filters["code"] = lambda text: Markup(
        re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(visible(text, "\n\t"))))
    )
    return environment.get_template("template.html")


def render(page: Page) -> str:
    """Render a page as HTML text; the same page gives the same text."""
    from markupsafe import Markup

    listing = ["items.js"] if any(section.listing for section in page.sections) else []
    style, script = _asset("style.css"), "".join(map(_asset, (*listing, "page.js")))
    library, library_hash = _plotly() if any(section.plots for section in page.sections) else ("", "")
    html: str = _template().render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        library=library,
        script_hashes=Markup(" ".join(f"'{digest}'" for digest in (_sha256(script), library_hash) if digest)),
        dark_twin=DARK_TWIN,
    )
    # Lone surrogates, as in file names that are not UTF-8, cannot be encoded.
    return html.lstrip().encode("utf-8", "replace").decode("utf-8")


def write(page: Page, path: str | Path) -> None:
    """Write a page to a file, atomically."""
    html = render(page)
    try:
        with replacing(path) as draft:
            draft.write_text(html, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DemonetError(f"cannot write the page: {error.strerror}", file=path) from error


def script_json(text: str) -> str:
    r"""Escape JSON for use inside a script tag, so that it cannot end the tag or open a comment.

    >>> script_json('"</script>"')
    '"\\u003c/script\\u003e"'
    """
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _asset(name: str) -> str:
    return resources.files("demonet.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _plotly() -> tuple[str, str]:
    """plotly.js, gzipped and in base64 (two fifths of its size), and the hash of its source."""
    from plotly.offline import get_plotlyjs

    source = get_plotlyjs()
    return base64.b64encode(gzip.compress(source.encode(), 9, mtime=0)).decode("ascii"), _sha256(source)


def _sha256(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
