"""``calc``: filters rows and computes columns, without state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from hintplan.plans.declarations.fields import Expression, Name, OneInput, OperatorId, TypeText
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_known, check_names, check_read, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, any_order, unchanged
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
class Calc(WithSettings):
    """Keeps the input rows for which ``filter`` is true, then projects them to ``select``. Stateless."""

    id: OperatorId
    inputs: OneInput
    filter: Annotated[Expression | None, "Keeps the rows for which this is true."] = None
    select: Annotated[
        tuple[SelectItem, ...],
        "The output columns: a name passes an input column through, an object computes one.",
        {"minItems": 1},
    ]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _columns(calc: Calc, inputs: Sequence[Columns], plan: Declared) -> Columns:
    types = types_of(inputs[0])
    return tuple(Column(name=item.name, type=item.type or types[item.name]) for item in calc.select)


def _check(calc: Calc, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    passed = [item.name for item in calc.select if item.expression is None]
    types = types_of(inputs[0])
    yield from check_known(passed, types, f"{path}.select", "column")
    for below, text in _expressions(calc):
        yield from check_read(text, types, f"{path}.{below}", "column of the input")
    yield from check_names([item.name for item in calc.select], path, "select")


def _key_above(calc: Calc, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    if calc.filter is not None:
        return None
    shown = {(item.expression or item.name).strip("`"): item.name for item in calc.select}
    return tuple(shown[key] for key in keys) if set(keys) <= shown.keys() else None


def _expressions(calc: Calc) -> Iterator[tuple[str, str | None]]:
    yield from ((f"select.{item.name}", item.expression) for item in calc.select)
    yield "filter", calc.filter


def _describe(calc: Calc, plan: Declared) -> str:
    parts = [f"WHERE {shown_expression(calc.filter)}"] if calc.filter is not None else []
    computed = [item for item in calc.select if item.expression is not None]
    parts += [f"{item.name} = {shown_expression(item.expression or '')}" for item in computed]
    return " · ".join(parts) or f"SELECT {', '.join(item.name for item in calc.select)}"


CALC = OperatorKind(
    op="calc",
    cls=Calc,
    title="calc",
    description="Filters, then projects. Stateless.",
    columns=_columns,
    check=_check,
    key_above=_key_above,
    below_shared=True,
    row_kinds=unchanged,
    reads_order=any_order,
    expressions=_expressions,
    describe=_describe,
)
