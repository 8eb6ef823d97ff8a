"""A run as a TOML file: the options of ``demonet fit``, spelled as on the command line.

``fit`` writes one into the folder of every run, and reads one with ``--config``. Paths are relative to the file, so
that data and runs can be moved together.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import tomllib
from pathlib import Path
from typing import Any

from demonet.atomic import check_no_device, replacing
from demonet.errors import DemonetError

PATHS = ("edges", "labels", "features", "split", "out")  # each may be a file; the first three also a name


def write_config(path: Path, values: dict[str, Any], folder: Path) -> None:
    """Write options, by their names in Python, with paths relative to the folder that the file will be in; no None."""
    lines = ["# Repeat this run: demonet fit --config run.toml --out FOLDER. Options of the command line come first."]
    for name, value in values.items():
        if value is None:
            continue
        if name in PATHS and (name in ("split", "out") or Path(value).exists()):
            value = _relative(Path(value), folder)
        lines.append(f"{name.replace('_', '-')} = {_toml(value)}")
    with replacing(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")  # names need not be UTF-8


def read_config(path: Path, known: set[str]) -> dict[str, Any]:
    """The options in a file, by their names in Python, which must be among those ``known``."""
    try:
        check_no_device(path)
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DemonetError("no such file", file=path) from None
    except (OSError, ValueError, RecursionError) as error:  # also numbers of 5,000 digits, and deep nesting
        raise DemonetError(f"not a TOML file: {error}", file=path) from None
    found: dict[str, Any] = {}
    for spelled, value in values.items():
        name = spelled.replace("-", "_")
        if name not in known:
            options = sorted(option.replace("_", "-") for option in known)
            close = difflib.get_close_matches(spelled, options, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(options)}"
            raise DemonetError(f"{spelled!r} is not an option", file=path, hint=hint)
        if isinstance(value, dict):
            raise DemonetError(f"a table [{spelled}]", file=path, hint="every option is one line")
        if name == "ignore" and not isinstance(value, list):
            value = [value]
        if name in PATHS and isinstance(value, str):
            beside = path.parent / value
            beside_it = name in ("split", "out") or os.path.exists(beside)  # of a name that is too long, False
            value = os.path.normpath(beside) if beside_it else value
        found[name] = value
    return found


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def _toml(value: Any) -> str:
    """A string, a number, a boolean or a list of them as TOML.

    >>> _toml("a\\tb"), _toml(True), _toml(0.2), _toml(["x", 3])
    ('"a\\\\tb"', 'true', '0.2', '["x", 3]')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # A JSON string is a TOML string, except that TOML wants DEL escaped and has no surrogates.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
