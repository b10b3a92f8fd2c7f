"""``calc``: filters rows and computes columns, without state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, ClassVar

from hintplan.plans.declarations.fields import Expression, Name, OneInput, OperatorId, TypeText
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, check_read, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.layers import Settings


@frozen
class SelectItem:
    """An output column of a calc: passed through by name, or computed as ``expression`` of ``type``."""

    SHORT: ClassVar[str] = "name"
    """The field that a plan writes as a bare value if no other field is set."""

    name: Name
    type: TypeText | None = None
    expression: Expression | None = None


@frozen
class Calc(Operator):
    """Keeps the input rows for which ``filter`` is true, then projects them to ``select``. Stateless."""

    op = "calc"
    title = "calc"
    description = "Filters, then projects. Stateless."
    below_shared = True
    may_run_in_arrow = True

    id: OperatorId
    inputs: OneInput
    filter: Annotated[Expression | None, "Keeps the rows for which this is true."] = None
    select: Annotated[
        tuple[SelectItem, ...],
        "The output columns: a name passes an input column through, an object computes one.",
        {"minItems": 1},
    ]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        types = types_of(inputs.only)
        return tuple(Column(name=item.name, type=item.type or types[item.name]) for item in self.select)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        passed = [item.name for item in self.select if item.expression is None]
        types = types_of(inputs.only)
        yield from check_known(passed, types, f"{self.path}.select", "column")
        for below, text in self.expressions():
            yield from check_read(text, types, f"{self.path}.{below}", "column of the input")
        yield from check_names([item.name for item in self.select], self.path, "select")

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return tuple(item.name for item in self.select if (item.expression or item.name).strip("`") == column)

    def key_above(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        if self.filter is not None:
            return None
        shown = {(item.expression or item.name).strip("`"): item.name for item in self.select}
        return tuple(shown[key] for key in keys) if set(keys) <= shown.keys() else None

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield from ((f"select.{item.name}", item.expression) for item in self.select)
        yield "filter", self.filter

    def describe(self, plan: Declared) -> str:
        parts = [f"WHERE {shown_expression(self.filter)}"] if self.filter is not None else []
        computed = [item for item in self.select if item.expression is not None]
        parts += [f"{item.name} = {shown_expression(item.expression or '')}" for item in computed]
        return " · ".join(parts) or f"SELECT {', '.join(item.name for item in self.select)}"
