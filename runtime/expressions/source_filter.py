"""The compiler of a scan's filter: from a checked expression to the predicate that is pushed down to the source.

A filter consists of comparisons of a column with constants, combined by AND and OR. Constants become Python values. The
compiler refuses anything else.

>>> from hintplan.runtime.expressions.allowed import check_expression
>>> checked = check_expression("k >= 5", {("k",): "k"}, operator="scan_t", path="operators.scan_t.filter")
>>> compile_asked(checked, {"k": "INT"})
Comparison(column='k', operator='>=', values=(5,))
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.constants import number_constant, text_constant
from hintplan.runtime.expressions.pushed_filter import Comparison, Junction, PushedFilter

_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
PythonConstant = str | int | float | Decimal | date | datetime
"""A constant in Python."""
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compile_asked(expression: CheckedExpression, types: Mapping[str, str]) -> PushedFilter:
    """Compile ``expression`` over columns with these types; RunError if it cannot be pushed down to a source."""
    return _Compiler(types, expression.path).condition(expression.tree)


class _Compiler:
    def __init__(self, types: Mapping[str, str], path: str) -> None:
        self.types, self.path = types, path

    def condition(self, node: exp.Expr) -> PushedFilter:
        node = node.unnest()
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self.condition(part) for part in node.flatten())
            return Junction(operator="AND" if isinstance(node, exp.And) else "OR", parts=parts)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Comparison(column=self.column(node.this), operator="IS NULL")
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return Comparison(column=self.column(node.this.this), operator="IS NOT NULL")
        if isinstance(node, exp.Between):
            return self.comparison("BETWEEN", node.this, [node.args["low"], node.args["high"]])
        if isinstance(node, exp.In) and node.expressions:
            return self.comparison("IN", node.this, node.expressions)
        operator = _COMPARISONS.get(type(node))
        if operator is None:
            raise self.refused(node)
        if isinstance(node.expression, exp.Column):
            return self.comparison(_TURNED[operator], node.expression, [node.this])
        return self.comparison(operator, node.this, [node.expression])

    def comparison(self, operator: str, subject: exp.Expr, values: list[exp.Expr]) -> Comparison:
        column = self.column(subject)
        return Comparison(column=column, operator=operator, values=tuple(self.value(column, value) for value in values))

    def column(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column) or len(node.parts) != 1 or node.name not in self.types:
            raise self.refused(node)
        return node.name

    def value(self, column: str, node: exp.Expr) -> PythonConstant:
        """Return the constant as a value of the column's type."""
        kind = parse_type(self.types[column])
        constant = None
        if kind.is_integer or kind.root in ("DECIMAL", "DOUBLE"):
            text = f"-{node.this.name}" if isinstance(node, exp.Neg) else node.name
            number = node.this if isinstance(node, exp.Neg) else node
            if isinstance(number, exp.Literal) and not number.is_string:
                constant = number_constant(text)
        elif kind.is_text:
            if isinstance(node, exp.Literal) and node.is_string:
                return node.name
        elif isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            constant = text_constant(node.to, node.this.name)
        if constant is None:
            raise self.refused(node)
        if kind.root == "DOUBLE":
            return float(constant.as_py())
        value: PythonConstant = constant.as_py()
        return value

    def refused(self, node: exp.Expr) -> RunError:
        return RunError(
            f"{node.sql(dialect='spark')!r} cannot be pushed down to a source: it compares columns with constants",
            hint="compile the SQL again",
            path=self.path,
        )
