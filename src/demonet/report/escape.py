"""Make invisible characters in user-written text visible."""

from __future__ import annotations

import unicodedata

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Control and format characters (including those that reorder text), surrogates, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
"""Zero-width joiners: harmless, and needed in Persian, Hindi and many emoji."""


def visible(text: object) -> str:
    r"""Replace every invisible character in ``text`` by its Python escape.

    >>> visible("abc\u202edef\n")
    'abc\\u202edef\\n'
    """
    written = str(text)
    if written.isascii() and written.isprintable():
        return written
    return "".join(_escape(character) for character in written)


def _escape(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE or character in _JOINERS:
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
