"""Splits the condition of each join into key columns and the remaining condition.

- Both columns of a key have the same type. Calcs below the join compute expressions and casts.
- ``IS NOT DISTINCT FROM`` becomes two keys: a test for NULL, and the value with a constant instead of NULL.
- A join without an equality gets a constant as its key, so all its rows meet in one partition, as in Flink. The pass
  warns of it, unless a side has at most one row or the meaning of the join requires it (``NOT IN``).
- The join must be able to evaluate the remaining condition. For an inner join, a calc above can evaluate it instead.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.coercion import cast, common_data_type
from hintplan.planner.expressions.comparisons import whose_entries
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    INT,
    Call,
    Expr,
    Field,
    call,
    conjunction,
    function_name,
    is_deterministic,
    literal,
)
from hintplan.planner.passes.compute_below import (
    Guards,
    Side,
    as_simple,
    first_refused,
    guards_before,
    is_simple,
    may_fail,
    shared_out,
)
from hintplan.planner.relations import LogicalAggregate, LogicalCalc, LogicalJoin, Relation, identity, map_inputs
from hintplan.plans.declarations.built_in import DRAWN
from hintplan.plans.declarations.types import DataType

_ANY_VALUE = {
    "BOOLEAN": "FALSE",
    "DATE": "1970-01-01",
    "TIME": "00:00:00",
    "TIMESTAMP": "1970-01-01 00:00:00",
    "TIMESTAMP_LTZ": "1970-01-01 00:00:00",
}
"""A value of each type that replaces NULL in a key. Numbers use 0, and texts the empty text."""


def extract_join_keys(context: Context, relation: Relation) -> Relation:
    """Give each join its keys. Raise SqlError if the join cannot evaluate its condition."""
    relation_above = map_inputs(relation, lambda below: extract_join_keys(context, below))
    return _with_keys(context, relation_above) if isinstance(relation_above, LogicalJoin) else relation_above


def _with_keys(context: Context, join: LogicalJoin) -> Relation:
    left, right = Side(context, join.left), Side(context, join.right)
    keys: list[tuple[Field, Field]] = []
    remaining: list[tuple[Expr, Guards]] = []
    for part, guards in guards_before(join.on, lambda part: not equalities(part, left, right)):
        pairs = equalities(part, left, right)
        keys += [key for a, b in pairs if (key := (left.column(a, guards), right.column(b, guards))) not in keys]
        if not pairs:
            remaining.append((part, guards))
    if not keys and join.interval is not None:
        sides = " and ".join("_".join(side.base) for side in (join.left, join.right))
        message = f"this interval join of {sides} has no equality: all its rows are in one partition"
        context.report.warn(message, join.offset, "add left.column = right.column")
    elif not keys:
        if not (join.keyless or is_single_row(join.left) or is_single_row(join.right)):
            _warn_of_one_partition(context, join)
        keys.append((left.column(literal(1, INT)), right.column(literal(1, INT))))
    above: list[Expr] = []
    if join.join_type == "inner":
        within, above = shared_out([part for part, _ in remaining], lambda part: not is_simple(part))
    else:
        within = [as_simple(part, (left, right), guards) for part, guards in remaining]
        for part in within:
            bad = first_refused(part)
            if bad is not None:
                raise _refused(context, bad, part, left, right)
    relation: Relation = replace(
        join, left=left.result(), right=right.result(), on=(), keys=tuple(keys), condition=conjunction(tuple(within))
    )
    if above:
        relation = LogicalCalc(
            input=relation,
            filter=conjunction(tuple(above)),
            items=identity(relation.fields),
            base=relation.base,
            block=relation.block,
        )
    return relation


def equalities(part: Expr, left: Side, right: Side) -> tuple[tuple[Expr, Expr], ...]:
    """Return pairs of a left and a right expression whose equality is equivalent to ``part``, or none."""
    if not isinstance(part, Call) or not is_deterministic(part):
        return ()
    null_safe = part.function == "coalesce" and _is_null_safe(part)
    equality = part.args[0] if null_safe else part
    if not isinstance(equality, Call) or equality.function != "=":
        return ()
    a, b = equality.args
    maps = [whose_entries(operand) for operand in (a, b)]  # as keys, maps are compared without sorting their entries
    if maps[0] is not None and maps[1] is not None:
        a, b = maps[0], maps[1]
    if left.owns(b) and right.owns(a):
        a, b = b, a
    if not (left.owns(a) and right.owns(b)):
        return ()
    common = common_data_type((a.type, b.type))
    if common is None:
        return ()
    a, b = cast(a, common, a.offset), cast(b, common, b.offset)
    if not null_safe:
        return ((a, b),)
    if common.is_nested:  # in an ARRAY, NULL equals NULL
        a, b = (
            call("array", (operand,), DataType(root="ARRAY", children=(common,)), operand.offset) for operand in (a, b)
        )
        return ((a, b),)
    null_value = "" if common.is_text else "0" if common.is_numeric else _ANY_VALUE.get(common.root)
    if null_value is None:
        return ()
    value = literal(null_value, common)
    return (
        (call("IS NULL", (a,), BOOLEAN, a.offset), call("IS NULL", (b,), BOOLEAN, b.offset)),
        (call("coalesce", (a, value), common, a.offset), call("coalesce", (b, value), common, b.offset)),
    )


def _is_null_safe(part: Call) -> bool:
    """Return True if ``part`` is the translation of IS NOT DISTINCT FROM."""
    same, both = part.args if len(part.args) == 2 else (part, part)
    if not (isinstance(same, Call) and same.function == "=" and isinstance(both, Call) and both.function == "AND"):
        return False
    return all(
        isinstance(e, Call) and e.function == "IS NULL" and e.args == (value,)
        for e, value in zip(both.args, same.args, strict=True)
    )


def is_single_row(relation: Relation) -> bool:
    """Return True if the relation has at most one row, because it is an aggregate without GROUP BY."""
    match relation:
        case LogicalCalc():
            return is_single_row(relation.input)
        case LogicalJoin():
            return is_single_row(relation.left) and is_single_row(relation.right)
        case LogicalAggregate():
            return not relation.keys
        case _:
            return False


def _warn_of_one_partition(context: Context, join: LogicalJoin) -> None:
    if join.join_type in ("semi", "anti"):
        subject, advice = "this sub-query", "add an equality to its WHERE: inner.column = outer.column"
    else:
        sides = " and ".join("_".join(side.base) for side in (join.left, join.right))
        subject, advice = f"this join of {sides}", "add left.column = right.column"
    message = f"{subject} has no equality: every row is compared with every row of the other side, in one partition"
    context.report.warn(message, join.offset, advice)


def _refused(context: Context, bad: Expr, part: Expr, left: Side, right: Side) -> Exception:
    name, offset = function_name(bad) if isinstance(bad, Call) else "this", bad.offset or part.offset
    if may_fail(bad) and (left.owns(bad) or right.owns(bad)):
        return context.source.error(
            f"{name} fails for some rows, and which rows it is for depends on both sides of this join",
            offset,
            "write TRY_CAST, or compute it in a sub-query first",
        )
    if isinstance(bad, Call) and name in DRAWN:
        message = f"{name}, which each row has its own of, cannot be part of the condition of this join"
        return context.source.error(message, offset, "compute it in a sub-query first")
    if not is_deterministic(bad):
        message = f"the current time, as {name} takes it, cannot be part of the condition of this join"
        return context.source.error(message, offset, "compare with a column that holds a time")
    return context.source.error(
        f"{name} over columns of both sides cannot be part of the condition of this join",
        offset,
        "compute it in a sub-query first, or compare columns directly",
    )
