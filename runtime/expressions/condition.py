"""The compiler of plan expressions for Arrow, mainly of join conditions beyond equal keys.

An outer, semi or anti join must know how many partners of a row satisfy the whole condition. So the join evaluates the
condition itself, on candidate pairs, with SQL's three-valued logic. Each part gets the type that it has in Spark, and
so the same result. Integers wrap around at the width of their type, as in
:mod:`hintplan.runtime.expressions.arithmetic`.

The driver compiles the checked tree; workers get a tree of nodes. Column references are ``l.column`` and ``r.column``,
which names of nested fields may follow. The compiler refuses expressions without an exact kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hintplan.plans.declarations.json_functions import call_fault
from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.constants import named_type, number_constant, span_of, text_constant
from hintplan.runtime.expressions.json_calls import FUNCTIONS, JsonCall
from hintplan.runtime.kernels.coercion import MOST_DIGITS, arithmetic_digits, common_type, digits_of
from hintplan.runtime.kernels.comparison import compare, compare_nested, holds, is_member, matches, not_distinct
from hintplan.runtime.kernels.computation import compute, compute_wide, divide, remainder, shift
from hintplan.runtime.kernels.conversion import by_row, convert, converts, may_not_fit
from hintplan.runtime.kernels.evaluation import Apply, Choose, Coalesce, Connect, Constant, Node, Read
from hintplan.runtime.kernels.nested_parts import element_of, field_of, size_of, value_of
from hintplan.runtime.kernels.pairs import JoinCondition


def compile_join_condition(expression: CheckedExpression, left: pa.Schema, right: pa.Schema) -> JoinCondition:
    """Compile a condition over the columns ``l.<name>`` and ``r.<name>``; RunError if a join cannot evaluate it."""
    return _Compiler(expression.path, {"l": left, "r": right}).condition(expression)


def compile_filter(expression: CheckedExpression, right: pa.Schema) -> JoinCondition:
    """Compile a condition over the right side alone, whose columns have no prefix in it."""
    return _Compiler(expression.path, {"": right}).condition(expression)


def compile_values(expression: CheckedExpression, right: pa.Schema, kind: pa.DataType | None = None) -> JoinCondition:
    """Compile any expression over the right side alone, cast to ``kind`` if given; ``answers`` returns its values."""
    return _Compiler(expression.path, {"": right}).values(expression, kind)


def compile_tree(tree: exp.Expr, sides: dict[str, pa.Schema]) -> Node:
    """Compile the tree of a checked expression over the columns under each prefix of ``sides``."""
    return _Compiler("", sides).compile(tree)


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.SafeAdd: "+",
    exp.SafeSubtract: "-",
    exp.SafeMultiply: "*",
}
_SAFE = (exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply)
_PATTERN = re.compile(r"(?:[^\\]|\\[\\%_])*", re.DOTALL)


class _Compiler:
    """A compiler of expressions; ``sides`` has the columns under each prefix.

    Columns without a prefix belong to the right side.
    """

    def __init__(self, path: str, sides: dict[str, pa.Schema]) -> None:
        self.path = path
        self.sides = sides
        self.used: dict[str, set[str]] = {"l": set(), "r": set()}

    def condition(self, expression: CheckedExpression) -> JoinCondition:
        compiled = self.values(expression)
        if compiled.expression.kind not in (pa.bool_(), pa.null()):
            raise RunError(f"is no condition, for it is not BOOLEAN: {expression.text}", path=self.path)
        if isinstance(compiled.expression, Connect) and compiled.expression.every:
            return replace(compiled, expression=replace(compiled.expression, chooses=True))
        return compiled

    def values(self, checked: CheckedExpression, kind: pa.DataType | None = None) -> JoinCondition:
        try:
            expression = self.compile(checked.tree)
            if kind is not None:
                expression = self._as(expression, kind, checked.tree)
        except RecursionError:
            raise RunError("is nested too deeply", path=self.path, hint="compute it in several steps") from None
        return JoinCondition(
            expression=expression, left=tuple(sorted(self.used["l"])), right=tuple(sorted(self.used["r"]))
        )

    def compile(self, node: exp.Expr) -> Node:
        sign = _COMPARISONS.get(type(node))
        if sign is not None:
            return self._compared(sign, *self._meeting(node.this, node.expression), node)
        sign = _ARITHMETIC.get(type(node))
        if sign is not None:
            return self._computed(sign, node)
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise self._refused(node)
        compiled: Node = handler(node)
        return compiled

    def _refused(self, node: exp.Expr) -> RunError:
        return RunError(
            f"a join condition cannot contain {node.sql(dialect='spark')}",
            path=self.path,
            hint="compute it as a column of a sub-query below the join",
        )

    def _apply(
        self,
        node: exp.Expr,
        function: Callable[..., Any],
        args: Sequence[Node],
        kind: pa.DataType,
        *,
        fails: bool = False,
        slow: bool = False,
    ) -> Node:
        text = f"{self.path}: {node.sql(dialect='spark')}" if fails else ""
        return Apply(function=function, args=tuple(args), kind=kind, text=text, fails=fails, slow=slow)

    def _as(self, value: Node, kind: pa.DataType, node: exp.Expr, *, safe: bool = False) -> Node:
        """Return ``value`` converted to ``kind``."""
        if value.kind == kind:
            return value
        if not converts(value.kind, kind):
            raise self._refused(node)
        function = partial(convert, to=kind, safe=safe)
        fails = not safe and may_not_fit(value.kind, kind)
        if isinstance(value, Constant):
            with suppress(ArithmeticError):  # the error belongs to the rows that reach this value
                return Constant(value=function(value.value))
        return self._apply(node, function, (value,), kind, fails=fails, slow=by_row(value.kind, kind))

    def _common(self, values: Sequence[Node], node: exp.Expr) -> tuple[Node, ...]:
        """Return ``values`` converted to their common type."""
        kind = values[0].kind
        for value in values[1:]:
            shared_kind = common_type(kind, value.kind)
            if shared_kind is None:
                raise self._refused(node)
            kind = shared_kind
        return tuple(self._as(value, kind, node) for value in values)

    def _meeting(self, left: exp.Expr, right: exp.Expr) -> tuple[Node, Node]:
        """Compile two operands; an integer paired with a DECIMAL becomes a DECIMAL.

        The DECIMAL of an integer literal has only the digits of the literal.
        """
        left_operand, right_operand = self.compile(left), self.compile(right)
        return self._beside(left_operand, left, right_operand), self._beside(right_operand, right, left_operand)

    def _beside(self, value: Node, node: exp.Expr, other: Node) -> Node:
        digits = digits_of(value.kind)
        if digits is None or not pa.types.is_integer(value.kind) or not pa.types.is_decimal(other.kind):
            return value
        if isinstance(value, Constant) and _is_whole(node):
            digits = len(str(abs(value.value.as_py()))), 0
        return self._as(value, pa.decimal128(*digits), node)

    def _truth(self, node: exp.Expr) -> Node:
        operand = self.compile(node)
        if operand.kind not in (pa.bool_(), pa.null()):
            raise self._refused(node)
        return self._as(operand, pa.bool_(), node)

    def _compared(self, sign: str, left: Node, right: Node, node: exp.Expr) -> Node:
        left, right = self._common((left, right), node)
        if pa.types.is_nested(left.kind):
            if sign not in ("=", "<>") or isinstance(left, Constant) or isinstance(right, Constant):
                raise self._refused(node)
            return self._apply(node, partial(compare_nested, sign=sign), (left, right), pa.bool_())
        if pa.types.is_null(left.kind):
            left = right = Constant(value=pa.scalar(None, pa.bool_()))
        return self._apply(node, partial(compare, sign=sign), (left, right), pa.bool_())

    def _nullsafeeq(self, node: exp.NullSafeEQ) -> Node:
        values = self._common(self._meeting(node.this, node.expression), node)
        if pa.types.is_nested(values[0].kind) or pa.types.is_null(values[0].kind):
            raise self._refused(node)
        return self._apply(node, not_distinct, values, pa.bool_())

    def _connected(self, node: exp.Connector, every: bool) -> Node:
        # A loop, because the chain may be too long for recursion.
        parts: list[exp.Expr] = []
        pending: list[exp.Expr] = [node]
        while pending:
            part = pending.pop()
            if type(part) is type(node):
                pending += [part.expression, part.this]
            else:
                parts.append(part)
        return Connect(every=every, parts=tuple(self._truth(part) for part in parts))

    def _and(self, node: exp.And) -> Node:
        return self._connected(node, every=True)

    def _or(self, node: exp.Or) -> Node:
        return self._connected(node, every=False)

    def _not(self, node: exp.Not) -> Node:
        return self._apply(node, pc.invert, (self._truth(node.this),), pa.bool_())

    def _column(self, node: exp.Column) -> Node:
        """Return a column, or the field of a ROW if names of fields follow."""
        names = [part.name for part in node.parts]
        side = "" if "" in self.sides else names.pop(0)
        schema = self.sides.get(side)
        if schema is None or not names or names[0] not in schema.names:
            raise RunError(f"unknown column {node.sql(dialect='spark')}", path=self.path)
        name, *fields = names
        side = side or "r"
        self.used[side].add(name)
        value: Node = Read(name=f"{side}.{name}", kind=schema.field(name).type)
        for field in fields:
            value = self._field(value, field, node)
        return value

    def _dot(self, node: exp.Dot) -> Node:
        if not isinstance(node.expression, exp.Identifier):
            raise self._refused(node)
        return self._field(self.compile(node.this), node.expression.name, node)

    def _field(self, whole: Node, name: str, node: exp.Expr) -> Node:
        kind = whole.kind
        names = [field.name for field in kind] if pa.types.is_struct(kind) else []
        if isinstance(whole, Constant) or names.count(name) != 1:
            raise self._refused(node)
        place = names.index(name)
        return self._apply(node, partial(field_of, place=place), (whole,), kind.field(place).type)

    def _bracket(self, node: exp.Bracket) -> Node:
        """Compile ``m['k']`` with a literal key.

        An array's ``a[0]`` is refused, because Spark evaluates it differently from ``get``.
        """
        whole = self.compile(node.this)
        if len(node.expressions) != 1 or not pa.types.is_map(whole.kind) or isinstance(whole, Constant):
            raise self._refused(node)
        key, kind = self.compile(node.expressions[0]), whole.kind.key_type
        plain = pa.types.is_string(kind) or pa.types.is_integer(kind)
        if not plain or not isinstance(key, Constant) or not key.value.is_valid:
            raise self._refused(node)
        if key.kind != kind and not (pa.types.is_integer(kind) and pa.types.is_integer(key.kind)):
            raise self._refused(node)
        with suppress(pa.ArrowInvalid):
            function = partial(value_of, key=key.value.cast(kind))
            return self._apply(node, function, (whole,), whole.kind.item_type)
        raise self._refused(node)

    def _anonymous(self, node: exp.Anonymous) -> Node:
        if node.name.lower() in FUNCTIONS:
            return self._of_json(node, node.name.lower())
        if node.name.lower() != "get" or len(node.expressions) != 2:
            raise self._refused(node)
        whole, position = (self.compile(part) for part in node.expressions)
        short = pa.types.is_integer(position.kind) and position.kind.bit_width <= 32
        if not short or not pa.types.is_list(whole.kind) or isinstance(whole, Constant):
            raise self._refused(node)
        return self._apply(node, element_of, (whole, position), whole.kind.value_type)

    def _of_json(self, node: exp.Anonymous, name: str) -> Node:
        """Compile a call of one of hintplan's own functions on a text and constants.

        The call is not marked as slow, because Spark would call the same Python function.
        """
        written = [part.name if isinstance(part, exp.Literal) and part.is_string else None for part in node.expressions]
        if call_fault(name, written):
            raise self._refused(node)
        text, *others = (self.compile(part) for part in node.expressions)
        kind = FUNCTIONS[name].kind
        fit = all(
            isinstance(argument, Constant) and argument.kind in (kind, pa.string(), pa.null()) for argument in others
        )
        if text.kind != pa.string() or isinstance(text, Constant) or not fit:
            raise self._refused(node)
        constants = tuple(argument.value.as_py() for argument in others if isinstance(argument, Constant))
        return self._apply(node, JsonCall(name, constants), (text,), kind)

    def _arraysize(self, node: exp.ArraySize) -> Node:
        whole = self.compile(node.this)
        nested = pa.types.is_list(whole.kind) or pa.types.is_map(whole.kind)
        if not nested or isinstance(whole, Constant):
            raise self._refused(node)
        return self._apply(node, size_of, (whole,), pa.int32())

    def _paren(self, node: exp.Paren) -> Node:
        return self.compile(node.this)

    def _literal(self, node: exp.Literal) -> Node:
        return self._number(node, "") if not node.is_string else Constant(value=pa.scalar(node.this, pa.string()))

    def _rawstring(self, node: exp.RawString) -> Node:
        return Constant(value=pa.scalar(node.this, pa.string()))

    def _number(self, node: exp.Literal, sign: str) -> Node:
        constant = number_constant(sign + node.name)
        if constant is None:
            raise self._refused(node)
        return Constant(value=constant)

    def _neg(self, node: exp.Neg) -> Node:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self._number(node.this, "-")
        return self._of_number(node, pc.negate)

    def _abs(self, node: exp.Abs) -> Node:
        return self._of_number(node, pc.abs)

    def _of_number(self, node: exp.Expr, function: Callable[..., Any]) -> Node:
        operand = self.compile(node.this)
        if digits_of(operand.kind) is None and not pa.types.is_floating(operand.kind):
            raise self._refused(node)
        return self._apply(node, function, (operand,), operand.kind)

    def _computed(self, sign: str, node: exp.Expr) -> Node:
        spans = span_of(node.this), span_of(node.expression)
        if spans != (None, None):
            return self._shifted(node, spans)
        left, right = self._meeting(node.this, node.expression)
        left_digits, right_digits = digits_of(left.kind), digits_of(right.kind)
        if pa.types.is_decimal(left.kind) and pa.types.is_decimal(right.kind) and left_digits and right_digits:
            (precision, _), kind = arithmetic_digits(sign, left_digits, right_digits)
            if precision <= MOST_DIGITS:
                return self._apply(node, partial(compute, sign=sign), (left, right), kind)
            return self._apply(node, partial(compute_wide, sign=sign, to=kind), (left, right), kind, slow=True)
        left, right = self._common((left, right), node)
        if not (pa.types.is_integer(left.kind) or pa.types.is_floating(left.kind)) or isinstance(node, _SAFE):
            raise self._refused(node)
        return self._apply(node, partial(compute, sign=sign), (left, right), left.kind)

    def _shifted(self, node: exp.Expr, spans: tuple[timedelta | None, timedelta | None]) -> Node:
        """Compile a TIMESTAMP plus or minus an interval of days or less."""
        span = spans[1] if spans[1] is not None else spans[0]
        moment = self.compile(node.this if spans[1] is not None else node.expression)
        if moment.kind != pa.timestamp("us") or (isinstance(node, exp.Sub) and spans[1] is None):
            raise self._refused(node)
        by = Constant(value=pa.scalar(span, pa.duration("us")))
        sign = "+" if isinstance(node, exp.Add) else "-"
        return self._apply(node, partial(compute, sign=sign), (moment, by), moment.kind)

    def _intdiv(self, node: exp.IntDiv) -> Node:
        left, right, fails = self._dividing(node)
        return self._apply(node, divide, (left, right), pa.int64(), fails=fails)

    def _mod(self, node: exp.Mod) -> Node:
        left, right, fails = self._dividing(node)
        return self._apply(node, remainder, (left, right), left.kind, fails=fails)

    def _dividing(self, node: exp.Binary) -> tuple[Node, Node, bool]:
        """Return two integer operands, and True if the second may be zero."""
        left, right = self._common((self.compile(node.this), self.compile(node.expression)), node)
        if not pa.types.is_integer(left.kind):
            raise self._refused(node)
        return left, right, not (isinstance(right, Constant) and right.value.as_py() != 0)

    def _boolean(self, node: exp.Boolean) -> Node:
        return Constant(value=pa.scalar(bool(node.this)))

    def _null(self, _node: exp.Null) -> Node:
        return Constant(value=pa.scalar(None))

    def _is(self, node: exp.Is) -> Node:
        if isinstance(node.expression, exp.Null):
            return self._apply(node, pc.is_null, (self.compile(node.this),), pa.bool_())
        if not isinstance(node.expression, exp.Boolean):
            raise self._refused(node)
        wanted = bool(node.expression.this)
        return self._apply(node, partial(holds, wanted=wanted), (self._truth(node.this),), pa.bool_())

    def _between(self, node: exp.Between) -> Node:
        if node.args.get("symmetric"):
            raise self._refused(node)
        bounds = ((">=", node.args["low"]), ("<=", node.args["high"]))
        parts = (self._compared(sign, *self._meeting(node.this, bound), node) for sign, bound in bounds)
        return Connect(every=True, parts=tuple(parts))

    def _in(self, node: exp.In) -> Node:
        if not node.expressions or node.args.get("query") is not None:
            raise self._refused(node)
        value, *items = self._common([self.compile(part) for part in (node.this, *node.expressions)], node)
        kind = value.kind
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            raise self._refused(node)
        if all(isinstance(item, Constant) for item in items) and not pa.types.is_floating(kind):
            values = pa.array([item.value.as_py() for item in items if isinstance(item, Constant)], kind)
            return self._apply(node, partial(is_member, values=values), (value,), pa.bool_())
        equal = partial(compare, sign="=")
        return Connect(every=False, parts=tuple(self._apply(node, equal, (value, i), pa.bool_()) for i in items))

    def _coalesce(self, node: exp.Coalesce) -> Node:
        parts = self._common([self.compile(part) for part in (node.this, *node.expressions)], node)
        return Coalesce(parts=parts)

    def _case(self, node: exp.Case) -> Node:
        subject, branches = node.this, node.args["ifs"]
        # Nodes know their parent, so a comparison that is not in the plan needs copies.
        tests = [
            branch.this if subject is None else exp.EQ(this=subject.copy(), expression=branch.this.copy())
            for branch in branches
        ]
        default = node.args.get("default") or exp.Null()
        return self._chosen(tests, [branch.args["true"] for branch in branches], default, node)

    def _if(self, node: exp.If) -> Node:
        if node.args.get("false") is None:
            raise self._refused(node)
        return self._chosen([node.this], [node.args["true"]], node.args["false"], node)

    def _chosen(self, tests: list[exp.Expr], values: list[exp.Expr], default: exp.Expr, node: exp.Expr) -> Node:
        *chosen, otherwise = self._common([self.compile(part) for part in (*values, default)], node)
        return Choose(branches=tuple(zip(map(self._truth, tests), chosen, strict=True)), default=otherwise)

    def _like(self, node: exp.Like) -> Node:
        pattern, text = node.expression, self.compile(node.this)
        is_pattern = isinstance(pattern, exp.Literal) and pattern.is_string and _PATTERN.fullmatch(pattern.name)
        if not is_pattern or text.kind != pa.string():
            raise self._refused(node)
        matched = self._apply(node, partial(matches, pattern=pattern.name), (text,), pa.bool_())
        return self._apply(node, pc.invert, (matched,), pa.bool_()) if node.args.get("negate") else matched

    def _bitwiseleftshift(self, node: exp.BitwiseLeftShift) -> Node:
        return self._moved(node, left=True)

    def _bitwiserightshift(self, node: exp.BitwiseRightShift) -> Node:
        return self._moved(node, left=False)

    def _moved(self, node: exp.Binary, *, left: bool) -> Node:
        value, by = self.compile(node.this), node.expression
        if not pa.types.is_integer(value.kind) or not (isinstance(by, exp.Literal) and by.name.isdigit()):
            raise self._refused(node)
        value = self._as(value, pa.int64() if value.kind == pa.int64() else pa.int32(), node)
        places = int(by.name) % value.kind.bit_width
        return self._apply(node, partial(shift, places=places, left=left), (value,), value.kind)

    def _isnan(self, node: exp.IsNan) -> Node:
        value = self.compile(node.this)
        if not pa.types.is_floating(value.kind):
            value = self._as(value, pa.float64(), node)
        is_nan = self._apply(node, pc.is_nan, (value,), pa.bool_())
        return self._apply(node, partial(holds, wanted=True), (is_nan,), pa.bool_())

    def _cast(self, node: exp.Cast) -> Node:
        """Compile a constant such as DATE '2024-12-31', which sqlglot parses as a cast that may not fail."""
        constant = None
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            constant = text_constant(node.to, node.this.name)
        if constant is None:
            raise self._refused(node)
        return Constant(value=constant)

    def _trycast(self, node: exp.TryCast) -> Node:
        """Compile CAST, which sqlglot's Spark dialect parses as a cast that may fail.

        TRY_CAST is such a cast with ``safe`` set.
        """
        text = node.this.name if isinstance(node.this, exp.Literal) and node.this.is_string else None
        constant = None if text is None else text_constant(node.args["to"], text)
        if constant is not None:
            return Constant(value=constant)
        kind = named_type(node.args["to"])
        if kind is None:
            raise self._refused(node)
        return self._as(self.compile(node.this), kind, node, safe=bool(node.args.get("safe")))


def _is_whole(node: exp.Expr) -> bool:
    """Return True for an integer literal, with a sign or without."""
    node = node.unnest()
    number = node.this if isinstance(node, exp.Neg) else node
    return isinstance(number, exp.Literal) and number.is_int
