"""Names that people wrote, as people can read them: nothing invisible, nothing that turns its neighbours around."""

from __future__ import annotations

import unicodedata

_WRITTEN = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Controls, formats (marks that reorder text are among them), surrogates, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


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
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    return _WRITTEN.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
