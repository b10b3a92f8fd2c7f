"""Which conditions Arrow answers exactly as Flink does, so that an inner join, or a filter in Arrow, can check them.

What follows an inner join could all be checked by Spark, but then pairs cross from Python to the JVM only to be dropped
there. A conjunct is checked in the join if it compares columns and constants of types for which that is certain:
integers, decimals, text and bytes (byte by byte), dates, timestamps and booleans. Floating-point numbers compare as in
Java: NaN is neither equal to, nor less or greater than anything, while Spark takes it for the greatest number; below
NOT they are left to Spark, since Flink turns ``NOT a > b`` into ``a <= b``. So is all else: conversions, arithmetic
that can overflow, functions. A filter leaves floating-point numbers to Spark, too: what it means must not depend on
who reads the rows. Knows no Spark.

>>> schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
>>> split_condition("l.k < r.k AND upper(l.s) = r.s AND r.s IN ('a', 'b')", schema, schema)
Split(within="l.k < r.k AND r.s IN ('a', 'b')", above='upper(l.s) = r.s')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp, parse_one, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from plans.model import JoinColumn

__all__ = ["Split", "conjuncts", "exact_below", "is_exact", "span_of", "split_condition"]

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ)
_ORDERINGS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_NUMBER = re.compile(r"(\d+)(?:\.(\d+))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_SPAN = re.compile(r"\d{1,8}(\.\d{1,3})?")
_SECONDS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
_MOST_CONJUNCTS, _MOST_NODES, _DEEPEST, _LONGEST = 64, 256, 16, 4096
"""Conditions beyond are Spark's: the compiler and Arrow walk an expression recursively."""
_EXACT_IN_FLOAT = 1 << 24


class Split(NamedTuple):
    """What a join checks and what Spark checks of the pairs that are left; None for nothing."""

    within: str | None
    above: str | None


def split_condition(condition: str, left: pa.Schema, right: pa.Schema) -> Split:
    """Share out ``condition``, which was found harmless, over columns ``l.<name>`` and ``r.<name>``."""
    parts = conjuncts(condition)
    types = _Types({"l": left, "r": right})
    exact = [len(parts) <= _MOST_CONJUNCTS and _is_exact(_parsed(part), types) for part in parts]
    within, above = (
        " AND ".join(part for part, inside in zip(parts, exact, strict=True) if inside is wanted)
        for wanted in (True, False)
    )
    return Split(within or None, above or None)


def is_exact(condition: str, columns: pa.Schema) -> bool:
    """Whether Arrow answers all of ``condition`` over ``columns``, which it names without a prefix, as Spark does."""
    return _is_exact(_parsed(condition), _Types({"": columns}, floating=False))


def exact_below(condition: str, output: Sequence[JoinColumn], left: pa.Schema, right: pa.Schema) -> str | None:
    """What of a condition on the ``output`` of an inner join the join can check, over the columns of its sides."""
    types = _Types({"l": left, "r": right}, floating=False)
    sides = {column.name: column for column in output}
    found = []
    for part in conjuncts(condition)[:_MOST_CONJUNCTS]:
        tree = _parsed(part)
        columns = [] if tree is None else list(tree.find_all(exp.Column))
        if tree is None or not all(len(column.parts) == 1 and column.name in sides for column in columns):
            continue
        for column in columns:
            of = sides[column.name]
            column.set("table", exp.to_identifier(of.side[0]))
            column.set("this", exp.to_identifier(of.column, quoted=True))
        if _is_exact(tree, types):
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


def _is_exact(tree: exp.Expr | None, types: _Types) -> bool:
    return tree is not None and _is_small(tree) and bool(list(tree.find_all(exp.Column))) and types.decide(tree)


def _is_small(tree: exp.Expr) -> bool:
    pending, nodes = [(tree, 1)], 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > _DEEPEST or nodes > _MOST_NODES:
            return False
        pending += [(child, depth + 1) for child in node.iter_expressions()]
    return True


class _Types:
    """``sides`` has the columns under each prefix; ``floating`` says whether FLOAT and DOUBLE may be compared."""

    def __init__(self, sides: dict[str, pa.Schema], *, floating: bool = True) -> None:
        self.sides = sides
        self.floating = floating

    def decide(self, node: exp.Expr, *, negated: bool = False) -> bool:
        """Whether Arrow decides exactly on the truth of ``node``, which stands below NOT if ``negated``."""
        if isinstance(node, exp.Paren):
            return self.decide(node.this, negated=negated)
        if isinstance(node, exp.Not):
            return self.decide(node.this, negated=True)
        if isinstance(node, (exp.And, exp.Or)):
            return all(self.decide(side, negated=negated) for side in (node.this, node.expression))
        if isinstance(node, exp.Coalesce):
            return all(self.decide(item, negated=negated) for item in (node.this, *node.expressions))
        if isinstance(node, exp.Boolean):
            return True
        if isinstance(node, exp.Is):
            of_bool = isinstance(node.expression, exp.Boolean) and self.decide(node.this, negated=negated)
            return of_bool or (isinstance(node.expression, exp.Null) and self.type_of(node.this) is not None)
        if isinstance(node, exp.Between):
            bounds = (node.args["low"], node.args["high"])
            return not node.args.get("symmetric") and all(self.order(node.this, bound, negated) for bound in bounds)
        if isinstance(node, exp.In):
            return bool(node.expressions) and all(self.compare(node.this, item, negated) for item in node.expressions)
        if isinstance(node, _ORDERINGS):
            return self.order(node.this, node.expression, negated)
        if isinstance(node, _EQUALITIES):
            return self.compare(node.this, node.expression, negated)
        return bool(self.type_of(node) == pa.bool_())

    def order(self, left: exp.Expr, right: exp.Expr, negated: bool) -> bool:
        """Whether the two are values of which Arrow knows exactly which is less; of booleans it does not."""
        return bool(self.type_of(left) != pa.bool_()) and self.compare(left, right, negated)

    def compare(self, left: exp.Expr, right: exp.Expr, negated: bool) -> bool:
        """Whether the two are values that Arrow compares exactly."""
        one, other = self.type_of(left), self.type_of(right)
        if one is None or other is None:
            return False
        if pa.types.is_floating(one) or pa.types.is_floating(other):
            return (
                self.floating
                and not negated
                and all(_is_floating(kind, side) for kind, side in ((one, left), (other, right)))
            )
        if pa.types.is_integer(one) and pa.types.is_integer(other):
            return True
        digits, others = _digits(one), _digits(other)
        if digits is not None and others is not None:
            return max(digits[0], others[0]) + max(digits[1], others[1]) <= 38
        return bool(one == other)

    def type_of(self, node: exp.Expr) -> pa.DataType | None:
        """The type of a column or constant; None for anything else."""
        if isinstance(node, exp.Paren):
            return self.type_of(node.this)
        if isinstance(node, exp.Column):
            schema = self.sides.get(node.table) if len(node.parts) == 1 + bool(node.table) else None
            return None if schema is None or node.name not in schema.names else schema.field(node.name).type
        if isinstance(node, exp.Boolean):
            return pa.bool_()
        if isinstance(node, exp.Literal) and node.is_string:
            return pa.string()
        if isinstance(node, (exp.Add, exp.Sub)) and span_of(node.expression) is not None:
            shifted = self.type_of(node.this)
            return shifted if shifted == pa.timestamp("us") else None
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
            return _temporal(node.to.this, node.this.name)
        number = node.this if isinstance(node, exp.Neg) else node
        return _number(number.name) if isinstance(number, exp.Literal) and not number.is_string else None


def span_of(node: exp.Expr) -> timedelta | None:
    """An interval of days or less, as planners write it: ``INTERVAL '4' HOUR``; None for anything else."""
    if not (isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and isinstance(node.unit, exp.Var)):
        return None
    name, found = node.unit.name.upper(), _SPAN.fullmatch(node.this.name)
    if found is None or name not in _SECONDS or (found[1] and name != "SECOND"):
        return None
    return timedelta(microseconds=int(Decimal(found[0]) * 1_000_000) * _SECONDS[name])


def _is_floating(kind: pa.DataType, node: exp.Expr) -> bool:
    """Whether it is a FLOAT or DOUBLE, or a constant that both have."""
    if pa.types.is_floating(kind):
        return True
    return isinstance(node, (exp.Literal, exp.Neg)) and pa.types.is_integer(kind) and _small(node)


def _small(node: exp.Expr) -> bool:
    return int(node.name or node.this.name) <= _EXACT_IN_FLOAT


def _digits(kind: pa.DataType) -> tuple[int, int] | None:
    """How many digits a number has before and after the point."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return (19, 0) if pa.types.is_integer(kind) else None


def _number(text: str) -> pa.DataType | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    whole, fraction = found[1].lstrip("0"), found[2]
    if fraction is None:
        return pa.int64() if int(text) < 1 << 63 else None
    precision = max(len(whole) + len(fraction), 1)
    return pa.decimal128(precision, len(fraction)) if precision <= 38 else None


def _temporal(kind: exp.DType, text: str) -> pa.DataType | None:
    """The type of ``DATE 'text'`` or ``TIMESTAMP_NTZ 'text'``, if it is one in full."""
    try:
        if kind == exp.DType.DATE and len(text) == 10:
            date.fromisoformat(text)
            return pa.date32()
        if kind == exp.DType.TIMESTAMPNTZ and _TIME.fullmatch(text):
            datetime.fromisoformat(text)
            return pa.timestamp("us")
    except ValueError:
        pass
    return None
