"""A small problem in files, in the folder at hand."""

from __future__ import annotations

from tests.runs.conftest import problem  # noqa: F401
