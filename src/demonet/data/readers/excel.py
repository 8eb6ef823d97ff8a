"""Workbooks of Excel (``.xlsx``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from demonet.errors import DemonetError


def import_openpyxl(file: Path) -> Any:
    """The library that reads and writes workbooks; an error says how to install it."""
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        hint = "pip install 'demonet[excel]', or use .csv"
        raise DemonetError("Excel files need openpyxl", file=file, hint=hint) from None
    return openpyxl
