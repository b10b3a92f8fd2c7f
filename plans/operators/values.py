"""``values``: emits rows that the plan itself contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.fields import Expression, Name, OperatorId, TypeText
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_names
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, any_order
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.counts import count

_SHOWN = 60


@frozen
class GivenColumn:
    """A column of the rows in the plan."""

    name: Name
    type: TypeText


@frozen
class Values(WithSettings):
    """Emits ``rows`` once, independent of the query's sources; each value is cast to the type of its column. Stateless.

    A value is a literal in Spark SQL, or an expression that reads no column.
    """

    id: OperatorId
    columns: Annotated[tuple[GivenColumn, ...], "The columns of the rows.", {"minItems": 1}]
    rows: Annotated[
        tuple[Annotated[tuple[Expression, ...], {"minItems": 1}], ...],
        "The rows: of each the values in the order of the columns, literals in Spark SQL.",
        {"minItems": 1},
    ]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()


def _columns(values: Values, inputs: Sequence[Columns], plan: Declared) -> Columns:
    return tuple(Column(name=column.name, type=column.type) for column in values.columns)


def _row_kinds(values: Values, inputs: RowKinds, plan: Declared) -> RowKinds:
    return INSERT_ONLY


def _check(values: Values, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from check_names([column.name for column in values.columns], path, "columns")
    for index, row in enumerate(values.rows):
        if len(row) != len(values.columns):
            message = f"this row has {count(len(row), 'value')}, the operator {count(len(values.columns), 'column')}"
            yield Diagnostic(message=message, path=f"{path}.rows[{index}]", hint="give each column one value")


def _expressions(values: Values) -> Iterator[tuple[str, str | None]]:
    for index, row in enumerate(values.rows):
        yield from ((f"rows[{index}][{place}]", text) for place, text in enumerate(row))


def _describe(values: Values, plan: Declared) -> str:
    shown: list[str] = []
    for row in values.rows:
        text = f"({', '.join(map(shown_expression, row))})"
        if sum(map(len, shown)) + len(text) > _SHOWN:
            break
        shown.append(text)
    names = ", ".join(column.name for column in values.columns)
    if len(shown) == len(values.rows):
        return f"VALUES {', '.join(shown)} AS ({names})"
    return f"VALUES {', '.join([*shown, '...'])} AS ({names}) · {count(len(values.rows), 'row')}"


VALUES = OperatorKind(
    op="values",
    cls=Values,
    title="values",
    description="Puts out rows that the plan itself has, once.",
    has_rows=True,
    columns=_columns,
    check=_check,
    row_kinds=_row_kinds,
    reads_order=any_order,
    expressions=_expressions,
    describe=_describe,
)
