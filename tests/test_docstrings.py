"""Every example in every docstring of both packages says what is true."""

import doctest
import importlib
import pkgutil

import pytest

import demonet
import demonet_study

MODULES = sorted(
    module.name
    for package in (demonet, demonet_study)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)


@pytest.mark.parametrize("name", ["demonet", "demonet_study", *MODULES])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), verbose=False)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples in {name} failed: see the output"


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = ("demonet.degree.layout", "demonet.degree.tasks", "demonet.nn.conv", "demonet.nn.pool")
    for name in modules:
        assert any(test.examples for test in finder.find(importlib.import_module(name))), name
