"""The columns of a lowered operator, and expressions over them as text.

Column names are unique within an operator, regardless of case, because Spark ignores case.

>>> from hintplan.planner.expressions.typed import INT
>>> unique_names((Field(id=1, name="a", type=INT), Field(id=2, name="A", type=INT)))
('a', 'A0')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hintplan.planner.expressions.spark_text import identifier, to_spark_sql
from hintplan.planner.expressions.typed import Expr, Field, FieldRef
from hintplan.planner.relations import Item
from hintplan.plans.operators import JoinColumn, SelectItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """An operator: its id, its columns in order, and the column of each field."""

    id: str
    columns: tuple[str, ...]
    names: Mapping[int, str]

    def printed(self, prefix: str = "") -> dict[int, str]:
        """Return the columns as an expression refers to them, by field."""
        return {field: prefix + identifier(name) for field, name in self.names.items()}


def lowered(id: str, fields: tuple[Field, ...], columns: tuple[str, ...]) -> Lowered:
    """Return the operator ``id``, whose ``columns`` hold ``fields``."""
    return Lowered(id=id, columns=columns, names={f.id: n for f, n in zip(fields, columns, strict=True)})


def unique_names(fields: tuple[Field, ...], before: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return ``before`` and a name for each field, without duplicates."""
    names = list(before)
    taken = {n.lower() for n in before} | {f.name.lower() for f in fields}
    used = {n.lower() for n in before}
    next_number: Counter[str] = Counter()
    for field in fields:
        name = field.name
        if not name or name.lower() in used:
            stem = (name or "expr").lower()
            while f"{stem}{next_number[stem]}" in taken:
                next_number[stem] += 1
            name = f"{name or 'expr'}{next_number[stem]}"
        used.add(name.lower())
        taken.add(name.lower())
        names.append(name)
    return tuple(names)


def optional_text(expression: Expr | None, names: Mapping[int, str]) -> str | None:
    """Return the text of an expression, or None."""
    return None if expression is None else to_spark_sql(expression, names)


def select_items(columns: tuple[str, ...], items: tuple[Item, ...], source: Lowered) -> tuple[SelectItem, ...]:
    """Return ``items``, named ``columns``, as expressions over the columns of ``source``."""
    names = source.printed()
    return tuple(_select_item(name, item, source, names) for name, item in zip(columns, items, strict=True))


def _select_item(name: str, item: Item, source: Lowered, names: Mapping[int, str]) -> SelectItem:
    expression = item.expr
    if isinstance(expression, FieldRef) and source.names[expression.field.id] == name:
        return SelectItem(name=name)
    return SelectItem(name=name, expression=to_spark_sql(expression, names), type=str(item.field.type))


def join_columns(
    columns: tuple[str, ...], items: tuple[Item, ...], left: Lowered, right: Lowered
) -> tuple[JoinColumn, ...]:
    """Return ``items``, named ``columns``, as columns of either side."""
    return tuple(_join_column(name, item, left, right) for name, item in zip(columns, items, strict=True))


def _join_column(name: str, item: Item, left: Lowered, right: Lowered) -> JoinColumn:
    assert isinstance(item.expr, FieldRef)
    field = item.expr.field
    if field.id in left.names:
        return JoinColumn(name=name, type=str(item.field.type), side="left", column=left.names[field.id])
    return JoinColumn(name=name, type=str(item.field.type), side="right", column=right.names[field.id])
