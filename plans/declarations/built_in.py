"""Built-in functions that a plan declares and calls like user-defined ones, because their results must be pinned.

They draw random values, and a batch that runs again must reuse the values of its first attempt. Their names are upper
case and the names of user-defined functions lower case, so that neither hides the other. The classes are in
:mod:`hintplan.runtime.functions.random`.

>>> FUNCTIONS_BUILT_IN["RAND_INTEGER"].arguments
('INT',)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hintplan.plans.declarations.tables import Column, Function


def _function(name: str, result: str, *arguments: str) -> Function:
    return Function(
        class_name=f"hintplan.runtime.functions.random.{name}",
        kind="scalar",
        arguments=arguments,
        output=(Column(name="f0", type=result),),
    )


FUNCTIONS_BUILT_IN: Final[Mapping[str, Function]] = {
    "RAND": _function("Rand", "DOUBLE"),
    "RAND_INTEGER": _function("RandInteger", "INT", "INT"),
    "RAND_INTEGER_OF_SEED": _function("RandIntegerOfSeed", "INT", "INT", "INT"),
    "RAND_INTEGER_SEEDED": _function("RandIntegerSeeded", "INT", "INT", "INT"),
    "RAND_OF_SEED": _function("RandOfSeed", "DOUBLE", "INT"),
    "RAND_SEEDED": _function("RandSeeded", "DOUBLE", "INT"),
    "UUID": _function("Uuid", "STRING"),
}
"""By their name in a plan. ``SEEDED`` functions draw the values of a sequence in turn, ``OF_SEED`` only the first."""

DRAWN: Final = frozenset(name for name in FUNCTIONS_BUILT_IN if not name.endswith("_OF_SEED"))
"""The functions that return another value each time."""


def numbered(name: str, number: int) -> str:
    """Return the name of the function ``name`` for one of several equal calls in a query.

    >>> numbered("UUID", 1), numbered("UUID", 2)
    ('UUID', 'UUID_2')
    """
    return name if number == 1 else f"{name}_{number}"


def built_in(name: str) -> Function | None:
    """Return the built-in function for ``name``, with or without a number, or None if there is none."""
    return FUNCTIONS_BUILT_IN.get(re.sub("_[0-9]+$", "", name))


CLASSES_DRAWN: Final = frozenset(FUNCTIONS_BUILT_IN[name].class_name for name in DRAWN)

CLASSES_BUILT_IN: Final = frozenset(function.class_name for function in FUNCTIONS_BUILT_IN.values())
