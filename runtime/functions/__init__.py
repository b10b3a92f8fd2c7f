"""Functions of the user's in a query: rows of a stream joined with the rows that a function returns for them.

    rows -> arguments -> eval(...) for each row, many at once -> rows -> one ``take`` -> rows

:mod:`hintplan.runtime.functions.api` is what people implement. Calls take their clock and their event loop from
outside. Knows no SQL.
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
