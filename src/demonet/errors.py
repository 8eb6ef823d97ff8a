"""The exception and the warning that users see, and hints that name arguments."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Spelling = Callable[[str, Any], str | None]


def in_python(name: str, value: Any) -> str:
    """An argument as Python code writes it; ``...`` stands for any value.

    >>> in_python("directed", True), in_python("self_loops", "keep"), in_python("labels", ...)
    ('directed=True', "self_loops='keep'", 'labels')
    """
    return name if value is ... else f"{name}={value!r}"


class Hint(str):
    """Advice that names arguments. It reads as Python code; the command line spells the arguments as its options.

    Args:
        template: The text, with the name of each argument in braces.
        arguments: The value of each argument; ``...`` for any value.

    >>> hint = Hint("{add_isolated} adds them as isolated nodes", add_isolated=True)
    >>> print(hint)
    add_isolated=True adds them as isolated nodes
    >>> hint.spelled(lambda name, value: f"--{name}")
    '--add_isolated adds them as isolated nodes'
    """

    template: str
    arguments: dict[str, Any]

    def __new__(cls, template: str, **arguments: Any) -> Hint:  # noqa: D102
        hint = super().__new__(cls, template.format(**{name: in_python(name, v) for name, v in arguments.items()}))
        hint.template, hint.arguments = template, arguments
        return hint

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.arguments

    def spelled(self, spell: Spelling) -> str | None:
        """The text with every argument spelled by ``spell``; None if one of them cannot be spelled."""
        spellings = {name: spell(name, value) for name, value in self.arguments.items()}
        return None if None in spellings.values() else self.template.format(**spellings)


class _Message(Exception):  # noqa: N818
    """A text with the argument, file and line that it is about, and a hint."""

    def __init__(
        self,
        message: str,
        *,
        argument: str | None = None,
        file: str | Path | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message, self.argument, self.file, self.line, self.hint = message, argument, file, line, hint
        super().__init__(self.spelled(in_python))

    def spelled(self, spell: Spelling) -> str:
        """The whole text, with arguments spelled by ``spell(name, value)``."""
        where = "" if self.file is None else f"{self.file}: " if self.line is None else f"{self.file}:{self.line}: "
        argument = "" if self.argument is None else f"{spell(self.argument, ...) or self.argument}: "
        hint = self.hint.spelled(spell) if isinstance(self.hint, Hint) else self.hint
        return f"{where}{argument}{self.message}{f' ({hint})' if hint else ''}"


class DemonetError(_Message, ValueError):
    """Invalid input.

    Args:
        message: What is wrong, with the offending value.
        argument: The argument with the invalid value. The command line shows the option of that name.
        file: The file in which the problem was found.
        line: The line in that file, counted from 1.
        hint: What to do; a :class:`Hint` if it names arguments.

    >>> print(DemonetError("'x' is not a number", file="edges.csv", line=3, hint="write node ids as integers"))
    edges.csv:3: 'x' is not a number (write node ids as integers)
    >>> print(DemonetError("'always' is not 'drop' or 'keep'", argument="self_loops"))
    self_loops: 'always' is not 'drop' or 'keep'
    """


class DemonetWarning(_Message, UserWarning):
    """Something was changed or ignored, and how much of it. The arguments are those of :class:`DemonetError`."""


def needed(module: str, extra: str, by: str = "") -> Any:
    """A module that comes with an extra of the package; where it is missing, an error says how to install it.

    Args:
        module: Its name.
        extra: The extra, as in ``demonet[extra]``.
        by: What needs it, for the message.
    """
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        problem = f"{by} needs {name}, which is not installed" if by else f"{name} is not installed"
        raise DemonetError(problem, hint=f"pip install 'demonet[{extra}]'") from None


def _wrapper_folders() -> list[Path]:
    """The folders of packages whose decorators and searches call this one."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "sklearn", "joblib"))
    return [Path(file).parent for file in files if file]


def warn(message: DemonetWarning) -> None:
    """Warn at the line of the user: the first outside this package, and outside the wrappers of torch and sklearn."""
    package, level, frame = str(Path(__file__).parent), 2, sys._getframe(1)
    inside = (package, *map(str, _wrapper_folders()))
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
