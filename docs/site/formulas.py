"""Formulas become MathML when the site is built, so that they need neither a script nor a network to be read."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def to_mathml(text: str) -> str:
    r"""The page with its formulas as MathML.

    >>> to_mathml(r'<span class="arithmatex">\(W_0\)</span>')
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><msub><mi>W</mi><mn>0</mn></msub></mrow></math>'
    """
    return _FORMULA.sub(_converted, text)


def _converted(formula: re.Match[str]) -> str:
    shown = formula[2] == "["
    mathml = convert(html.unescape(formula[3]).strip(), display="block" if shown else "inline")
    return f'<div class="formula">{mathml}</div>' if shown else str(mathml)


def on_page_content(text: str, **of: Any) -> str:
    """Called by MkDocs with the content of every page."""
    return to_mathml(text)
