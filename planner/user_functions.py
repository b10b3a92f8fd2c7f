"""User-defined functions: CREATE FUNCTION, and the declarations of a Python class.

A class declares ``function_kind`` (its base class sets it), ``arguments`` (types in Flink's spelling) and ``result``
(``ROW<...>``, or one type, which becomes one column). :mod:`hintplan.plans.declarations.class_shape` checks that its
methods have the declared shape; nothing calls them here. This module does not know the base classes.

>>> class Locate:
...     function_kind, arguments, result = "async-table", ("STRING",), "ROW<lat DOUBLE, lon DOUBLE>"
...     async def eval(self, address): ...
>>> [str(column.name) for column in read_declaration(Locate, "geo.Locate").output]
['lat', 'lon']
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

from hintplan.planner.context import Context, FunctionEntry
from hintplan.planner.expressions import scalars
from hintplan.planner.statements.model import CreateFunction
from hintplan.planner.translation import aggregates
from hintplan.plans.declarations.class_shape import check_shape, function_methods
from hintplan.plans.declarations.classes import FUNCTIONS, ClassRefusal, importable_from, load_named_class
from hintplan.plans.declarations.tables import Column, Function, FunctionKind
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import SqlError

ONE_COLUMN = "f0"
"""Flink's name for the column of a function whose result is a single type."""

_WITH_SYNTAX = (
    *("CASE", "CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM"),
    *("CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "TABLE", "TUMBLE", "HOP", "CUMULATE", "SESSION"),
)
_KINDS = get_args(FunctionKind)
_BASES = "ScalarFunction, TableFunction, AggregateFunction or one that is asynchronous, of hintplan.runtime.functions"
_OPTIONAL = ("merge", "retract")
"""The methods that an aggregate function may omit."""


def declare_function(context: Context, statement: CreateFunction) -> bool:
    """Add a function to the catalog. Return False if it exists and IF NOT EXISTS is set.

    Raise SqlError if the class cannot be loaded or declares no function.
    """
    source, name = context.source, statement.name.lower()
    if name in context.catalog.functions:
        if statement.if_not_exists:
            return False
        message = f"function '{statement.name}' is declared twice"
        raise source.error(message, statement.offset, "rename one of them, or DROP the first")
    try:
        _check_name(name)
    except ClassRefusal as error:
        raise source.error(str(error), statement.offset, error.hint) from None
    try:
        function = _loaded(context, statement.class_name, context.classes.modules)
    except ClassRefusal as error:
        raise source.error(str(error), statement.class_offset, error.hint) from error
    _add(context, name, function, statement.offset, temporary=statement.temporary)
    if name.upper() in scalars.known_functions():
        message = f"'{statement.name}' hides the built-in function {name.upper()} from here on"
        context.report.note(message, statement.offset, "give the function another name if both are needed")
    return True


def register_function(context: Context, name: str, declared: type | str) -> None:
    """Add a function by its class, or by the name of its class, without a check of allowed modules.

    Raise SqlError if the class declares no function.
    """
    key = name.lower()
    try:
        _check_name(key)
        if isinstance(declared, str):
            function = _loaded(context, declared, (declared.rpartition(".")[0],))
        else:
            function = read_declaration(declared, _name_of(declared))
    except ClassRefusal as error:
        raise SqlError(f"function '{name}': {error}", hint=error.hint) from error
    _add(context, key, function, 0, temporary=True)


def read_declaration(cls: type[Any], name: str) -> Function:
    """Return the function that the class ``cls`` declares. Raise ClassRefusal if it declares none.

    ``name`` is the name of the class.
    """
    kind: Any = getattr(cls, "function_kind", None)
    if kind not in _KINDS:
        raise ClassRefusal(f"{name} is no function", hint=f"let it extend {_BASES}")
    arguments = getattr(cls, "arguments", None)
    if isinstance(arguments, str) or not isinstance(arguments, tuple | list):
        hint = "write arguments = ('STRING', 'INT'), or () if it takes none"
        raise ClassRefusal(f"{name} does not declare its arguments as a tuple of types", hint=hint)
    types = [_type(text, f"argument {i} of {name}") for i, text in enumerate(arguments, 1)]
    for i, declared in enumerate(types, 1):
        if not declared.nullable:
            message = f"argument {i} of {name} is declared {declared}, but NULL is passed to functions, as None"
            raise ClassRefusal(message, hint=f"write {declared.as_nullable()}")
    result = getattr(cls, "result", None)
    if not isinstance(result, str):
        hint = "write result = 'STRING', or result = 'ROW<lat DOUBLE, lon DOUBLE>' for several columns"
        raise ClassRefusal(f"{name} does not declare its result", hint=hint)
    returned = _type(result, f"the result of {name}")
    columns: tuple[Column, ...] = (Column(name=ONE_COLUMN, type=str(returned)),)
    # The value of a scalar function may be a ROW. For a table function, the fields of the ROW are the columns.
    if returned.root == "ROW" and kind in ("table", "async-table"):
        named = zip(returned.names, returned.children, strict=True)
        columns = tuple(Column(name=field, type=str(child)) for field, child in named)
        _check_reserved(name, returned.names)
    function = Function(class_name=name, kind=kind, arguments=tuple(map(str, types)), output=columns)
    if kind == "aggregate":
        methods = tuple(method for method in _OPTIONAL if getattr(cls, method, None) is not None)
        function = replace(function, accumulator=str(_accumulator(cls, name)), methods=methods)
    check_shape(cls, name, function_methods(kind, len(types)))
    return function


def _accumulator(cls: type[Any], name: str) -> DataType:
    """Return the type of an aggregate function's accumulator, whose value must not depend on how rows arrive."""
    declared = getattr(cls, "accumulator", None)
    if not isinstance(declared, str):
        hint = "write accumulator = 'BIGINT', or accumulator = 'ROW<total DOUBLE, rows BIGINT>'"
        raise ClassRefusal(f"{name} does not declare its accumulator", hint=hint)
    kind = _type(declared, f"the accumulator of {name}")
    if _has_float(kind):
        message = f"the accumulator of {name} has a FLOAT, which would be rounded whenever it is stored"
        raise ClassRefusal(message, hint="write DOUBLE")
    if not getattr(cls, "deterministic", True):
        message = f"{name} has deterministic = False, but a batch that runs again must compute the same accumulators"
        raise ClassRefusal(message, hint="call a nondeterministic scalar function, and aggregate its results")
    return kind


def _has_float(kind: DataType) -> bool:
    return kind.root == "FLOAT" or any(map(_has_float, kind.children))


def _check_reserved(name: str, columns: tuple[str, ...]) -> None:
    reserved = next((c for c in columns if c.startswith("__")), None)
    if reserved is not None:
        raise ClassRefusal(f"column names that start with '__' are reserved: '{reserved}' of {name}", hint="rename it")


def _type(text: object, what: str) -> DataType:
    try:
        if not isinstance(text, str):
            raise ValueError(f"expected a type as text, found {text!r}")
        data_type = parse_type(text)
        if data_type.contains("TIME"):
            raise ValueError("functions neither take nor return a TIME; use STRING, and CAST in the query")
        return data_type
    except ValueError as error:
        raise ClassRefusal(f"{what}: {error}", hint="use a type such as STRING, BIGINT or DECIMAL(10, 2)") from None


def _check_name(name: str) -> None:
    if name.upper() in (*_WITH_SYNTAX, *aggregates.NAMES):
        message = f"{name.upper()} is a built-in function with a grammar of its own, and cannot be declared"
        raise ClassRefusal(message, hint="give the function another name")


def _loaded(context: Context, class_name: str, modules: tuple[str, ...]) -> Function:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", class_name):
        message = f"expected the dotted name of a Python class, found '{class_name}'"
        raise ClassRefusal(message, hint="write it like 'package.module.Class'")
    directories = context.classes.directories
    needed = f"install the module, or put it into {' or '.join(directories)}"
    with importable_from(directories):
        loaded_class = load_named_class(class_name, modules, group=FUNCTIONS, needed=needed)
    return read_declaration(loaded_class, class_name)


def _name_of(cls: type[Any]) -> str:
    """Return the name by which a run can load the class. Raise ClassRefusal if there is none."""
    module, name = cls.__module__, cls.__qualname__
    if module == "__main__" or "." in name:
        raise ClassRefusal(
            f"class {name} of {module} cannot be loaded by a run",
            hint="define it at the top level of a module that can be imported",
        )
    return f"{module}.{name}"


def _add(context: Context, name: str, function: Function, offset: int, *, temporary: bool) -> None:
    context.catalog.functions[name] = FunctionEntry(
        function=function,
        offset=offset,
        temporary=temporary,
        arguments=tuple(map(parse_type, function.arguments)),
        columns=tuple(parse_type(column.type) for column in function.output),
    )
