"""What a function is called in Spark's plans and pages: after the operator it is of, not after its Python class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def named(run: Callable[..., Any], operator: str) -> Any:
    """``run`` under the name of an ``operator``.

    >>> named(len, "join_o_c").__name__
    'join_o_c'
    """
    found = partial(run)
    found.__name__ = operator  # type: ignore[attr-defined]
    return found
