"""Selection of the conditions and values that Arrow computes exactly, so that a join or a calc does not need Spark.

Spark could check every condition above an inner join, but then pairs would cross from Python to the JVM only to be
dropped there. The join itself checks a conjunct if all of these hold:

- The compiler of conditions accepts it, and so gives Spark's result (:mod:`hintplan.runtime.expressions.condition`).
- It cannot fail, because it may be evaluated for pairs that an earlier conjunct excludes.
- It does not run row by row in Python.

This module knows no Spark.

>>> from hintplan.runtime.expressions.allowed import check_expression
>>> schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
>>> names = {(side, name): f"{side}_{name}" for side in "lr" for name in "ks"}
>>> text = "l.k < r.k AND upper(l.s) = r.s AND r.s IN ('a', 'b')"
>>> split = split_condition(check_expression(text, names, operator="join_a_b", path="condition"), schema, schema)
>>> split.within.text, split.above.text
("l.k < r.k AND r.s IN ('a', 'b')", 'upper(l.s) = r.s')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp

from hintplan.plans.errors import RunError
from hintplan.plans.operators import JoinColumn
from hintplan.runtime.expressions.checked import CheckedExpression, conjoined
from hintplan.runtime.expressions.condition import compile_tree, compile_values
from hintplan.runtime.kernels.pairs import JoinCondition

_MOST_CONJUNCTS, _MOST_NODES, _DEEPEST, _LONGEST = 64, 256, 16, 4096
"""Conditions beyond are Spark's: the compiler and Arrow walk an expression recursively."""


_LONGEST_PATH = 3
"""The most names in a reference, column and fields: a sqlglot column has four names, of which the side takes one."""


class Split(NamedTuple):
    """The parts of a condition that the join checks, and that Spark checks for the remaining pairs; None for none."""

    within: CheckedExpression | None
    above: CheckedExpression | None


def split_condition(condition: CheckedExpression, left: pa.Schema, right: pa.Schema) -> Split:
    """Split ``condition`` over columns ``l.<name>`` and ``r.<name>``."""
    parts = condition.conjuncts()
    sides = {"l": left, "r": right}
    exact = [len(parts) <= _MOST_CONJUNCTS and _is_exact(part, sides) for part in parts]
    within, above = (
        conjoined([part for part, inside in zip(parts, exact, strict=True) if inside is wanted])
        for wanted in (True, False)
    )
    return Split(within, above)


def is_exact(expression: CheckedExpression, columns: pa.Schema) -> bool:
    """Return True if Arrow computes all of ``expression`` exactly; ``columns`` have no prefix in it."""
    return _is_exact(expression, {"": columns})


def exact_value(expression: CheckedExpression, columns: pa.Schema, kind: pa.DataType) -> JoinCondition | None:
    """Compile ``expression`` for values of ``kind``; None unless Arrow computes it exactly (see :func:`is_exact`)."""
    if not _is_small(expression):
        return None
    try:
        compiled = compile_values(expression, columns, kind)
    except RunError:
        return None
    return None if compiled.expression.may_fail or compiled.expression.by_row else compiled


def exact_below(
    condition: CheckedExpression, output: Sequence[JoinColumn], left: pa.Schema, right: pa.Schema
) -> str | None:
    """Return the part of a condition on an inner join's ``output`` that the join itself can check.

    The result refers to the columns of the two sides, and is a text to be checked.
    """
    sides = {column.name: column for column in output}
    parts = []
    for part in condition.conjuncts()[:_MOST_CONJUNCTS]:
        tree = part.tree.copy()
        columns = list(tree.find_all(exp.Column))
        if not all(len(c.parts) <= _LONGEST_PATH and c.parts[0].name in sides for c in columns):
            continue
        for column in columns:
            column_name, *fields = column.parts
            side = sides[column_name.name]
            names = [side.side[0], side.column, *(field.name for field in fields)]
            for key, name in zip(("this", "table", "db", "catalog"), reversed(names), strict=False):
                column.set(key, exp.to_identifier(name, quoted=name != names[0]))
        if _is_exact(replace(part, tree=tree), {"l": left, "r": right}):
            text = tree.sql(dialect="spark")
            parts.append(f"({text})" if isinstance(tree, exp.Or) else text)
    return " AND ".join(parts) or None


def _is_exact(expression: CheckedExpression, sides: dict[str, pa.Schema]) -> bool:
    if not _is_small(expression) or expression.tree.find(exp.Column) is None:
        return False
    try:
        compiled = compile_tree(expression.tree, sides)
    except RunError:
        return False
    return not (compiled.may_fail or compiled.by_row)


def _is_small(expression: CheckedExpression) -> bool:
    if len(expression.text) > _LONGEST:
        return False
    pending, nodes = [(expression.tree, 1)], 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > _DEEPEST or nodes > _MOST_NODES:
            return False
        pending += [(child, depth + 1) for child in node.iter_expressions()]
    return True
