"""Every example in every docstring of the package says what is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import demonet

MODULES = sorted(module.name for module in pkgutil.walk_packages(demonet.__path__, "demonet."))


@pytest.mark.parametrize("name", ["demonet", *MODULES])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), verbose=False)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples in {name} failed: see the output"


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = ("demonet.degree.layout", "demonet.degree.tasks", "demonet.nn.conv", "demonet.nn.pool")
    for name in modules:
        assert any(test.examples for test in finder.find(importlib.import_module(name))), name
