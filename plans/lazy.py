"""Finds what a package offers by its name, when it is used: the one way from here to planner and runtime.

The command line's root finds commands so, the SQL client the session and Spark, a plan in a notebook its picture. Names
are written in this package's source, never read from a plan.

>>> load("hintplan.plans.text.names:did_you_mean").__name__
'did_you_mean'
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(target: str) -> Any:
    """The attribute that ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
