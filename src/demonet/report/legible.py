"""Names that people wrote, as people can read them: nothing invisible, nothing that turns its neighbours around."""

from __future__ import annotations

import unicodedata

_WRITTEN = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Controls, formats (marks that reorder text are among them), surrogates, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
"""Invisible, harmless, and part of how Persian, Hindi and many emoji are written."""


def legible(text: object) -> str:
    r"""``text`` with every invisible character written out, as Python would write it.

    >>> legible("abc\u202edef\n")
    'abc\\u202edef\\n'
    """
    written = str(text)
    if written.isascii() and written.isprintable():
        return written
    return "".join(_write(character) for character in written)


def _write(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE or character in _JOINERS:
        return character
    code = ord(character)
    return _WRITTEN.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
