"""The parts of operators that kernels on workers need: calls of aggregate functions, sort keys, types of joins.

Imports no operators, so that a worker that unpickles a kernel loads neither operators nor connectors.
"""

from __future__ import annotations

from typing import Annotated, Literal

from hintplan.plans.declarations.fields import Name, TypeText
from hintplan.plans.frozen import frozen

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
Side = Literal["left", "right"]
LookupMode = Literal["sync", "async", "full"]

VARIANCES = {"VAR_POP": (0, False), "VAR_SAMP": (1, False), "STDDEV_POP": (0, True), "STDDEV_SAMP": (1, True)}
"""Variances and deviations, each with the number subtracted from the divisor, and True if they take the root."""
COLLECTIONS = {"ARRAY_AGG": "ARRAY", "COLLECT": "MULTISET"}
"""Aggregate functions that keep all values, with the types of their results."""
ORDERED = ("FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG")
"""Aggregate functions that depend on the order of rows."""
BUILT_IN = ("COUNT", "SUM", "AVG", "MIN", "MAX", *VARIANCES, "COLLECT", *ORDERED)


@frozen
class SortKey:
    """One column to sort by; ``nulls`` is first or last in either direction."""

    column: Annotated[Name, "A column of the input."]
    direction: Annotated[Literal["asc", "desc"], "The direction: small values first, or last."]
    nulls: Annotated[Literal["first", "last"], "The place of NULLs, independent of the direction."]


@frozen
class AggregateCall:
    """``function(argument)`` over the rows whose ``filter`` column is true; no argument means ``COUNT(*)``.

    ``function`` is one of these; any other is a user's aggregate function, called with ``arguments``:

    - COUNT, SUM, AVG, MIN, MAX
    - VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP: a DOUBLE from any numbers
    - COLLECT: a MULTISET of the values that are not NULL
    - FIRST_VALUE, LAST_VALUE, LISTAGG (texts joined by ``separator``), ARRAY_AGG: depend on the order of rows

    ``argument``, ``arguments`` and ``filter`` are names of input columns.
    """

    name: Name
    function: Annotated[
        str,
        "The aggregate function: a built-in one, or one of the user's, in lower case.",
        {"minLength": 1, "examples": list(BUILT_IN)},
    ]
    argument: Annotated[Name | None, "The column aggregated; absent in COUNT(*)."] = None
    arguments: Annotated[
        tuple[Name, ...], "The columns that an aggregate function of the user's is called with; of no other."
    ] = ()
    distinct: Annotated[bool, "true: equal values count once."] = False
    filter: Annotated[Name | None, "A BOOLEAN column; only rows where it is true count."] = None
    separator: Annotated[str | None, "The separator of LISTAGG; only for LISTAGG.", {"examples": [","]}] = None
    type: TypeText

    @property
    def is_users(self) -> bool:
        """True if it calls a user's function."""
        return self.function not in BUILT_IN
