"""The columns of a query block: the SELECT list with its names, and renamed, converted and filtered relations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions import nested
from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.typed import FIELD, Call, Expr, Field, FieldRef, Literal, conjunction, walk
from hintplan.planner.relations import Item, LogicalCalc, Relation, identity
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.scope import Scope, resolve_path, star
from hintplan.planner.translation.translator import Translator, only


def projections(context: Context, select: exp.Select, translator: Translator) -> list[tuple[str, Expr]]:
    """Return the names and values of the SELECT list, with ``*`` expanded.

    An error in an item is recorded, and the other items are still compiled.
    """
    columns: list[tuple[str, Expr]] = []
    for node in select.expressions:
        with context.source.problems.going_on():
            expanded = _starred(context, node, translator.scope)
            if expanded is not None:
                columns.extend(expanded)
                continue
            name, body = _output_name(context, node)
            expression = translator.expression(body)
            columns.append((name if name is not None else _default_name(expression), expression))
    return columns


def _starred(context: Context, node: exp.Expr, scope: Scope) -> list[tuple[str, Expr]] | None:
    """Return names and values of ``*``, ``t.*`` or ``t.a.*`` (the fields of a ROW), or None if ``node`` has no star."""
    names = _qualifier(context, node)
    if names is None:
        return None
    offset = offset_of(node)
    of_input = any(names in ((i.name,), i.path[-len(names) :]) for i in scope.inputs)
    if not names or of_input or (len(names) == 1 and not scope.find(None, names[0])):
        return [(f.name, FieldRef(field=f)) for f in star(context.source, scope, names[-1] if names else None, offset)]
    whole = resolve_path(context.source, scope, names, offset)
    if whole.type.root != "ROW":
        message = f"'{'.'.join(names)}.*' is of a ROW, found {whole.type.as_nullable()}"
        raise context.source.error(message, offset, f"write {'.'.join(names)}")
    return [(name, nested.field(context.source, whole, name, offset)) for name in whole.type.names]


def _qualifier(context: Context, node: exp.Expr) -> tuple[str, ...] | None:
    """Return the names before ``*``, or None if ``node`` has no star."""
    if isinstance(node, exp.Star):
        only(context.source, node)
        return ()
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        only(context.source, node.this)
        return tuple(part.name for part in node.parts[:-1])
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star) and isinstance(node.this, exp.Column):
        return tuple(part.name for part in node.this.parts)
    return None


def _output_name(context: Context, node: exp.Expr) -> tuple[str | None, exp.Expr]:
    """Return the alias of a SELECT item, or None, and the expression of the item."""
    if not isinstance(node, exp.Alias):
        return None, node
    if node.alias.startswith("__"):
        raise context.source.error(
            f"column names that start with '__' are reserved: '{node.alias}'",
            offset_of(node.args["alias"]),
            "rename it",
        )
    return node.alias, node.this


def _default_name(expression: Expr) -> str:
    """Return the name of a SELECT item without an alias: the name of its column or field, or an empty string."""
    if isinstance(expression, Call) and expression.function == FIELD and isinstance(expression.args[1], Literal):
        return expression.args[1].text or ""
    return expression.field.name if isinstance(expression, FieldRef) else ""


def column_for(context: Context, expression: Expr, computed: list[Item], *, apart: tuple[Field, ...] = ()) -> Field:
    """Return the field that holds ``expression``.

    Appends to ``computed`` if the expression is not a column, or if its column is in ``apart``.
    """
    if isinstance(expression, FieldRef) and expression.field not in apart:
        return expression.field
    for item in computed:
        if item.expr == expression:
            return item.field
    name = expression.field.name if isinstance(expression, FieldRef) else ""
    computed.append(Item(field=context.field(name, expression.type), expr=expression))
    return computed[-1].field


def distinct_fields(context: Context, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Give a new field to each repetition of a column in ``items``."""
    seen: set[int] = set()
    distinct: list[Item] = []
    for item in items:
        if item.field.id in seen:
            item = replace(item, field=context.field(item.field.name, item.field.type))
        seen.add(item.field.id)
        distinct.append(item)
    return tuple(distinct)


def own_fields(context: Context, items: tuple[Item, ...], relation: Relation) -> tuple[Item, ...]:
    """Give a new field to each item that is a column of an outer block, and so not a column of ``relation``."""
    own = {f.id for f in relation.fields}
    return tuple(
        replace(item, field=context.field(item.field.name, item.field.type))
        if isinstance(item.expr, FieldRef) and item.expr.field.id not in own
        else item
        for item in items
    )


def rename_columns(context: Context, relation: Relation, names: tuple[str, ...], offset: int) -> Relation:
    """Rename the columns of ``relation`` to ``names``; return it unchanged if ``names`` is empty."""
    if not names:
        return relation
    if len(names) != len(relation.fields):
        raise context.source.error(
            f"{len(names)} column names for {len(relation.fields)} columns", offset, "name each column once"
        )
    items = tuple(
        Item(field=context.field_for(FieldRef(field=f), n), expr=FieldRef(field=f))
        for n, f in zip(names, relation.fields, strict=True)
    )
    return LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=relation.block)


def align_columns(context: Context, relation: Relation, fields: tuple[Field, ...]) -> Relation:
    """Convert the columns of ``relation``, by position, to new fields with the names and types of ``fields``."""
    items = tuple(
        Item(field=context.field(wanted.name, wanted.type), expr=cast(FieldRef(field=f), wanted.type, 0))
        for f, wanted in zip(relation.fields, fields, strict=True)
    )
    return LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=relation.block)


def filtered(relation: Relation, parts: tuple[Expr, ...], block: str) -> Relation:
    """Keep the rows for which all ``parts`` are true."""
    condition = conjunction(parts)
    if condition is None:
        return relation
    return LogicalCalc(
        input=relation, filter=condition, items=identity(relation.fields), base=relation.base, block=block
    )


def check_own(context: Context, expression: Expr, own: Collection[int], called: str) -> None:
    """Refuse columns of the outer block in ``expression``, which may read only fields whose ids are in ``own``.

    ``called`` names the query of the expression in the message, such as "a LATERAL query".
    """
    around = "earlier tables" if "LATERAL" in called else "the block around it"
    for e in walk(expression):
        if isinstance(e, FieldRef) and e.field.id not in own:
            message = f"{called} can refer to {around} only in its WHERE"
            raise context.source.error(message, e.offset, "compute with the value in the query around it")


def check_comparable(context: Context, relation: Relation, what: str, offset: int) -> None:
    """Refuse columns of types that ``what`` cannot compare."""
    for field in relation.fields:
        if field.type.root == "NULL":
            raise context.source.error(
                f"{what} cannot compare column '{field.name}' of type {field.type.root}", offset, "leave the column out"
            )
