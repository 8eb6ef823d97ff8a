"""The values of options, without importing torch, so that help and completion are fast.

Names in registries that users extend are read from the source of the registry. ``tests/cli/test_choices.py`` compares
every list with the package that defines it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

_PACKAGE = Path(__file__).parent.parent


def _declared(files: str, pattern: str) -> list[tuple[str, str]]:
    """The names that files of the package declare, in the order of the files, as members of an enumeration."""
    sources = (path.read_text(encoding="utf-8") for path in sorted(_PACKAGE.glob(files)))
    return [(name, name) for source in sources for name in re.findall(pattern, source, re.MULTILINE)]


if TYPE_CHECKING:
    Scheme = str
    Metric = str
else:
    Scheme = StrEnum("Scheme", _declared("nn/weights/*.py", r'^@register\("([^"]+)"\)'))
    Metric = StrEnum("Metric", _declared("train/metrics.py", r'^ +Metric\(\s*"([^"]+)"'))
DATASETS = [name for name, _ in _declared("data/catalog.py", r'^    (?:_\w+|DataSet)\(\s*"([^"]+)"')]

Items = Literal["auto", "nodes", "graphs"]  # demonet.runs.settings.Items
Task = Literal["auto", "classify", "regress", "multilabel"]  # demonet.train.objective.OBJECTIVES
Preset = Literal["strong", "default", "paper", "authors"]  # demonet.train.presets.PRESETS
Model = Literal["auto", "kernel", "network"]  # demonet.runs.settings.Settings.model
Effort = Literal["quick", "standard", "best"]  # demonet.ensemble.portfolio.Effort
Device = Literal["auto", "cpu", "cuda"]
SelfLoops = Literal["drop", "keep"]  # demonet.data.edges.SelfLoops
Merge = Literal["sum", "mean", "max", "last"]  # demonet.data.edges.Merge
ClassWeight = Literal["balanced"]
Log = Literal["tensorboard"]
Workers = Literal["local", "torchrun", "ray"]  # demonet.runs.settings.ENGINES
Partition = Literal["balanced", "hash", "metis"]  # demonet.distributed.partition.METHODS
