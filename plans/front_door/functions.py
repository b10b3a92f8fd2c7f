"""The base classes of user-defined functions, and the context that ``open`` receives.

from hintplan.functions import ScalarFunction
"""

from hintplan.runtime.functions import (
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
