"""The examples in the docstrings of connectors and lookup sources are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from runtime import connectors
from runtime.lookup import sources

MODULES = [
    module.name
    for package in (connectors, sources)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_are_true(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
