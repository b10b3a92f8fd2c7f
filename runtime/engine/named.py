"""The name of a function in Spark's plans and web pages: the id of its operator, not its Python class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def named(run: Callable[..., Any], operator: str) -> Any:
    """Return ``run`` with the name of an ``operator``.

    >>> named(len, "join_o_c").__name__
    'join_o_c'
    """
    function = partial(run)
    function.__name__ = operator  # type: ignore[attr-defined]
    return function
