"""Load attributes of other packages by name, when they are used: the only way from here to planner and runtime.

The command line's root loads commands this way, the SQL client the session and Spark, and a plan in a notebook its
picture, and a table its connector. Names are written in the source of this package, never read from a plan.

>>> load("hintplan.plans.text.names:did_you_mean").__name__
'did_you_mean'
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(target: str) -> Any:
    """Import the attribute named by ``module:attribute``."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
