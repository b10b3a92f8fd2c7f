"""INTERSECT and EXCEPT: the distinct rows of one query that are, or are not, among those of another.

They are semi and anti joins over all columns, for which two NULLs are the same, of rows without duplicates.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.context import Context, Environment
from planner.expressions.operands import not_distinct
from planner.expressions.typed import Ref
from planner.query import queries
from planner.query.ordering import CLAUSES
from planner.relations import Aggregate, Join, Relation, UnnamedInput, identity
from planner.syntax.dialect import offset_of
from planner.translation.translator import only

__all__ = ["build"]


def build(context: Context, environment: Environment, node: exp.SetOperation) -> Relation:
    """The relation of ``left INTERSECT right`` or ``left EXCEPT right``."""
    source, offset, name = context.source, offset_of(node.expression), node.key.upper()
    only(source, node, "this", "expression", "distinct", "with_", *CLAUSES)
    if not node.args.get("distinct"):
        raise source.error(f"{name} ALL is not supported", offset, f"write {name}, which removes duplicates")
    inner = replace(environment, set_operation=name)
    left, right = (queries.build_query(context, inner, n) for n in (node.this, node.expression))
    if len(left.fields) != len(right.fields):
        message = f"{name} of {len(left.fields)} and {len(right.fields)} columns"
        raise source.error(message, offset, "select the same number of columns")
    queries.check_comparable(context, left, name, offset)
    queries.check_comparable(context, right, name, offset)
    rows = Aggregate(
        input=left,
        keys=left.fields,
        calls=(),
        state=UnnamedInput,
        offset=offset,
        base=left.base,
        block=environment.block,
    )
    return Join(
        left=rows,
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
        block=environment.block,
    )
