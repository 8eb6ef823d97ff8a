"""Runs what a page shows, block by block, as a reader would.

=============================  ===========================================================================
```` ```python ````            is executed; one namespace a page
```` ```console ````           each line after ``$`` is run, and what is printed must be what the page shows;
                               ``...`` stands for anything; where ``error:`` or ``FILE:LINE:`` is shown, it fails
```` ```csv title="name" ````  (or any language) is written to that file
```` ```text ````, json, ...   is shown, not run
``<!-- editor: COMMAND -->``   what a reader does by hand in an editor, as a shell command
``<!-- not run: REASON -->``   before a block: it is left out, for that reason
=============================  ===========================================================================
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("DEMONET_DATA", ROOT.parent / "shared" / "data"))
SHOWN = {"text", "json", "csv", "mermaid"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_PART = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^>]+) -->\n+)?^(?P<indent> *)```(?P<head>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$"
    r"|^<!-- editor: (?P<edit>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One block of a page: ``language`` is ``"editor"`` for what a reader does by hand."""

    language: str
    text: str
    line: int
    title: str | None = None
    reason: str | None = None


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["edit"] is not None:
            yield Block("editor", part["edit"], line)
            continue
        language, _, rest = part["head"].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        body = re.sub(f"^{part['indent']}", "", part["text"], flags=re.MULTILINE)
        yield Block(language, body, line, title and title[1], part["reason"])


def run_page(page: Path, folder: Path) -> None:
    """Run every block of a page in a folder; the first one that does not do as it says is an AssertionError."""
    names: dict[str, object] = {"__name__": page.stem}
    with contextlib.chdir(folder), patch.dict(os.environ, DEMONET_DATA=str(DATA)):
        for block in blocks(page):
            where = f"{page.name}:{block.line}"
            if block.title is not None:
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.reason is not None or block.language in SHOWN:
                continue
            elif block.language == "python":
                code = compile("\n" * block.line + block.text, page.name, "exec")
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(code, names)
            elif block.language == "editor":
                subprocess.run(["bash", "-euc", block.text], check=True, timeout=60)
            elif block.language == "console":
                for command, shown in commands(block.text):
                    check_command(command, shown, where)
            else:
                raise AssertionError(
                    f"{where}: a block of {block.language!r} is neither run nor known to be shown only"
                )


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output that is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n", " ", part).partition("\n")
        yield command, shown


def check_command(command: str, shown: str, where: str) -> None:
    """Run a command; what it prints is what is shown, and it fails if and only if an error is shown."""
    command = re.sub(r"\s+# .*", "", command)
    words = shlex.split(command)
    if words[0] == "demonet":
        code, printed = run_demonet(words[1:])
    else:
        done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, timeout=60)
        code, printed = done.returncode, done.stderr + done.stdout
    fails = re.search(r"^(error|[\w./-]+:\d+): ", shown, re.MULTILINE) is not None  # `FILE:LINE: message`, or no file
    assert (code != 0) == fails, f"{where}: {command}\nexit code {code}\n{printed}"
    if shown.strip():
        checker = doctest.OutputChecker()
        assert checker.check_output(shown, printed, FLAGS), f"{where}: {command}\nshown:\n{shown}\nprinted:\n{printed}"


def run_demonet(arguments: list[str]) -> tuple[int, str]:
    """The command line as a shell runs it, in this process because importing torch takes seconds; what it prints."""
    from demonet.cli import main

    errors, out = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["demonet", *arguments]),
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(out),
    ):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    told = re.sub(r"^still .*, \d+ s\n", "", errors.getvalue(), flags=re.MULTILINE)  # on a busy machine
    return code, told + out.getvalue()
