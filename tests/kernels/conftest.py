from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kernels.graphs import read_tu


@pytest.fixture(scope="session")
def mutag():
    root = os.environ.get("DEMONET_DATA") or Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(root) / "MUTAG"
    if not folder.is_dir():
        pytest.skip(f"MUTAG is not in {folder}: set DEMONET_DATA to the folder that holds it")
    return read_tu(folder)
