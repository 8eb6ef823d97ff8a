"""Make invisible characters in user-written text visible, on pages and in the terminal, which they could command."""

from __future__ import annotations

import unicodedata

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Control and format characters (including those that reorder text), surrogates, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
"""Zero-width joiners: harmless, and needed in Persian, Hindi and many emoji."""


def visible(text: object, keep: str = "") -> str:
    r"""Replace every invisible character in ``text``, but those to ``keep``, by its Python escape.

    >>> visible("abc\u202edef\n"), visible("\x1b[31mabc\n", keep="\n")
    ('abc\\u202edef\\n', '\\x1b[31mabc\n')
    """
    written = str(text)
    if written.isascii() and written.isprintable():
        return written
    return "".join(character if character in keep else _escape(character) for character in written)


def _escape(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE or character in _JOINERS:
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
