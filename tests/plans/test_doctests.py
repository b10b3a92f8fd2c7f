"""The examples in the docstrings of plans are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from hintplan import plans

NAMES = (module.name for module in pkgutil.walk_packages(plans.__path__, "hintplan.plans."))
MODULES = [name for name in NAMES if not name.startswith("hintplan.plans.front_door")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_are_true(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
