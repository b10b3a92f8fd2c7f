"""The examples in the docstrings of the planner are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from hintplan import planner

MODULES = sorted(m.name for m in pkgutil.walk_packages(planner.__path__, "hintplan.planner."))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
