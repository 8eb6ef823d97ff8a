"""The values that options list are those that the packages define."""

from __future__ import annotations

from typing import get_args

from demonet.cli import choices
from demonet.data.catalog import CATALOG
from demonet.data.edges import Merge, SelfLoops
from demonet.distributed.partition import METHODS
from demonet.nn.weights import SCHEMES
from demonet.runs.settings import ENGINES, Items
from demonet.train.metrics import METRICS
from demonet.train.objective import OBJECTIVES
from demonet.train.presets import PRESETS


def test_options_list_what_the_packages_define():
    assert list(choices.DATASETS) == list(CATALOG)
    assert get_args(choices.Items) == get_args(Items)
    assert set(get_args(choices.Task)) == {"auto", *OBJECTIVES}
    assert tuple(choices.Metric) == tuple(METRICS)
    assert set(get_args(choices.Preset)) == {name for name, _ in PRESETS}
    assert set(choices.Scheme) == set(SCHEMES)
    assert get_args(choices.SelfLoops) == get_args(SelfLoops)
    assert get_args(choices.Merge) == get_args(Merge)
    assert get_args(choices.Workers) == ENGINES
    assert set(get_args(choices.Partition)) == set(METHODS)
