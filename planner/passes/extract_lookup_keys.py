"""Splits the condition of each lookup join into lookup keys and conditions.

``table column = value`` becomes a key if the column stands alone. A calc below computes the value. For the remaining
conjuncts:

- A conjunct over the input only decides whether a row of a left lookup is looked up (``pre_filter``).
- A conjunct over the table only becomes its ``filter``, and a conjunct over both its ``condition``.
- For an inner lookup, a calc above evaluates anything except comparisons and arithmetic. For a left lookup it stays a
  condition, because it decides which rows are padded.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.coercion import cast, common_data_type
from hintplan.planner.expressions.typed import (
    USER,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    conjunction,
    function_name,
    is_deterministic,
    referenced_fields,
    replace_outermost,
    walk,
)
from hintplan.planner.passes.compute_below import (
    Guards,
    Side,
    as_simple,
    guards_before,
    is_simple,
    shared_out,
)
from hintplan.planner.relations import (
    LogicalCalc,
    LogicalLookupJoin,
    LogicalLookupKey,
    Relation,
    identity,
    map_inputs,
)
from hintplan.plans.declarations.types import DataType


def extract_lookup_keys(context: Context, relation: Relation) -> Relation:
    """Give each lookup join its keys. Raise SqlError if it has no equality, or a condition that it cannot evaluate."""
    relation_above = map_inputs(relation, lambda below: extract_lookup_keys(context, below))
    return _with_keys(context, relation_above) if isinstance(relation_above, LogicalLookupJoin) else relation_above


def _with_keys(context: Context, lookup: LogicalLookupJoin) -> Relation:
    left = Side(context, lookup.input)
    fetched = {f.id: f for f in lookup.fetched}
    keys: dict[int, LogicalLookupKey] = {}
    remaining: list[tuple[Expr, Guards]] = []
    refused: list[tuple[Expr, Field, Expr]] = []
    for part, guards in guards_before(lookup.on, lambda part: _equality(part, fetched) is None):
        equality = _equality(part, fetched)
        value = _as_type_of(equality[0], equality[1]) if equality is not None else None
        if equality is not None and value is None:
            refused.append((part, *equality))
        if equality is None or value is None or equality[0].id in keys:
            remaining.append((part, guards))
        else:
            keys[equality[0].id] = LogicalLookupKey(
                column=equality[0], value=value if isinstance(value, Literal) else left.column(value, guards)
            )
    if not keys:
        raise _no_equality(context, lookup, refused)
    above: list[Expr] = []
    if lookup.join_type == "inner":
        parts, above = shared_out([p for p, _ in remaining], lambda p: not is_simple(p) or not referenced_fields(p))
    else:
        parts = [_simplified(context, p, left, guards) for p, guards in remaining]
    sides = [({f.id in fetched for f in referenced_fields(p)}, p) for p in parts]
    relation: Relation = replace(
        lookup,
        input=left.result(),
        on=(),
        keys=tuple(keys[i] for i in fetched if i in keys),
        pre_filter=conjunction(tuple(p for of_table, p in sides if True not in of_table)),
        filter=conjunction(tuple(p for of_table, p in sides if of_table == {True})),
        condition=conjunction(tuple(p for of_table, p in sides if of_table == {True, False})),
    )
    if above:
        relation = _above(lookup, relation, tuple(above))
    return relation


def _above(lookup: LogicalLookupJoin, relation: Relation, parts: tuple[Expr, ...]) -> Relation:
    """Return a calc over an inner lookup that keeps the rows for which ``parts`` are true.

    The lookup also returns the columns of the table that ``parts`` read.
    """
    assert isinstance(relation, LogicalLookupJoin)
    shown = {i.expr.field.id: i.field for i in relation.items if isinstance(i.expr, FieldRef)}
    lacking = tuple(f for f in lookup.fetched if f.id not in shown and any(f in referenced_fields(p) for p in parts))
    names = {old: FieldRef(field=new) for old, new in shown.items()}
    condition = conjunction(
        tuple(replace_outermost(p, lambda e: names.get(e.field.id) if isinstance(e, FieldRef) else None) for p in parts)
    )
    wider = replace(relation, items=(*relation.items, *identity(lacking)))
    return LogicalCalc(
        input=wider, filter=condition, items=identity(relation.fields), base=relation.base, block=relation.block
    )


def _equality(part: Expr, own: dict[int, Field]) -> tuple[Field, Expr] | None:
    """Return the table's column and the value that ``part`` equates, or None.

    The value reads no other column of the table.
    """
    if not isinstance(part, Call) or part.function != "=" or not is_deterministic(part):
        return None
    for column, value in (part.args, part.args[::-1]):
        if (
            isinstance(column, FieldRef)
            and column.field.id in own
            and not any(f.id in own for f in referenced_fields(value))
        ):
            return column.field, value
    return None


def _as_type_of(column: Field, value: Expr) -> Expr | None:
    """Return ``value`` in the type of ``column``, or None. The column cannot be cast: the source is queried by it."""
    wanted, value_type = column.type.as_nullable(), value.type.as_nullable()
    if wanted == value_type or (wanted.is_text and value_type.is_text):
        return value
    if isinstance(value, Literal) and value.text is not None:
        return _literal_as(value, wanted)
    if common_data_type((wanted, value_type)) == wanted:
        return cast(value, wanted, value.offset)
    return None


def _literal_as(value: Literal, wanted: DataType) -> Literal | None:
    """Return a number as a literal of another numeric type, or None if that type cannot hold it."""
    if wanted.is_numeric and common_data_type((wanted, value.type)) == wanted:
        return replace(value, type=wanted)
    if wanted.root == "DECIMAL" and (value.type.is_integer or value.type.root == "DECIMAL"):
        whole, _, fraction = (value.text or "").lstrip("-").partition(".")
        scale = wanted.scale or 0
        fits = len(whole.lstrip("0")) <= (wanted.precision or 0) - scale and len(fraction.rstrip("0")) <= scale
        return replace(value, type=wanted) if fits else None
    bounds = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31}
    if (
        wanted.root in bounds
        and value.type.is_integer
        and -bounds[wanted.root] <= int(value.text or 0) < bounds[wanted.root]
    ):
        return replace(value, type=wanted)
    if wanted.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and value.type.root == wanted.root:
        return replace(value, type=wanted)
    return None


def _no_equality(context: Context, lookup: LogicalLookupJoin, refused: list[tuple[Expr, Field, Expr]]) -> Exception:
    message = f"a lookup of '{lookup.name}' needs an equality with one of its columns"
    if refused:
        part, column, value = refused[0]
        value_type, wanted = value.type.as_nullable(), column.type.as_nullable()
        return context.source.error(
            f"{message}: column '{column.name}' is {wanted}, but the value is {value_type}",
            getattr(part, "offset", 0) or lookup.offset,
            f"convert the value: CAST(... AS {wanted})",
        )
    null_safe = any(isinstance(e, Call) and e.function == "coalesce" for p in lookup.on for e in walk(p))
    advice = f"write ON {lookup.name}.column = o.column, with the column alone on its side"
    if null_safe:
        advice = "IS NOT DISTINCT FROM finds no rows by NULL: write column = value"
    return context.source.error(message, lookup.offset, advice)


def _simplified(context: Context, part: Expr, left: Side, guards: Guards) -> Expr:
    """Return ``part``, with columns from calcs below instead of complex expressions over the input.

    Raise SqlError if it calls a user-defined function with columns of the table.
    """
    simplified = as_simple(part, (left,), guards)
    asked = next((e for e in walk(simplified) if isinstance(e, Call) and e.function.startswith(USER)), None)
    if asked is not None:
        raise context.source.error(
            f"{function_name(asked)} cannot be part of this condition of a LEFT lookup join",
            asked.offset or getattr(part, "offset", 0),
            "compare columns of the table directly, compute expressions over the stream below the join, or use an "
            "inner join",
        )
    return simplified
