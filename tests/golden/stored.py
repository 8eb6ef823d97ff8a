"""The stored values, and how computed ones are compared with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).with_name("golden.json")


def read() -> dict[str, dict[str, Any]]:
    """The stored values of every case."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def differences(expected: dict[str, Any], found: dict[str, Any], tolerance: float, agreement: float) -> list[str]:
    """What differs: keys, words and whole numbers exactly; other numbers relatively or, near zero, absolutely."""
    if expected.keys() != found.keys():
        return [f"other values: {sorted(expected.keys() ^ found.keys())}"]
    wrong = []
    for name, value in expected.items():
        other = found[name]
        if name == "classes":
            same = len(value) == len(other) and np.mean(np.equal(value, other)) >= agreement
        elif _is_numbers(value):
            a, b = np.array(value), np.array(other)
            same = a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            same = value == other
        if not same:
            wrong.append(f"{name}: {value} was stored, {other} is computed")
    return wrong


def _is_numbers(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, float)
