"""User-defined functions in a query: join the rows of a stream with the rows that a function returns for them.

    rows -> arguments -> eval(...) for each row, many at once -> rows -> one ``take`` -> rows

Users implement the interfaces of :mod:`hintplan.runtime.functions.api`. Callers pass the clock and the event loop of
the calls. This package knows no SQL.
"""

from hintplan.runtime.functions.api import (
    AggregateFunction,
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ScalarFunction,
    TableFunction,
    UserDefinedFunction,
)

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "AsyncTableFunction",
    "FunctionContext",
    "ScalarFunction",
    "TableFunction",
    "UserDefinedFunction",
]
