"""Changes to bytes: flipped bits, cuts, repeats, swaps, numbers and words that hurt."""

from __future__ import annotations

import random

NASTY = [b"", b"\0", b"\xff\xfe", b"-", b"1e999", b"nan", b"9" * 30, b"0" * 5000, b"\n", b"\r", b'"', b",", b"{}"]
NASTY += [b"[" * 999, b"null", b"#", b"%", b"<", b"&x;", b"PK\x05\x06", b"\x1f\x8b", "²é\u2028".encode(), b"Infinity"]
NASTY += [b"-1", b"true", b"[" * 99_999, b"9" * 5000]


def mutate(raw: bytes, generator: random.Random) -> bytes:
    """The bytes with one to four changes."""
    data = bytearray(raw)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        place = generator.randrange(len(data) + 1)
        kind = generator.randrange(7)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << generator.randrange(8)
        elif kind == 1:
            data[place : place + generator.choice((0, 1, 8))] = generator.choice(NASTY)
        elif kind == 2:
            del data[place : place + generator.choice((1, 4, 64, len(data)))]
        elif kind == 3:
            chunk = bytes(data[place : place + generator.choice((1, 16, 256))])
            data[place:place] = chunk * generator.choice((1, 2, 50))
        elif kind == 4:
            del data[place:]
        elif kind == 5 and len(data) >= 4:
            at = place % (len(data) - 3)
            data[at : at + 4] = generator.choice((0, 1, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
        elif data:
            data[place % len(data)] = generator.randrange(256)
    return bytes(data)


def flip(raw: bytes, generator: random.Random) -> bytes:
    """The bytes with one flipped bit."""
    place = generator.randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ 1 << generator.randrange(8)]) + raw[place + 1 :]
