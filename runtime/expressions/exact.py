"""Which conditions, parts of them and values Arrow computes for all rows, so that a join or a calc need not ask Spark.

What follows an inner join could all be checked by Spark, but then pairs cross from Python to the JVM only to be dropped
there. A conjunct is checked in the join if the compiler of conditions takes it, which does so only with Spark's meaning
(:mod:`hintplan.runtime.expressions.condition`), and if it cannot fail: pairs that a conjunct before it excludes may
come to it. What would take one pair after the other is left to Spark, too. Knows no Spark.

>>> schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
>>> split_condition("l.k < r.k AND upper(l.s) = r.s AND r.s IN ('a', 'b')", schema, schema)
Split(within="l.k < r.k AND r.s IN ('a', 'b')", above='upper(l.s) = r.s')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp, parse_one, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from hintplan.plans.errors import RunError
from hintplan.plans.operators import JoinColumn
from hintplan.runtime.expressions.condition import compile_tree, compile_value
from hintplan.runtime.kernels.pairs import JoinCondition

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_MOST_CONJUNCTS, _MOST_NODES, _DEEPEST, _LONGEST = 64, 256, 16, 4096
"""Conditions beyond are Spark's: the compiler and Arrow walk an expression recursively."""


_LONGEST_PATH = 3
"""Names of a column and of fields behind it that have room for a name before them."""


class Split(NamedTuple):
    """What a join checks and what Spark checks of the pairs that are left; None for nothing."""

    within: str | None
    above: str | None


def split_condition(condition: str, left: pa.Schema, right: pa.Schema) -> Split:
    """Share out ``condition``, which was found harmless, over columns ``l.<name>`` and ``r.<name>``."""
    parts = conjuncts(condition)
    sides = {"l": left, "r": right}
    exact = [len(parts) <= _MOST_CONJUNCTS and _is_exact(_parsed(part), sides) for part in parts]
    within, above = (
        " AND ".join(part for part, inside in zip(parts, exact, strict=True) if inside is wanted)
        for wanted in (True, False)
    )
    return Split(within or None, above or None)


def is_exact(expression: str, columns: pa.Schema) -> bool:
    """Whether all of ``expression`` over ``columns``, which it names without a prefix, is computed in Arrow as well."""
    return _is_exact(_parsed(expression), {"": columns})


def exact_value(expression: str, columns: pa.Schema, kind: pa.DataType, *, path: str) -> JoinCondition | None:
    """``expression`` compiled for values of ``kind``, if Arrow computes it as :func:`is_exact` says, or else None."""
    tree = _parsed(expression)
    if tree is None or not _is_small(tree):
        return None
    try:
        found = compile_value(expression, columns, path=path, kind=kind)
    except RunError:
        return None
    return None if found.expression.may_fail or found.expression.by_row else found


def exact_below(condition: str, output: Sequence[JoinColumn], left: pa.Schema, right: pa.Schema) -> str | None:
    """What of a condition on the ``output`` of an inner join the join can check, over the columns of its sides."""
    sides = {column.name: column for column in output}
    found = []
    for part in conjuncts(condition)[:_MOST_CONJUNCTS]:
        tree = _parsed(part)
        columns = [] if tree is None else list(tree.find_all(exp.Column))
        if tree is None or not all(len(c.parts) <= _LONGEST_PATH and c.parts[0].name in sides for c in columns):
            continue
        for column in columns:
            of, *fields = column.parts
            side = sides[of.name]
            names = [side.side[0], side.column, *(field.name for field in fields)]
            for key, name in zip(("this", "table", "db", "catalog"), reversed(names), strict=False):
                column.set(key, exp.to_identifier(name, quoted=name != names[0]))
        if _is_exact(tree, {"l": left, "r": right}):
            text = tree.sql(dialect="spark")
            found.append(f"({text})" if isinstance(tree, exp.Or) else text)
    return " AND ".join(found) or None


def conjuncts(condition: str) -> list[str]:
    """The parts between those AND that hold the whole together, as they are written."""
    cuts, depth, between = [0], 0, 0
    try:
        tokens = tokenize(condition, dialect="spark")
    except SqlglotError:
        return [condition]
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.token_type == TokenType.DOT:
            continue  # the name of a column
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth:
            continue
        if token.token_type == TokenType.OR:
            return [condition]
        if token.token_type == TokenType.BETWEEN:
            between += 1
        elif token.token_type == TokenType.AND and between:
            between -= 1
        elif token.token_type == TokenType.AND:
            cuts += [token.start, token.end + 1]
    cuts.append(len(condition))
    return [condition[begin:end].strip() for begin, end in zip(cuts[::2], cuts[1::2], strict=True)]


def _parsed(part: str) -> exp.Expr | None:
    if len(part) > _LONGEST:
        return None
    try:
        return parse_one(part, dialect="spark")
    except (RecursionError, SqlglotError):
        return None


def _is_exact(tree: exp.Expr | None, sides: dict[str, pa.Schema]) -> bool:
    if tree is None or not _is_small(tree) or tree.find(exp.Column) is None:
        return False
    try:
        found = compile_tree(tree, sides)
    except RunError:
        return False
    return not (found.may_fail or found.by_row)


def _is_small(tree: exp.Expr) -> bool:
    pending, nodes = [(tree, 1)], 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > _DEEPEST or nodes > _MOST_NODES:
            return False
        pending += [(child, depth + 1) for child in node.iter_expressions()]
    return True
