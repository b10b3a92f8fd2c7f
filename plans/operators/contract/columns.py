"""Checks of columns for several kinds of operators: unknown names, duplicate names, types that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hintplan.plans.declarations.tables import Column, TableColumn
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.names import columns_named
from hintplan.plans.operators.contract.declared import Columns
from hintplan.plans.text.names import did_you_mean

RESERVED_PREFIX = "__"


def check_known(names: Sequence[str], known: Mapping[str, str], path: str, what: str) -> Iterator[Diagnostic]:
    """Yield a problem for each of ``names`` that is not in ``known``, which maps columns to types."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, what="columns")
            yield Diagnostic(message=f"'{name}' is no {what}", path=path, hint=hint)


def check_read(text: str | None, known: Mapping[str, str], path: str, what: str) -> Iterator[Diagnostic]:
    """Yield a problem for each column that the expression ``text`` reads and ``known`` lacks."""
    read = dict.fromkeys(column[0] for column in columns_named(text or ""))
    yield from check_known([*read], known, path, what)


def check_read_of_sides(text: str | None, sides: Mapping[str, Mapping[str, str]], path: str) -> Iterator[Diagnostic]:
    """Yield a problem for each column in the condition ``text`` that belongs to none of ``sides``, ``l`` and ``r``."""
    for side, *column in columns_named(text or ""):
        if side not in sides or not column:
            hint = "write l.<column> or r.<column>"
            yield Diagnostic(message=f"'{side}' is no side of the join", path=path, hint=hint)
        else:
            yield from check_known(column[:1], sides[side], path, f"column of '{side}'")


def check_names(names: Sequence[str], path: str, field: str) -> Iterator[Diagnostic]:
    """Yield a problem for each name of an output column that is duplicate or reserved."""
    seen = set()
    for name in names:
        if name in seen:
            yield Diagnostic(message=f"two columns are called '{name}'", path=f"{path}.{field}")
        if name.startswith(RESERVED_PREFIX):
            message = f"column names that start with {RESERVED_PREFIX} are reserved: '{name}'"
            yield Diagnostic(message=message, path=f"{path}.{field}")
        seen.add(name)


@lru_cache(maxsize=4096)
def parse(text: str) -> DataType:
    """Return the type that ``text`` denotes; cached, because plans repeat types."""
    return parse_type(text)


def types_of(columns: Sequence[Column | TableColumn]) -> dict[str, str]:
    """Return the types of columns by name."""
    return {column.name: column.type for column in columns}


def same_type(a: str, b: str) -> bool:
    """Return True if two types are the same, ignoring nullability."""
    return a == b or parse(a).as_nullable() == parse(b).as_nullable()


def listed(columns: Columns) -> str:
    """Return the columns with their types as text for a message."""
    return "(" + ", ".join(f"{column.name} {column.type}" for column in columns) + ")"


def check_argument(function: str, column: str, must: str, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    """Yield the problems of an input ``column`` as an argument of ``function``, whose declared type is ``must``."""
    unknown = list(check_known([column], types, path, "column of the input"))
    yield from unknown
    if not unknown and not same_type(types[column], must):
        yield Diagnostic(message=f"'{function}' takes {must}, but '{column}' is {types[column]}", path=path)
    elif not unknown and parse(types[column]).nullable and not parse(must).nullable:
        yield Diagnostic(message=f"'{function}' takes {must}, but '{column}' may be NULL", path=path)
