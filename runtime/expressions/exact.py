"""Selection of the conditions and values that Arrow computes exactly, so that a join or a calc does not need Spark.

Spark could check every condition above an inner join, but then pairs would cross from Python to the JVM only to be
dropped there. The join itself checks a conjunct if all of these hold:

- The compiler of conditions accepts it, and so gives Spark's result (:mod:`hintplan.runtime.expressions.condition`).
- It cannot fail, because it may be evaluated for pairs that an earlier conjunct excludes.
- It does not run row by row in Python.

This module knows no Spark.

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
"""The most names in a reference, column and fields: a sqlglot column has four names, of which the side takes one."""


class Split(NamedTuple):
    """The parts of a condition that the join checks, and that Spark checks for the remaining pairs; None for none."""

    within: str | None
    above: str | None


def split_condition(condition: str, left: pa.Schema, right: pa.Schema) -> Split:
    """Split ``condition``, which has been checked as harmless, over columns ``l.<name>`` and ``r.<name>``."""
    parts = conjuncts(condition)
    sides = {"l": left, "r": right}
    exact = [len(parts) <= _MOST_CONJUNCTS and _is_exact(_parsed(part), sides) for part in parts]
    within, above = (
        " AND ".join(part for part, inside in zip(parts, exact, strict=True) if inside is wanted)
        for wanted in (True, False)
    )
    return Split(within or None, above or None)


def is_exact(expression: str, columns: pa.Schema) -> bool:
    """Return True if Arrow computes all of ``expression`` exactly; ``columns`` have no prefix in it."""
    return _is_exact(_parsed(expression), {"": columns})


def exact_value(expression: str, columns: pa.Schema, kind: pa.DataType, *, path: str) -> JoinCondition | None:
    """Compile ``expression`` for values of ``kind``; None unless Arrow computes it exactly (see :func:`is_exact`)."""
    tree = _parsed(expression)
    if tree is None or not _is_small(tree):
        return None
    try:
        compiled = compile_value(expression, columns, path=path, kind=kind)
    except RunError:
        return None
    return None if compiled.expression.may_fail or compiled.expression.by_row else compiled


def exact_below(condition: str, output: Sequence[JoinColumn], left: pa.Schema, right: pa.Schema) -> str | None:
    """Return the part of a condition on an inner join's ``output`` that the join itself can check.

    The result refers to the columns of the two sides.
    """
    sides = {column.name: column for column in output}
    parts = []
    for part in conjuncts(condition)[:_MOST_CONJUNCTS]:
        tree = _parsed(part)
        columns = [] if tree is None else list(tree.find_all(exp.Column))
        if tree is None or not all(len(c.parts) <= _LONGEST_PATH and c.parts[0].name in sides for c in columns):
            continue
        for column in columns:
            column_name, *fields = column.parts
            side = sides[column_name.name]
            names = [side.side[0], side.column, *(field.name for field in fields)]
            for key, name in zip(("this", "table", "db", "catalog"), reversed(names), strict=False):
                column.set(key, exp.to_identifier(name, quoted=name != names[0]))
        if _is_exact(tree, {"l": left, "r": right}):
            text = tree.sql(dialect="spark")
            parts.append(f"({text})" if isinstance(tree, exp.Or) else text)
    return " AND ".join(parts) or None


def conjuncts(condition: str) -> list[str]:
    """Return the texts between the top-level ANDs of a condition."""
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
        compiled = compile_tree(tree, sides)
    except RunError:
        return False
    return not (compiled.may_fail or compiled.by_row)


def _is_small(tree: exp.Expr) -> bool:
    pending, nodes = [(tree, 1)], 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > _DEEPEST or nodes > _MOST_NODES:
            return False
        pending += [(child, depth + 1) for child in node.iter_expressions()]
    return True
