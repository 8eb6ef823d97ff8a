"""A piece that another process measures: it must be importable by name."""

from __future__ import annotations


def accuracy(offset: float, number: int) -> float:
    return offset + number / 10
