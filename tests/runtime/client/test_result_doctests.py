"""The examples in the docstrings of what shows rows."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["files", "text", "json_values"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"runtime.results.{name}")).failed == 0
