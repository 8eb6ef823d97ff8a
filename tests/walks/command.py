"""The command as a person runs it: its exit code and what it prints."""

from __future__ import annotations

import contextlib
import io

from demonet.cli import app
from demonet.cli.console import plain_errors, spelling


def demonet(*arguments: str) -> tuple[int, str, str]:
    """Run the command in this process: exit code, stdout, stderr."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with plain_errors(spelling(app, list(arguments))):
                code = app(list(arguments), standalone_mode=False) or 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()
