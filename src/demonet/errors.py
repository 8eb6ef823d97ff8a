"""The one family of errors a user meets."""

from __future__ import annotations

from pathlib import Path


class DemonetError(ValueError):
    """Bad input, said plainly: what is wrong, where, and what to do about it.

    Args:
        message: What is wrong, with the offending value in it.
        file: The file in which it was found.
        line: The line in that file, counted from 1.
        hint: What the user can do.

    >>> print(DemonetError("'x' is not a number", file="edges.csv", line=3, hint="write node ids as integers"))
    edges.csv:3: 'x' is not a number (write node ids as integers)
    """

    def __init__(
        self, message: str, *, file: str | Path | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        self.message, self.file, self.line, self.hint = message, file, line, hint
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{where}{message}{f' ({hint})' if hint else ''}")


class DemonetWarning(UserWarning):
    """Something was changed or left out on the user's behalf, and how much of it."""
