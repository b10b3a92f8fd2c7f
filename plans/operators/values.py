"""``values``: emits rows that the plan itself contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.fields import Expression, Name, OperatorId, TypeText
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_names
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.counts import count

_SHOWN = 60


@frozen
class GivenColumn:
    """A column of the rows in the plan."""

    name: Name
    type: TypeText


@frozen
class Values(Operator):
    """Emits ``rows`` once, independent of the query's sources; each value is cast to the type of its column. Stateless.

    A value is a literal in Spark SQL, or an expression that reads no column.
    """

    op = "values"
    title = "values"
    description = "Puts out rows that the plan itself has, once."
    has_rows = True

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

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return tuple(Column(name=column.name, type=column.type) for column in self.columns)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        yield from check_names([column.name for column in self.columns], self.path, "columns")
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                message = f"this row has {count(len(row), 'value')}, the operator {count(len(self.columns), 'column')}"
                yield Diagnostic(message=message, path=f"{self.path}.rows[{index}]", hint="give each column one value")

    def row_kinds(self, inputs: RowKinds, plan: Declared) -> RowKinds:
        return INSERT_ONLY

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        for index, row in enumerate(self.rows):
            yield from ((f"rows[{index}][{place}]", text) for place, text in enumerate(row))

    def describe(self, plan: Declared) -> str:
        shown: list[str] = []
        for row in self.rows:
            text = f"({', '.join(map(shown_expression, row))})"
            if sum(map(len, shown)) + len(text) > _SHOWN:
                break
            shown.append(text)
        names = ", ".join(column.name for column in self.columns)
        if len(shown) == len(self.rows):
            return f"VALUES {', '.join(shown)} AS ({names})"
        return f"VALUES {', '.join([*shown, '...'])} AS ({names}) · {count(len(self.rows), 'row')}"
