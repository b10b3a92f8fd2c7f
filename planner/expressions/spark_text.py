"""Prints expressions as Spark SQL: operator precedence, literals, identifiers and Spark's names for types.

The expressions already have Flink's meaning in terms of Spark's functions (see
:mod:`hintplan.planner.expressions.scalars`), so this module only prints them. The caller provides the names of columns,
which are ``l.x`` and ``r.x`` in the condition of a join.

>>> from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, Field, FieldRef, call, literal
>>> total = FieldRef(field=Field(id=1, name="o_total", type=BIGINT))
>>> to_spark_sql(call(">", (total, literal(10, INT)), BOOLEAN, 0), {1: "o_total"})
'o_total > 10'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hintplan.planner.expressions.typed import FIELD, VALUE, AggregateCallExpr, Call, Expr, FieldRef, Literal
from hintplan.plans.declarations.types import DataType

_BINARY = {
    "OR": 1,
    "AND": 2,
    "=": 4,
    "<>": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "<=>": 4,
    "LIKE": 4,
    "||": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "div": 7,
    "%": 7,
}
_NOT, _COMPARE, _UNARY, _PRIMARY = 3, 4, 8, 9
_SPARK_TYPES = {
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "BYTES": "BINARY",
    "VARBINARY": "BINARY",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "TIME": "STRING",
}
# words that Spark, or the parser that checks expressions of plans, does not accept as an unquoted column name
_RESERVED_WORDS = """
all and anti any array as asc at between both by case cast check collate column constraint create cross cube
current_date current_time current_timestamp current_user date desc distinct div drop else end escape except exists
extract false fetch filter for foreign from full function grant group grouping having if in index inner insert
intersect interval into is join key lateral leading left like limit minus natural not null offset on only or order
outer over overlaps partition position primary range references right rollup row rows select semi session_user set
some struct substring table then time timestamp to trailing trim true try_cast union unique unknown unpivot user
using values when where window with year month day hour minute second map ltrim rtrim decimal numeric int string
default comment percent sort cluster distribute
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def identifier(name: str) -> str:
    """Return a column name, in backquotes only if it needs them."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    """Return ``text`` in quotes, with Spark's escapes."""
    if "${" in text:  # Spark would substitute a configuration value, even inside a string
        head, _, tail = text.partition("${")
        return f"concat({string_literal(head + '$')}, {string_literal('{' + tail)})"
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_type(data_type: DataType) -> str:
    """Return Spark's name for a type that can be the target of a cast."""
    if data_type.root == "DECIMAL":
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    inside = [spark_type(part) for part in data_type.parts]
    if data_type.root == "ROW":
        fields = (f"{identifier(name)} {kind}" for name, kind in zip(data_type.names, inside, strict=True))
        return f"STRUCT<{', '.join(fields)}>"
    if inside:
        return f"{'MAP' if data_type.has_entries else data_type.root}<{', '.join(inside)}>"
    return _SPARK_TYPES.get(data_type.root, data_type.root)


def to_spark_sql(expression: Expr, names: Mapping[int, str]) -> str:
    """Return the expression as Spark SQL; ``names`` maps the id of each field to its printed name."""
    return _Printer(names).text(expression, 0)


class _Printer:
    def __init__(self, names: Mapping[int, str]) -> None:
        self.names = names

    def text(self, expression: Expr, needed: int) -> str:
        """Print with parentheses if the expression binds more loosely than ``needed``."""
        if isinstance(expression, AggregateCallExpr):
            raise TypeError("aggregate calls are taken out before printing")
        if isinstance(expression, FieldRef):
            return self.names[expression.field.id]
        if isinstance(expression, Literal):
            return self.literal(expression)
        text, strength = self.call(expression)
        return f"({text})" if strength < needed else text

    def literal(self, expression: Literal) -> str:
        text, root = expression.text, expression.type.root
        if text is None:
            return "NULL" if root == "NULL" else f"CAST(NULL AS {spark_type(expression.type)})"
        if root == "INTERVAL":
            return text
        if expression.type.is_text or root == "TIME":
            return string_literal(text)
        if root == "DATE":
            return f"DATE '{text}'"
        if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return f"{spark_type(expression.type)} '{text}'"
        return text.upper() if root == "BOOLEAN" else text

    def call(self, expression: Call) -> tuple[str, int]:
        name, args = expression.function, expression.args
        if name in _BINARY:
            strength = _BINARY[name]
            # comparisons do not chain; the others associate to the left
            left = self.text(args[0], strength + 1 if strength == _COMPARE else strength)
            right = self.text(args[1], strength if name in ("AND", "OR") else strength + 1)
            return f"{left} {name} {right}", strength
        if name == "NOT":
            return f"NOT {self.text(args[0], _NOT)}", _NOT
        if name == "NEGATE":
            inner = self.text(args[0], _UNARY)
            return (f"-({inner})" if inner.startswith("-") else f"-{inner}"), _UNARY
        if name in ("IS NULL", "IS NOT NULL"):
            return f"{self.text(args[0], _COMPARE + 1)} {name}", _COMPARE
        if name == "BETWEEN":
            value, low, high = (self.text(a, _COMPARE + 1) for a in args)
            return f"{value} BETWEEN {low} AND {high}", _COMPARE
        if name == "IN":
            subject, *items = args
            return f"{self.text(subject, _COMPARE + 1)} IN ({', '.join(self.text(a, 0) for a in items)})", _COMPARE
        if name in ("CAST", "TRY_CAST"):
            return f"{name}({self.text(args[0], 0)} AS {spark_type(expression.type)})", _PRIMARY
        if name == "CASE":
            return self.case(args), _PRIMARY
        if name == FIELD and isinstance(args[1], Literal):
            return f"{self.part_of(args[0])}.{identifier(args[1].text or '')}", _PRIMARY
        if name == VALUE:
            return f"{self.part_of(args[0])}[{self.text(args[1], 0)}]", _PRIMARY
        return f"{name}({', '.join(self.text(a, 0) for a in args)})", _PRIMARY

    def part_of(self, whole: Expr) -> str:
        """Print the value whose field or element is read."""
        text = self.text(whole, _PRIMARY)
        return f"({text})" if isinstance(whole, Call) and whole.function == "CASE" else text

    def case(self, args: tuple[Expr, ...]) -> str:
        parts = ["CASE"]
        for condition, outcome in zip(args[:-1:2], args[1::2], strict=True):
            parts.append(f"WHEN {self.text(condition, 0)} THEN {self.text(outcome, 0)}")
        return " ".join((*parts, f"ELSE {self.text(args[-1], 0)}", "END"))
