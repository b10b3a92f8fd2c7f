"""UNION, INTERSECT and EXCEPT.

UNION puts the rows of several queries one after the other, their columns converted to common types. INTERSECT and
EXCEPT are the distinct rows of one query that are, or are not, among those of another: semi and anti joins over all
columns, for which two NULLs are the same, of rows without duplicates.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.context import Context
from planner.expressions.coercion import common_type
from planner.expressions.operands import not_distinct
from planner.expressions.typed import NULL, Field, Ref
from planner.query.columns import aligned, check_comparable
from planner.query.compiler import QueryCompiler
from planner.query.ordering import CLAUSES
from planner.relations import Aggregate, Join, Relation, Union, UnnamedInput, identity
from planner.syntax.dialect import offset_of
from planner.translation.translator import only


def union(compiler: QueryCompiler, node: exp.Union) -> Relation:
    """The relation of a chain of UNIONs of one kind."""
    context, environment = compiler.context, compiler.environment
    only(context.source, node, "this", "expression", "distinct", "with_", *CLAUSES)
    if node.args.get("by_name"):
        raise context.source.error("UNION BY NAME is not supported", offset_of(node.expression), "list the columns")
    distinct = bool(node.args.get("distinct"))
    inner = compiler.within(replace(environment, set_operation="UNION" if distinct else environment.set_operation))
    branches = [inner.query(n) for n in _branches(node, distinct)]
    width = len(branches[0].fields)
    for branch, part in zip(branches, _branches(node, distinct), strict=True):
        if len(branch.fields) != width:
            raise context.source.error(
                f"UNION of {width} and {len(branch.fields)} columns",
                offset_of(part),
                "select the same number of columns",
            )
    fields = _common_fields(context, branches, offset_of(node.expression))
    inputs = tuple(aligned(context, b, fields) for b in branches)
    base = tuple(name for branch in branches for name in branch.base)
    relation = Union(inputs=inputs, fields=fields, base=base, block=compiler.block)
    if not distinct:
        return relation
    check_comparable(context, relation, "UNION", offset_of(node.expression))
    return _distinct(relation, offset_of(node), compiler.block)


def _common_fields(context: Context, branches: list[Relation], offset: int) -> tuple[Field, ...]:
    """The fields of a UNION: the names of its first branch, in types that hold the values of all."""
    fields: list[Field] = []
    for i, columns in enumerate(zip(*(b.fields for b in branches), strict=True)):
        found = common_type([c.type for c in columns])
        if found is None or found == NULL:
            types = " and ".join(dict.fromkeys(str(c.type.as_nullable()) for c in columns))
            raise context.source.error(
                f"column {i + 1} of UNION has the types {types}", offset, "convert them with CAST"
            )
        fields.append(context.field(columns[0].name, found))
    return tuple(fields)


def _branches(node: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """The inputs of a chain of UNIONs of one kind."""
    if isinstance(node, exp.Union) and bool(node.args.get("distinct")) == distinct and not node.args.get("with_"):
        return [*_branches(node.this, distinct), *_branches(node.expression, distinct)]
    if isinstance(node, exp.Union):
        return [node] if bool(node.args.get("distinct")) != distinct else [node.this, node.expression]
    return [node]


def intersection(compiler: QueryCompiler, node: exp.SetOperation) -> Relation:
    """The relation of ``left INTERSECT right`` or ``left EXCEPT right``."""
    context = compiler.context
    source, offset, name = context.source, offset_of(node.expression), node.key.upper()
    only(source, node, "this", "expression", "distinct", "with_", *CLAUSES)
    if not node.args.get("distinct"):
        raise source.error(f"{name} ALL is not supported", offset, f"write {name}, which removes duplicates")
    inner = compiler.within(replace(compiler.environment, set_operation=name))
    left, right = (inner.query(n) for n in (node.this, node.expression))
    if len(left.fields) != len(right.fields):
        message = f"{name} of {len(left.fields)} and {len(right.fields)} columns"
        raise source.error(message, offset, "select the same number of columns")
    check_comparable(context, left, name, offset)
    check_comparable(context, right, name, offset)
    return Join(
        left=_distinct(left, offset, compiler.block),
        right=right,
        join_type="anti" if isinstance(node, exp.Except) else "semi",
        on=tuple(
            not_distinct(source, name, Ref(field=a), Ref(field=b), offset)
            for a, b in zip(left.fields, right.fields, strict=True)
        ),
        items=identity(left.fields),
        states=(UnnamedInput, UnnamedInput),
        offset=offset,
        base=(*left.base, *right.base),
        block=compiler.block,
    )


def _distinct(relation: Relation, offset: int, block: str) -> Aggregate:
    """The rows of ``relation`` without duplicates."""
    return Aggregate(
        input=relation,
        keys=relation.fields,
        calls=(),
        state=UnnamedInput,
        offset=offset,
        base=relation.base,
        block=block,
    )
