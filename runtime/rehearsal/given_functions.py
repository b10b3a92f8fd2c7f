"""Functions whose results a test gives as rows: a class for each, which finds its results by the arguments.

NULL in an argument is equal to NULL. A table function returns nothing for arguments that no row has.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.tables import Function, FunctionKind
from hintplan.plans.errors import RunError
from hintplan.plans.rehearsal.function_rows import RESULT, argument_names, is_scalar
from hintplan.runtime.functions.api import AsyncScalarFunction, AsyncTableFunction, ScalarFunction, TableFunction
from hintplan.runtime.functions.call import Arguments, short_text
from hintplan.runtime.functions.rows import argument_rows


class _Given:
    """The rows that stand for a function, by the arguments of a call."""

    arguments_of_rows: list[Arguments]
    results: list[Any]
    name: str

    def found(self, arguments: Arguments) -> list[Any]:
        rows = zip(self.arguments_of_rows, self.results, strict=True)
        return [result for of_row, result in rows if of_row == arguments]

    def value(self, arguments: Arguments) -> Any:
        found = self.found(arguments)
        if not found:
            call = f"{self.name}({', '.join(map(short_text, arguments))})"
            cells = (f"arg{number}: {short_text(value)}" for number, value in enumerate(arguments, 1))
            raise RunError(
                f"the test has no result of {call}",
                hint=f"add {{{', '.join([*cells, f'{RESULT}: ...'])}}} to functions: {{{self.name}: [...]}}",
            )
        return found[0]


class _Table(_Given, TableFunction):
    def eval(self, *arguments: Any) -> Any:
        return self.found(arguments)


class _Scalar(_Given, ScalarFunction):
    def eval(self, *arguments: Any) -> Any:
        return self.value(arguments)


class _AsyncTable(_Given, AsyncTableFunction):
    async def eval(self, *arguments: Any) -> Any:
        return self.found(arguments)


class _AsyncScalar(_Given, AsyncScalarFunction):
    async def eval(self, *arguments: Any) -> Any:
        return self.value(arguments)


_CLASSES: dict[FunctionKind, type[_Given]] = {
    "table": _Table,
    "scalar": _Scalar,
    "async-table": _AsyncTable,
    "async-scalar": _AsyncScalar,
}


def given_function(name: str, function: Function, rows: pa.Table) -> type[_Given]:
    """Return a class for ``function`` that answers from ``rows``, which have its ``function_columns``."""
    results = [row if not is_scalar(function) else row[0] for row in _results(function, rows)]
    fields = ", ".join(f"`{column.name.replace('`', '``')}` {column.type}" for column in function.output)
    return type(
        f"Given_{name}",
        (_CLASSES[function.kind],),
        {
            "arguments": function.arguments,
            "result": function.output[0].type if is_scalar(function) else f"ROW<{fields}>",
            "arguments_of_rows": argument_rows(rows, argument_names(function)),
            "results": results,
            "name": name,
        },
    )


def _results(function: Function, rows: pa.Table) -> list[Arguments]:
    names = [RESULT] if is_scalar(function) else [column.name for column in function.output]
    return argument_rows(rows, names)
