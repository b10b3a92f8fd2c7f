"""The residual condition of a join, compiled for Arrow: what must hold of a pair beyond its equal keys.

An outer, semi or anti join must know how many partners of a row satisfy the whole condition, so the condition is
evaluated inside the join, on candidate pairs, with SQL's three-valued logic. Integers wrap around at the width of their
type, as in :mod:`runtime.arithmetic`. It is parsed on the driver; workers get an Arrow expression. Column references
are ``l.column`` and ``r.column``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from plans.errors import RunError
from plans.model import Join, LookupJoin
from runtime.kernels.pairs import JoinCondition
from runtime.operators.exact import span_of

__all__ = ["compile_condition", "compile_filter"]


def compile_condition(op: Join | LookupJoin, left: pa.Schema, right: pa.Schema) -> JoinCondition:
    """Compile ``op.condition`` over the columns of both inputs; RunError for what a join cannot evaluate."""
    compiler = _Compiler(f"operators.{op.id}.condition", {"l": left, "r": right})
    return compiler.condition(op.condition or "")


def compile_filter(text: str, right: pa.Schema, *, path: str) -> JoinCondition:
    """Compile a condition on rows of the right side alone, whose columns stand in ``text`` without a prefix."""
    return _Compiler(path, {"": right}).condition(text)


_BINARY: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.And: lambda a, b: a & b,
    exp.Or: lambda a, b: a | b,
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.NullSafeEQ: lambda a, b: (a.is_null() & b.is_null()) | pc.coalesce(a == b, pc.scalar(False)),
}

_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
    exp.Mul: pc.multiply,
    exp.IntDiv: lambda a, b: pc.if_else(b == pc.scalar(-1), pc.negate(a), pc.divide(a, b)),
}

_CASTS = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}


class _Compiler:
    """``sides`` has the columns under each prefix; those without a prefix are of the right side."""

    def __init__(self, path: str, sides: dict[str, pa.Schema]) -> None:
        self.path = path
        self.sides = sides
        self.used: dict[str, set[str]] = {"l": set(), "r": set()}

    def condition(self, text: str) -> JoinCondition:
        try:
            tree = parse_one(text, dialect="spark")
        except SqlglotError as error:
            raise RunError(f"cannot be parsed: {text}", path=self.path) from error
        expression = self.compile(tree)
        return JoinCondition(
            expression=expression, left=tuple(sorted(self.used["l"])), right=tuple(sorted(self.used["r"]))
        )

    def compile(self, node: exp.Expr) -> pc.Expression:
        operation = _BINARY.get(type(node))
        if operation is not None:
            return operation(self._beside(node.this, node.expression), self._beside(node.expression, node.this))
        operation = _ARITHMETIC.get(type(node))
        if operation is not None:
            return operation(self._operand(node.this, node.expression), self._operand(node.expression, node.this))
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise self._refused(node)
        return handler(node)

    def _beside(self, node: exp.Expr, other: exp.Expr) -> pc.Expression:
        """An operand beside ``other``: a whole number beside a DECIMAL is one, as Arrow fails to convert small ones."""
        number = node.this if isinstance(node, exp.Neg) else node
        column = self._type_of(other) if isinstance(other, exp.Column) else None
        if column == pa.timestamp("us") and isinstance(node.parent, (exp.Add, exp.Sub)):
            span = span_of(node)
            return self.compile(node) if span is None else pc.scalar(pa.scalar(span, pa.duration("us")))
        if column is not None and pa.types.is_decimal(column) and isinstance(number, exp.Literal) and number.is_int:
            return pc.scalar(Decimal(number.name) * (-1 if number is not node else 1))
        return self.compile(node)

    def _type_of(self, node: exp.Column) -> pa.DataType | None:
        schema = self.sides.get(node.table)
        return None if schema is None or node.name not in schema.names else schema.field(node.name).type

    def _refused(self, node: exp.Expr) -> RunError:
        return RunError(
            f"a join condition cannot contain {node.sql(dialect='spark')}",
            path=self.path,
            hint="compute it as a column of a sub-query below the join",
        )

    def _column(self, node: exp.Column) -> pc.Expression:
        side = node.table or "r"
        if self._type_of(node) is None:
            raise RunError(f"unknown column {node.sql(dialect='spark')}", path=self.path)
        self.used[side].add(node.name)
        return pc.field(f"{side}.{node.name}")

    def _paren(self, node: exp.Paren) -> pc.Expression:
        return self.compile(node.this)

    def _not(self, node: exp.Not) -> pc.Expression:
        return ~self.compile(node.this)

    def _neg(self, node: exp.Neg) -> pc.Expression:
        return pc.negate(self._operand(node.this))

    def _abs(self, node: exp.Abs) -> pc.Expression:
        return pc.abs(self._operand(node.this))

    def _literal(self, node: exp.Literal) -> pc.Expression:
        if node.is_string:
            return pc.scalar(node.this)
        return pc.scalar(node.to_py())

    def _operand(self, node: exp.Expr, other: exp.Expr | None = None) -> pc.Expression:
        """A number to compute with: an integer literal is an INT or BIGINT, not of the shortest type as in Arrow."""
        node = node.unnest()
        beside = self.compile(node) if other is None else self._beside(node, other)
        value = node.to_py() if isinstance(node, exp.Literal) and not node.is_string else None
        if not isinstance(value, int) or not beside.equals(self.compile(node)):
            return beside
        return beside.cast(pa.int32() if value < 1 << 31 else pa.int64())

    def _boolean(self, node: exp.Boolean) -> pc.Expression:
        return pc.scalar(bool(node.this))

    def _null(self, node: exp.Null) -> pc.Expression:
        return pc.scalar(None)

    def _is(self, node: exp.Is) -> pc.Expression:
        operand = self.compile(node.this)
        if isinstance(node.expression, exp.Null):
            return operand.is_null()
        if isinstance(node.expression, exp.Boolean):
            return pc.coalesce(operand == pc.scalar(bool(node.expression.this)), pc.scalar(False))
        raise self._refused(node)

    def _between(self, node: exp.Between) -> pc.Expression:
        return self.compile(exp.GTE(this=node.this, expression=node.args["low"])) & self.compile(
            exp.LTE(this=node.this, expression=node.args["high"])
        )

    def _in(self, node: exp.In) -> pc.Expression:
        if not node.expressions or node.args.get("query") is not None:
            raise self._refused(node)
        equal = [self.compile(exp.EQ(this=node.this, expression=item)) for item in node.expressions]
        return reduce(operator.or_, equal)

    def _coalesce(self, node: exp.Coalesce) -> pc.Expression:
        return pc.coalesce(self.compile(node.this), *(self.compile(item) for item in node.expressions))

    def _case(self, node: exp.Case) -> pc.Expression:
        default = node.args.get("default")
        result = self.compile(default) if default is not None else pc.scalar(None)
        for branch in reversed(node.args["ifs"]):
            test = branch.this if node.this is None else exp.EQ(this=node.this, expression=branch.this)
            holds = pc.coalesce(self.compile(test), pc.scalar(False))
            result = pc.if_else(holds, self.compile(branch.args["true"]), result)
        return result

    def _like(self, node: exp.Like) -> pc.Expression:
        if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
            raise self._refused(node)
        found = pc.match_like(self.compile(node.this), pattern=node.expression.this)
        return ~found if node.args.get("negate") else found

    def _bitwiseleftshift(self, node: exp.BitwiseLeftShift) -> pc.Expression:
        return pc.shift_left(self.compile(node.this), self._places(node))

    def _bitwiserightshift(self, node: exp.BitwiseRightShift) -> pc.Expression:
        return pc.shift_right(self.compile(node.this), self._places(node))

    def _places(self, node: exp.Binary) -> pc.Expression:
        """How far to shift: an INT, so that a shifted INT remains one."""
        if not isinstance(node.expression, exp.Literal) or node.expression.is_string:
            raise self._refused(node)
        return pc.scalar(pa.scalar(int(node.expression.name), pa.int32()))

    def _isnan(self, node: exp.IsNan) -> pc.Expression:
        return pc.coalesce(pc.is_nan(self.compile(node.this)), pc.scalar(False))

    def _cast(self, node: exp.Cast) -> pc.Expression:
        """A constant such as DATE '2024-12-31', which sqlglot reads as a cast that may not fail."""
        if not (isinstance(node.this, exp.Literal) and node.this.is_string and node.to.this in _CASTS):
            raise self._refused(node)
        try:
            return pc.scalar(pa.scalar(node.this.name).cast(_CASTS[node.to.this]))
        except pa.ArrowInvalid:
            raise self._refused(node) from None

    def _trycast(self, node: exp.TryCast) -> pc.Expression:
        """CAST, which sqlglot reads in Spark's dialect as a cast that may fail; TRY_CAST is the one marked as safe."""
        target, value = node.args["to"], self.compile(node.this)
        safe = bool(node.args.get("safe"))
        if target.this == exp.DType.DECIMAL and len(target.expressions) == 2:
            precision, scale = (int(size.name) for size in target.expressions)
            return _to_decimal(value, precision, scale, safe=safe)
        kind = _CASTS.get(target.this)
        if kind is None or safe:
            raise self._refused(node)
        options = pc.CastOptions(kind, allow_float_truncate=True, allow_decimal_truncate=True)
        return value.cast(options=options)


def _to_decimal(value: pc.Expression, precision: int, scale: int, *, safe: bool) -> pc.Expression:
    """``value`` as a DECIMAL, rounded half up; one with too many digits fails, or is NULL if ``safe``."""
    most = 10 ** (precision - scale)
    if safe:
        # What is far too large must not reach the casts; they need exact numbers, so what is near is looked at again.
        size = pc.abs(value.cast(options=pc.CastOptions.unsafe(pa.float64())))
        value = pc.if_else(size < float(most if precision == 38 else 2 * most), value, pc.scalar(None))
    rounded = pc.round(value, ndigits=scale, round_mode="half_towards_infinity")
    # Arrow asks for room for any integer first, and looks at the values only when it narrows a decimal.
    wide = rounded.cast(pa.decimal128(38, scale))
    if safe and precision < 38:
        limit = pa.scalar(Decimal(most), pa.decimal128(precision - scale + 1, 0))
        wide = pc.if_else(pc.abs(wide) < limit, wide, pc.scalar(None))
    return wide.cast(pa.decimal128(precision, scale))
