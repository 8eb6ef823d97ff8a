"""Docstrings are written as PyTorch writes them; the site reads Markdown. This turns the one into the other."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_MATH = re.compile(r"^( *)\.\. math::(?P<one>[^\n]*)\n(?P<more>(?:(?:\1 +[^\n]*)?\n)*)", re.MULTILINE)


def to_markdown(text: str) -> str:
    r"""Roles, links and formulas of reStructuredText in the words of Markdown.

    >>> to_markdown("As :class:`~demonet.DEMOConv` with :math:`d`; ``x`` too.")
    'As `DEMOConv` with \\(d\\); `x` too.'
    >>> to_markdown("In `the paper <https://arxiv.org/abs/1906.02319>`_.")
    'In [the paper](https://arxiv.org/abs/1906.02319).'
    """
    text = _MATH.sub(_display, text + "\n").rstrip("\n")
    text = re.sub(r"`([^`<]+) <([^>`]+)>`__?", r"[\1](\2)", text)
    text = re.sub(r":math:`([^`]*)`", r"\\(\1\\)", text)
    text = re.sub(r":\w+:`~?([^`<]*)`", lambda role: f"`{role[1].rpartition('.')[2]}`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _display(formula: re.Match[str]) -> str:
    body = (formula["one"] + "\n" + textwrap.dedent(formula["more"])).strip()
    lines = "\n".join(formula[1] + line.strip() for line in body.splitlines() if line.strip())
    return f"{formula[1]}\\[\n{lines}\n{formula[1]}\\]\n\n"


class Docstrings(griffe.Extension):
    """Every docstring of the package, as it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
