"""UNION, INTERSECT and EXCEPT.

UNION concatenates the rows of several queries, with their columns converted to common types. INTERSECT and EXCEPT
return the distinct rows of one query that are, or are not, among the rows of another. They become semi and anti joins
of distinct rows over all columns, and two NULLs count as equal. With ALL, one aggregate counts the duplicates on both
sides, and each row is repeated as often as the counts require.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.coercion import cast, common_data_type
from hintplan.planner.expressions.operands import is_not_distinct
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, NULL, Field, FieldRef, call, literal
from hintplan.planner.query.clauses import clauses_of, read_clauses
from hintplan.planner.query.columns import align_columns, check_comparable
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.ordering import CLAUSES
from hintplan.planner.relations import (
    AggregateItem,
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalJoin,
    LogicalUnion,
    LogicalUnnest,
    Relation,
    UnnamedInput,
    identity,
)
from hintplan.planner.syntax.dialect import offset_of
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.operators import element_columns

_REPEATED = DataType(root="ARRAY", children=(BOOLEAN,))


def union(compiler: QueryCompiler, node: exp.Union) -> Relation:
    """Compile a chain of UNIONs of one kind (ALL or DISTINCT)."""
    context, environment = compiler.context, compiler.environment
    _read(context, node)
    distinct = bool(node.args.get("distinct"))
    inner = compiler.within(replace(environment, set_operation="UNION" if distinct else environment.set_operation))
    parts = _branches(context, node, distinct)
    branches = _compiled(inner, parts)
    width = len(branches[0].fields)
    for branch, part in zip(branches, parts, strict=True):
        if len(branch.fields) != width:
            raise context.source.error(
                f"UNION of {width} and {len(branch.fields)} columns",
                offset_of(part),
                "select the same number of columns",
            )
    fields = _common_fields(context, branches, "UNION", offset_of(node.expression))
    inputs = tuple(align_columns(context, b, fields) for b in branches)
    base = tuple(name for branch in branches for name in branch.base)
    relation = LogicalUnion(inputs=inputs, fields=fields, base=base, block=compiler.block)
    if not distinct:
        return relation
    check_comparable(context, relation, "UNION", offset_of(node.expression))
    return _distinct(relation, offset_of(node), compiler.block)


def _compiled(compiler: QueryCompiler, parts: list[exp.Expr]) -> list[Relation]:
    """Compile all ``parts``; raise FollowUp after the last of them if one has errors."""
    problems = compiler.context.source.problems
    relations: list[Relation] = []
    with problems.whole():
        for part in parts:
            with problems.going_on():
                relations.append(compiler.query(part))
    return relations


def _common_fields(context: Context, branches: list[Relation], name: str, offset: int) -> tuple[Field, ...]:
    """Return the fields of a set operation: the names of the first branch, in the common types of all branches."""
    fields: list[Field] = []
    for i, columns in enumerate(zip(*(b.fields for b in branches), strict=True)):
        common = common_data_type([c.type for c in columns])
        if common is None or common == NULL:
            types = " and ".join(dict.fromkeys(str(c.type.as_nullable()) for c in columns))
            raise context.source.error(
                f"column {i + 1} of {name} has the types {types}", offset, "convert them with CAST"
            )
        fields.append(context.field(columns[0].name, common))
    return tuple(fields)


def _read(context: Context, node: exp.SetOperation) -> None:
    if node.args.get("by_name"):
        message = f"{node.key.upper()} BY NAME is not supported"
        raise context.source.error(message, offset_of(node.expression), "list the columns")
    read_clauses(context, node, "this", "expression", "distinct", "with_", *CLAUSES)


def _branches(context: Context, node: exp.Union, distinct: bool) -> list[exp.Expr]:
    """Return the inputs of a chain of UNIONs of one kind; a nested UNION with clauses of its own is an input."""
    if node.args.get("with_"):
        return [node.this, node.expression]
    branches: list[exp.Expr] = []
    for side in (node.this, node.expression):
        same = isinstance(side, exp.Union) and bool(side.args.get("distinct")) == distinct
        if same and clauses_of(side) <= {"this", "expression", "distinct"}:
            _read(context, side)
            branches += _branches(context, side, distinct)
        else:
            branches.append(side)
    return branches


def intersection(compiler: QueryCompiler, node: exp.SetOperation) -> Relation:
    """Compile ``left INTERSECT [ALL] right`` or ``left EXCEPT [ALL] right``."""
    context = compiler.context
    source, offset = context.source, offset_of(node.expression)
    _read(context, node)
    distinct = bool(node.args.get("distinct"))
    name = node.key.upper() if distinct else f"{node.key.upper()} ALL"
    inner = compiler.within(replace(compiler.environment, set_operation=name))
    left, right = (inner.query(n) for n in (node.this, node.expression))
    if len(left.fields) != len(right.fields):
        message = f"{name} of {len(left.fields)} and {len(right.fields)} columns"
        raise source.error(message, offset, "select the same number of columns")
    check_comparable(context, left, name, offset)
    check_comparable(context, right, name, offset)
    if not distinct:
        fields = _common_fields(context, [left, right], name, offset)
        counted = _counted(context, (left, right), fields, offset, compiler.block)
        return _repeated(context, counted, is_except=isinstance(node, exp.Except))
    return LogicalJoin(
        left=_distinct(left, offset, compiler.block),
        right=right,
        join_type="anti" if isinstance(node, exp.Except) else "semi",
        on=tuple(
            is_not_distinct(source, name, FieldRef(field=a), FieldRef(field=b), offset)
            for a, b in zip(left.fields, right.fields, strict=True)
        ),
        items=identity(left.fields),
        states=(UnnamedInput, UnnamedInput),
        offset=offset,
        base=(*left.base, *right.base),
        block=compiler.block,
    )


def _counted(
    context: Context, sides: tuple[Relation, Relation], fields: tuple[Field, ...], offset: int, block: str
) -> LogicalAggregate:
    """Return the distinct rows of both ``sides``, as ``fields``, with the number of occurrences on either side."""
    marks = tuple(context.field("", BOOLEAN) for _ in sides)
    inputs = []
    for side in sides:
        below = align_columns(context, side, fields)
        values = (literal("TRUE" if other is side else None, BOOLEAN) for other in sides)
        marked = (Item(field=context.field("", BOOLEAN), expr=value) for value in values)
        items = (*identity(below.fields), *marked)
        inputs.append(LogicalCalc(input=below, filter=None, items=items, base=below.base, block=block))
    base = tuple(name for side in sides for name in side.base)
    calls = (
        AggregateItem(field=context.field("", BIGINT), function="COUNT", arguments=(mark,), distinct=False, filter=None)
        for mark in marks
    )
    return LogicalAggregate(
        input=LogicalUnion(inputs=tuple(inputs), fields=(*fields, *marks), base=base, block=block),
        keys=fields,
        calls=tuple(calls),
        state=UnnamedInput,
        offset=offset,
        base=base,
        block=block,
    )


def _repeated(context: Context, counted: LogicalAggregate, *, is_except: bool) -> LogicalUnnest:
    """Repeat each row of ``counted`` by the smaller of its two counts; for EXCEPT, by their difference."""
    ours, theirs = (FieldRef(field=each.field) for each in counted.calls)
    if is_except:
        condition, times = call(">", (ours, theirs), BOOLEAN, 0), call("-", (ours, theirs), BIGINT, 0)
    else:
        both = (call(">", (count, literal(0, INT)), BOOLEAN, 0) for count in (ours, theirs))
        condition, times = call("AND", tuple(both), BOOLEAN, 0), call("least", (ours, theirs), BIGINT, 0)
    copies = call("array_repeat", (literal("TRUE", BOOLEAN), cast(times, INT, 0)), _REPEATED, 0)
    column = context.field("", _REPEATED)
    items = (*identity(counted.keys), Item(field=column, expr=copies))
    below = LogicalCalc(input=counted, filter=condition, items=items, base=counted.base, block=counted.block)
    offered = element_columns(_REPEATED)
    return LogicalUnnest(
        input=below,
        collection=FieldRef(field=column),
        join_type="inner",
        returned=tuple(context.field(each.name, parse_type(each.type)) for each in offered),
        items=identity(counted.keys),
        base=counted.base,
        block=counted.block,
    )


def _distinct(relation: Relation, offset: int, block: str) -> LogicalAggregate:
    """Return the rows of ``relation`` without duplicates."""
    return LogicalAggregate(
        input=relation,
        keys=relation.fields,
        calls=(),
        state=UnnamedInput,
        offset=offset,
        base=relation.base,
        block=block,
    )
