"""The tables of a part as Markdown and as LaTeX: our numbers with the printed ones, the best in bold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from demonet.escape import visible
from demonet.report.table_cells import Column, Shown, show_column
from demonet_study.experiments.accuracy import AUTO
from demonet_study.report.grid import NOT_YET, Grid, Layout, Line, ResultRow, beside, grids, why_empty
from demonet_study.report.names import set_name, slug
from demonet_study.report.standing import REFIT, STRICT, standings

KEY = (
    "Mean ± standard deviation over the runs; in parentheses what the paper prints. "
    "● inside our 95 % interval, ○ within two standard deviations, ▲ we are above, ▼ below."
)
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "●": r"$\bullet$",
    "○": r"$\circ$",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
}
_MARKDOWN = {character: f"\\{character}" for character in "\\`*_{}[]|#"}
_MARKDOWN |= {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def markdown(layout: Layout, rows: Sequence[ResultRow], title: str) -> str:
    """The tables of a part as Markdown."""
    blocks = [f"# {escape_markdown(title)}", KEY]
    for grid in grids(layout, rows):
        if grid.title:
            blocks.append(f"## {escape_markdown(grid.title)}")
        blocks.append("\n".join(_markdown_lines(grid)))
    return "\n\n".join(blocks) + "\n"


def _markdown_lines(grid: Grid) -> list[str]:
    lines = [_row([grid.layout.head, *map(escape_markdown, grid.columns)]), "|---" + "|--:" * len(grid.columns) + "|"]
    cells = _cells(grid, _bold_markdown)
    for group, members in grid.groups.items():
        lines.append(_row([f"*{escape_markdown(group)}*", *[""] * len(grid.columns)]))
        lines += [_row([escape_markdown(line.name), *cells[line]]) for line in members]
    return lines


def latex(part: str, layout: Layout, rows: Sequence[ResultRow], title: str) -> str:
    """The tables of a part as LaTeX; they need the packages booktabs and amssymb."""
    found = grids(layout, rows)
    blocks = [_latex_table(part, grid, f"{title}. {grid.title}" if grid.title else title) for grid in found]
    return "% \\usepackage{amssymb, booktabs}\n" + "\n".join(blocks)


def _latex_table(part: str, grid: Grid, title: str) -> str:
    cells = _cells(grid, _bold_latex)
    lines = [
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{escape_latex(title)}. {escape_latex(KEY)}}}",
        rf"\label{{tab:{slug(f'{part} {grid.title}')}}}",
        rf"\begin{{tabular}}{{l{'r' * len(grid.columns)}}}",
        r"\toprule",
        " & ".join([grid.layout.head, *map(escape_latex, grid.columns)]) + r" \\",
    ]
    for group, members in grid.groups.items():
        lines += [r"\midrule", rf"\multicolumn{{{1 + len(grid.columns)}}}{{l}}{{\textit{{{escape_latex(group)}}}}} \\"]
        lines += [" & ".join([escape_latex(line.name), *cells[line]]) + r" \\" for line in members]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def readme(nodes: Sequence[ResultRow], graphs: Sequence[ResultRow], default: Sequence[ResultRow] = ()) -> str:
    """The short table of results: for each data set the ensemble and its best rival under both rules, and the paper.

    Ours are the strict and the refitted runs of the part ``default``; "as published" are the runs of the preset
    ``paper`` in Tables 4 and 5, beside what the paper prints.
    """
    head = ["set", "`demonet fit`, strict", "best rival", "`demonet fit`, refit", "best rival", "runs"]
    head += ["DEMO-Net as published, hash / weight", "printed, hash / weight"]
    lines = [_row(head), "|---" + "|--:" * (len(head) - 1) + "|"]
    for rows in (nodes, [row for row in graphs if not row.split.startswith("nested:")]):
        for name in dict.fromkeys(row.dataset for row in rows):
            ours = [part for rule in (STRICT, REFIT) for part in _rival(default, name, rule)]
            runs = next((row.runs for row in default if row.dataset == name and row.method == AUTO), 0)
            published = _published([row for row in rows if row.dataset == name])
            lines.append(_row([escape_markdown(set_name(name)), *ours, str(runs), *published]))
    return "\n".join(lines) + "\n"


def _rival(rows: Sequence[ResultRow], dataset: str, rule: str) -> list[str]:
    """The ensemble, in bold where it is significantly above all rivals over splits, and the best rival."""
    found = next(iter(standings([row for row in rows if row.dataset == dataset], rule)), None)
    if found is None:
        return [NOT_YET] * 2
    ours = _bold_markdown(_mean(found.ours, 3) or why_empty(found.ours), found.over_splits.words == "above all")
    return [ours, f"{_mean(found.best, 3)} {escape_markdown(found.best.full_name)}" if found.best else NOT_YET]


def _published(rows: Sequence[ResultRow]) -> list[str]:
    """What the preset ``paper`` reached, and what the paper prints."""
    found = [row for scheme in ("hash", "weight") for row in rows if row.method == f"demonet-{scheme}"]
    found = [row for row in found if row.preset == "paper"]
    printed = ["–" if math.isnan(row.paper) else f"{row.paper:.3f}" for row in found]
    return [" / ".join(_mean(row, 3) or why_empty(row) for row in found) or "–", " / ".join(printed) or "–"]


def escape_latex(words: str) -> str:
    r"""Escape text for LaTeX.

    >>> escape_latex("GCN_cheby & 50 %")
    'GCN\\_cheby \\& 50 \\%'
    """
    return "".join(_LATEX.get(character, character) for character in visible(words))


def escape_markdown(words: str) -> str:
    r"""Escape text for Markdown, including tables.

    >>> escape_markdown("DEMO-Net_m | x")
    'DEMO-Net\\_m \\| x'
    """
    return "".join(_MARKDOWN.get(character, character) for character in visible(words))


def _cells(grid: Grid, style: Callable[[str, bool], str]) -> dict[Line, list[str]]:
    """The cells of each line; marks and the best of a column are those of the page."""
    rule = Column("", grid.layout.digits, grid.layout.best)
    columns = zip(*(line.rows for line in grid.lines), strict=True)
    shown = zip(*(show_column(rule, [beside(row) for row in column]) for column in columns), strict=True)
    return {
        line: [_cell(*one, grid.layout, style) for one in zip(line.rows, cells, strict=True)]
        for line, cells in zip(grid.lines, shown, strict=True)
    }


def _cell(row: ResultRow | None, shown: Shown, layout: Layout, style: Callable[[str, bool], str]) -> str:
    """A number with its deviation, the printed number, the mark, and the number of runs if some are missing."""
    if row is None:
        return style("–", False)
    words, digits = layout.words or {}, layout.digits
    number = words.get(row.mean, _mean(row, digits)) or why_empty(row)
    if not math.isnan(row.std):
        number += f" ± {row.std:.{digits}f}"
    after = ""
    if not math.isnan(row.paper):
        after = f" ({words.get(row.paper, f'{row.paper:.{digits}f}')})"
    if shown.mark:
        after += f" {shown.mark}"
    if 0 < row.runs < row.wanted:
        after += f", {row.runs} of {row.wanted} runs"
    return style(number, shown.best) + style(after, False)


def _bold_markdown(words: str, best: bool) -> str:
    return f"**{words}**" if best else words


def _bold_latex(words: str, best: bool) -> str:
    return rf"\textbf{{{escape_latex(words)}}}" if best else escape_latex(words)


def _mean(row: ResultRow, digits: int) -> str:
    return "" if math.isnan(row.mean) else f"{row.mean:.{digits}f}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
