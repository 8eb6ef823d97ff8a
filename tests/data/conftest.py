from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages import DATA


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder with the paper's files; tests that need them are skipped aloud where there is none."""
    if not DATA.is_dir():
        pytest.skip(f"the paper's data files are not here: set DEMONET_DATA (looked for in {DATA})")
    return DATA


@pytest.fixture
def use_paper_data(paper_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEMONET_DATA", str(paper_data))
    return paper_data


@pytest.fixture
def write(tmp_path: Path):
    """Write a file and give its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
