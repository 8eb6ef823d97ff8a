"""The values that options list are those that the packages define; options are declared once."""

from dataclasses import fields
from typing import get_args

import pytest
import typer

from demonet import DemonetError, options
from demonet.cli import app
from demonet.data.catalog import CATALOG
from demonet.distributed.partition import METHODS
from demonet.nn.weights import SCHEMES
from demonet.options import Comparing, Reading, Settings
from demonet.train.metrics import METRICS
from demonet.train.objective import OBJECTIVES
from demonet.train.presets import PRESETS


def test_options_list_what_the_packages_define():
    assert tuple(CATALOG) == options.DATASETS
    assert set(get_args(options.Task)) == {"auto", *OBJECTIVES}
    assert get_args(options.Metric) == tuple(METRICS)
    assert set(get_args(options.Preset)) == {name for name, _ in PRESETS}
    assert set(get_args(options.Scheme)) <= set(SCHEMES)
    assert set(get_args(options.Partition)) == set(METHODS)


@pytest.mark.parametrize(
    ("command", "kinds"), [("fit", (Reading, Settings)), ("compare", (Reading, Comparing)), ("store", (Reading,))]
)
def test_commands_have_an_option_for_every_field(command, kinds):
    found = {parameter.name: parameter for parameter in typer.main.get_command(app).commands[command].params}
    missing = {"store": {"items", "graph"}, "compare": {"methods", "jobs"}}.get(command, set())
    for kind in kinds:
        for each in fields(kind):
            if each.name not in missing:
                assert found[each.name].default == each.default or found[each.name].default in (None, [])
                assert found[each.name].help == each.metadata["help"]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Reading, {"items": "edges"}),
        (Reading, {"merge": "min"}),
        (Settings, {"task": "rank"}),
        (Settings, {"metric": "f2"}),
        (Settings, {"cv": 0}),
        (Settings, {"cv": 1001}),
        (Settings, {"epochs": 0}),
        (Settings, {"seed": -1}),
    ],
)
def test_a_value_that_is_not_listed_is_refused_by_name(kind, given):
    with pytest.raises(DemonetError, match=f"^{next(iter(given))}: "):
        kind(**given)
